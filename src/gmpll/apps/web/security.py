"""Who may talk to a server: the holder of the token, from no other site, in good time.

The token goes in the header ``Authorization`` of every request for data; to a page it comes in the
fragment of the address, which is never sent anywhere. There is no cookie, so another site has
nothing to ride on; Host and Origin are checked nevertheless, for any request.
"""

import asyncio
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: How long a client may take to send its body.
BODY_SECONDS = 10.0
#: How long what is too large is read on, and thrown away.
DRAIN_SECONDS = 1.0

RESPONSE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Terms:
    """What a server asks of a request: for pages of data a token, bodies of some kind and size."""

    is_open: Callable[[str], bool]  # whether a path needs no token
    token_hint: str  # what to do without one
    content_types: tuple[str, ...]
    only: str  # what is understood, for people
    max_body: int

    @property
    def too_large(self) -> HTTPException:
        """What a larger body is answered with."""
        return HTTPException(413, f"More than {self.max_body >> 10} KiB are not read.")


def new_token() -> str:
    """Draw a token that nobody guesses."""
    return secrets.token_urlsafe(32)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def host_check(host: str, port: int) -> Callable[[str], bool]:
    """Return a check of the header Host: a site whose name points here sends its own name."""
    names = {"localhost", "127.0.0.1", "::1", host.lower()}
    if not is_loopback(host):
        names.add(socket.gethostname().lower())

    def check(header: str) -> bool:
        try:
            asked = urlsplit(f"//{header}")
            name, asked_port = asked.hostname or "", asked.port or 80
        except ValueError:
            return False
        if asked.netloc != header or "@" in header or asked_port != port:
            return False
        return name in names or (not is_loopback(host) and _address(name) is not None)

    return check


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


class Guard:
    """ASGI middleware that lets only good requests through and hardens every answer."""

    def __init__(
        self, app: ASGIApp, token: str, good_host: Callable[[str], bool], terms: Terms
    ) -> None:
        self.app = app
        self._expected = f"Bearer {token}".encode()
        self._good_host = good_host
        self._terms = terms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close"})  # there is nothing to talk about
            return

        async def harden(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(RESPONSE_HEADERS)
            await send(message)

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        try:
            self._check(Request(scope))
            body = await self._body(Request(scope, receive))
        except HTTPException as refusal:
            if refusal.status_code == 413:
                await self._drain(Request(scope, receive))
            # What was not read of a body would be taken for the next request.
            closing = {"Connection": "close"}
            answer = JSONResponse({"error": refusal.detail}, refusal.status_code, closing)
            await answer(scope, receive, harden)
        else:
            waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
            await self.app(scope, replay, harden)

    def _check(self, request: Request) -> None:
        """Refuse a request by what stands in its head."""
        headers = request.headers
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._good_host(host):
            raise HTTPException(421, "This server does not go by that name.")
        is_api = not self._terms.is_open(request.scope["path"])
        foreign = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        if headers.get("origin", f"http://{host}") != f"http://{host}" or (is_api and foreign):
            raise HTTPException(403, "Requests from other sites are refused.")
        given = headers.get("authorization", "").encode()
        if is_api and not hmac.compare_digest(given, self._expected):
            raise HTTPException(401, f"The token is missing or wrong: {self._terms.token_hint}.")
        content_type = headers.get("content-type", "").partition(";")[0].strip()
        if request.method not in ("GET", "HEAD") and content_type not in self._terms.content_types:
            # A form of another site cannot send these without asking first, and is never answered.
            raise HTTPException(415, f"Only {self._terms.only}.")
        if "transfer-encoding" in headers and "content-length" in headers:
            # Whoever reads such a request differently finds a second one in its body.
            raise HTTPException(400, "The length of the request is given twice.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._terms.max_body:
            raise self._terms.too_large

    async def _drain(self, request: Request) -> None:
        """Let a client finish, within limits: one that is cut off while sending reads no answer."""
        left = 4 * self._terms.max_body
        with suppress(TimeoutError, ClientDisconnect):
            async with asyncio.timeout(DRAIN_SECONDS):
                async for chunk in request.stream():
                    left -= len(chunk)
                    if left <= 0:
                        return

    async def _body(self, request: Request) -> bytes:
        """Read the whole body if it is small enough and comes in time."""
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self._terms.max_body:
                        raise self._terms.too_large
        except ClientDisconnect:
            raise HTTPException(400, "The request was broken off.") from None
        except TimeoutError:
            raise HTTPException(408, "The request took too long.") from None
        return bytes(body)
