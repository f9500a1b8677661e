"""A table that is opened in a spreadsheet computes nothing; numbers stay numbers."""

from __future__ import annotations

import csv
import io

import pandas as pd

from gmpll.apps.tables.cells import escape_formula
from gmpll.apps.tables.output import write_table
from gmpll.apps.tables.tables import read_table

WIDE = "\uff1d\uff0b\uff0d\uff20"
FORMULAS = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1+1",
    "--1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "-",
    "+",
    "-1.5-cmd",
    "-1\n=2",
    *(f"{sign}1+1" for sign in WIDE),
]
NUMBERS = ["-1.5", "+2", "-.5", "-1e-05", "+1.5E+10", "0", "-0", "12"]


def test_formulas_are_escaped_and_numbers_are_not():
    for cell in FORMULAS:
        assert escape_formula(cell) == f"'{cell}", cell
    for cell in NUMBERS:
        assert escape_formula(cell) == cell


def test_a_written_table_holds_no_formula(tmp_path):
    frame = pd.DataFrame({"id": range(len(FORMULAS)), "note": FORMULAS, "=header()": "x"})
    frame.to_csv(tmp_path / "in.csv", index=False, quoting=csv.QUOTE_ALL)
    table = read_table(tmp_path / "in.csv")
    labels = {"label": FORMULAS, "score": [-1.5] * len(FORMULAS)}
    write_table(table, labels, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    cells = [cell for row in rows for cell in row]
    starts = tuple("=+-@\t\r\n" + WIDE)
    assert {cell for cell in cells if cell.startswith(starts)} == {"-1.5"}
    assert rows[0][2] == "'=header()"
    assert [row[3].removeprefix("'") for row in rows[1:]] == FORMULAS


def test_cells_cannot_break_out_of_their_quotes():
    """What follows a quote and a separator inside of a cell is still that cell."""
    text = io.StringIO()
    csv.writer(text).writerow([escape_formula('x",=1+1'), escape_formula("a\r\n=1+1")])
    assert next(csv.reader(io.StringIO(text.getvalue(), newline=""))) == ['x",=1+1', "a\r\n=1+1"]
