"""Matching again in the background, one run at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from gmpll.apps.decisions.errors import ConflictError


class BackgroundRun:
    """Runs a piece of work in a thread and tells how it stands."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._state = "idle"
        self._message = ""
        self._started = self._ended = 0.0

    def start(self) -> None:
        """Begin, unless a run is under way: that is a ConflictError."""
        with self._lock:
            if self._state == "running":
                raise ConflictError("The rows are being matched already.")
            self._state, self._message = "running", ""
            self._started = time.monotonic()
            # A daemon: Ctrl-C stops the server at once, the decisions are on the disk anyway.
            self._thread = threading.Thread(target=self._run, name="match again", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        state, message = "done", ""
        try:
            self._work()
        except Exception as error:  # the page must hear of whatever went wrong
            state, message = "failed", f"{type(error).__name__}: {error}"
        with self._lock:
            self._state, self._message, self._ended = state, message, time.monotonic()

    def status(self) -> dict[str, Any]:
        """Return ``state`` (idle, running, done, failed), ``seconds`` and ``message``."""
        with self._lock:
            until = time.monotonic() if self._state == "running" else self._ended
            seconds = round(until - self._started, 1)
            return {"state": self._state, "seconds": seconds, "message": self._message}

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the run is over."""
        if self._thread is not None:
            self._thread.join(timeout)
