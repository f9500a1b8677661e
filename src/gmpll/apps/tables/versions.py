"""The versions of the files that a run leaves, and what to say about those of another gmpll."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gmpll.apps.tables.errors import InputError

__all__ = ["check_format"]


def check_format(path: Path, found: Any, known: int) -> None:
    """Refuse a file of a format that this version of gmpll does not read.

    Parameters
    ----------
    path : Path
        The file, for the sentence.
    found : object
        What the file gives as its format; damaged and foreign files may give anything.
    known : int
        The format that is read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gmpll.apps.tables.versions import check_format
    >>> check_format(Path("model.skops"), 1, known=1)
    >>> check_format(Path("model.skops"), 7, known=1)
    Traceback (most recent call last):
    ...
    gmpll.apps.tables.errors.InputError: model.skops was written by a newer version of gmpll...
    """
    number = np.asarray(found)
    version = int(number) if number.ndim == 0 and number.dtype.kind in "iu" else 0
    if version == known:
        return
    if version > known:
        raise InputError(
            f"{path} was written by a newer version of gmpll (its format is {version}, this one "
            f"reads {known}): update gmpll, or run gmpll disambiguate again."
        )
    raise InputError(
        f"{path} was written by another version of gmpll, or by another program: "
        "run gmpll disambiguate again."
    )
