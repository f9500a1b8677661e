"""The local graph in pieces: the edges from one partition of rows to another.

The weights are those of :class:`gmpll.graph.local.LocalGraph`. To be made symmetric by the
maximum, the edges of a partition have to meet those that point to it, wherever they were found:
every piece goes, transposed, to the partition at its other end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import dask
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from numpy.typing import NDArray

from gmpll.distributed.blocks import RowBlocks
from gmpll.graph.local import SCALE_NEIGHBOR
from gmpll.graph.neighbors import Neighbors

__all__ = ["GraphPart", "local_graph", "row_scales", "self_tuning_weights"]


class GraphPart(NamedTuple):
    """Edges from the rows of a partition to those of some other partitions.

    Attributes
    ----------
    weights : Delayed
        Of a csr_array; its columns are the rows of ``columns``, one partition after the other.
    columns : list of int
        Numbers of those partitions.
    """

    weights: Any
    columns: list[int]


def local_graph(
    neighbors: Sequence[Delayed], scales: Sequence[Delayed], rows: RowBlocks, budget: int
) -> list[list[GraphPart]]:
    """Return the symmetric graph of all rows.

    Parameters
    ----------
    neighbors, scales : sequence of Delayed
        Neighbours and scales of the rows of every partition.
    rows : RowBlocks
        The partitions.
    budget : int
        A part leads to so many rows at most, unless to a single partition.

    Returns
    -------
    list of list of GraphPart
        The parts of every partition. Between two partitions without an edge there is nothing.
    """
    bounds = np.append(rows.starts, sum(rows.sizes))
    aims = dask.compute(*(dask.delayed(_aims)(near, bounds) for near in neighbors))
    pieces = {
        (i, j): dask.delayed(_edges_between, pure=False)(
            neighbors[i], scales[i], scales[j], int(bounds[j])
        )
        for i in range(len(rows))
        for j in aims[i]
    }
    graph = []
    for i in range(len(rows)):
        related = [j for j in range(len(rows)) if (i, j) in pieces or (j, i) in pieces]
        parts = []
        for columns in _groups(related, rows.sizes, budget):
            there = [pieces.get((i, j)) for j in columns]
            back = [pieces.get((j, i)) for j in columns]
            weights = dask.delayed(_symmetric, pure=False)(there, back)
            parts.append(GraphPart(weights, columns))
        graph.append(parts)
    return graph


def row_scales(near: Neighbors) -> NDArray[np.floating]:
    """Return every row's own scale, the distance to its seventh neighbour."""
    k = near.distances.shape[1]
    if k == 0:
        return np.zeros(len(near.distances))
    return near.distances[:, min(SCALE_NEIGHBOR, k) - 1]


def self_tuning_weights(
    distances: NDArray[np.floating], spread: NDArray[np.floating]
) -> NDArray[np.float64]:
    r"""Return :math:`\exp(-d_{ij}^2 / (\sigma_i \sigma_j))`.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.distributed.graph import self_tuning_weights
    >>> self_tuning_weights(np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.0, 1.0])).round(2)
    array([1.  , 0.  , 0.37])
    """
    squared = np.square(distances)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.exp(-squared / spread)
    # Copies of a row are at distance 0 with scale 0: nothing is closer, so their weight is 1.
    return np.where(squared == 0, 1.0, np.where(spread == 0, 0.0, values))


def _aims(near: Neighbors, bounds: NDArray[np.intp]) -> list[int]:
    """Return the partitions that some neighbour lies in."""
    return np.unique(np.searchsorted(bounds, near.indices.ravel(), side="right") - 1).tolist()


def _edges_between(
    near: Neighbors, own_scales: NDArray[np.floating], scales: NDArray[np.floating], start: int
) -> sp.csr_array:
    """Return the one-sided edges to the partition with these scales."""
    n = len(near.indices)
    inside = (near.indices >= start) & (near.indices < start + len(scales))
    columns = (near.indices[inside] - start).astype(np.int32)
    owners = np.repeat(np.arange(n), inside.sum(axis=1))
    values = self_tuning_weights(near.distances[inside], own_scales[owners] * scales[columns])
    ends = np.concatenate([[0], np.cumsum(inside.sum(axis=1))]).astype(np.int32)
    return sp.csr_array((values, columns, ends), shape=(n, len(scales)))


def _symmetric(
    there: Sequence[sp.csr_array | None], back: Sequence[sp.csr_array | None]
) -> sp.csr_array:
    """Join pieces side by side, each the maximum of those of the two directions."""
    joined = []
    for out, into in zip(there, back, strict=True):
        ways = [way for way in (out, None if into is None else into.T.tocsr()) if way is not None]
        joined.append(ways[0] if len(ways) == 1 else ways[0].maximum(ways[1]))
    return sp.hstack(joined, format="csr")


def _groups(columns: Sequence[int], sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Cut partitions into runs of no more than ``budget`` rows (or a single one).

    Examples
    --------
    >>> from gmpll.distributed.graph import _groups
    >>> _groups([0, 1, 3], [5, 5, 5, 9], 10)
    [[0, 1], [3]]
    """
    groups: list[list[int]] = []
    room = 0
    for column in columns:
        if not groups or sizes[column] > room:
            groups.append([])
            room = budget
        groups[-1].append(column)
        room -= sizes[column]
    return groups
