"""Data sets of your own: NumPy archives that a run keeps beside its results.

An archive holds ``X`` (n x d), the candidate sets ``S`` (n x q, 0 and 1), the true labels ``y``
(numbers of columns, -1 where one is not known) and the ``names`` of the labels. ``S`` or ``y`` may
be missing: candidates are then drawn from the labels, and predictions are compared with the
candidate sets of held-out rows.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from gmpll._atomic_io import atomic_write
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.datasets import DatasetFormatError, DatasetInfo, list_datasets
from gmpll.datasets.prepared import read_npz

SUFFIX = ".npz"


def names_a_file(dataset: str) -> bool:
    """Whether a declaration means a file and not a data set of the catalogue."""
    return dataset.lower().endswith(SUFFIX)


def name_of(file: Path | str) -> str:
    """Return the name of a data set of one's own: that of its file, in small letters."""
    name = Path(file).stem.strip().lower()
    if name in {info.name for info in list_datasets()}:
        raise ExperimentError(
            f"{file} has the name of a data set that gmpll knows: give the file another name."
        )
    return name


def read_own(file: Path) -> Bunch:
    """Read an archive, with what the loaders of the catalogue return."""
    if not file.is_file():
        raise ExperimentError(f"There is no data file {file}.")
    try:
        found = read_npz(file, labelled=False)
    except OSError as error:
        raise ExperimentError(f"The data file {file} cannot be read: {error.strerror}.") from error
    except DatasetFormatError as error:
        raise ExperimentError(str(error)) from error
    if found["candidates"] is None and (found["target"] < 0).any():
        raise ExperimentError(
            f"{file} has rows with neither candidates (S) nor a true label (y): add one of them."
        )
    return Bunch(**found, ordered=False)


def write_own(file: Path, X: Any, names: Any, candidates: Any = None, target: Any = None) -> None:
    """Write an archive; what is None is left out."""
    arrays = {"X": X, "names": names, "S": candidates, "y": target}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: a for name, a in arrays.items() if a is not None})
    with atomic_write(file) as beside:
        beside.write_bytes(buffer.getvalue())


def own_infos(folder: Path) -> list[DatasetInfo]:
    """Describe the archives of a folder as the catalogue describes its data sets."""
    infos = []
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        bunch = read_own(file)
        sizes = None if bunch.candidates is None else float(bunch.candidates.sum(axis=1).mean())
        n_samples, n_features = bunch.data.shape
        size = n_samples, n_features, len(bunch.target_names)
        infos.append(DatasetInfo(file.stem, file.stem, "own", *size, sizes, "", "", ""))
    return infos
