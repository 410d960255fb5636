"""Serve the page on loopback, behind a guard; each address calls the session.

Every program of the machine, and every web page in the same browser, can reach a page on loopback.
So each request must name this host (another name may resolve to 127.0.0.1), have this page as its
origin if it has one, and carry the cookie that the one-time link sets. Bodies, which only an action
has, are bounded.
"""

import contextlib
import errno
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attree.annotate.session import Session
from attree.base.errors import AttreeError
from attree.base.reading import reason_of

#: The most bytes of a request's body; an action has less than a thousandth of that.
LARGEST_BODY = 64 * 1024
#: The most bytes read of a larger body before it is refused, so that its sender hears why.
_DRAINED = 32 * 2**20

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_USED = "This link was used already. In the browser that opened it, the page is at {page}; "
_USED += "elsewhere, end attree annotate with Ctrl-C and start it again for a new link.\n"
_NO_KEY = "This page opens, once, with the link that attree annotate printed.\n"


class Guard:
    """ASGI middleware that refuses requests of other hosts, other pages and without the cookie.

    Args:
        app: the application that answers.
        port: port of the page.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app, self.port = app, port
        self.token, self._key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._cookie = f"attree-{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._used = False

    @property
    def link(self) -> str:
        """The link that opens the page once."""
        return f"http://127.0.0.1:{self.port}/open?token={self.token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse a request."""
        if scope["type"] != "http":  # no WebSocket is served
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await (self._refusal(Request(scope)) or self.app)(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a refused request, or to the link that opens the page, else None."""
        headers, host = request.headers, request.headers.get("host", "")
        if host not in self._hosts or len(headers.getlist("host")) != 1:
            return PlainTextResponse("This host is not served here.\n", 421)
        origin = headers.get("origin")
        if origin is None and request.method not in ("GET", "HEAD"):
            return PlainTextResponse("A request of this kind names its origin.\n", 403)
        if origin is not None and origin != f"http://{host}":
            return PlainTextResponse("Requests of other pages are refused.\n", 403)
        if request.url.path == "/open" and request.method == "GET":
            return self._open(request)
        key = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        if not secrets.compare_digest(key.encode(), self._key.encode()):
            return PlainTextResponse(_NO_KEY, 403)
        return None

    def _open(self, request: Request) -> Response:
        token = request.query_params.get("token", "")
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return PlainTextResponse(_NO_KEY, 403)
        if self._used:
            return PlainTextResponse(_USED.format(page=f"http://{request.headers['host']}/"), 403)
        self._used = True
        response = Response(status_code=303, headers={"Location": "/"})
        response.set_cookie(self._cookie, self._key, httponly=True, samesite="strict")
        return response


async def _body(request: Request) -> bytes | None:
    """Return the body of a request, or None if it is too large."""
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > _DRAINED:
        return None
    body, size = b"", 0
    with contextlib.suppress(ClientDisconnect):
        async for part in request.stream():
            size += len(part)
            if size > _DRAINED:
                break
            body += part if size <= LARGEST_BODY else b""
    return body if size <= LARGEST_BODY else None


#: The page's files → their types.
_FILES = {
    "page.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.tree.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
}
_Position = Annotated[int, msgspec.Meta(ge=0, le=30_000)]


class PageRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A request of the page: an action, and the version of the state that it acts on."""

    action: str
    version: int
    start: _Position = 0
    end: _Position = 0
    to: tuple[_Position, _Position] = (0, 0)
    label: Annotated[str, msgspec.Meta(max_length=1000)] = ""


def application(session: Session) -> Starlette:
    """Return the application without its guard."""

    def state(request: Request) -> Response:
        return JSONResponse(session.state())

    async def act(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _error("the page sends JSON", 415)
        if (body := await _body(request)) is None:
            return _error("this request is too large", 413)
        return await run_in_threadpool(_answer, session, body)

    routes = [Route("/state", state), Route("/act", act, methods=["POST"])]
    routes += [Route(f"/{name}".replace("page.html", ""), _file(name)) for name in _FILES]
    return Starlette(routes=routes)


def _file(name: str) -> Callable[[Request], Response]:
    path = Path(__file__).with_name(name)
    return lambda request: FileResponse(path, headers={"Content-Type": _FILES[name]})


def _error(line: str, status: int, **more: Any) -> JSONResponse:
    return JSONResponse({"error": line, **more}, status)


def _answer(session: Session, body: bytes) -> Response:
    """Do the action of a request; answer with the new state, or with an error in one line."""
    try:
        do(session, msgspec.json.decode(body, type=PageRequest))
    except AttreeError as error:
        if error.code == "stale":
            return _error(str(error), 409, state=session.state())
        return _error(str(error), 422)
    except OSError as error:
        return _error(_not_saved(error), 507)
    except (msgspec.MsgspecError, RecursionError) as error:
        return _error(f"this is no action of the page ({str(error).partition(' - ')[0]})", 400)
    return JSONResponse(session.state())


def _not_saved(error: OSError) -> str:
    reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else reason_of(error)
    where = f" ({error.filename})" if error.filename else ""
    return f"Not saved: {reason}{where}. Nothing is lost: make room and try again."


def do(session: Session, request: PageRequest) -> None:
    """Do the action of a request.

    Raises:
        AttreeError: the action cannot be done. Code ``stale``: the page shows an older state, which
            another window or a new parser has changed.
    """
    whole = {"accept": session.accept, "skip": session.skip, "undo": session.undo}
    with session.lock:  # of two actions on one state, the second is stale
        if request.version != session.version:
            problem = "another window or a new parser has changed the tree, which is now shown"
            raise AttreeError("stale", problem)
        if request.action in whole:
            whole[request.action]()
        else:
            session.act(request.action, request.start, request.end, request.to, request.label)


def listen(port: int) -> socket.socket:
    """Return a socket on loopback, at a free port where ``port`` is 0.

    Raises:
        AttreeError: the port is taken.
    """
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        problem = f"port {port} cannot be used ({reason_of(error)})"
        raise AttreeError("port-taken", problem, fix="leave --port out for a free one") from None
    # its connections inherit this: Nagle's algorithm costs 40 ms
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


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
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again
        uvicorn.Server(config).run(sockets=[listening])
