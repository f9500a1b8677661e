"""Fetching a file over HTTP: with progress, a bounded number of attempts, all or nothing."""

import time
from contextlib import AbstractContextManager, nullcontext
from http.client import HTTPException
from pathlib import Path
from typing import Any

from gmpll._atomic_io import atomic_write
from gmpll.datasets.storage import chunks

ATTEMPTS = 3
#: Seconds before the second attempt; they double each time.
RETRY_SECONDS = 1.0
TIMEOUT_SECONDS = 30.0
#: The largest archive has some tens of megabytes; a server that sends more is not ours.
MAX_BYTES = 2**30


class DownloadError(OSError):
    """A file could not be fetched; the text gives the last reason."""


def download(url: str, path: Path) -> None:
    """Fetch ``url`` into ``path``.

    An answer that asking again will not change (404, 403) ends it at once; what may pass
    (a broken connection, a server error) is tried :data:`ATTEMPTS` times. ``path`` is untouched
    unless everything has arrived.
    """
    with atomic_write(path) as temporary:  # before anything is fetched: it may not be writable
        temporary.touch()
        temporary.write_bytes(_fetched(url))


def _fetched(url: str) -> bytes:
    from urllib.error import HTTPError

    reason: object = None
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(RETRY_SECONDS * 2 ** (attempt - 1))
        try:
            return _content(url)
        except DownloadError:
            raise
        except HTTPError as error:
            error.close()
            reason = f"HTTP status {error.code}"
            if error.code < 500:
                break
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
    raise DownloadError(str(reason))


def _content(url: str) -> bytes:
    from urllib.request import Request, urlopen

    request = Request(url, headers={"User-Agent": "gmpll"})
    with urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        length = response.headers.get("Content-Length")
        total = int(length) if length is not None and length.isdecimal() else None
        with _shown(response, url.rsplit("/", 1)[-1], total) as source:
            too_much = DownloadError(f"it is larger than {MAX_BYTES} bytes")
            content = b"".join(chunks(source, MAX_BYTES, too_much))
    # A connection that is cut short ends like a complete one when it is read in pieces.
    if total is not None and len(content) != total:
        raise OSError(f"only {len(content)} of {total} bytes arrived")
    return content


def _shown(response: Any, name: str, total: int | None) -> AbstractContextManager[Any]:
    """Show how much is read from a response, on a terminal and where rich is installed."""
    try:
        from rich.console import Console
        from rich.progress import wrap_file
    except ImportError:
        return nullcontext(response)
    console = Console(stderr=True)
    if not console.is_terminal:
        return nullcontext(response)
    return wrap_file(response, total or 0, description=name, console=console, transient=True)
