r"""Many-to-one probabilistic matching: steps 4 to 12 of Algorithm 1, Eqs. (7) to (9).

The paper rewrites the affinity in every turn,
:math:`K^{(t+1)}_{ab} = K^{(t)}_{ab}\, p^{(t+1)}_a / p^{(t)}_a`. The factors telescope, so that

.. math:: p^{(t+1)} = \operatorname{normalise}\left(
          \frac{p^{(t)}}{p^{(0)}} \circ K^{(0)} p^{(t)}\right)

and because :math:`p^{(0)}` is constant within an instance, dividing by it changes nothing after
the normalisation. This is a growth transform: without balance the objective
:math:`p^\top K p` of OP (2) never falls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmpll.matching.affinity import Affinity

__all__ = ["Matching", "match", "uniform_start"]


class Matching(NamedTuple):
    r"""What :func:`match` found.

    Attributes
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Zero outside the candidates; rows sum to one.
    n_iter : int
        Turns made.
    converged : bool
        Whether the last turn moved the probabilities by less than ``tol``.
    objective_path : ndarray of shape (n_iter,)
        :math:`p^\top K p` before every turn.
    """

    probabilities: NDArray[np.float64]
    n_iter: int
    converged: bool
    objective_path: NDArray[np.float64]


def uniform_start(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the paper's start: every candidate of an instance is equally likely."""
    return mask / mask.sum(axis=1, keepdims=True)


def match(
    affinity: Affinity,
    mask: NDArray[np.bool_],
    *,
    balance: float = 0.0,
    max_iter: int = 100,
    tol: float = 1e-4,
    start: NDArray[np.floating] | None = None,
) -> Matching:
    r"""Match instances to labels.

    Parameters
    ----------
    affinity : Affinity
        Affinity between assignments.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.
    balance : float, default=0.0
        Exponent g of the class-mass correction: before it is normalised, the new confidence of a
        label is divided by :math:`(\sum_j p_{jl})^g`, which keeps frequent labels from
        snowballing. 0 is the paper's matching.
    max_iter : int, default=100
        Largest number of turns.
    tol : float, default=1e-4
        The matching has converged when a turn moves p by less than this, in Euclidean norm.
    start : ndarray of shape (n_samples, n_classes), default=None
        Prior probabilities of the candidates; uniform by default. They act as unary affinities:
        every turn weighs the support of an assignment with its current probability.

    Returns
    -------
    Matching
    """
    P = uniform_start(mask) if start is None else np.asarray(start, dtype=np.float64)
    objective: list[float] = []
    converged = False
    while len(objective) < max_iter and not converged:
        support = P * affinity.apply(P)
        objective.append(float(support.sum()))
        if balance:
            mass = P.sum(axis=0)
            support /= np.where(mass > 0, mass, 1.0) ** balance
        new = _normalise(support, fallback=P)
        converged = bool(np.linalg.norm(new - P) < tol)
        P = new
    return Matching(P, len(objective), converged, np.array(objective))


def _normalise(support: NDArray[np.float64], fallback: NDArray[np.float64]) -> NDArray[np.float64]:
    """Let rows sum to one; an instance without any support keeps its probabilities."""
    total = support.sum(axis=1, keepdims=True)
    return np.where(total > 0, support / np.where(total > 0, total, 1.0), fallback)
