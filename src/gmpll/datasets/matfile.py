"""Reading a partial label data set from a MATLAB v5 file.

The files of the field hold ``data`` (n x d), ``partial_target`` and ``target`` (both q x n, that
is, transposed, with entries 0 and 1, sparse or dense). A file is refused rather than repaired.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmpll.datasets.checks import check_features, check_real, fault, refuse_rows
from gmpll.datasets.matframe import FrameError, NotNumbersError, check_frame

__all__ = ["PartialLabelArrays", "read_mat"]

KEYS = ("data", "partial_target", "target")
#: A sparse matrix with more places than this is no matrix of the field but a damaged shape.
MAX_PLACES = 2**25


class PartialLabelArrays(NamedTuple):
    """Features, candidates and true labels of a data set, a row each."""

    data: NDArray[np.float64]
    #: A column per label row of the file, also for labels that are never true.
    candidates: NDArray[np.bool_]
    #: Column of the true label.
    target: NDArray[np.intp]


def read_mat(path: Path) -> PartialLabelArrays:
    """Read and check a partial label data set from a MATLAB v5 file."""
    contents = _load(path)
    data = _features(contents["data"], path)
    candidates = _labels(contents["partial_target"], "partial_target", len(data), path)
    truth = _labels(contents["target"], "target", len(data), path)
    if truth.shape != candidates.shape:
        n_true, n_candidates = truth.shape[1], candidates.shape[1]
        raise fault(path, f"target has {n_true} labels and partial_target {n_candidates}")
    refuse_rows(~candidates.any(axis=1), "has no candidate label", path)
    refuse_rows(truth.sum(axis=1) != 1, "does not have exactly one true label", path)
    refuse_rows(
        (truth & ~candidates).any(axis=1), "has its true label outside its candidates", path
    )
    return PartialLabelArrays(data, candidates, truth.argmax(axis=1))


def _load(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    content = path.read_bytes()
    header = content[:128]
    if header.startswith((b"MATLAB 7.3", b"\x89HDF")):
        raise fault(path, "it is a MATLAB v7.3 (HDF5) file: save it again with the option -v7")
    if len(header) < 128 or not header.startswith(b"MATLAB 5.0"):
        raise fault(path, "it is not a MATLAB v5 file")
    try:
        check_frame(content, KEYS)
    except FrameError as error:
        raise fault(path, f"it is damaged or cut short ({error})") from error
    except NotNumbersError as error:
        raise fault(path, str(error)) from error
    file: Any = io.BytesIO(content)
    try:
        contents = loadmat(file, variable_names=list(KEYS), spmatrix=False)
    except Exception as error:  # a damaged stream shows in a dozen kinds of exception
        raise fault(path, f"it is damaged or cut short ({type(error).__name__})") from error
    missing = [key for key in KEYS if key not in contents]
    if missing:
        raise fault(path, f"it has no variable {' and no '.join(missing)}")
    return contents


def _features(raw: Any, path: Path) -> NDArray[np.float64]:
    data = _numeric(raw, "data", path)
    check_features(data, "data", path)
    return np.ascontiguousarray(data, dtype=np.float64)


def _labels(raw: Any, key: str, n_samples: int, path: Path) -> NDArray[np.bool_]:
    # The shape first: a damaged one could make a sparse matrix fill the memory.
    if len(raw.shape) != 2 or raw.shape[0] == 0 or raw.shape[1] != n_samples:
        raise fault(path, f"{key} has the shape {raw.shape}, not (labels, {n_samples})")
    labels = _numeric(raw, key, path)
    if not np.isin(labels, (0, 1)).all():
        raise fault(path, f"{key} has entries other than 0 and 1")
    return np.ascontiguousarray(labels.T != 0)


def _numeric(raw: Any, key: str, path: Path) -> NDArray[Any]:
    array = np.asarray(_dense(raw, key, path) if hasattr(raw, "toarray") else raw)
    check_real(array, key, path)
    return array


def _dense(raw: Any, key: str, path: Path) -> NDArray[Any]:
    if min(raw.shape) <= 0 or raw.shape[0] * raw.shape[1] > MAX_PLACES:
        raise fault(path, f"{key} has the shape {raw.shape}, which is empty or too large")
    # SciPy's own check looks at nothing where the last column ends at zero.
    ends, places = raw.indptr, raw.indices
    sound = (
        len(ends) == raw.shape[1] + 1
        and ends[0] == 0
        and (np.diff(ends) >= 0).all()
        and ends[-1] <= min(len(places), len(raw.data))
        and ((places >= 0) & (places < raw.shape[0])).all()
    )
    if not sound:
        raise fault(path, f"{key} is a damaged sparse matrix")
    return raw.toarray()
