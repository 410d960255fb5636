"""The page's server: a few addresses on loopback, each a call of the session."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from attree.annotate.guard import Guard
from attree.annotate.session import Session
from attree.base.errors import AttreeError

#: The page's files → their types.
_FILES = {
    "page.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.tree.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
}
_Place = Annotated[int, msgspec.Meta(ge=0, le=30_000)]

HOST = "127.0.0.1"


class PageRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What the page asks for: an action, and the version of the state that it is about."""

    action: str
    version: int
    start: _Place = 0
    end: _Place = 0
    to: tuple[_Place, _Place] = (0, 0)
    label: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class StaleError(AttreeError):
    """An action on a sentence that the page no longer shows."""


def application(session: Session) -> Starlette:
    """Return what answers, behind no guard."""

    def state(request: Request) -> Response:
        return JSONResponse(session.state())

    async def act(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _told("the page sends JSON", 415)
        body = await request.body()
        return await run_in_threadpool(_answer, session, body)

    routes = [Route("/state", state), Route("/act", act, methods=["POST"])]
    routes += [Route(f"/{name}".replace("page.html", ""), _file(name)) for name in _FILES]
    return Starlette(routes=routes)


def _file(name: str) -> Callable[[Request], Response]:
    path = Path(__file__).with_name(name)
    return lambda request: FileResponse(path, headers={"Content-Type": _FILES[name]})


def _told(line: str, status: int, **more: Any) -> JSONResponse:
    return JSONResponse({"error": line, **more}, status)


def _answer(session: Session, body: bytes) -> Response:
    """Do what is asked; say in one line why it cannot be done."""
    try:
        do(session, msgspec.json.decode(body, type=PageRequest))
    except StaleError as error:
        return _told(str(error), 409, state=session.state())
    except AttreeError as error:
        return _told(str(error), 422)
    except OSError as error:
        return _told(_not_saved(error), 507)
    except (msgspec.MsgspecError, RecursionError) as error:
        return _told(f"this is no action of the page ({str(error).partition(' - ')[0]})", 400)
    return JSONResponse(session.state())


def _not_saved(error: OSError) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    reason = "the disk is full" if full else os.strerror(error.errno or 0).lower()
    where = f" ({error.filename})" if error.filename else ""
    return f"Not saved: {reason}{where}. Nothing is lost: make room and try again."


def do(session: Session, asked: PageRequest) -> None:
    """Do what the page asks for.

    Raises:
        StaleError: the page shows an older state, for another window has changed it.
    """
    whole = {"accept": session.accept, "skip": session.skip, "undo": session.undo}
    with session.lock:  # of two actions on one state, one is behind
        if asked.version != session.version:
            problem = "the tree has changed, in another window or by a new parser: here it is"
            raise StaleError(problem)
        if asked.action in whole:
            whole[asked.action]()
        else:
            session.act(asked.action, asked.start, asked.end, asked.to, asked.label)


def listen(port: int) -> socket.socket:
    """Return a socket on loopback, at a free port where ``port`` is 0.

    Raises:
        AttreeError: the port is taken.
    """
    # asyncio turns Nagle's algorithm off only where the protocol is named: it would cost 40 ms
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
        found.listen()  # the link may be opened before the server runs
    except OSError as error:
        found.close()
        reason = os.strerror(error.errno or 0).lower()
        raise AttreeError(
            f"port {port} cannot be used ({reason})", fix="leave --port out for a free one"
        ) from None
    return found


def guarded(session: Session, port: int) -> Guard:
    """Return the application behind its guard."""
    return Guard(application(session), port)


def serve(app: Any, listening: socket.socket) -> None:
    """Serve until Ctrl-C."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn passes on what stopped it
        uvicorn.Server(config).run(sockets=[listening])
