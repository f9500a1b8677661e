"""Work that goes on beside the page: matching again, applying the decisions."""

import threading
import time
from collections.abc import Callable
from typing import Any

from gmpll.apps.decisions.errors import ConflictError
from gmpll.apps.errors import UserError


class BackgroundRun:
    """Runs a piece of work in a thread, one at a time, and tells how it stands."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._status: dict[str, Any] = {"state": "idle", "what": "", "message": ""}
        self._started = self._ended = 0.0

    def start(self, what: str, work: Callable[[], str]) -> None:
        """Begin, unless a run is under way: that is a ConflictError. Work returns its message."""
        with self._lock:
            if self._status["state"] == "running":
                raise ConflictError("The rows are being matched already.")
            self._status = {"state": "running", "what": what, "message": ""}
            self._started = time.monotonic()
            # A daemon: Ctrl-C stops the server at once, the decisions are on the disk anyway.
            self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
            self._thread.start()

    def _run(self, work: Callable[[], str]) -> None:
        try:
            outcome = {"state": "done", "message": work()}
        except UserError as error:
            outcome = {"state": "failed", "message": str(error)}
        except Exception as error:  # the page must hear of whatever went wrong
            outcome = {"state": "failed", "message": f"{type(error).__name__}: {error}"}
        with self._lock:
            self._status |= outcome
            self._ended = time.monotonic()

    def status(self) -> dict[str, Any]:
        """Return ``state`` (idle, running, done, failed), ``what``, ``seconds`` and ``message``."""
        with self._lock:
            until = time.monotonic() if self._status["state"] == "running" else self._ended
            return {**self._status, "seconds": round(until - self._started, 1)}

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the run is over."""
        if self._thread is not None:
            self._thread.join(timeout)
