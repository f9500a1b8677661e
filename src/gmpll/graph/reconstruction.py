r"""Minimum error reconstruction of rows from their neighbours, OP (4) of the paper.

For every query :math:`x^*` with neighbours :math:`x_1, \dots, x_k`

.. math:: \min_w \|x^* - \sum_c w_c x_c\|^2 \quad \text{s.t.}\quad w \ge 0,\ \sum_c w_c = 1

or the same without the sum, which is non-negative least squares. There are thousands of queries
with about ten unknowns each. An active-set method ends at the exact minimiser of each. It starts
from the minimiser without sign constraints, which often is the answer, or from the nearest
neighbour alone where the neighbours are linearly dependent and the minimiser is not unique.

With few queries all are walked at once, one batched linear solve per step; many are left to
compiled code where numba is installed (it comes with the extra ``neighbors``). Of tensors only the
k x k matrices of the problems visit the host.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from gmpll.arrays import Array, array_namespace, device, to_host
from gmpll.engines import engine_of

Floats = NDArray[np.float64]

#: Relative ridge that makes the minimiser unique where neighbours coincide.
RIDGE = 1e-12
#: Relative size below which a gradient counts as zero; well above the ridge, whose own gradient
#: would otherwise decide which variables enter.
OPTIMALITY_TOLERANCE = 1e-10
#: Neighbours count as linearly independent if leaving one out of the others keeps more than this
#: share of its squared length.
INDEPENDENCE = 1e-8
#: From this many queries on loading the compiled code, about a second, is worth it.
COMPILED_QUERIES = 2000


def reconstruction_weights(
    queries: Array, rows: Array, neighbors: Array, *, sum_to_one: bool = True
) -> Array:
    """Weights with which the neighbours of each query reconstruct it best.

    Parameters
    ----------
    queries : array of shape (n_queries, n_features)
        Rows to reconstruct.
    rows : array of shape (n_rows, n_features)
        Rows to reconstruct from.
    neighbors : array of shape (n_queries, k), int
        Which rows each query is reconstructed from.
    sum_to_one : bool, default=True
        Whether the weights of a query must sum to one; without, the problem is non-negative
        least squares.

    Returns
    -------
    array of shape (n_queries, k)

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.reconstruction import reconstruction_weights
    >>> rows = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 9.0]])
    >>> reconstruction_weights(np.array([[1.0, -1.0]]), rows, np.array([[0, 1, 2]])).round(6)
    array([[0.75, 0.25, 0.  ]])
    """
    engine = engine_of(rows)
    if engine.name == "numpy":
        queries, rows = (np.asarray(values, dtype=np.float64) for values in (queries, rows))
    many = neighbors.shape[0] >= COMPILED_QUERIES
    solve = partial(_reconstruct, sum_to_one=sum_to_one, many=many)
    return engine.map_neighbors(solve, rows, neighbors, queries)


def _reconstruct(near: Array, queries: Array, *, sum_to_one: bool, many: bool) -> Array:
    """Make the small problems of a block of queries where its rows are; solve them on the host."""
    xp = array_namespace(queries)
    query = queries[:, None, :]
    if sum_to_one:
        # On the simplex x - sum w_c x_c = sum w_c (x - x_c): the linear term disappears.
        offsets = query - near
        gram = offsets @ xp.matrix_transpose(offsets)
        linear = xp.zeros(gram.shape[:2], dtype=gram.dtype, device=device(gram))
    else:
        gram = near @ xp.matrix_transpose(near)
        linear = (near @ xp.matrix_transpose(query))[:, :, 0]
    problems = [to_host(values).astype(np.float64, copy=False) for values in (gram, linear)]
    weights = nonnegative_quadratic(*problems, sum_to_one=sum_to_one, many=many)
    return xp.asarray(weights, dtype=gram.dtype, device=device(gram))


def nonnegative_quadratic(
    gram: Floats, linear: Floats, *, sum_to_one: bool, many: bool = False
) -> Floats:
    """Minimise ``w G w / 2 - b w`` over ``w >= 0`` (and ``sum(w) = 1``), many at once.

    ``gram`` are the (n_problems, k, k) positive semi-definite matrices G, ``linear`` the vectors b;
    ``many`` says whether there are so many in all that compiled code is worth loading.
    """
    n, k = linear.shape
    if linear.size == 0:
        return np.zeros((n, k))
    scale = np.einsum("nii->n", gram) / k
    scale = np.where(scale > 0, scale, 1.0)
    gram = gram / scale[:, None, None] + RIDGE * np.eye(k)
    linear = linear / scale[:, None]
    tolerance = OPTIMALITY_TOLERANCE * np.maximum(1.0, np.abs(linear).max(axis=1))

    if many and find_spec("numba") is not None:
        from gmpll.graph._compiled import minimise_each

        weights = np.zeros((n, k))
        minimise_each(gram, linear, tolerance, sum_to_one, INDEPENDENCE, weights)
        return weights
    weights = _start(gram, linear, sum_to_one)
    passive = weights > 0  # the variables that are free to be positive
    barred = np.zeros((n, k), dtype=bool)  # entered once and gained nothing but rounding errors
    newest = np.full(n, -1)
    todo = np.flatnonzero(~passive.all(axis=1))

    while todo.size:
        solution = _minimise_on_passive(gram[todo], linear[todo], passive[todo], sum_to_one)
        blocked = passive[todo] & (solution <= 0)
        free = ~blocked.any(axis=1)

        done = todo[free]
        weights[done] = solution[free]
        residual = linear[done] - np.einsum("nij,nj->ni", gram[done], weights[done])
        if sum_to_one:  # the multiplier of the sum is the common residual of the passive ones
            residual -= (residual * weights[done]).sum(axis=1, keepdims=True)
        # The variable that promises most enters.
        promise = np.where(passive[done] | barred[done], -np.inf, residual)
        best = np.argmax(promise, axis=1)
        gains = promise[np.arange(len(done)), best] > tolerance[done]
        moved_on, best = done[gains], best[gains]
        passive[moved_on, best] = True
        newest[moved_on] = best

        stuck = todo[~free]
        if stuck.size:
            _step_to_boundary(weights, passive, barred, newest, stuck, solution[~free])
        todo = np.concatenate([moved_on, stuck])
    return weights


def _start(gram: Floats, linear: Floats, sum_to_one: bool) -> Floats:
    """Return feasible weights: the minimiser itself where that has no negative one."""
    inverse = np.linalg.inv(gram)
    if sum_to_one:
        start = inverse.sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):  # of dependent neighbours, see below
            start = np.maximum(start / start.sum(axis=1, keepdims=True), 0.0)
            start /= start.sum(axis=1, keepdims=True)
    else:
        start = np.maximum((inverse @ linear[:, :, None])[:, :, 0], 0.0)
    # The diagonals of a matrix and of its inverse say how well a variable is explained by others.
    explained = np.einsum("nii->ni", gram) * np.einsum("nii->ni", inverse)
    dependent = np.flatnonzero(~(explained < 1 / INDEPENDENCE).all(axis=1))
    start[dependent] = 0.0
    if sum_to_one:
        nearest = np.argmin(np.einsum("nii->ni", gram)[dependent], axis=1)
        start[dependent, nearest] = 1.0
    return start


def _minimise_on_passive(
    gram: Floats, linear: Floats, passive: NDArray[np.bool_], sum_to_one: bool
) -> Floats:
    """Solve each problem without sign constraints on its passive variables, others zero."""
    n, k = linear.shape
    size = k + sum_to_one
    system = np.zeros((n, size, size))
    system[:, :k, :k] = gram * (passive[:, :, None] & passive[:, None, :])
    diagonal = np.arange(k)
    system[:, diagonal, diagonal] += ~passive
    right = np.zeros((n, size))
    right[:, :k] = linear * passive
    if sum_to_one:
        system[:, k, :k] = passive
        system[:, :k, k] = passive
        right[:, k] = 1.0
    return np.linalg.solve(system, right[:, :, None])[:, :k, 0]


def _step_to_boundary(
    weights: Floats,
    passive: NDArray[np.bool_],
    barred: NDArray[np.bool_],
    newest: NDArray[np.intp],
    problems: NDArray[np.intp],
    solution: Floats,
) -> None:
    """Go towards the solution until a weight becomes zero, and fix that one there."""
    current, free = weights[problems], passive[problems]
    hits = free & (solution <= 0)
    new = newest[problems]
    useless = (new >= 0) & hits[np.arange(len(problems)), new]
    useless &= current[np.arange(len(problems)), new] == 0
    barred[problems[useless], new[useless]] = True

    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(hits, current / (current - solution), np.inf)
    share = np.where(np.isnan(share), 0.0, share)
    step = share.min(axis=1, keepdims=True)
    moved = np.where(free, current + step * (solution - current), 0.0)
    leaves = hits & (share <= step)
    weights[problems] = np.where(leaves, 0.0, np.maximum(moved, 0.0))
    passive[problems] = free & ~leaves
    newest[problems] = -1
