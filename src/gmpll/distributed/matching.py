r"""The matching in partitions.

A turn is that of :func:`gmpll.matching.match`,
:math:`p \leftarrow \text{normalise}(p \circ W p / \text{mass}^g)`. A partition needs the
probabilities of the partitions that its edges lead to, and of all others only their column sums.
Probabilities are sparse: what travels and what is kept grows with the number of candidates, not
with the number of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import dask
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from numpy.typing import NDArray

from gmpll.distributed.checkpoints import Checkpoints
from gmpll.distributed.graph import GraphPart

__all__ = ["BlockMatching", "match_blocks", "support_of_block", "uniform_block"]


class BlockMatching(NamedTuple):
    r"""What :func:`match_blocks` found.

    Attributes
    ----------
    probabilities : list of Delayed
        Of a csr_array (rows of the partition, n_classes) each; rows sum to one.
    n_iter : int
        Turns made.
    converged : bool
        Whether the last turn moved the probabilities by less than ``tol``.
    objective_path : ndarray of shape (n_iter,)
        :math:`p^\top K p` before every turn.
    """

    probabilities: list[Any]
    n_iter: int
    converged: bool
    objective_path: NDArray[np.float64]


class _TurnFacts(NamedTuple):
    """What a turn did to a partition."""

    objective: float
    moved: float
    mass: NDArray[np.float64]


def match_blocks(
    start: Sequence[Delayed],
    graph: Sequence[Sequence[GraphPart]],
    *,
    similarity: NDArray[np.float64] | None,
    balance: float,
    max_iter: int,
    tol: float,
    checkpoints: Checkpoints,
    checkpoint_turns: int,
) -> BlockMatching:
    """Match the rows of all partitions to labels.

    Parameters
    ----------
    start : sequence of Delayed
        Probabilities to start from, a csr_array each.
    graph : sequence of sequence of GraphPart
        What :func:`gmpll.distributed.graph.local_graph` returned.
    similarity : ndarray of shape (n_classes, n_classes) or None
        Similarity of the labels, None if they are all different.
    balance, max_iter, tol
        As in :func:`gmpll.matching.match`.
    checkpoints : Checkpoints
        Keeps the probabilities...
    checkpoint_turns : int
        ... every so many turns: no more are repeated when a worker is lost.

    Returns
    -------
    BlockMatching
    """
    blocks = list(start)
    mass = _total(dask.compute(*(dask.delayed(_mass)(block) for block in blocks)))
    objective: list[float] = []
    converged = False
    while len(objective) < max_iter and not converged:
        correction = np.where(mass > 0, mass, 1.0) ** -balance
        blocks, facts = _turn(blocks, graph, similarity, correction)
        objective.append(sum(fact.objective for fact in facts))
        converged = bool(np.sqrt(sum(fact.moved for fact in facts)) < tol)
        mass = _total([fact.mass for fact in facts])
        if not converged and len(objective) % checkpoint_turns == 0:
            blocks = checkpoints.keep(blocks, "probabilities")
    return BlockMatching(blocks, len(objective), converged, np.array(objective))


def support_of_block(
    parts: Sequence[GraphPart],
    probabilities: Sequence[Delayed],
    pattern: Delayed,
    similarity: NDArray[np.float64] | None,
) -> Delayed:
    """Return, as a task, ``pattern * (W p)`` for the rows of a partition."""
    if not parts:
        return dask.delayed(_nothing_like, pure=False)(pattern)
    support: Any = None
    for part in parts:  # one after the other: a task holds the probabilities of one part only
        needed = [probabilities[j] for j in part.columns]
        support = dask.delayed(_add_support, pure=False)(
            part.weights, needed, pattern, similarity, support
        )
    return support


def uniform_block(candidates: sp.csr_array) -> sp.csr_array:
    """Return the paper's start: every candidate of an instance is equally likely."""
    return _rows_divided(candidates.astype(np.float64), candidates.sum(axis=1))


def _turn(
    blocks: Sequence[Delayed],
    graph: Sequence[Sequence[GraphPart]],
    similarity: NDArray[np.float64] | None,
    correction: NDArray[np.float64],
) -> tuple[list[Any], Sequence[_TurnFacts]]:
    new, facts = [], []
    for block, parts in zip(blocks, graph, strict=True):
        support = support_of_block(parts, blocks, block, similarity)
        turned = dask.delayed(_normalised, pure=False)(support, correction, block)
        new.append(turned)
        facts.append(dask.delayed(_facts, pure=False)(support, turned, block))
    persisted = dask.persist(*new, *facts)
    return list(persisted[: len(new)]), dask.compute(*persisted[len(new) :])


def _add_support(
    weights: sp.csr_array,
    probabilities: list[sp.csr_array],
    pattern: sp.csr_array,
    similarity: NDArray[np.float64] | None,
    so_far: sp.csr_array | None,
) -> sp.csr_array:
    support = weights @ sp.vstack(probabilities, format="csr")
    if similarity is not None:
        support = support @ similarity
    inside = pattern.multiply(support).tocsr()
    return inside if so_far is None else so_far + inside


def _nothing_like(pattern: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(pattern.shape)


def _normalised(
    support: sp.csr_array, correction: NDArray[np.float64], fallback: sp.csr_array
) -> sp.csr_array:
    """Let rows sum to one; an instance without any support keeps its probabilities."""
    balanced = support.copy()
    balanced.data *= correction[balanced.indices]
    total = balanced.sum(axis=1)
    new = _rows_divided(balanced, np.where(total > 0, total, 1.0))
    alone = np.flatnonzero(total == 0)
    if alone.size:
        new = new + _only_rows(fallback, alone)
    new.eliminate_zeros()
    return new


def _facts(support: sp.csr_array, new: sp.csr_array, old: sp.csr_array) -> _TurnFacts:
    moved = float(np.square((new - old).data).sum())
    return _TurnFacts(float(support.sum()), moved, _mass(new))


def _mass(block: sp.csr_array) -> NDArray[np.float64]:
    return np.asarray(block.sum(axis=0), dtype=np.float64)


def _total(values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.sum(values, axis=0)


def _rows_divided(matrix: sp.csr_array, divisors: NDArray[Any]) -> sp.csr_array:
    divided = matrix.copy()
    divided.data /= np.repeat(divisors, np.diff(matrix.indptr))
    return divided


def _only_rows(matrix: sp.csr_array, rows: NDArray[np.intp]) -> sp.csr_array:
    kept = np.zeros(matrix.shape[0])
    kept[rows] = 1.0
    return (sp.diags_array(kept) @ matrix).tocsr()
