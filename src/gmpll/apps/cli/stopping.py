"""A polite request to end (SIGTERM) is treated like Ctrl-C: what was begun is tidied up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGTERM into a :class:`KeyboardInterrupt` inside of the block."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread, where signals do not arrive anyway
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
