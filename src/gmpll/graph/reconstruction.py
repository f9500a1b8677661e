r"""Minimum error reconstruction of rows from their neighbours, OP (4) of the paper.

For every query :math:`x^*` with neighbours :math:`x_1, \dots, x_k`

.. math:: \min_w \|x^* - \sum_c w_c x_c\|^2 \quad \text{s.t.}\quad w \ge 0,\ \sum_c w_c = 1

or the same without the sum, which is non-negative least squares. So is the problem with the sum:
where w sums to one, :math:`x^* - \sum_c w_c x_c = \sum_c w_c (x^* - x_c)`, and for any s > 0

.. math:: \min_{w \ge 0} \|\sum_c w_c (x^* - x_c)\|^2 + s^2 (1 - \sum_c w_c)^2

has the same minimiser up to a factor: of all w in the same proportions the best one costs the more,
the larger the first term is where they sum to one.

There are thousands of queries with about ten unknowns each. An active-set method ends at the exact
minimiser of each; all are walked at once, one batched linear solve per step. It starts from the
minimiser without sign constraints, which often is the answer, or from zero where the neighbours are
linearly dependent and the minimiser is not unique. Of tensors only the k x k matrices of the
problems visit the host.
"""

from functools import partial

import numpy as np

from gmpll._typing import AnyFloats
from gmpll.arrays import Array, array_namespace, device, to_host
from gmpll.engines import engine_of

#: Relative ridge that makes the minimiser unique where neighbours coincide.
RIDGE = 1e-12
#: Relative size below which a gradient counts as zero; well above the ridge, whose own gradient
#: would otherwise decide which variables enter.
OPTIMALITY_TOLERANCE = 1e-10
#: Neighbours count as linearly independent if leaving one out of the others keeps more than this
#: share of its squared length.
INDEPENDENCE = 1e-8


def reconstruction_weights(
    queries: Array, rows: Array, neighbors: Array, *, sum_to_one: bool = True
) -> Array:
    """Return the weights, (n_queries, k), with which its neighbours reconstruct each query best.

    ``neighbors``, of the same shape, are the numbers of the rows that a query is reconstructed
    from. Unless its weights must sum to one, the problem is non-negative least squares.

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
    solve = partial(_reconstruct, sum_to_one=sum_to_one)
    return engine.map_neighbors(solve, rows, neighbors, queries)


def _reconstruct(near: Array, queries: Array, *, sum_to_one: bool) -> Array:
    """Make the small problems of a block of queries where its rows are; solve them on the host."""
    xp = array_namespace(queries)
    query = queries[:, None, :]
    near = query - near if sum_to_one else near
    gram = near @ xp.matrix_transpose(near)
    linear = (near @ xp.matrix_transpose(query))[:, :, 0]
    problems = [to_host(values).astype(np.float64, copy=False) for values in (gram, linear)]
    weights = _minimise(*problems, sum_to_one=sum_to_one)
    return xp.asarray(weights, dtype=gram.dtype, device=device(gram))


def _minimise(gram: AnyFloats, linear: AnyFloats, *, sum_to_one: bool) -> AnyFloats:
    """Minimise ``w G w / 2 - b w``, or ``w G w`` where w must sum to one, over ``w >= 0``."""
    n, k = linear.shape
    if linear.size == 0:
        return np.zeros((n, k))
    scale = np.einsum("nii->n", gram)[:, None] / k
    scale = np.where(scale > 0, scale, 1.0)
    gram = gram / scale[:, :, None] + RIDGE * np.eye(k)
    linear = linear / scale
    if sum_to_one:
        gram += 1.0
        linear = np.ones((n, k))
    tolerance = OPTIMALITY_TOLERANCE * np.maximum(1.0, np.abs(linear).max(axis=1))
    weights = _start(gram, linear)
    passive = weights > 0  # the variables that are free to be positive
    barred = np.zeros((n, k), dtype=bool)  # entered once and gained nothing but rounding errors
    newest = np.full(n, -1)
    todo = np.flatnonzero(~passive.all(axis=1))

    while todo.size:
        # Without sign constraints on the passive variables, and with zero for the others.
        free = passive[todo]
        systems = gram[todo] * (free[:, :, None] & free[:, None, :])
        np.einsum("nii->ni", systems)[~free] = 1.0
        solution = np.linalg.solve(systems, (linear[todo] * free)[:, :, None])[:, :, 0]
        blocked = (free & (solution <= 0)).any(axis=1)

        done = todo[~blocked]
        weights[done] = solution[~blocked]
        residual = linear[done] - np.einsum("nij,nj->ni", gram[done], weights[done])
        # The variable that promises most enters.
        promise = np.where(passive[done] | barred[done], -np.inf, residual)
        best = np.argmax(promise, axis=1)
        gains = promise[np.arange(len(done)), best] > tolerance[done]
        moved_on, best = done[gains], best[gains]
        passive[moved_on, best] = True
        newest[moved_on] = best

        # The others go towards the solution until a weight becomes zero, and fix that one there.
        stuck, free, target = todo[blocked], free[blocked], solution[blocked]
        current, hits = weights[stuck], free & (target <= 0)
        numbers, new = np.arange(len(stuck)), newest[stuck]
        useless = (new >= 0) & hits[numbers, new] & (current[numbers, new] == 0)
        barred[stuck[useless], new[useless]] = True
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(hits, current / (current - target), np.inf)
        share = np.where(np.isnan(share), 0.0, share)
        step = share.min(axis=1, keepdims=True)
        moved = np.where(free, current + step * (target - current), 0.0)
        leaves = hits & (share <= step)
        weights[stuck] = np.where(leaves, 0.0, np.maximum(moved, 0.0))
        passive[stuck] = free & ~leaves
        newest[stuck] = -1
        todo = np.concatenate([moved_on, stuck])
    return weights / weights.sum(axis=1, keepdims=True) if sum_to_one else weights


def _start(gram: AnyFloats, linear: AnyFloats) -> AnyFloats:
    """Return feasible weights: the minimiser itself where that has no negative one."""
    inverse = np.linalg.inv(gram)
    start = np.maximum((inverse @ linear[:, :, None])[:, :, 0], 0.0)
    # The diagonals of a matrix and of its inverse say how well a variable is explained by others.
    explained = np.einsum("nii->ni", gram) * np.einsum("nii->ni", inverse)
    start[~(explained < 1 / INDEPENDENCE).all(axis=1)] = 0.0
    return start
