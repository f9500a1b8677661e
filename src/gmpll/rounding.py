"""From confidences to labels, with honest ties.

An ``argmax`` that falls back to the first label is a hidden prior: where labels are ordered (ages)
it "recovers" a quarter of them from an empty graph. Ties are therefore broken by a seeded choice
that knows nothing of the order of the labels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gmpll.arrays import Array, array_namespace, default_float, device, is_dask_array
from gmpll.engines import engine_of

#: Scores closer than this, relative to the largest absolute score of the row, are tied: sums of
#: the same numbers in another order differ by about as much. In single precision a few multiples
#: of its resolution take its place.
TIE_TOLERANCE = 1e-12
TIE_RESOLUTIONS = 8


def best_labels(
    scores: Array,
    *,
    rng: np.random.RandomState | None = None,
    priority: Array | None = None,
) -> Array:
    """Return the column of the largest score of every row; scores may be ``-inf``.

    With ``rng`` one of the tied labels is drawn, anew for every row; the draws are the same
    whatever library holds the scores. Without it the tied label of highest ``priority`` wins, so
    that a row's answer depends on that row alone, as the prediction of unseen rows must.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.rounding import best_labels
    >>> best_labels(np.array([[0.2, 0.8], [0.5, 0.5]]), priority=np.array([0, 1]))
    array([1, 1])
    """
    if is_dask_array(scores):
        seed = None if rng is None else rng.randint(np.iinfo(np.int32).max)

        def of_block(block: Array) -> Array:
            draws = None if seed is None else np.random.RandomState(seed)
            return best_labels(block, rng=draws, priority=priority)

        return engine_of(scores).map_rows(of_block, scores)
    xp = array_namespace(scores)
    tied = _by_blocks(_is_tied, scores)
    best = xp.argmax(xp.astype(tied, xp.int8), axis=1)
    (undecided,) = xp.nonzero(xp.count_nonzero(tied, axis=1) > 1)
    if undecided.shape[0]:
        shape = (undecided.shape[0], scores.shape[1])
        if rng is not None:
            draws = rng.random_sample(shape)
            keys = xp.asarray(draws, dtype=scores.dtype, device=device(scores))
        elif priority is not None:
            ranks = xp.asarray(priority, dtype=scores.dtype, device=device(scores))
            keys = xp.broadcast_to(ranks, shape)
        else:
            raise TypeError("best_labels needs rng or priority to break ties.")
        best[undecided] = xp.argmax(xp.where(tied[undecided, :], keys, -xp.inf), axis=1)
    return best


def _is_tied(scores: Array) -> Array:
    """Whether a score equals the largest of its row up to rounding."""
    xp = array_namespace(scores)
    tolerance = max(TIE_TOLERANCE, TIE_RESOLUTIONS * float(xp.finfo(scores.dtype).eps))
    largest = xp.max(scores, axis=1, keepdims=True)
    finite = xp.where(xp.isfinite(scores), xp.abs(scores), 0.0)
    return scores >= largest - tolerance * xp.max(finite, axis=1, keepdims=True)


def _by_blocks(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a function of rows, to NumPy arrays in blocks that stay in the cache."""
    if isinstance(arrays[0], np.ndarray):
        return engine_of(arrays[0]).map_rows(function, *arrays)
    return function(*arrays)


def confidences_within(scores: Array, mask: Array) -> Array:
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
    return _by_blocks(_confidences_within, scores, mask)


def _confidences_within(scores: Array, mask: Array) -> Array:
    xp = array_namespace(scores, mask)
    inside = xp.where(mask, scores, 0.0)
    total = xp.sum(inside, axis=-1, keepdims=True)
    usable = (total > 0) & xp.isfinite(total)
    candidates = xp.astype(mask, xp.result_type(inside.dtype, default_float(xp)))
    uniform = candidates / xp.clip(xp.sum(candidates, axis=-1, keepdims=True), min=1.0)
    return xp.where(usable, inside / xp.where(usable, total, 1.0), uniform)


def one_hot(labels: Array, n_classes: int) -> Array:
    """Return a boolean matrix with a single True in every row, in the column of its label."""
    xp = array_namespace(labels)
    return labels[:, None] == xp.arange(n_classes, device=device(labels))[None, :]


def as_probabilities(scores: Array) -> Array:
    """Cut scores off at zero and let every row sum to one; uniform where nothing is left."""
    xp = array_namespace(scores)
    return confidences_within(xp.clip(scores, min=0.0), xp.ones_like(scores, dtype=xp.bool))
