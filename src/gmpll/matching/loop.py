r"""Many-to-one probabilistic matching: steps 4 to 12 of Algorithm 1, Eqs. (7) to (9).

The paper rewrites the affinity in every turn,
:math:`K^{(t+1)}_{ab} = K^{(t)}_{ab}\, p^{(t+1)}_a / p^{(t)}_a`. The factors telescope, so that

.. math:: p^{(t+1)} = \operatorname{normalise}\left(
          \frac{p^{(t)}}{p^{(0)}} \circ K^{(0)} p^{(t)}\right)

and because :math:`p^{(0)}` is constant within an instance, dividing by it changes nothing after
the normalisation. This is a growth transform: without balance the objective
:math:`p^\top K p` of OP (2) never falls.

The loop names no array library: it runs where the mask and the affinity live, NumPy arrays or
tensors on any device.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmpll.arrays import Array, array_namespace, default_float, device
from gmpll.matching.affinity import Affinity
from gmpll.matching.masses import mass_pull

__all__ = ["Matching", "match", "uniform_start"]


class Matching(NamedTuple):
    r"""What :func:`match` found.

    Attributes
    ----------
    probabilities : array of shape (n_samples, n_classes)
        Of the library and on the device of the mask. Zero outside the candidates; rows sum to
        one.
    n_iter : int
        Turns made.
    converged : bool
        Whether the last turn moved the probabilities by less than ``tol``.
    objective_path : ndarray of shape (n_iter,)
        :math:`p^\top K p` before every turn.
    """

    probabilities: Array
    n_iter: int
    converged: bool
    objective_path: NDArray[np.float64]


def uniform_start(mask: Array, dtype: Any = None) -> Array:
    """Return the paper's start: every candidate of an instance is equally likely.

    Parameters
    ----------
    mask : array of shape (n_samples, n_classes), bool
        Candidates.
    dtype : dtype, default=None
        Precision; by default that of the array library.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.matching import uniform_start
    >>> uniform_start(np.array([[True, True], [False, True]]))
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    xp = array_namespace(mask)
    candidates = xp.astype(mask, default_float(xp) if dtype is None else dtype)
    return candidates / xp.sum(candidates, axis=1, keepdims=True)


def match(
    affinity: Affinity,
    mask: Array,
    *,
    balance: float = 0.0,
    max_iter: int = 100,
    tol: float = 1e-4,
    start: Array | None = None,
    unary: Array | None = None,
    expected_mass: Array | None = None,
) -> Matching:
    r"""Match instances to labels.

    Parameters
    ----------
    affinity : Affinity
        Affinity between assignments; it takes and returns arrays of the mask's library.
    mask : array of shape (n_samples, n_classes), bool
        Candidates.
    balance : float, default=0.0
        Exponent g of the class-mass correction: before it is normalised, the new confidence of a
        label is divided by :math:`(\sum_j p_{jl})^g`, which keeps frequent labels from
        snowballing. 0 is the paper's matching.
    max_iter : int, default=100
        Largest number of turns.
    tol : float, default=1e-4
        The matching has converged when a turn moves p by less than this, in Euclidean norm.
    start : array of shape (n_samples, n_classes), default=None
        Prior probabilities of the candidates; uniform by default. They act as unary affinities:
        every turn weighs the support of an assignment with its current probability. The matching
        keeps their precision, or that of the array library where it is higher.
    unary : array of shape (n_samples, n_classes), default=None
        What is known of the assignments themselves: the support of an assignment is multiplied
        with it in every turn. Not negative; all ones, the default, say nothing.
    expected_mass : array of shape (1, n_classes), default=None
        Known sum of the probabilities of every label; every turn draws them towards it, see
        :mod:`gmpll.matching.masses`.

    Returns
    -------
    Matching
    """
    packed = affinity.packed(mask) if hasattr(affinity, "packed") else None
    if packed is not None:  # the same turns without the zeros outside the candidates
        found = match(
            packed,
            packed.mask,
            balance=balance,
            max_iter=max_iter,
            tol=tol,
            start=packed.pack(uniform_start(mask) if start is None else start),
            unary=None if unary is None else packed.pack(unary),
            expected_mass=None if expected_mass is None else packed.pack(expected_mass),
        )
        return found._replace(probabilities=packed.unpack(found.probabilities))
    xp = array_namespace(mask)
    P = uniform_start(mask) if start is None else _as_probabilities(start, mask)
    normalise = getattr(affinity, "normalise", _normalise)
    mass_of = getattr(affinity, "class_mass", lambda P: xp.sum(P, axis=0))
    weighted_support = getattr(affinity, "weighted_support", lambda P: P * affinity.apply(P))
    correction = getattr(affinity, "correction", lambda P, g: _correction(mass_of(P), g))
    objective: list[Array] = []
    converged = False
    while len(objective) < max_iter and not converged:
        support = weighted_support(P)
        objective.append(xp.sum(support))
        if unary is not None:
            support = support * unary
        if balance:
            support = support / correction(P, balance)
        new = normalise(support, fallback=P)
        if expected_mass is not None:
            new = normalise(new * mass_pull(mass_of(new), expected_mass), fallback=new)
        # Asking for the norm makes the host wait for the device: not where no norm is below tol.
        converged = tol > 0 and bool(xp.linalg.vector_norm(new - P) < tol)
        P = new
    path = np.array([float(value) for value in objective])
    return Matching(P, len(objective), converged, path)


def _as_probabilities(start: Array, mask: Array) -> Array:
    xp = array_namespace(mask)
    start = xp.asarray(start, device=device(mask))
    return xp.astype(start, xp.result_type(start.dtype, default_float(xp)))


def _correction(mass: Array, balance: float) -> Array:
    """What the support of a label is divided by; nothing where nobody has it."""
    return array_namespace(mass).where(mass > 0, mass, 1.0) ** balance


def _normalise(support: Array, fallback: Array) -> Array:
    """Let rows sum to one; an instance without any support keeps its probabilities."""
    xp = array_namespace(support)
    total = xp.sum(support, axis=1, keepdims=True)
    return xp.where(total > 0, support / xp.where(total > 0, total, 1.0), fallback)
