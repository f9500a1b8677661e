"""The figures that the GM-PLL paper prints, read from ``paper.toml``.

Where the paper contradicts itself, the printed figure stands and
:mod:`gmpll.apps.report.paper_checks` says so. Data sets carry the names that :mod:`gmpll.datasets`
gives them; methods carry their printed names.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import NamedTuple


class PrintedAccuracy(NamedTuple):
    """A printed accuracy: mean, standard deviation, mark against GM-PLL, bold type."""

    mean: float
    std: float
    mark: str = ""
    bold: bool = False

    @classmethod
    def parse(cls, text: str) -> PrintedAccuracy:
        """Read ``0.667±0.014*∘``: a star stands for bold type, the rest is as printed."""
        mark = text[-1] if text[-1] in "•∘" else ""
        mean, std = text.rstrip("•∘*").split("±")
        return cls(float(mean), float(std), mark, "*" in text)


class Counts(NamedTuple):
    """Won, tied and lost comparisons of GM-PLL."""

    win: int
    tie: int
    loss: int

    @classmethod
    def parse(cls, text: str) -> Counts:
        """Read ``19/2/0``."""
        return cls(*map(int, text.split("/")))

    def __str__(self) -> str:
        return f"{self.win}/{self.tie}/{self.loss}"


_PAPER = tomllib.loads(
    (resources.files("gmpll.apps.report") / "paper.toml").read_text(encoding="utf-8")
)


def _table(name: str) -> dict[tuple[str, str], str]:
    """Read a printed table with a header line; keys are (row, column)."""
    header, *rows = (line.split() for line in _PAPER["tables"][name].strip().splitlines())
    return {
        (row, column): cell
        for row, *cells in rows
        for column, cell in zip(header, cells, strict=True)
    }


def _column(table: str, column: str) -> dict[str, float]:
    return {row: float(cell) for (row, name), cell in _table(table).items() if name == column}


CITATION: str = _PAPER["citation"]
TIMING_MACHINE: str = _PAPER["timing_machine"]
#: Data set -> its printed name, in the paper's order.
PRINTED_NAMES: dict[str, str] = _PAPER["names"]
#: Data set -> what it is for, of the sets that Table 2 lists.
TASKS: dict[str, str] = _PAPER["tasks"]
TABLE_NUMBERS = {"inductive": 4, "transductive": 5}
#: Measure -> (method, data set) -> accuracy.
ACCURACY = {
    measure: {key: PrintedAccuracy.parse(cell) for key, cell in _table(measure).items()}
    for measure in TABLE_NUMBERS
}
_COUNTS = {key: Counts.parse(cell) for key, cell in _table("win_tie_loss").items() if cell != "-"}
#: (data set, method) -> counts over the 21 configurations of p and r.
WIN_TIE_LOSS = {key: counts for key, counts in _COUNTS.items() if "sum" not in key}
#: The printed sums, which do not all agree with the printed counts.
WIN_TIE_LOSS_METHOD_SUMS = {method: _COUNTS["sum", method] for _, method in WIN_TIE_LOSS}
WIN_TIE_LOSS_DATA_SUMS = {data_set: _COUNTS[data_set, "sum"] for data_set, _ in WIN_TIE_LOSS}
#: The value of beta that the paper found best, and the one that a caption says was held fixed.
BETA = _column("parameters", "beta")
FIGURE_BETA: dict[str, float] = _PAPER["figures"]["beta"]
#: r* as the paper's formula is said to give it, and r** as the paper found it best.
R_FORMULA = _column("parameters", "r*")
R_BEST = _column("parameters", "r**")
#: Seconds of training and testing together, and of testing alone.
RUNNING_SECONDS = _column("seconds", "running")
TESTING_SECONDS = _column("seconds", "testing")
