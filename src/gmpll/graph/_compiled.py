"""The small problems of the reconstruction one after the other, compiled by numba.

The same minimisers as the NumPy steps of :mod:`gmpll.graph.reconstruction` find for a batch,
without copies of the matrices between the steps. The compiled code holds no lock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmpll._compiling import compiled

Floats = NDArray[np.float64]

#: Most steps; a fraction of them is taken.
STEPS_PER_VARIABLE = 10


class _Problem(NamedTuple):
    """What is minimised, and the space to do it in."""

    gram: Floats
    linear: Floats
    sum_to_one: bool
    factor: Floats
    solution: Floats
    passive: NDArray[np.bool_]
    barred: NDArray[np.bool_]
    members: NDArray[np.intp]


@compiled
def minimise_each(
    grams: Floats,
    linears: Floats,
    tolerances: Floats,
    sum_to_one: bool,
    independence: float,
    weights: Floats,
) -> None:
    """Write the minimiser of every problem into ``weights``.

    ``independence`` is the smallest pivot of a matrix of unit diagonal with which the variables
    count as linearly independent.
    """
    n, k = linears.shape
    solution = np.empty(k)
    passive = np.empty(k, dtype=np.bool_)
    barred = np.empty(k, dtype=np.bool_)
    members = np.empty(k, dtype=np.intp)
    factor = np.empty((k, k))
    for number in range(n):
        gram, linear, w = grams[number], linears[number], weights[number]
        problem = _Problem(gram, linear, sum_to_one, factor, solution, passive, barred, members)
        barred[:] = False
        passive[:] = True
        independent = _minimise(problem, independence)
        if independent and solution.min() > 0:
            w[:] = solution
            continue
        for c in range(k):  # start at the positive part
            passive[c] = independent and solution[c] > 0
            w[c] = solution[c] if passive[c] else 0.0
        if sum_to_one and independent:
            w /= max(w.sum(), 1e-300)
        elif sum_to_one:  # or at the nearest neighbour alone; without the sum, at zero
            nearest = np.argmin(np.diag(gram))
            w[nearest] = 1.0
            passive[nearest] = True
        _descend(problem, w, tolerances[number])


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
