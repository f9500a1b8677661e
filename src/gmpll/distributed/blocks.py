"""Partitions of rows as tasks see them."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.core import flatten
from dask.distributed import futures_of
from dask.optimization import cull
from numpy.typing import NDArray

__all__ = ["RowBlocks", "StoredBlock", "loaded"]

#: A recipe for reading a block is sent along with every task that reads it. Larger ones hold data.
RECIPE_BYTES = 2**20
#: A task reads this many stored blocks, one after the other: a lost worker costs no more.
BLOCKS_PER_TASK = 16


class StoredBlock:
    """Rows that a task reads for itself, when it needs them, and drops when it is done.

    An ordinary dependency of a task is kept in the memory of a worker until its last user is
    done; here every pair of partitions meets, so that would be all data at once.

    Parameters
    ----------
    block : dask.array.Array
        Of a single chunk.
    """

    def __init__(self, block: da.Array) -> None:
        (block,) = dask.optimize(block)
        self._graph = dict(block.__dask_graph__())
        self._key = next(iter(flatten(block.__dask_keys__())))

    def load(self) -> NDArray[Any]:
        """Read the rows."""
        return dask.get(self._graph, self._key)


class RowBlocks:
    """The row partitions of an array.

    Parameters
    ----------
    array : dask.array.Array
        With a single column chunk. If it is persisted in the cluster, or holds its data itself,
        its blocks are passed between workers; otherwise tasks read them from where they are
        stored.

    Attributes
    ----------
    blocks : list
        :class:`StoredBlock` or Delayed; :func:`loaded` makes arrays of them inside a task.
    starts : list of int
        Number of the first row of each block.
    sizes : tuple of int
        Numbers of rows.
    """

    def __init__(self, array: da.Array) -> None:
        self.sizes = array.chunks[0]
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(int).tolist()
        in_memory = bool(futures_of(array))
        if not in_memory and _embedded_bytes(array.blocks[0]) > RECIPE_BYTES:
            array, in_memory = array.persist(), True
        self.blocks: list[Any]
        if in_memory:
            self.blocks = array.to_delayed().ravel().tolist()
        else:
            self.blocks = [StoredBlock(array.blocks[i]) for i in range(len(self.sizes))]
        self._per_task = 1 if in_memory else BLOCKS_PER_TASK

    def __len__(self) -> int:
        return len(self.blocks)

    def parts(self) -> list[tuple[list[Any], list[int]]]:
        """Return what one task goes through, as blocks and their starts, for all tasks."""
        step = self._per_task
        return [
            (self.blocks[first : first + step], self.starts[first : first + step])
            for first in range(0, len(self), step)
        ]


def loaded(block: StoredBlock | NDArray[Any]) -> NDArray[Any]:
    """Return the rows of a block, inside a task."""
    return np.asarray(block.load() if isinstance(block, StoredBlock) else block)


def _embedded_bytes(block: da.Array) -> int:
    """Count the bytes of the arrays inside a block's graph."""
    graph, _ = cull(dict(block.__dask_graph__()), list(flatten(block.__dask_keys__())))
    arrays = [getattr(value, "value", value) for value in graph.values()]
    if any(isinstance(array, np.memmap) for array in arrays):
        raise ValueError(
            "A Dask array was made from a memory map, which Dask sends along with every task: "
            "pass the memory map itself, or the path of its file."
        )
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
