"""From confidences to labels, with honest ties.

An ``argmax`` that falls back to the first label is a hidden prior: where labels are ordered (ages)
it "recovers" a quarter of them from an empty graph. Ties are therefore broken by a seeded choice
that knows nothing of the order of the labels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_labels", "confidences_within"]

#: Scores closer than this, relative to the largest absolute score of the row, are tied: sums of
#: the same numbers in another order differ by about as much.
TIE_TOLERANCE = 1e-12


def best_labels(
    scores: NDArray[np.floating],
    *,
    rng: np.random.RandomState | None = None,
    priority: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Return the column of the largest score of every row.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
        May contain ``-inf`` for labels that are out of the question.
    rng : RandomState, default=None
        Ties are broken by drawing one of the tied labels, anew for every row.
    priority : ndarray of shape (n_classes,), default=None
        Used without ``rng``: the tied label of highest priority wins. A row's answer then depends
        on that row alone, as the prediction of unseen rows must.

    Returns
    -------
    ndarray of shape (n_samples,), int

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.rounding import best_labels
    >>> best_labels(np.array([[0.2, 0.8], [0.5, 0.5]]), priority=np.array([0, 1]))
    array([1, 1])
    """
    top = scores.max(axis=1, keepdims=True)
    finite = np.where(np.isfinite(scores), np.abs(scores), 0.0)
    tied = scores >= top - TIE_TOLERANCE * finite.max(axis=1, keepdims=True)
    best = np.argmax(tied, axis=1)
    undecided = np.flatnonzero(tied.sum(axis=1) > 1)
    if undecided.size:
        if rng is not None:
            keys = rng.random_sample((undecided.size, scores.shape[1]))
        elif priority is not None:
            keys = np.broadcast_to(priority + 1.0, (undecided.size, scores.shape[1]))
        else:
            raise TypeError("best_labels needs rng or priority to break ties.")
        best[undecided] = np.argmax(np.where(tied[undecided], keys, -1.0), axis=1)
    return best


def confidences_within(
    scores: NDArray[np.floating], mask: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Restrict non-negative scores to the candidates and let every row sum to one.

    A row without any positive score on its candidates becomes uniform over them.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.rounding import confidences_within
    >>> mask = np.array([[True, True, False], [False, True, True]])
    >>> confidences_within(np.array([[1.0, 3.0, 9.0], [5.0, 0.0, 0.0]]), mask)
    array([[0.25, 0.75, 0.  ],
           [0.  , 0.5 , 0.5 ]])
    """
    inside = np.where(mask, scores, 0.0)
    total = inside.sum(axis=1, keepdims=True)
    usable = (total > 0) & np.isfinite(total)
    uniform = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return np.where(usable, inside / np.where(usable, total, 1.0), uniform)
