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
from scipy.optimize import minimize

from gmpll._threads import one_blas_thread
from gmpll._typing import Floats
from gmpll.arrays import Array, array_namespace, beside, to_host
from gmpll.engines import engine_of

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
        logits = scores @ beside(self.weights, scores) + beside(self.shift, scores)
        xp = array_namespace(logits)
        grown = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
        return grown / xp.sum(grown, axis=1, keepdims=True)


# The products are small: threads would wait for each other.
@one_blas_thread()
def fit_stacker(scores: Array, confidences: Array, penalty: float) -> Stacker:
    """Learn what scores mean.

    Parameters
    ----------
    scores : array of shape (n_samples, n_classes)
        Out-of-sample scores; those of Dask arrays are brought to the host.
    confidences : array of shape (n_samples, n_classes)
        What is believed of the labels; rows sum to one.
    penalty : float
        Weight of the squared differences from the scores as they are.

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
    n_samples = scores.shape[0]
    if n_samples > MAX_ROWS:
        some = np.linspace(0, n_samples - 1, MAX_ROWS).astype(np.intp)
        scores, confidences = scores[some], confidences[some]
    scores, confidences = engine_of(scores).small(scores, confidences)
    xp = array_namespace(scores)
    scores, confidences = (
        xp.astype(array, xp.float64, copy=False) for array in (scores, confidences)
    )
    q = scores.shape[1]
    unit, largest = float(xp.std(scores)), float(xp.max(xp.abs(scores)))
    if unit <= MIN_SPREAD * largest:  # they say nothing
        unit = largest or 1.0
    F = scores / unit
    asked = xp.concat([F, xp.ones_like(F[:, :1])], axis=1)  # the rows of W are those of D, then b

    def objective(flat: Floats) -> tuple[float, Floats]:
        scale, W = flat[0], flat[1:].reshape(-1, q)
        logits = asked @ beside(W, asked)
        logits += float(scale) * F
        logits -= xp.max(logits, axis=1, keepdims=True)
        excess = xp.exp(logits)
        total = xp.sum(excess, axis=1, keepdims=True)
        value = xp.sum(xp.log(total)) - _inner(confidences, logits)
        excess /= total
        excess -= confidences
        found = xp.concat(
            [
                xp.reshape(value, (1,)),
                xp.reshape(_inner(excess, F), (1,)),
                xp.reshape(asked.T @ excess, (-1,)),
            ]
        )
        found = to_host(found)
        found[0] += 0.5 * penalty * np.vdot(W, W)
        found[2:] += penalty * W.ravel()
        return float(found[0]), found[1:]

    start = np.concatenate([[1.0], np.zeros((q + 1) * q)])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITER}).x
    W = found[1:].reshape(-1, q)
    return Stacker((found[0] * np.eye(q) + W[:q]) / unit, W[-1])


def _inner(first: Array, second: Array) -> Array:
    """Return the sum of the products of all entries."""
    xp = array_namespace(first)
    return xp.linalg.vecdot(xp.reshape(first, (-1,)), xp.reshape(second, (-1,)))
