"""What can go wrong when a data set is asked for, and what files of arrays are refused for."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class DatasetUnavailableError(FileNotFoundError):
    """The file is not in the data folder and could not be fetched; the text says what to do."""


class DatasetFormatError(ValueError):
    """A file is not what its name promises; the text names the file and the first fault."""


def fault(path: Path, what: str) -> DatasetFormatError:
    """Say what is wrong with a file."""
    return DatasetFormatError(f"{path} is not a usable partial label data set: {what}.")


def refuse_rows(bad: Any, what: str, path: Path) -> None:
    """Name the first of the rows that a boolean vector marks as bad, if it marks any."""
    if bad.any():
        raise fault(path, f"row {int(np.argmax(bad))} {what} ({int(bad.sum())} such rows)")


def check_real(array: NDArray[Any], key: str, path: Path) -> None:
    """Refuse text, complex numbers and objects."""
    if array.dtype.kind not in "biuf":
        raise fault(path, f"{key} is not a matrix of real numbers")


def check_features(data: NDArray[Any], key: str, path: Path) -> None:
    """Refuse features that are no finite matrix."""
    check_real(data, key, path)
    if data.ndim != 2 or 0 in data.shape:
        raise fault(path, f"{key} has the shape {data.shape}, not (rows, features)")
    refuse_rows(~np.isfinite(data).all(axis=1), "has a feature that is not finite", path)
