"""From the folder that ``gmpll disambiguate`` wrote to a review of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gmpll.apps.decisions.errors import ReviewError
from gmpll.apps.decisions.store import FILE_NAME, Store, rows_key
from gmpll.apps.review.session import ReviewSession

if TYPE_CHECKING:
    from gmpll.apps.review.session import Rematch
    from gmpll.apps.tables.saved import SavedMatching

__all__ = ["open_review"]


def open_review(
    directory: Path, *, images: Path | None = None, rematch: Rematch | None = None
) -> ReviewSession:
    """Begin a review, or go on with the one that was begun in this folder.

    Parameters
    ----------
    directory : path
        Output folder of ``gmpll disambiguate``.
    images : path, default=None
        Folder of the pictures; by default that of the input file.
    rematch : callable, default=None
        How to match again; by default :func:`gmpll.apps.tables.rematch`.

    Returns
    -------
    ReviewSession

    Raises
    ------
    ReviewError
        Where the folder holds no matching, or decisions about another one.
    """
    saved = _matching(directory)
    store = Store(directory / FILE_NAME, rows_key(saved))
    return ReviewSession(saved, store, rematch or _default_rematch, images)


def _default_rematch(saved: SavedMatching, gold: dict[int, int]) -> SavedMatching:
    from gmpll.apps.tables.saved import rematch

    return rematch(saved, gold)


def _matching(directory: Path) -> SavedMatching:
    from gmpll.apps.tables.errors import InputError
    from gmpll.apps.tables.saved import read_matching

    try:
        return read_matching(directory)
    except InputError as error:
        raise ReviewError(str(error)) from error
