"""What a fuzz target is: a reader, valid inputs to begin with, and the errors that it may raise."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzz.mutators import Mutator, bytes_changed

#: A message longer than this, or of several lines, is no sentence for a person.
LONGEST_MESSAGE = 1000


@dataclass(frozen=True)
class Target:
    """A reader under test.

    Attributes
    ----------
    name : str
        Also the name of its folder in ``fuzz/corpus``.
    read : callable
        Hands an input to the reader; it must not write outside of :func:`scratch`.
    seeds : callable
        Returns valid inputs.
    documented : tuple of exception types
        What the reader says it raises for an input that it cannot use.
    mutate : callable
        Changes an input so that it still gets past the first check.
    """

    name: str
    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    documented: tuple[type[Exception], ...]
    mutate: Mutator = bytes_changed

    def check(self, data: bytes) -> str:
        """Read an input; return "" or the error that the reader documents.

        Any other exception comes through, and so does a message that is no sentence.
        """
        try:
            self.read(data)
        except self.documented as error:
            text = str(error)
            assert text.strip(), "the error says nothing"
            assert len(text) <= LONGEST_MESSAGE, f"the error takes {len(text)} characters"
            assert "\n" not in text, f"the error takes several lines: {text!r}"
            return text
        return ""


_folders: dict[str, Path] = {}


def scratch(name: str) -> Path:
    """Return a folder in memory (else in the temporary folder) that goes with the process."""
    if name not in _folders:
        memory = Path("/dev/shm")
        where = memory if memory.is_dir() else None
        _folders[name] = Path(tempfile.mkdtemp(prefix="gmpll-fuzz-", dir=where))
    return _folders[name]


@atexit.register
def clean_up() -> None:
    """Remove the scratch folders; a process that leaves without goodbye has to call this."""
    while _folders:
        shutil.rmtree(_folders.popitem()[1], ignore_errors=True)


def written(folder: str, name: str, data: bytes) -> Path:
    """Write an input to a scratch file and return its path."""
    path = scratch(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
