"""Cells that a spreadsheet would run as formulas are made harmless, and can be restored."""

from __future__ import annotations

import re

__all__ = ["escape_formula", "unescape_formula"]

#: What formulas begin with; some spreadsheets take the wide characters, too. The apostrophe is
#: among them because it is what formulas are escaped with.
_SUSPECT = frozenset("'=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def escape_formula(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would take for a formula.

    Numbers stay as they are. A cell that begins with an apostrophe gets one more, so that
    :func:`unescape_formula` restores every cell.

    Examples
    --------
    >>> from gmpll.apps.tables.formulas import escape_formula, unescape_formula
    >>> escape_formula("=HYPERLINK(1)"), escape_formula("-1.5"), escape_formula("plain")
    ("'=HYPERLINK(1)", '-1.5', 'plain')
    >>> unescape_formula(escape_formula("'tis")), unescape_formula("-1.5")
    ("'tis", '-1.5')
    """
    return f"'{cell}" if cell[:1] in _SUSPECT and not _NUMBER.fullmatch(cell) else cell


def unescape_formula(cell: str) -> str:
    """Undo :func:`escape_formula`."""
    return cell.removeprefix("'")
