"""Who may talk to the page: only the browser that opened the printed link, and it only from there.

A page on loopback can be reached by every program of the machine, and by every web page that the
same browser shows. So each request must name this host (another name may lead to 127.0.0.1), come
from this page where it says where from, and carry the cookie that the one-time link was exchanged
for. Bodies are bounded.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: Bytes of a request's body; an action has less than a thousandth of it.
LARGEST_BODY = 64 * 1024
#: Bytes read of a larger one before it is refused, so that its sender hears why.
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
_USED = "This link was used already. Where it was opened, the page is at {page}; elsewhere, end "
_USED += "attree annotate with Ctrl-C and start it again for a new link.\n"
_NO_KEY = "This page opens with the link that attree annotate printed, once.\n"


class Guard:
    """Lets through what may pass (ASGI middleware).

    Args:
        app: what answers.
        port: that the page is served at.
        token: of the link; a new one by default.
    """

    def __init__(self, app: Any, port: int, token: str = "") -> None:
        self.app, self.port = app, port
        self.token = token or secrets.token_urlsafe(32)
        self._cookie, self._key = f"attree-{port}", secrets.token_urlsafe(32)
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._used = False

    @property
    def link(self) -> str:
        """The link that opens the page, once."""
        return f"http://127.0.0.1:{self.port}/open?token={self.token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":  # no WebSocket is served
            return

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._refusal(Request(scope))
        if refusal is None:
            body = await _body(scope, receive)
            if body is None:
                refusal = PlainTextResponse("This request is too large.\n", 413)
            else:
                receive = _given(body, receive)
        await (refusal or self.app)(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that is not let through, or that opens the page."""
        headers, host = request.headers, request.headers.get("host", "")
        if host not in self._hosts or len(headers.getlist("host")) != 1:
            return PlainTextResponse("This host is not served here.\n", 421)
        origin = headers.get("origin")
        if origin is None and request.method not in ("GET", "HEAD"):
            return PlainTextResponse("A request of this kind names its origin.\n", 403)
        if origin is not None and origin != f"http://{host}":
            return PlainTextResponse("Requests of other pages are refused.\n", 403)
        if request.url.path == "/open" and request.method == "GET":
            return self._opened(request)
        key = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        if not secrets.compare_digest(key.encode(), self._key.encode()):
            return PlainTextResponse(_NO_KEY, 403)
        return None

    def _opened(self, request: Request) -> Response:
        token = request.query_params.get("token", "")
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return PlainTextResponse(_NO_KEY, 403)
        if self._used:
            page = f"http://{request.headers['host']}/"
            return PlainTextResponse(_USED.format(page=page), 403)
        self._used = True
        response = RedirectResponse("/", 303)
        response.set_cookie(self._cookie, self._key, httponly=True, samesite="strict")
        return response


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """Return the body of a request, None where it is too large."""
    length = Headers(scope=scope).get("content-length", "0")
    if not length.isdecimal() or int(length) > _DRAINED:
        return None
    body, size, more = b"", 0, True
    while more and size <= _DRAINED:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
        body += message.get("body", b"") if size <= LARGEST_BODY else b""
    return body if size <= LARGEST_BODY else None


def _given(body: bytes, rest: Receive) -> Receive:
    """Return what receives a body that was read already, and then what comes after it."""
    waiting = [body]

    async def receive() -> MutableMapping[str, Any]:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await rest()

    return receive
