r"""How rows speak of each other in the model of the candidate sets: without those of their own set.

The graph tells a row's neighbours, and the inverse :math:`A = (K + \lambda I)^{-1}` of a kernel
ridge regression what it would say of rows that it was not trained on,

.. math:: f_{-G} = Y_G - A_{GG}^{-1} (A Y)_G ,

for the rows G of one set. On the host the graph is sparse, and sets are worked on one after the
other. On a device there are few, large steps instead: the graph is dense, and with the matrix M
that is 1 between rows of the same set, all :math:`A_{GG}^{-1}` stand in :math:`(A \circ M)^{-1}`.
Arrays of a device may have a further axis before the others: several problems at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from gmpll._typing import Floats, Mask, Places
from gmpll.arrays import Array, array_namespace, beside, inverse_of_positive, to_host
from gmpll.evidence.set_model import (
    MIDDLE_TAU,
    Scores,
    SetModel,
    fit_set_model,
    held_out_log_likelihood,
    label_shares,
)

__all__ = ["Relations", "SampleModel", "SetsLeftOut", "set_numbers", "without_equal_sets"]

#: Rows of one set that are left out together at most; larger groups are cut at random.
MAX_GROUP = 1500


def set_codes(mask: Array) -> Array:
    """Return a number of 64 bits for every candidate set, of any array library.

    That two of a million sets have the same one is less likely than one in ten million.
    """
    xp = array_namespace(mask)
    largest = np.iinfo(np.int64).max
    keys = np.random.RandomState(0).randint(largest, size=mask.shape[-1], dtype=np.int64)
    return xp.sum(xp.where(mask, beside(keys, mask), 0), axis=-1)


def set_numbers(mask: Mask) -> Places:
    """Number the distinct candidate sets; rows with the same set have the same number."""
    return np.unique(set_codes(mask), return_inverse=True)[1]


def left_out_together(sets: Places, rng: np.random.RandomState) -> Places:
    """Number the rows that are left out together: those of a set, large ones in parts."""
    parts, n_parts = sets.copy(), sets.max(initial=-1) + 1
    for large in np.flatnonzero(np.bincount(sets) > MAX_GROUP):
        rows = rng.permutation(np.flatnonzero(sets == large))
        for part in np.array_split(rows, -(-len(rows) // MAX_GROUP))[1:]:
            parts[part], n_parts = n_parts, n_parts + 1
    return parts


def _members(numbers: Places) -> list[Places]:
    """Return the rows that have each number."""
    return np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])


def without_equal_sets(graph: sp.csr_array, sets: Places) -> sp.csr_array:
    """Cut the edges between rows with the same set."""
    edges = graph.tocoo()
    kept = sets[edges.row] != sets[edges.col]
    places = (edges.row[kept], edges.col[kept])
    return sp.csr_array((edges.data[kept], places), shape=graph.shape)


class SetsLeftOut:
    """What a kernel ridge regression says of every row without rows of the same set, on the host.

    ``inverse`` is A, ``sets`` are the numbers of the rows' sets, and ``rng`` cuts large groups.
    """

    def __init__(self, inverse: Floats, sets: Places, rng: np.random.RandomState) -> None:
        self._inverse = inverse
        self._blocks: list[tuple[Places, Floats]] = []
        by_size: dict[int, list[Places]] = {}
        for group in _members(left_out_together(sets, rng)):
            by_size.setdefault(len(group), []).append(group)
        for groups in by_size.values():  # groups of one size are inverted together
            rows = np.array(groups)
            blocks = inverse[rows[:, :, None], rows[:, None, :]]
            self._blocks.append((rows, np.linalg.inv(blocks).astype(float, copy=False)))

    def __call__(self, confidences: Floats) -> Floats:
        """Return the scores of every row after training on the confidences of the others."""
        residual = self._inverse @ confidences
        scores = np.empty_like(confidences)
        for rows, inverted in self._blocks:
            scores[rows] = confidences[rows] - inverted @ residual[rows]
        return scores


class OtherSets:
    """What rows with other sets say of every row, on the host."""

    def __init__(self, graph: sp.csr_array, inverse: Floats, mask: Mask) -> None:
        sets = set_numbers(mask)
        self._regression = SetsLeftOut(inverse, sets, np.random.RandomState(0))
        self._graph = without_equal_sets(graph, sets)
        self._sets = sets
        self._members = sp.csr_array((np.ones(len(sets)), (sets, np.arange(len(sets)))))
        self._n_others = len(sets) - np.bincount(sets)[sets][:, None]

    def __call__(self, P: Floats) -> Scores:
        """Return it for confidences of the rows."""
        mass = P.sum(axis=0) - np.asarray(self._members @ P)[self._sets]
        shares = label_shares(np.maximum(mass, 0.0), self._n_others)
        return Scores(self._graph @ P, self._regression(P), shares)


class DenseOtherSets:
    """The same on a device, of one problem or of several."""

    def __init__(self, graph: Array, inverse: Array, mask: Array) -> None:
        xp = array_namespace(inverse)
        masks = to_host(mask).reshape(-1, *mask.shape[-2:])
        sets = np.array([set_numbers(each) for each in masks])
        parts = np.array([left_out_together(each, np.random.RandomState(0)) for each in sets])
        same, together = (_are_equal(each, inverse) for each in (sets, parts))
        self._n_rows = mask.shape[-2]
        self._blocks = inverse_of_positive(xp.where(together, inverse, 0.0))
        one = xp.astype(same, inverse.dtype)
        # The product with all three at once.
        self._relations = xp.concat([inverse, xp.where(same, 0.0, graph), one], axis=-2)
        self._n_others = self._n_rows - xp.sum(one, axis=-1, keepdims=True)

    def __call__(self, P: Array) -> Scores:
        """Return it for confidences of the rows."""
        xp, n = array_namespace(P), self._n_rows
        said = product(self._relations, P)
        scores = P - product(self._blocks, said[..., :n, :])
        mass = xp.sum(P, axis=-2, keepdims=True) - said[..., 2 * n :, :]
        shares = label_shares(xp.clip(mass, min=0.0), self._n_others)
        return Scores(said[..., n : 2 * n, :], scores, shares)


def _are_equal(numbers: Places, like: Array) -> Array:
    """Return where numbers of rows are equal, in the shape and at the place of a matrix."""
    there = beside(numbers.reshape(like.shape[:-1]), like)
    return there[..., :, None] == there[..., None, :]


def product(matrix: Any, P: Array) -> Array:
    """Return ``matrix @ P``; where P has one more axis in front, its columns stand side by side."""
    if P.ndim == 2 or P.ndim == matrix.ndim:
        return matrix @ P
    xp = array_namespace(P)
    n_problems, n_labels = P.shape[0], P.shape[-1]
    aside = xp.reshape(xp.moveaxis(P, 0, -2), (*P.shape[1:-1], n_problems * n_labels))
    found = matrix @ aside
    return xp.moveaxis(xp.reshape(found, (*found.shape[:-1], n_problems, n_labels)), -2, 0)


@dataclass(frozen=True)
class Relations:
    """Rows with candidates, their graph, and the inverse A of a kernel ridge regression.

    The graph is a csr_array on the host, a dense tensor on a device.
    """

    graph: Any
    inverse: Array
    mask: Array
    class_prior: Floats | None = None  # shares of the labels, if they are known

    @cached_property
    def without_own_set(self) -> Callable[[Array], Scores]:
        """What rows with other sets say."""
        kind = OtherSets if isinstance(self.mask, np.ndarray) else DenseOtherSets
        return kind(self.graph, self.inverse, self.mask)

    def fit(
        self, tau: float | Floats, start: tuple[SetModel, Array] | None = None
    ) -> tuple[SetModel, Array]:
        """Fit the model, every row being judged by rows with other sets."""
        prior = self.class_prior
        if prior is not None:  # none of them is zero
            n_rows = self.mask.shape[-2]
            prior = label_shares(prior * n_rows, n_rows)
        return fit_set_model(self.without_own_set, self.mask, tau, start=start, class_prior=prior)

    def held_out_likelihoods(
        self, taus: Sequence[float], edges: Any, kernel: Array, mask: Array
    ) -> dict[float, Floats]:
        """Return the log-likelihood of the sets of other rows for every exponent.

        ``edges`` and ``kernel`` lead from them to these rows, ``mask`` holds their candidates. The
        model of the middle exponent is fitted first; those of the others start from it, on a device
        all at once.
        """
        xp = array_namespace(self.mask)
        likelihoods: dict[float, Floats] = {}
        start = None
        to_rows = kernel @ self.inverse
        own = xp.linalg.diagonal(self.inverse)[..., None]
        first, *others = sorted(taus, key=lambda tau: abs(tau - MIDDLE_TAU))
        on_host = isinstance(self.mask, np.ndarray)
        for some in ([first], *([tau] for tau in others)) if on_host else ([first], others):
            tau = some[0] if len(some) == 1 else np.reshape(some, (-1, *[1] * (self.mask.ndim - 2)))
            model, P = found = self.fit(tau, start)
            start = found if start is None else start
            left_out = P - product(self.inverse, P) / own
            said = product(to_rows, P)
            shares = label_shares(xp.sum(P, axis=-2, keepdims=True), P.shape[-2])
            of_rows, of_others = (xp.broadcast_to(shares, each.shape) for each in (P, said))
            seen = Scores(product(self.graph, P), left_out, of_rows)
            said = Scores(product(edges, P), said, of_others)
            found_likelihoods = held_out_log_likelihood(model, seen, self.mask, said, mask)
            values = to_host(found_likelihoods).reshape(len(some), -1)
            likelihoods |= dict(zip(some, values, strict=True))
        return likelihoods


class SampleModel:
    """The ``model`` of a sample of rows, which speaks of all other rows."""

    def __init__(self, related: Relations, tau: float) -> None:
        self.model, self._P = related.fit(tau)
        self._inverse = related.inverse
        self._coefficients = self._inverse @ self._P
        codes = to_host(set_codes(related.mask))
        self._codes, self._sets = np.unique(codes, return_inverse=True)
        P, xp = self._P, array_namespace(self._P)
        members = beside(self._sets == np.arange(len(self._codes))[:, None], P)
        members = xp.astype(members, P.dtype)
        everything = xp.sum(P, axis=0, keepdims=True)
        rest = xp.clip(everything - members @ P, min=0.0)
        n_rest = len(codes) - xp.sum(members, axis=1, keepdims=True)
        # The last row is that of sets which the sample does not have.
        self._shares = xp.concat([label_shares(rest, n_rest), label_shares(everything, len(codes))])

    def posterior(self, mask: Array, edges: Any, kernel: Array) -> Array:
        """Return the posterior of rows by those of the sample that have another set.

        ``mask`` holds their candidates; ``edges``, of the graph, and ``kernel`` lead from them to
        the sample, (n_rows, n_sample).
        """
        number = self._numbers_of(mask)
        said = self._of_other_sets if isinstance(kernel, np.ndarray) else self._of_others_at_once
        support, scores = said(number, edges, kernel)
        return self.model.posterior(Scores(support, scores, self._shares[number]), mask)

    def _numbers_of(self, mask: Array) -> Array:
        """Return which of the sample's sets those of other rows are, -1 for none."""
        codes = set_codes(mask)
        xp, known = array_namespace(codes), beside(self._codes, codes)
        place = xp.clip(xp.searchsorted(known, codes), max=len(self._codes) - 1)
        return xp.where(known[place] == codes, place, -1)

    @cached_property
    def _parts(self) -> list[tuple[Places, Floats]]:
        """The rows of every set, and what they add to the coefficients in terms of themselves."""
        A, C = self._inverse, self._coefficients
        return [
            (rows, scipy.linalg.solve(A[np.ix_(rows, rows)], C[rows], assume_a="pos"))
            for rows in _members(self._sets)
        ]

    def _of_other_sets(
        self, number: Places, edges: sp.csr_array, kernel: Floats
    ) -> tuple[Floats, Floats]:
        """Return support and scores of rows on the host, one set after the other."""
        own = self._sets[edges.indices] == np.repeat(number, np.diff(edges.indptr))
        others = (np.where(own, 0.0, edges.data), edges.indices, edges.indptr)
        support = sp.csr_array(others, shape=edges.shape) @ self._P
        inverse = self._inverse.astype(kernel.dtype, copy=False)
        scores = np.asarray(kernel @ self._coefficients.astype(kernel.dtype), dtype=np.float64)
        for present in np.unique(number[number >= 0]):
            rows = np.flatnonzero(number == present)
            group, part = self._parts[present]
            factors = [kernel[rows], inverse[:, group], part.astype(kernel.dtype)]
            scores[rows] -= np.linalg.multi_dot(factors)
        return support, scores

    @cached_property
    def _all_parts(self) -> Array:
        """What the rows of every set add to the coefficients, on a device."""
        xp = array_namespace(self._inverse)
        same = _are_equal(self._sets, self._inverse)
        return xp.linalg.solve(xp.where(same, self._inverse, 0.0), self._coefficients)

    def _of_others_at_once(self, number: Array, edges: Any, kernel: Array) -> tuple[Array, Array]:
        """Return support and scores of rows on a device."""
        xp = array_namespace(kernel)

        def single(values: Array) -> Array:
            return xp.astype(values, kernel.dtype, copy=False)

        own = number[:, None] == beside(self._sets, number)[None, :]
        support = xp.where(own, 0.0, edges.to_dense()) @ xp.astype(self._P, edges.dtype)
        of_own = xp.where(own, kernel @ single(self._inverse), 0.0)
        scores = kernel @ single(self._coefficients) - of_own @ single(self._all_parts)
        return tuple(xp.astype(each, self._P.dtype) for each in (support, scores))
