"""Sessions on a tiny encoder, and the page's server without a network."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from attree.annotate.folder import opened
from attree.annotate.server import Guard, application
from attree.annotate.session import AnnotationRequest, Session, begin
from attree.base.options import TextOptions
from attree.parsers.find import AveragedHeads, Overrides, find_parser
from tests.encoder.checkpoints import save

TEXT = """\
the old man lived near the harbour .
the cat chased mice .
rain !
the man came home near the cat .
the cat lived near the old man .
the mice came home .
the old cat chased the old mice .
the rain came near the harbour .
"""
PORT = 8765
HOME = f"http://127.0.0.1:{PORT}"

#: Opens a session on a text, in a folder.
Begin = Callable[..., Any]


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> AveragedHeads:
    """A parser by the heads of a tiny BERT."""
    folder = tmp_path_factory.mktemp("encoder") / "checkpoint"
    save("bert", folder)
    return find_parser("upio-log", Overrides(encoder=str(folder), heads="all"))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def session_of(source: AveragedHeads, text: Path, tmp_path: Path) -> Begin:
    """Open a session; settings as of ``Request``."""

    @contextlib.contextmanager
    def make(output: str = "bank", **settings: Any) -> Iterator[Session]:
        how = TextOptions(tokenizer=settings.pop("tokenizer", "whitespace"))
        asked = {"texts": (text,), "how": how, "device": "cpu", "every": 100, **settings}
        with opened(tmp_path / output) as folder:
            yield begin(AnnotationRequest(parser=source, name="upio-log", **asked), folder)

    return make


@pytest.fixture
def session(session_of: Begin) -> Iterator[Session]:
    with session_of() as found:
        yield found


class Page:
    """What the page does, by HTTP."""

    def __init__(self, session: Session) -> None:
        self.session, self.guard = session, Guard(application(session), PORT)
        self.http = TestClient(self.guard, base_url=HOME, follow_redirects=False)

    def open(self) -> Page:
        assert self.http.get(self.guard.link).status_code == 303
        return self

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get("/state").json()
        return found

    def act(self, action: str, **more: Any) -> Any:
        body = {"action": action, "version": self.state()["version"], **more}
        return self.http.post("/act", json=body, headers={"Origin": HOME})

    def spans(self) -> list[tuple[int, int]]:
        return [(node["start"], node["end"]) for node in self.state()["sentence"]["nodes"]]

    def words(self) -> str:
        return " ".join(self.state()["sentence"]["words"])


@pytest.fixture
def page(session: Session) -> Page:
    return Page(session).open()
