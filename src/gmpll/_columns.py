"""Which label a column belongs to: the one place where columns are matched by label.

Arrays and sparse matrices have columns without names. All other forms name their labels, and
their columns may come in any order.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll._typing import Mask, Places
from gmpll.candidates import SET_TYPES, CandidateSets, VotedCandidates, as_candidates


def is_plain_matrix(y: Any) -> bool:
    """Whether candidates come as a matrix whose columns have no names."""
    if sp.issparse(y):
        return True
    if getattr(y, "ndim", 1) != 2 or hasattr(y, "columns"):
        return False
    return bool(y.shape[1] != 1 or np.asarray(y).dtype == bool)


def label_codes(labels: NDArray[Any] | Sequence[Any], classes: NDArray[Any]) -> Places:
    """Return the place of every label among the classes, -1 for one that is none of them."""
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    rows = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    return np.array([code_of.get(label, -1) for label in rows], dtype=np.intp)


def aligned_columns(
    values: NDArray[Any], labels: NDArray[Any], classes: NDArray[Any], fill: float = 0.0
) -> NDArray[Any]:
    """Put columns that belong to ``labels`` into the order of ``classes``.

    A label that is none of the classes loses its column; a class that is none of the labels gets
    a column of ``fill``.
    """
    if len(labels) == len(classes) and np.array_equal(labels, classes):
        return values
    codes = label_codes(labels, classes)
    full = np.full((values.shape[0], len(classes)), fill, dtype=values.dtype)
    full[:, codes[codes >= 0]] = values[:, codes >= 0]
    return full


def sets_by_name(
    y: Any, classes: NDArray[Any], *, n_samples: int | None = None, possible: Mask | None = None
) -> CandidateSets:
    """Read candidate sets for a model that knows ``classes``; other labels keep their names.

    The columns of an array or a sparse matrix are the classes if there are as many; all other forms
    name their labels. None stands for the classes that are ``possible``, by default all of them.
    """
    every = classes if possible is None else classes[possible]
    sets = as_candidates(_with_full_sets(y, every.tolist()), n_samples=n_samples)
    if is_plain_matrix(y) and sets.mask.shape[1] == len(classes):
        return CandidateSets(sets.mask, classes)
    return sets


def sets_of_known_labels(
    y: Any, classes: NDArray[Any], *, n_samples: int | None = None, possible: Mask | None = None
) -> CandidateSets:
    """Read candidate sets over all the classes, in their order; any other label is an error.

    Apart from that it is :func:`sets_by_name`.
    """
    sets = sets_by_name(y, classes, n_samples=n_samples, possible=possible)
    if is_plain_matrix(y) and sets.mask.shape[1] != len(classes):
        raise ValueError(
            f"The candidate matrix has {sets.mask.shape[1]} columns, but there are "
            f"{len(classes)} labels: give a column for each, in the order of classes_."
        )
    unknown = np.argwhere(sets.mask & (label_codes(sets.classes, classes) < 0))
    if unknown.size:
        row, column = unknown[0]
        raise ValueError(
            f"Row {row} has the candidate {sets.classes.tolist()[column]!r}, which is none of the "
            f"{len(classes)} labels of the model: fix it, or fit again with a column for every "
            "label; partial_fit can be told them in classes at its first call."
        )
    return CandidateSets(aligned_columns(sets.mask, sets.classes, classes), classes)


def _with_full_sets(y: Any, labels: list[Any]) -> Any:
    """Write None out, which would otherwise stand for the labels of these rows alone."""
    if isinstance(y, (CandidateSets, VotedCandidates)) or getattr(y, "ndim", 1) != 1:
        return y
    has_rows = isinstance(y, (list, tuple)) or getattr(y, "dtype", None) == np.dtype(object)
    if has_rows and all(row is None or isinstance(row, SET_TYPES) for row in y):
        return [labels if row is None else row for row in y]
    return y


def unique_labels(classes: Any) -> NDArray[Any] | None:
    """Return the labels that a user names, or None; each of them must be there once."""
    if classes is None:
        return None
    labels = np.asarray(classes)
    if labels.ndim != 1 or len(set(labels.tolist())) != len(labels):
        raise ValueError("classes must be a sequence of labels, each of them once.")
    return labels


def check_same_labels(classes: Any, settled: NDArray[Any]) -> None:
    """Refuse labels that are not those of the first call to ``partial_fit``, in their order."""
    labels = unique_labels(classes)
    if labels is not None and labels.tolist() != settled.tolist():
        raise ValueError(
            f"classes is {labels.tolist()}, but the labels of this model are "
            f"{settled.tolist()} since the first call: leave classes out, or call fit."
        )
