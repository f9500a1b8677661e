"""The figures that the GM-PLL paper prints, read from ``paper.toml``.

Where the paper contradicts itself, the printed figure stands and a remark says so. Data sets carry
the names that :mod:`gmpll.datasets` gives them; methods carry their printed names.
"""

import tomllib
from importlib import resources
from typing import NamedTuple, Self


class PrintedAccuracy(NamedTuple):
    """A printed accuracy: mean, standard deviation, mark against GM-PLL, bold type."""

    mean: float
    std: float
    mark: str = ""
    bold: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
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
    def parse(cls, text: str) -> Self:
        """Read ``19/2/0``."""
        return cls(*map(int, text.split("/")))

    def __str__(self) -> str:
        return f"{self.win}/{self.tie}/{self.loss}"


PRINTED = tomllib.loads(
    (resources.files("gmpll.apps.report") / "paper.toml").read_text(encoding="utf-8")
)


def printed_table(name: str) -> dict[tuple[str, str], str]:
    """Read a printed table with a header line; keys are (row, column)."""
    header, *rows = (line.split() for line in PRINTED["tables"][name].strip().splitlines())
    return {
        (row, column): cell
        for row, *cells in rows
        for column, cell in zip(header, cells, strict=True)
    }


def column(table: str, column: str) -> dict[str, float]:
    """Read a column of numbers of a printed table."""
    cells = printed_table(table).items()
    return {row: float(cell) for (row, name), cell in cells if name == column}


CITATION: str = PRINTED["citation"]
TIMING_MACHINE: str = PRINTED["timing_machine"]
#: Data set -> its printed name, in the paper's order.
PRINTED_NAMES: dict[str, str] = PRINTED["names"]
#: Data set -> what it is for, of the sets that Table 2 lists.
TASKS: dict[str, str] = PRINTED["tasks"]
#: Section of the report -> where the printed figures contradict each other.
REMARKS: dict[str, list[str]] = PRINTED["remarks"]
TABLE_NUMBERS = {"inductive": 4, "transductive": 5}
#: Measure -> (method, data set) -> accuracy.
ACCURACY = {
    measure: {key: PrintedAccuracy.parse(cell) for key, cell in printed_table(measure).items()}
    for measure in TABLE_NUMBERS
}
#: (data set, method) -> counts over the 21 configurations of p and r.
WIN_TIE_LOSS = {
    key: Counts.parse(cell)
    for key, cell in printed_table("win_tie_loss").items()
    if "sum" not in key
}
#: The values of beta and r that the paper found best.
BETA = column("parameters", "beta")
R_BEST = column("parameters", "r**")
#: Seconds of training and testing together, and of testing alone.
RUNNING_SECONDS = column("seconds", "running")
TESTING_SECONDS = column("seconds", "testing")
