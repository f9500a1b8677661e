"""What a cell says: a number, nothing, a list, a vector, a formula, or the name of a category.

A column must be read alike in every file that it comes in, whatever the other rows hold.
"""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gmpll._typing import Floats
from gmpll.candidates import is_missing

if TYPE_CHECKING:
    from gmpll.apps.tables.tables import Table

#: What formulas begin with; some spreadsheets take the wide characters, too. The apostrophe is
#: among them because it is what formulas are escaped with.
_SUSPECT = frozenset("'=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
#: What stands for a missing number, in small letters.
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "missing", "?", "-", "--", ".")
#: How numbers are written, unless a column says otherwise.
POINT = "point"
_STYLES = {
    POINT: re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)", re.I),
    "comma": re.compile(r"[+-]?([0-9]+,?[0-9]*|,[0-9]+)(e[+-]?[0-9]+)?", re.I),
    "percent": re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)\s*%"),
    "comma percent": re.compile(r"[+-]?([0-9]+,?[0-9]*|,[0-9]+)\s*%"),
}
#: An example of every style.
EXAMPLES = {POINT: "1.5", "comma": "1,5", "percent": "1.5%", "comma percent": "1,5%"}
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+\s*%?")
#: A column is one of numbers if so many of its cells are, missing ones apart.
_MIN_NUMBERS = 0.9
#: Cells that a column is judged by.
SAMPLE = 2000
_TRUTH_VALUES = {"true": 1.0, "false": 0.0}
_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
#: Quoted names in brackets, between commas or, as NumPy writes them, spaces.
_NAMES = re.compile(rf"[\[({{]\s*(?:{_STRING})(?:[\s,]+(?:{_STRING}))*,?\s*[\])}}]", re.DOTALL)
_WHOLE = re.compile(r"([+-]?\d+)\.0+", re.ASCII)
#: A vector of integers is longer than a set of labels that are numbers.
_MAX_SET = 8


def escape_formula(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would take for a formula.

    Numbers stay as they are. A cell that begins with an apostrophe gets one more, so that taking
    one off restores every cell.
    """
    return f"'{cell}" if cell[:1] in _SUSPECT and not _NUMBER.fullmatch(cell) else cell


def sampled(column: pd.Series, size: int = SAMPLE) -> pd.Series:
    """Return about so many cells from the whole of a column."""
    return column.iloc[:: max(1, len(column) // size)]


def is_absent(value: Any) -> bool:
    """Whether there is nothing in a cell."""
    return is_missing(value) or (isinstance(value, str) and value == "")


def is_vector(value: Any) -> bool:
    """Whether a value is an embedding: numbers that are no labels."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" or (value.dtype.kind in "iu" and value.size > _MAX_SET)
    return (
        isinstance(value, (list, tuple))
        and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value)
        and any(isinstance(v, float) for v in value)
    )


def as_text(value: Any) -> str:
    """Return a value as it would be written in a cell; absent ones are "" ."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(as_text(entry) for entry in value)
    if is_missing(value):
        return ""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)


def category_text(cell: str) -> str:
    """Return the name of a category: the same for 1 and 1.0, and for TRUE and true."""
    cell = cell.strip()
    if cell.lower() in _TRUTH_VALUES:
        return cell.lower()
    whole = _WHOLE.fullmatch(cell)
    return whole.group(1) if whole else cell


def parse_list(text: str) -> list[Any] | None:
    """Return the entries of a list as JSON, Python, pandas or NumPy write it; None of no list."""
    text = text.strip()
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        # Python would join names without a comma between them.
        names = re.findall(_STRING, text, re.DOTALL) if _NAMES.fullmatch(text) else None
        source = text if names is None else f"[{','.join(names)}]"
        try:
            content = ast.literal_eval(source)
        except (MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
            return None
    return list(content) if isinstance(content, (list, tuple, set)) else None


def is_number(cell: str) -> bool:
    """Whether a cell is a number in any style."""
    return any(pattern.fullmatch(cell) for pattern in _STYLES.values())


def is_everyday(label: str) -> bool:
    """Whether a label in small letters says nothing of what it labels: a number, yes, false."""
    return is_number(label) or label in ("true", "false", "yes", "no")


def divides_thousands(cell: str) -> bool:
    """Whether a number could have commas between its thousands."""
    return _THOUSANDS.fullmatch(cell.strip()) is not None


def number_style(table: Table, name: str) -> str | None:
    """Return how the numbers of a column are written; None if it is no column of numbers."""
    column = table.frame[name]
    if column.dtype.kind in "fiub":
        return POINT
    plain = (str, bool, int, float, np.generic)
    if not all(isinstance(value, plain) or is_missing(value) for value in sampled(column)):
        return None
    written = [cell.strip() for cell in table.text(name)]
    cells = [cell for cell in written if cell.lower() not in MISSING]
    if sum(map(is_number, cells[:SAMPLE])) < 0.5 * min(len(cells), SAMPLE):
        return None
    found = {style: sum(map(bool, map(p.fullmatch, cells))) for style, p in _STYLES.items()}
    style = max(found, key=found.__getitem__)
    # 1,234 is a bit more than one where commas do not divide cells, or where other cells show it.
    no_commas = table.format in ("csv", "tsv") and table.delimiter != ","
    is_decimal = no_commas or any("," in cell and not divides_thousands(cell) for cell in cells)
    if "comma" in style and not is_decimal:
        return None
    return style if found[style] >= max(1, _MIN_NUMBERS * len(cells)) else None


def read_numbers(table: Table, name: str, style: str = POINT) -> tuple[Floats, list[int]]:
    """Return a column as numbers, NaN where one is missing, and the rows of other cells."""
    column = table.frame[name]
    if column.dtype.kind in "fiub" and not style.endswith("percent"):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), []
    cells = [cell.strip() for cell in table.text(name)]
    values = np.array(
        [
            float(cell.rstrip("% \t\xa0").replace(",", "."))
            if _STYLES[style].fullmatch(cell)
            else _TRUTH_VALUES.get(cell.lower(), np.nan)
            for cell in cells
        ]
    )
    absent = np.flatnonzero(np.isnan(values)).tolist()
    return values, [row for row in absent if cells[row].lower() not in MISSING]
