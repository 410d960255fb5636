"""A process that has imported the whole command line and forks for each command that it is given.

Run as ``python -m tests.attacks.server``: a JSON object a line on stdin (``argv``, ``folder``,
``environment``, ``seconds``), a JSON object a line on stdout (``status``, that of an alarm where
time has run out; ``seconds``, ``megabytes``). The command's own output goes to the files ``stdout``
and ``stderr`` of the object. A fork takes 20 ms where a fresh process takes four seconds to import
torch; what runs is the same entry point, :func:`attree.cli.main.console`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any


def serve() -> None:
    """Answer until stdin ends."""
    from attree.base import provenance
    from attree.base.process import without_collecting
    from attree.cli import main as cli

    with without_collecting():
        for place in cli.COMMANDS.values():
            importlib.import_module(place.partition(":")[0])
        for module in ("encoder.library", "stages.attention", "bulk.run", "training.fit"):
            importlib.import_module(f"attree.{module}")
        # these are imported later, and then take longer than what a bad file makes of a command
        for module in ("attree.reports.figures", "torch._dynamo", "numba.typed", "pandas"):
            importlib.import_module(module)
    # What every command computes of the code, once for all of them.
    provenance.code_hash(*(place.partition(":")[0] for place in cli.COMMANDS.values()))
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), file=answers, flush=True)


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _run(asked)
    _, status, usage = os.wait4(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it has left running
    return {
        "status": os.waitstatus_to_exitcode(status),
        "seconds": time.monotonic() - began,
        "megabytes": usage.ru_maxrss // 1024,
    }


def _run(asked: dict[str, Any]) -> None:
    """Become the command; never return."""
    os.setsid()
    signal.setitimer(signal.ITIMER_REAL, asked["seconds"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # where memory runs out the row dies, not the process that all rows share
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    os.chdir(asked["folder"])
    os.environ.update(asked["environment"])
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["attree", *map(_bytes_too, asked["argv"])]
    from attree.cli import main as cli

    status = 1
    try:
        cli.console()
        status = 0
    except SystemExit as done:
        # the error that the command told; what its options refuse has no code
        Path(asked["code"]).write_text(getattr(done.__context__, "code", ""), encoding="utf-8")
        if isinstance(done.code, str):
            print(done.code, file=sys.stderr)
        else:
            status = done.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _bytes_too(argument: str) -> str:
    r"""Return an argument as a shell would give it; ``\xff`` of a name is a lone surrogate."""
    return os.fsdecode(argument.encode("utf-8", "surrogateescape"))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    serve()
