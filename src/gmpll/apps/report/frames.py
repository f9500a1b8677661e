"""Walking through data frames, typed loosely: a field of a row can be any scalar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["groups_of", "rows_of"]


def rows_of(frame: pd.DataFrame) -> Iterable[Any]:
    """Return the rows as named tuples."""
    return frame.itertuples()


def groups_of(frame: pd.DataFrame, keys: Sequence[str]) -> Iterable[tuple[Any, pd.DataFrame]]:
    """Return (key values, rows) of every group, in the order in which groups appear.

    NaN is a value like any other: it stands where a setting has no p and r.
    """
    return cast(Any, frame.groupby(list(keys), dropna=False, sort=False))
