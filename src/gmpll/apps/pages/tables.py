"""What a table is: cells with an optional second line, marks and emphasis, and the raw facts.

A table is laid out once and written in several formats; its facts go to CSV with all their digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

#: Stands where there is no figure.
MISSING = "\N{EN DASH}"


@dataclass(frozen=True)
class Cell:
    """One cell: the figure or the name, and what may stand beside it."""

    text: str
    mark: str = ""  # outcome of a test, printed after the text
    detail: str = ""  # a second, quieter line: the paper's figure
    note: str = ""  # a warning, for instance that folds are missing
    strong: bool = False  # bold type


@dataclass(frozen=True)
class Row:
    """A row; its first cell names it. ``is_apart`` sets it off from the rows above."""

    cells: list[Cell]
    is_apart: bool = False


@dataclass(frozen=True)
class Table:
    """A table to be shown and saved; the first column title stands above the row names."""

    name: str  # stem of the files
    title: str
    header: list[str]
    rows: list[Row]
    facts: pd.DataFrame  # the raw figures behind the table
    notes: list[str] = field(default_factory=list)  # sentences that belong under it
    is_text: bool = False  # prose instead of figures
    is_long: bool = False  # the page shows it folded


def number(value: float, decimals: int = 3) -> str:
    """Format a figure; a missing one is a dash."""
    return MISSING if math.isnan(value) else f"{value:.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def figure(mean: float, std: float, decimals: int = 3) -> str:
    """Format a mean with its standard deviation, if there is one."""
    spread = "" if math.isnan(std) else f" ± {std:.{decimals}f}"
    return number(mean, decimals) + spread


def difference(value: float, decimals: int = 3) -> str:
    """Format a difference with its sign; what rounds to nothing has none."""
    text = f"{value:+.{decimals}f}"
    return (text[1:] if float(text) == 0 else text).replace("-", "\N{MINUS SIGN}")


def count(value: float) -> str:
    """Format a whole number with thousands apart; a missing one is a dash."""
    return MISSING if math.isnan(value) else f"{int(value):,}".replace(",", "\N{THIN SPACE}")
