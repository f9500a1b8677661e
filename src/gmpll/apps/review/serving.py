"""The server of the review page: loopback only unless told otherwise."""

from __future__ import annotations

from gmpll.apps.decisions.errors import ReviewError
from gmpll.apps.review.app import make_app
from gmpll.apps.review.session import ReviewSession
from gmpll.apps.web.security import Terms
from gmpll.apps.web.server import LOOPBACK, LocalServer, PortError, listen

#: More connections at a time are answered with 503.
MAX_CONNECTIONS = 64
TERMS = Terms(
    is_open=lambda path: not path.startswith("/api/"),
    token_hint="open the address that gmpll printed",
    content_types=("application/json",),
    only="JSON is understood",
    max_body=64 * 2**10,  # a decision takes some hundred bytes
)


def make_server(
    session: ReviewSession, host: str = LOOPBACK, port: int = 0, token: str | None = None
) -> LocalServer:
    """Listen, on a free port if it is 0, and say at which address; it holds the token."""
    try:
        server = listen(make_app(session), TERMS, host, port, token, MAX_CONNECTIONS)
    except PortError as error:
        raise ReviewError(str(error)) from error
    return server._replace(address=f"{server.address}#token={server.token}")
