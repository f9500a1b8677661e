"""The server: loopback only unless told otherwise, impatient with slow clients."""

import asyncio
import socket
from typing import NamedTuple

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from gmpll.apps.errors import UserError
from gmpll.apps.web.security import Guard, Terms, host_check, new_token

LOOPBACK = "127.0.0.1"
#: How long a client may take to send the head of a request, and to think between requests.
HEAD_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 30
#: A head larger than this is refused.
MAX_HEAD = 16 * 2**10


class ImpatientProtocol(H11Protocol):
    """HTTP that hangs up on whoever does not finish the head of a request in time.

    uvicorn waits for the rest of a head for ever, so a few idle connections would fill it.
    """

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for the first request."""
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._forget_timer()
        super().connection_lost(exc)

    def _watch_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._forget_timer()
        elif self._head_timer is None:  # a trickle of bytes does not start it anew
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE:
            self.transport.close()

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class LocalServer(NamedTuple):
    """A server that listens already; ``run()`` answers until it is interrupted."""

    server: uvicorn.Server
    listener: socket.socket
    address: str
    token: str

    def run(self) -> None:
        """Serve until Ctrl-C."""
        self.server.run(sockets=[self.listener])


def listen(
    app: ASGIApp, terms: Terms, host: str, port: int, token: str | None, max_connections: int
) -> LocalServer:
    """Listen, on a free port if it is 0; more connections at a time are answered with 503."""
    host = LOOPBACK if host == "localhost" else host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"Port {port} on {host} cannot be used ({reason}): "
            "name another with --port, or leave --port and --host out."
        ) from error
    port = listener.getsockname()[1]
    token = token or new_token()
    config = uvicorn.Config(
        Guard(app, token, host_check(host, port), terms),
        http=ImpatientProtocol,
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=MAX_HEAD,
        limit_concurrency=max_connections,
    )
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    address = f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"
    return LocalServer(uvicorn.Server(config), listener, address, token)
