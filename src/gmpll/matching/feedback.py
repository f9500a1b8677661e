r"""Letting a regression on the matched labels have its say on them.

The graph compares a row with its neighbours; a regression sees all rows at once. After the
matching, the regression's leave-one-out opinion :math:`f_{-i}` of every row replaces the support
by the neighbours for a few turns:

.. math:: p_{il} \leftarrow \text{normalise}\left(
          \frac{\max(f_{-i,l}, 0)^2}{(\sum_j p_{jl})^g}\right) .

Leaving the row out keeps a label from confirming itself. What is known of the assignments besides,
the unary factor of the matching, multiplies the opinion too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gmpll.matching.masses import mass_pull
from gmpll.rounding import confidences_within

__all__ = ["FEEDBACK_TURNS", "feedback"]

#: How often the regression is asked again after its last opinion was taken.
FEEDBACK_TURNS = 10
#: Opinions are sharpened by this power, as a turn of the matching multiplies two probabilities.
SHARPNESS = 2
#: Share that a candidate keeps which the regression gives nothing.
FLOOR = 1e-6


def feedback(
    opinion: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    mask: NDArray[np.bool_],
    P: NDArray[np.float64],
    *,
    balance: float,
    turns: int = FEEDBACK_TURNS,
    unary: NDArray[np.float64] | None = None,
    expected_mass: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Refine matching probabilities by a regression's leave-one-out opinion.

    Parameters
    ----------
    opinion : callable
        Maps confidences (n_samples, n_classes) to what a regression trained on them says of every
        row without having seen it.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.
    P : ndarray of shape (n_samples, n_classes)
        Probabilities to start from.
    balance : float
        Exponent of the class-mass correction, as in :func:`gmpll.matching.match`.
    turns : int, default=FEEDBACK_TURNS
        How many opinions are taken.
    unary : ndarray of shape (n_samples, n_classes), default=None
        What is known of the assignments besides, as in :func:`gmpll.matching.match`.
    expected_mass : ndarray of shape (1, n_classes), default=None
        Known sum of the probabilities of every label, as in :func:`gmpll.matching.match`.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
    """
    for _ in range(turns):
        mass = P.sum(axis=0)
        support = np.maximum(opinion(P), 0.0) ** SHARPNESS + FLOOR
        support /= np.where(mass > 0, mass, 1.0) ** balance
        if unary is not None:
            support *= unary
        P = confidences_within(support, mask)
        if expected_mass is not None:
            P = confidences_within(P * mass_pull(P.sum(axis=0), expected_mass), mask)
    return P
