"""What is done with a table, step by step, and what the steps cost, see :mod:`gmpll._progress`."""

from contextlib import suppress
from pathlib import Path

from gmpll._progress import UNKNOWN

READING = "reading the table"
CANDIDATES = "reading the candidates"
ENCODING = "encoding the features"
MATCHING = "matching rows and labels"
WRITING = "writing the rows"
SAVING = "writing the model"
REPORTING = "explaining and drawing the report"
LOADING = "loading the model"
PREDICTING = "predicting"


def reading_steps(input: Path) -> dict[str, float]:
    """Return the steps of reading a table."""
    return {READING: 0.3 + 5e-8 * _size(input)}


def candidate_steps(n_rows: int, n_columns: int) -> dict[str, float]:
    """Return the steps of understanding a table."""
    return {CANDIDATES: n_rows * (1e-5 + 1e-6 * n_columns)}


def disambiguation_steps(n_rows: int, n_columns: int) -> dict[str, float]:
    """Return the steps from a table that has been read to results; the method knows its own."""
    return {
        ENCODING: 1e-7 * n_rows * n_columns,
        MATCHING: UNKNOWN,
        WRITING: n_rows * (5e-6 + 4e-7 * n_columns),
        SAVING: 0.2 + 1e-4 * n_rows,
        REPORTING: 0.3,
    }


def loading_steps(model: Path) -> dict[str, float]:
    """Return the steps of loading a model."""
    return {LOADING: 0.1 + 2e-8 * _size(model)}


def prediction_steps(model: Path, input: Path) -> dict[str, float]:
    """Return the steps of predicting the rows of a table."""
    unknown = {PREDICTING: UNKNOWN, WRITING: UNKNOWN}  # rows and columns are not counted yet
    return {**loading_steps(model), **reading_steps(input), **unknown}


def steps_of_rows(n_rows: int, n_columns: int) -> dict[str, float]:
    """Return the steps of predicting so many rows that have been read."""
    return {**disambiguation_steps(n_rows, n_columns), PREDICTING: 2e-4 * n_rows}


def _size(path: Path) -> int:
    """Return how many bytes a file has; of what is no file that is unknown, and taken for none."""
    with suppress(OSError):
        return path.stat().st_size
    return 0
