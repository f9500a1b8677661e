"""What a cell says: a number, nothing, or the name of a category.

A column must be read alike in every file that it comes in, whatever the other rows hold.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gmpll.apps.tables.tables import Table

__all__ = [
    "EXAMPLES",
    "MISSING",
    "POINT",
    "Numbers",
    "category_text",
    "divides_thousands",
    "is_missing",
    "is_number",
    "number_style",
    "parse_list",
    "read_numbers",
]

#: What stands for a missing number, in small letters.
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "missing", "?", "-", "--", ".")
#: How numbers are written, unless a column says otherwise.
POINT = "point"
_PATTERNS = {
    POINT: r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)",
    "comma": r"[+-]?(\d+,?\d*|,\d+)(e[+-]?\d+)?",
    "percent": r"[+-]?(\d+\.?\d*|\.\d+)\s*%",
    "comma percent": r"[+-]?(\d+,?\d*|,\d+)\s*%",
}
_STYLES = {n: re.compile(p.replace(r"\d", "[0-9]"), re.IGNORECASE) for n, p in _PATTERNS.items()}
#: An example of every style.
EXAMPLES = {POINT: "1.5", "comma": "1,5", "percent": "1.5%", "comma percent": "1,5%"}
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+\s*%?")
#: A column is one of numbers if so many of its cells are, missing ones apart.
_MOST = 0.9
_SAMPLE = 2000
_TRUTH_VALUES = {"true": 1.0, "false": 0.0}
_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
#: Quoted names in brackets, between commas or, as NumPy writes them, spaces.
_NAMES = re.compile(rf"[\[({{]\s*(?:{_STRING})(?:[\s,]+(?:{_STRING}))*,?\s*[\])}}]", re.DOTALL)
_WHOLE = re.compile(r"([+-]?\d+)\.0+", re.ASCII)


@dataclass(frozen=True)
class Numbers:
    """A column read as numbers.

    Attributes
    ----------
    values : ndarray of shape (n,), float64
        NaN where a number is missing.
    strangers : ndarray of int
        Rows whose cell is neither a number nor missing.
    """

    values: NDArray[np.float64]
    strangers: NDArray[np.intp]


def number_style(table: Table, name: str) -> str | None:
    """Return how the numbers of a column are written; None if it is no column of numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from gmpll.apps.tables.cells import number_style
    >>> from gmpll.apps.tables.tables import table_from_frame
    >>> number_style(table_from_frame(pd.DataFrame({"size": ["1.5", "?", "2"]})), "size")
    'point'
    >>> number_style(table_from_frame(pd.DataFrame({"size": ["1,5", "12,25", "2"]})), "size")
    'comma'
    """
    column = table.frame[name]
    if column.dtype.kind in "fiub":
        return POINT
    sample = column.iloc[:: max(1, len(column) // _SAMPLE)]
    if not all(isinstance(v, (str, bool, int, float, np.generic)) or is_missing(v) for v in sample):
        return None
    cells = [cell for cell in _stripped(table, name) if cell.lower() not in MISSING]
    if sum(is_number(cell) for cell in cells[:_SAMPLE]) < 0.5 * min(len(cells), _SAMPLE):
        return None
    found = {style: sum(map(bool, map(p.fullmatch, cells))) for style, p in _STYLES.items()}
    style = max(found, key=found.__getitem__)
    if "comma" in style and not _commas_are_decimal(table, cells):
        return None
    return style if found[style] >= max(1, _MOST * len(cells)) else None


def divides_thousands(cell: str) -> bool:
    """Whether a number could have commas between its thousands.

    Examples
    --------
    >>> from gmpll.apps.tables.cells import divides_thousands
    >>> [divides_thousands(cell) for cell in ("1,234", "1,23", "12,345,678", "7")]
    [True, False, True, False]
    """
    return _THOUSANDS.fullmatch(cell.strip()) is not None


def _commas_are_decimal(table: Table, cells: list[str]) -> bool:
    """Whether 1,234 is a bit more than one: where commas do not divide cells, or others show it."""
    if table.format in ("csv", "tsv") and table.delimiter != ",":
        return True
    return any("," in cell and not divides_thousands(cell) for cell in cells)


def is_number(cell: str) -> bool:
    """Whether a cell is a number in any style."""
    return any(pattern.fullmatch(cell) for pattern in _STYLES.values())


def _stripped(table: Table, name: str) -> list[str]:
    return [cell.strip() for cell in table.text(name)]


def read_numbers(table: Table, name: str, style: str = POINT) -> Numbers:
    """Read a column as numbers, however its file was typed.

    Parameters
    ----------
    table : Table
    name : str
        The column.
    style : str
        How its numbers are written.

    Returns
    -------
    Numbers

    Examples
    --------
    >>> import pandas as pd
    >>> from gmpll.apps.tables.cells import read_numbers
    >>> from gmpll.apps.tables.tables import table_from_frame
    >>> table = table_from_frame(pd.DataFrame({"size": ["1.5", "?", "big", True]}))
    >>> numbers = read_numbers(table, "size")
    >>> numbers.values, numbers.strangers
    (array([1.5, nan, nan, 1. ]), array([2]))
    """
    column = table.frame[name]
    if column.dtype.kind in "fiub" and not style.endswith("percent"):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return Numbers(values, np.empty(0, dtype=np.intp))
    cells = _stripped(table, name)
    values = np.array([_number(cell, style) for cell in cells])
    absent = np.isnan(values)
    strangers = [row for row in np.flatnonzero(absent) if cells[row].lower() not in MISSING]
    return Numbers(values, np.array(strangers, dtype=np.intp))


def _number(cell: str, style: str) -> float:
    if _STYLES[style].fullmatch(cell):
        return float(cell.rstrip("% \t\xa0").replace(",", "."))
    return _TRUTH_VALUES.get(cell.lower(), np.nan)


def is_missing(value: Any) -> bool:
    """Whether a value of a DataFrame stands for none: None, NaN, NaT or NA."""
    import pandas as pd

    is_nan = isinstance(value, (float, np.floating)) and value != value
    return value is None or value is pd.NA or value is pd.NaT or bool(is_nan)


def parse_list(text: str) -> list[Any]:
    """Return the entries of a list or set as JSON, Python, pandas or NumPy write it.

    Raises
    ------
    ValueError
        If it is none.

    Examples
    --------
    >>> from gmpll.apps.tables.cells import parse_list
    >>> parse_list('["cat", "dog"]'), parse_list("['cat' 'dog']"), parse_list("{1, 2}")
    (['cat', 'dog'], ['cat', 'dog'], [1, 2])
    """
    text = text.strip()
    try:
        content = json.loads(text)
    except ValueError:
        # Python would join names without a comma between them.
        names = re.findall(_STRING, text, re.DOTALL) if _NAMES.fullmatch(text) else None
        source = text if names is None else f"[{','.join(names)}]"
        try:
            content = ast.literal_eval(source)
        except (MemoryError, SyntaxError, TypeError) as error:
            raise ValueError("not a list") from error
    if not isinstance(content, (list, tuple, set)):
        raise ValueError("not a list")
    return list(content)


def category_text(cell: str) -> str:
    """Return the name of a category: the same for 1 and 1.0, and for TRUE and true.

    Examples
    --------
    >>> from gmpll.apps.tables.cells import category_text
    >>> [category_text(cell) for cell in ("1.0", "007", " TRUE ", "Red")]
    ['1', '007', 'true', 'Red']
    """
    cell = cell.strip()
    if cell.lower() in _TRUTH_VALUES:
        return cell.lower()
    whole = _WHOLE.fullmatch(cell)
    return whole.group(1) if whole else cell
