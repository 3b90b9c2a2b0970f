"""Who may ask, and what a browser may do with an answer: the host, the token, the size of a request, the headers."""

from __future__ import annotations

import asyncio
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planner.units import show_seconds
from planner.web.limits import MOST_BODY, MOST_BODY_SECONDS, MOST_FILE

LOOPBACK = {"localhost", "127.0.0.1", "[::1]"}
"""Names by which a page of this machine is asked for; others are some site's that points here."""
COOKIE = "planner_token"
UPLOADS = "/api/files"
"""Where files are uploaded, which may be larger than questions."""
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin", "cache-control": "no-store"}


class Guard:
    """Lets a request through to the application, or answers it itself."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        """Guard an application. token: what every request must carry; none where only this machine is served."""
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, with_headers)
            return
        most = _most(scope)
        try:
            body = await asyncio.wait_for(_body(receive, most), MOST_BODY_SECONDS)
        except TimeoutError:
            await _error(408, f"the request did not come to its end within {show_seconds(MOST_BODY_SECONDS)}")(
                scope, receive, with_headers)
            return
        if body is None:
            await _too_large(most)(scope, receive, with_headers)
            return
        rest: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return rest.pop() if rest else await receive()

        await self.app(scope, again, with_headers)

    def _refused(self, scope: Scope) -> Response | None:
        """Return the answer to a request that goes no further; none where it may."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.token is None and _name(host) not in LOOPBACK:
            return _error(403, f"this server is for this machine alone: ask for it as localhost, not as {host!r}")
        origin = headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != host
        if scope["method"] not in ("GET", "HEAD") and (foreign or headers.get("sec-fetch-site") == "cross-site"):
            return _error(403, "another site's page may not ask here")
        if not headers.get("content-length", "0").isdigit() or int(headers.get("content-length", "0")) > _most(scope):
            return _too_large(_most(scope))
        return None if self.token is None else self._without_token(scope, headers, self.token)

    def _without_token(self, scope: Scope, headers: Headers, token: str) -> Response | None:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(query).get("token")
        if given is not None and _same(given, token):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            path = "/" + scope["path"].lstrip("/")  # with two strokes it would be another host
            moved = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            moved.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            return moved
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if _same(bearer, token) or _same(_cookie(headers), token):
            return None
        return _error(401, "the token is missing: open the address that `planner web` printed, or send the header "
                           "Authorization: Bearer TOKEN")


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())


def _name(host: str) -> str:
    """Return a host without its port."""
    name, _, port = host.rpartition(":")
    return name if port.isdigit() else host


def _cookie(headers: Headers) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


def _most(scope: Scope) -> int:
    """Return how many bytes a request may have."""
    return MOST_FILE if scope["path"] == UPLOADS else MOST_BODY


def _too_large(most: int) -> Response:
    return _error(413, f"a {'file' if most == MOST_FILE else 'request'} has at most {most >> 20} MiB")


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message}}, status)


async def _body(receive: Receive, most: int) -> bytes | None:
    """Return the whole of a request; none where it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > most:
            return None
        if not message.get("more_body", False):
            return bytes(body)
