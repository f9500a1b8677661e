"""Exact nearest neighbours, one pair of partitions at a time.

With m rows in partitions of b rows a task holds O(b (d + k)) numbers, whatever m is. All pairs of
partitions meet, so the search takes O(m^2 d) time, and every partition of a file is read
``m / b`` times.
"""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from gmpll.distributed.blocks import RowBlocks, StoredBlock, loaded
from gmpll.distributed.features import Directions
from gmpll.graph.neighbors import Neighbors, nearest_neighbors

__all__ = ["merged", "neighbors_of_block", "search"]

#: The start of a block that is not among the rows searched.
UNSEEN = -1


def neighbors_of_block(block: Any, start: int, rows: RowBlocks, space: Delayed, k: int) -> Delayed:
    """Return, as a task to be run, the neighbours of a block of rows among all rows.

    Parameters
    ----------
    block : StoredBlock or Delayed
        Whose neighbours.
    start : int
        Number of its first row, or ``UNSEEN`` if it is not one of ``rows``.
    rows : RowBlocks
        Where to search.
    space : Delayed
        Of the :class:`gmpll.distributed.features.Directions` in which rows are compared.
    k : int
        Number of neighbours.

    Returns
    -------
    Delayed
        Of :class:`gmpll.graph.neighbors.Neighbors`.
    """
    best: Any = None
    for blocks, starts in rows.parts():
        best = dask.delayed(search, pure=False)(block, start, blocks, starts, space, k, best)
    return best


def search(
    block: StoredBlock | NDArray[Any],
    start: int,
    others: list[StoredBlock | NDArray[Any]],
    starts: list[int],
    space: Directions,
    k: int,
    best: Neighbors | None = None,
) -> Neighbors:
    """Search some blocks for neighbours of one, and keep the best of these and earlier ones."""
    queries = space.transform(loaded(block))
    for other, other_start in zip(others, starts, strict=True):
        if other_start == start:
            distances, indices = nearest_neighbors(queries, k)
        else:
            distances, indices = nearest_neighbors(space.transform(loaded(other)), k, queries)
        found = Neighbors(distances, indices + other_start)
        best = found if best is None else merged(best, found, k)
    assert best is not None
    return best


def merged(one: Neighbors, other: Neighbors, k: int) -> Neighbors:
    """Return the k nearest of two sets of neighbours of the same rows, nearest first.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.distributed.neighbors import merged
    >>> from gmpll.graph.neighbors import Neighbors
    >>> one = Neighbors(np.array([[1.0, 3.0]]), np.array([[7, 8]]))
    >>> merged(one, Neighbors(np.array([[2.0]]), np.array([[9]])), 2)
    Neighbors(distances=array([[1., 2.]]), indices=array([[7, 9]]))
    """
    distances = np.hstack([one.distances, other.distances])
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    indices = np.hstack([one.indices, other.indices])
    return Neighbors(
        np.take_along_axis(distances, nearest, axis=1),
        np.take_along_axis(indices, nearest, axis=1),
    )
