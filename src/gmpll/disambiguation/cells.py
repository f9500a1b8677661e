"""What a cell says: a number, nothing, or the name of a category.

A column must be read alike in every file that it comes in, whatever the other rows hold.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

__all__ = ["category_text", "is_missing"]

_TRUTH_VALUES = {"true": 1.0, "false": 0.0}
_WHOLE = re.compile(r"([+-]?\d+)\.0+", re.ASCII)


def is_missing(value: Any) -> bool:
    """Whether a value of a DataFrame stands for none: None, NaN, NaT or NA."""
    import pandas as pd

    is_nan = isinstance(value, (float, np.floating)) and value != value
    return value is None or value is pd.NA or value is pd.NaT or bool(is_nan)


def category_text(cell: str) -> str:
    """Return the name of a category: the same for 1 and 1.0, and for TRUE and true.

    Examples
    --------
    >>> from gmpll.disambiguation.cells import category_text
    >>> [category_text(cell) for cell in ("1.0", "007", " TRUE ", "Red")]
    ['1', '007', 'true', 'Red']
    """
    cell = cell.strip()
    if cell.lower() in _TRUTH_VALUES:
        return cell.lower()
    whole = _WHOLE.fullmatch(cell)
    return whole.group(1) if whole else cell
