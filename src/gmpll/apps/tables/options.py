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
    """Overrides of the guesses; most are the parameters of :func:`gmpll.apps.tables.disambiguate`.

    ``min_share`` is the share of an item's votes that makes a label a candidate, ``labels`` are
    all that are allowed (any if empty), and ``image`` is the column of image file names. Whether a
    label may lie ``outside`` of the votes is "auto" or "never".
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
    outside: str = "auto"
    method: str = "gmpll"
    review_below: float | None = None
    seed: int = 0
