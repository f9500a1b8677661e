"""The reconstruction of single rows, compiled by numba.

The same minimisers as :func:`gmpll.graph.reconstruction.nonnegative_quadratic` finds batch by
batch, without the copies of neighbours and matrices between the steps. The compiled code holds no
lock: blocks of rows run in parallel threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmpll._compiling import compiled

__all__ = ["reconstruct"]

Floats = NDArray[np.float64]

#: Most steps; a fraction of them is taken.
STEPS_PER_VARIABLE = 10


class _Problem(NamedTuple):
    """What is minimised for a query, and the space to do it in; one query follows the other."""

    gram: Floats
    linear: Floats
    sum_to_one: bool
    factor: Floats
    solution: Floats
    passive: NDArray[np.bool_]
    barred: NDArray[np.bool_]
    members: NDArray[np.intp]


@compiled
def reconstruct(
    queries: Floats,
    rows: Floats,
    neighbors: NDArray[np.intp],
    sum_to_one: bool,
    ridge: float,
    tolerance: float,
    independence: float,
    weights: Floats,
) -> None:
    """Write the weights of every query into ``weights``; see the pure NumPy version for the terms.

    ``independence`` is the smallest pivot of a matrix of unit diagonal with which the neighbours
    count as linearly independent.
    """
    n_queries, k = neighbors.shape
    d = rows.shape[1]
    vectors = np.empty((k, d))
    gram = np.empty((k, k))
    linear = np.empty(k)
    solution = np.empty(k)
    passive = np.empty(k, dtype=np.bool_)
    barred = np.empty(k, dtype=np.bool_)
    members = np.empty(k, dtype=np.intp)
    factor = np.empty((k, k))
    problem = _Problem(gram, linear, sum_to_one, factor, solution, passive, barred, members)
    for query in range(n_queries):
        w = weights[query]
        for c in range(k):
            row = neighbors[query, c]
            if sum_to_one:
                for f in range(d):
                    vectors[c, f] = queries[query, f] - rows[row, f]
                linear[c] = 0.0
            else:
                product = 0.0
                for f in range(d):
                    vectors[c, f] = rows[row, f]
                    product += rows[row, f] * queries[query, f]
                linear[c] = product
        _gram_matrix(vectors, gram)
        scale = 0.0
        for c in range(k):
            scale += gram[c, c]
        unit = k / scale if scale > 0 else 1.0
        bound = 1.0
        for a in range(k):
            for b in range(k):
                gram[a, b] *= unit
            gram[a, a] += ridge
            linear[a] *= unit
            bound = max(bound, abs(linear[a]))
        barred[:] = False
        passive[:] = True
        independent = _minimise(problem, independence)
        if independent and solution.min() > 0:
            w[:] = solution
            continue
        total = 0.0
        for c in range(k):  # start at the positive part
            passive[c] = independent and solution[c] > 0
            w[c] = solution[c] if passive[c] else 0.0
            total += w[c]
        if sum_to_one and independent:
            if total > 0:
                for c in range(k):
                    w[c] /= total
        elif sum_to_one:  # or at the nearest neighbour alone; without the sum, at zero
            nearest = np.argmin(np.diag(gram))
            w[nearest] = 1.0
            passive[nearest] = True
        _descend(problem, w, tolerance * bound)


@compiled
def _gram_matrix(vectors: Floats, gram: Floats) -> None:
    """Write all inner products; two rows with two at a time, so that every load serves twice."""
    k, d = vectors.shape
    even = k - k % 2
    for a in range(0, even, 2):
        for b in range(0, a + 2, 2):
            low, low_next, high, high_next = 0.0, 0.0, 0.0, 0.0
            for f in range(d):
                low += vectors[a, f] * vectors[b, f]
                low_next += vectors[a, f] * vectors[b + 1, f]
                high += vectors[a + 1, f] * vectors[b, f]
                high_next += vectors[a + 1, f] * vectors[b + 1, f]
            gram[a, b] = gram[b, a] = low
            gram[a, b + 1] = gram[b + 1, a] = low_next
            gram[a + 1, b] = gram[b, a + 1] = high
            gram[a + 1, b + 1] = gram[b + 1, a + 1] = high_next
    if even < k:
        for b in range(k):
            product = 0.0
            for f in range(d):
                product += vectors[even, f] * vectors[b, f]
            gram[even, b] = gram[b, even] = product


@compiled
def _minimise(problem: _Problem, independence: float) -> bool:
    """Solve without sign constraints on the passive variables, others zero, by Cholesky.

    The diagonal of ``factor`` holds reciprocals: divisions would take most of the time. Returns
    whether every pivot was larger than ``independence``.
    """
    gram, linear, sum_to_one, factor, solution, passive, _, members = problem
    n = 0
    for c in range(len(passive)):
        solution[c] = 0.0
        if passive[c]:
            members[n] = c
            n += 1
    independent = True
    for a in range(n):
        for b in range(a + 1):
            value = gram[members[a], members[b]]
            for c in range(b):
                value -= factor[a, c] * factor[b, c]
            if a == b:
                independent &= value > independence * gram[members[a], members[a]]
                factor[a, a] = 1.0 / np.sqrt(max(value, 1e-300))
            else:
                factor[a, b] = value * factor[b, b]
    total = 0.0
    for a in range(n):
        value = 1.0 if sum_to_one else linear[members[a]]
        for c in range(a):
            value -= factor[a, c] * solution[members[c]]
        solution[members[a]] = value * factor[a, a]
    for a in range(n - 1, -1, -1):
        value = solution[members[a]]
        for c in range(a + 1, n):
            value -= factor[c, a] * solution[members[c]]
        solution[members[a]] = value * factor[a, a]
        total += solution[members[a]]
    if sum_to_one:
        for a in range(n):
            solution[members[a]] /= total
    return independent


@compiled
def _descend(problem: _Problem, w: Floats, tolerance: float) -> None:
    """Walk over sets of passive variables, the objective falling, to the minimiser."""
    solution, passive, barred = problem.solution, problem.passive, problem.barred
    k = len(w)
    newest = -1
    for _ in range(STEPS_PER_VARIABLE * k):  # rounding errors must not let it go round in circles
        _minimise(problem, 0.0)
        step = np.inf
        for c in range(k):
            if passive[c] and solution[c] <= 0:
                if c == newest and w[c] == 0:
                    barred[c] = True  # entered and gained nothing but rounding errors
                gap = w[c] - solution[c]
                step = min(step, w[c] / gap if gap > 0 else 0.0)
        if step < np.inf:
            for c in range(k):
                if passive[c]:
                    leaves = solution[c] <= 0 and w[c] <= step * (w[c] - solution[c])
                    moved = w[c] + step * (solution[c] - w[c])
                    w[c] = 0.0 if leaves else max(moved, 0.0)
                    passive[c] = not leaves
            newest = -1
            continue
        w[:] = solution
        newest = _most_promising(problem, w, tolerance)
        if newest < 0:
            return
        passive[newest] = True


@compiled
def _most_promising(problem: _Problem, w: Floats, tolerance: float) -> int:
    """Return the variable whose entry lets the objective fall fastest, -1 if none does."""
    gram, linear, passive, barred = problem.gram, problem.linear, problem.passive, problem.barred
    k = len(w)
    # The multiplier of the sum is the common residual of the passive variables.
    multiplier = 0.0
    if problem.sum_to_one:
        for a in range(k):
            residual = linear[a]
            for b in range(k):
                residual -= gram[a, b] * w[b]
            multiplier += residual * w[a]
    best, most = -1, tolerance
    for a in range(k):
        if not passive[a] and not barred[a]:
            residual = linear[a] - multiplier
            for b in range(k):
                residual -= gram[a, b] * w[b]
            if residual > most:
                best, most = a, residual
    return best
