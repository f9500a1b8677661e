r"""Stacking: a logistic regression on out-of-sample scores that begins with the scores themselves.

A regression on confidences scores a label low wherever others take its rows in between, even where
it is the likeliest ("masking"), and its scores are no probabilities. Both are cured by a
multinomial logistic regression of the labels on the scores :math:`f_i` that every row got without
its own part in them,

.. math:: p_i = \text{softmax}(s f_i + f_i D + b),

fitted to the confidences :math:`P` as soft targets. The penalty
:math:`\frac{\lambda}{2} (\|D\|^2 + \|b\|^2)` pulls towards the scores as they are: with few rows,
or large :math:`\lambda`, the order of the labels hardly changes.
"""

from dataclasses import dataclass

import numpy as np

from gmpll._threads import one_blas_thread
from gmpll._typing import Floats
from gmpll.arrays import Array, array_namespace, beside, to_host
from gmpll.engines import engine_of
from gmpll.evidence.lbfgs import minimised

__all__ = ["Stacker", "fit_stacker", "is_stackable"]

#: Limit of the steps.
MAX_ITER = 100
#: Scores that differ by less than this, relative to the largest, are all the same.
MIN_SPREAD = 1e-9
#: It is fitted to no more rows than this, and to no more labels.
MAX_ROWS = 20_000
MAX_LABELS = 200


def is_stackable(n_classes: int) -> bool:
    """Whether there are labels to tell apart, and few enough to weigh each against each.

    Examples
    --------
    >>> from gmpll.evidence.stacking import is_stackable
    >>> is_stackable(1), is_stackable(20), is_stackable(1000)
    (False, True, False)
    """
    return 1 < n_classes <= MAX_LABELS


@dataclass(frozen=True)
class Stacker:
    """Turn scores into probabilities.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_classes)
        What the score of one label says of the others.
    shift : ndarray of shape (n_classes,)
        What speaks for every label beforehand.
    """

    weights: Floats
    shift: Floats

    def __call__(self, scores: Array) -> Array:
        """Return probabilities, (n_rows, n_classes)."""
        shift = beside(self.shift[..., None, :], scores)
        logits = scores @ beside(self.weights, scores) + shift
        xp = array_namespace(logits)
        grown = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
        return grown / xp.sum(grown, axis=-1, keepdims=True)


# The products are small: threads would wait for each other.
@one_blas_thread()
def fit_stacker(scores: Array, confidences: Array, penalty: float | Floats) -> Stacker:
    """Learn what scores mean.

    Parameters
    ----------
    scores : array of shape (n_samples, n_classes)
        Out-of-sample scores; those of Dask arrays are brought to the host.
    confidences : array of shape (n_samples, n_classes)
        What is believed of the labels; rows sum to one.
    penalty : float
        Weight of the squared differences from the scores as they are.

    Tensors may have a further axis before these, and penalties two, (n_penalties, 1): all these
    problems are solved at once.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.evidence.stacking import fit_stacker
    >>> position = np.linspace(-1.0, 1.0, 60)
    >>> truth = np.digitize(position, [-0.2, 0.2])  # a straight line never scores the middle best
    >>> P = np.eye(3)[truth]
    >>> line = np.vander(position, 2)
    >>> scores = line @ np.linalg.lstsq(line, P, rcond=None)[0]
    >>> stacker = fit_stacker(scores, P, penalty=0.01)
    >>> 1 in scores.argmax(axis=1), 1 in stacker(scores).argmax(axis=1)
    (False, True)
    """
    n_samples = scores.shape[-2]
    if n_samples > MAX_ROWS:
        some = np.linspace(0, n_samples - 1, MAX_ROWS).astype(np.intp)
        scores, confidences = (
            array[..., beside(some, array), :] for array in (scores, confidences)
        )
    scores, confidences = engine_of(scores).small(scores, confidences)
    xp = array_namespace(scores)
    scores, confidences = (
        xp.astype(array, xp.float64, copy=False) for array in (scores, confidences)
    )
    q = scores.shape[-1]
    spread = xp.std(scores, axis=(-2, -1), keepdims=True)
    largest = xp.max(xp.abs(scores), axis=(-2, -1), keepdims=True)
    unit = xp.where(spread <= MIN_SPREAD * largest, largest, spread)  # they may say nothing
    unit = xp.where(unit > 0, unit, 1.0)
    F = scores / unit
    # The rows of W are those of D, then b.
    asked = xp.concat([F, xp.ones_like(F[..., :1])], axis=-1)
    transposed = asked.T if asked.ndim == 2 else asked.mT
    shape = np.broadcast_shapes(np.shape(penalty), scores.shape[:-2])
    weight = beside(np.broadcast_to(np.asarray(penalty, dtype=float), shape).copy(), F)

    def objective(flat: Array) -> tuple[Array, Array]:
        W = flat[..., 1:]
        logits = asked @ xp.reshape(W, (*shape, q + 1, q))
        logits += flat[..., :1, None] * F
        logits -= xp.max(logits, axis=-1, keepdims=True)
        excess = xp.exp(logits)
        total = xp.sum(excess, axis=-1, keepdims=True)
        likelihood = xp.sum(confidences * logits, axis=(-2, -1)) - xp.sum(
            xp.log(total), axis=(-2, -1)
        )
        value = 0.5 * weight * xp.linalg.vecdot(W, W) - likelihood
        excess /= total
        excess -= confidences
        of_scale = xp.sum(excess * F, axis=(-2, -1))[..., None]
        of_W = xp.reshape(transposed @ excess, W.shape) + weight[..., None] * W
        return value, xp.concat([of_scale, of_W], axis=-1)

    start = np.zeros((*shape, 1 + (q + 1) * q))
    start[..., 0] = 1.0
    found = to_host(minimised(objective, beside(start, F), max_iter=MAX_ITER))
    W = found[..., 1:].reshape(*shape, q + 1, q)
    weights = found[..., :1, None] * np.eye(q) + W[..., :q, :]
    return Stacker(weights / to_host(unit), W[..., q, :])
