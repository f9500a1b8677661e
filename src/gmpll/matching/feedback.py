r"""Self-training: letting a regression on the matched labels have its say on them.

The graph compares a row with its neighbours; a regression sees all rows at once. After the
matching, the regression's leave-one-out prediction :math:`f_{-i}` of every row replaces the support
by the neighbours for a few iterations:

.. math:: p_{il} \leftarrow \text{normalise}\left(
          \frac{\max(f_{-i,l}, 0)^2}{(\sum_j p_{jl})^g}\right) .

or, instead of the division by their masses, labels are drawn to their capacities
(:mod:`gmpll.matching.masses`). Leaving the row out keeps a label from confirming itself. What is
known of the assignments besides, the priors of the matching, multiplies the prediction too.
"""

from collections.abc import Callable

import numpy as np

from gmpll.arrays import Array, array_namespace, device, evaluated, to_host
from gmpll.matching.affinity import DenseLayout
from gmpll.matching.masses import normalise_masses

#: How often the regression is asked again at most after its last prediction was taken, and by how
#: much a row's probabilities change in sum, on average, where nothing moves any more.
FEEDBACK_ITERATIONS = 10
SETTLED = 1e-3
#: Predictions are sharpened by this power, as an iteration of the matching multiplies two
#: probabilities.
SHARPNESS = 2
#: Share that a candidate keeps which the regression gives nothing.
FLOOR = 1e-6


def feedback(
    predict: Callable[[Array], Array],
    mask: Array,
    P: Array,
    *,
    balance: float = 0.0,
    n_iterations: int = FEEDBACK_ITERATIONS,
    priors: Array | None = None,
    expected_mass: Array | None = None,
) -> Array:
    """Refine matching probabilities P of a mask by a regression's leave-one-out predictions.

    ``predict`` maps confidences to what a regression trained on them says of every row without
    having seen it; all are (n_samples, n_classes). The rest is as in :func:`gmpll.matching.match`.
    """
    xp = array_namespace(P)
    layout = DenseLayout()
    weights = xp.astype(mask, P.dtype)
    if priors is not None:
        weights = weights * priors
    settled = np.zeros(P.shape[:-2], dtype=bool)
    for _ in range(n_iterations):
        support = (xp.clip(predict(P), min=0.0) ** SHARPNESS + FLOOR) * weights
        new = normalise_masses(layout, support, P, balance=balance, expected_mass=expected_mass)
        if settled.any():  # of several problems at once those that are over
            new = xp.where(xp.asarray(settled, device=device(P))[..., None, None], P, new)
        P, moved = evaluated(new, xp.sum(xp.abs(new - P), axis=(-2, -1)))
        settled = settled | (to_host(moved) < SETTLED * P.shape[-2])
        if settled.all():
            break
    return P
