"""Scores of predictions: against the truth, and against candidate sets where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gmpll.candidates import as_candidates

__all__ = ["covered", "covering_rate"]


def covered(candidates: Any, y_pred: ArrayLike) -> NDArray[np.bool_]:
    """Return for every row whether the predicted label is one of its candidates.

    Parameters
    ----------
    candidates : any form that :func:`gmpll.as_candidates` reads
        Candidate sets.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    """
    predicted = np.asarray(y_pred)
    mask, classes = as_candidates(candidates, n_samples=predicted.shape[0])
    column = {label: index for index, label in enumerate(classes.tolist())}
    columns = np.array([column.get(label, -1) for label in predicted.tolist()], dtype=np.intp)
    return (columns >= 0) & mask[np.arange(mask.shape[0]), columns]


def covering_rate(candidates: Any, y_pred: ArrayLike) -> float:
    """Share of rows whose predicted label lies in their candidate set.

    With singleton sets this is the accuracy.

    Examples
    --------
    >>> from gmpll.metrics import covering_rate
    >>> covering_rate([{"a", "b"}, {"b"}], ["a", "a"])
    0.5
    """
    return float(covered(candidates, y_pred).mean())
