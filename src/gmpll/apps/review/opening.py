"""From the folder that ``gmpll disambiguate`` wrote to a review of it."""

from __future__ import annotations

from pathlib import Path

from gmpll.apps import tables
from gmpll.apps.decisions.errors import ReviewError
from gmpll.apps.decisions.store import FILE_NAME, Store, rows_key
from gmpll.apps.review.session import Rematch, ReviewSession

__all__ = ["open_review"]


def open_review(
    directory: Path, *, images: Path | None = None, rematch: Rematch = tables.rematch
) -> ReviewSession:
    """Begin a review, or go on with the one that was begun in this folder.

    Parameters
    ----------
    directory : path
        Output folder of ``gmpll disambiguate``.
    images : path, default=None
        Folder of the pictures; by default that of the input file.
    rematch : callable
        How to match again.

    Returns
    -------
    ReviewSession

    Raises
    ------
    ReviewError
        Where the folder holds no matching, or decisions about another one.
    """
    try:
        saved = tables.read_matching(directory)
    except tables.InputError as error:
        raise ReviewError(str(error)) from error
    return ReviewSession(saved, Store(directory / FILE_NAME, rows_key(saved)), rematch, images)
