"""What a user can say about the data; everything left open is guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NONE", "Options"]

#: Given for a column, it means that there is none, whatever a guess would say.
NONE = "none"


@dataclass(frozen=True)
class Options:
    """Overrides of the guesses.

    Attributes
    ----------
    candidates : sequence of str
        One column with sets of labels, or several columns of 0 and 1 (wildcards allowed).
    separator : str or None
        Between the labels of a cell, or ``json``.
    votes : path or DataFrame, or None
        A long table of votes.
    vote_columns : sequence of str
        Its columns item, label and, if there is one, annotator.
    min_share : float
        Labels with a smaller share of an item's votes are no candidates.
    labels : sequence of str
        All labels that are allowed; empty allows any.
    empty : {"error", "all"}
        What to do with a row without candidates: refuse it, or give it all labels.
    text, features, exclude : sequence of str
        Columns of text; columns, wildcards and embedding files to use; columns not to use.
    id, gold, image : str or None
        Columns of ids, of known labels and of image file names.
    impossible : str or None
        Column of labels that a row cannot have.
    trust : float or None
        How much votes count, see :class:`gmpll.GMPLL`; None estimates it.
    method : str
        Which method resolves.
    review_below : float or None
        Rows with a smaller margin are flagged for review; None for what suits the confidences.
    seed : int
        Breaks ties and seeds the projection.
    """

    candidates: Sequence[str] = ()
    separator: str | None = None
    votes: object = None
    vote_columns: Sequence[str] = ()
    min_share: float = 0.0
    labels: Sequence[str] = ()
    empty: str = "error"
    text: Sequence[str] = ()
    features: Sequence[str | Path] = ()
    exclude: Sequence[str] = ()
    id: str | None = None
    gold: str | None = None
    image: str | None = None
    impossible: str | None = None
    trust: float | None = None
    method: str = "gmpll"
    review_below: float | None = None
    seed: int = 0
