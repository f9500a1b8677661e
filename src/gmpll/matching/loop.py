r"""Many-to-one probabilistic matching: steps 4 to 12 of Algorithm 1, Eqs. (7) to (9).

The paper rewrites the affinity in every iteration,
:math:`K^{(t+1)}_{ab} = K^{(t)}_{ab}\, p^{(t+1)}_a / p^{(t)}_a`. The factors telescope, so that

.. math:: p^{(t+1)} = \operatorname{normalise}\left(
          \frac{p^{(t)}}{p^{(0)}} \circ K^{(0)} p^{(t)}\right)

and because :math:`p^{(0)}` is constant within an instance, dividing by it changes nothing after
the normalisation. This is a growth transform: without balance the objective
:math:`p^\top K p` of OP (2) never falls.

The loop names no array library: it runs where the mask and the affinity live, NumPy arrays,
tensors on any device, or Dask arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmpll._progress import reach
from gmpll.arrays import Array, array_namespace, default_float, device, evaluated, to_host
from gmpll.matching.affinity import Operator
from gmpll.matching.masses import normalise_masses


class Matching(NamedTuple):
    r"""What :func:`match` found.

    Attributes
    ----------
    probabilities : array of shape (n_samples, n_classes)
        Of the library and on the device of the mask. Zero outside the candidates; rows sum to
        one.
    n_iter : int
        Iterations made.
    converged : bool
        Whether the last iteration moved the probabilities by less than ``tol``.
    objective_path : ndarray of shape (n_iter,)
        :math:`p^\top K p` before every iteration.
    """

    probabilities: Array
    n_iter: int
    converged: bool
    objective_path: NDArray[np.float64]


def uniform_start(mask: Array, dtype: Any = None) -> Array:
    """Return the paper's start: every candidate of an instance is equally likely.

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
    return candidates / xp.sum(candidates, axis=-1, keepdims=True)


def support_of(affinity: Operator, P: Array) -> Array:
    """Return K p of (n_samples, n_classes) probabilities in their shape.

    Outside the candidates it has no meaning.
    """
    layout = affinity.layout
    return layout.unpack(affinity.apply(layout.pack(P)))


def match(
    affinity: Operator,
    mask: Array,
    *,
    balance: float = 0.0,
    max_iter: int = 100,
    tol: float = 1e-4,
    start: Array | None = None,
    priors: Array | None = None,
    expected_mass: Array | None = None,
    keep: Callable[[Array], Array] | None = None,
) -> Matching:
    r"""Match instances to labels.

    Parameters
    ----------
    affinity : Operator
        Affinity between assignments; it takes and returns arrays of the mask's library.
    mask : array of shape (n_samples, n_classes), bool
        Candidates; none but those that the affinity was made for. A tensor may have a further axis
        before these: several problems of one size, each of which ends as it would alone.
    balance : float, default=0.0
        Exponent g of the class-mass correction: before it is normalised, the new confidence of a
        label is divided by :math:`(\sum_j p_{jl})^g`, which keeps frequent labels from
        snowballing. 0 is the paper's matching.
    max_iter : int, default=100
        Largest number of iterations.
    tol : float, default=1e-4
        The matching has converged when an iteration moves p by less than this, in Euclidean norm.
    start : array of shape (n_samples, n_classes), default=None
        Probabilities of the candidates to start from; uniform by default. They act as unary
        affinities: every iteration weighs the support of an assignment with its current
        probability. The matching keeps their precision, or that of the array library where it is
        higher.
    priors : array of shape (n_samples, n_classes), default=None
        What is known of the assignments themselves: the support of an assignment is multiplied
        with it in every iteration. Not negative; all ones, the default, say nothing.
    expected_mass : array of shape (n_classes,), default=None
        Known sum of the probabilities of every label; every iteration draws them towards it, see
        :mod:`gmpll.matching.masses`.
    keep : callable, default=None
        Applied to the new probabilities of every iteration, in the layout of the affinity: where
        they are to be written down, for instance.
    """
    xp = array_namespace(mask)
    layout = affinity.layout
    (p,) = evaluated(layout.pack(_start(mask, start)))
    prior = None if priors is None else layout.pack(priors)
    objective: list[Array] = []
    several = (-2, -1) if mask.ndim > 2 else None
    converged = np.zeros(mask.shape[:-2], dtype=bool)
    while len(objective) < max_iter and not converged.all():
        grown = p * affinity.apply(p)  # Eq. (7), and Eq. (9) by the factor p
        value = xp.sum(grown)
        if prior is not None:
            grown = grown * prior
        new = normalise_masses(  # Eq. (8)
            layout, grown, p, balance=balance, expected_mass=expected_mass
        )
        if several and converged.any():  # of several problems at once those that are over
            new = xp.where(xp.asarray(converged, device=device(p))[..., None, None], p, new)
        p, value, moved = evaluated(new, value, xp.linalg.vector_norm(new - p, axis=several))
        p = p if keep is None else keep(p)
        objective.append(value)
        reach("matching", len(objective) / max_iter)
        # Asking for the norm makes the host wait for the device: not where no norm is below tol.
        if tol > 0:
            converged = converged | (to_host(moved) < tol)
    path = np.array([float(value) for value in objective])
    return Matching(layout.unpack(p), len(objective), bool(converged.all()), path)


def _start(mask: Array, start: Array | None) -> Array:
    if start is None:
        return uniform_start(mask)
    xp = array_namespace(mask)
    start = xp.asarray(start, device=device(mask))
    return xp.astype(start, xp.result_type(start.dtype, default_float(xp)))
