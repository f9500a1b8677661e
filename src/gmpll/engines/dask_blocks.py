"""Partitions of Dask arrays as tasks see them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.core import flatten
from dask.delayed import Delayed
from dask.distributed import futures_of
from dask.optimization import cull
from numpy.typing import NDArray

from gmpll.arrays import Array

#: A recipe for reading a block is sent along with every task that reads it. Larger ones hold data.
RECIPE_BYTES = 2**20
#: A task reads this many stored blocks, one after the other: a lost worker costs no more.
BLOCKS_PER_TASK = 16
#: What one task gathers from other partitions takes about this much.
GATHERED_BYTES = 2**25


#: Rows inside a task, or how it reads them.
Block = NDArray[Any] | Callable[[], NDArray[Any]]


def _reader(block: da.Array) -> Callable[[], NDArray[Any]]:
    """Return how a task reads rows for itself: a dependency would stay in a worker's memory."""
    (block,) = dask.optimize(block)
    return partial(dask.get, dict(block.__dask_graph__()), next(flatten(block.__dask_keys__())))


class RowBlocks:
    """The row partitions of an array with a single column chunk.

    If it is persisted in the cluster, or holds its data itself, its blocks are passed between
    workers; otherwise tasks read them from where they are stored, by :func:`loaded`.
    """

    def __init__(self, array: da.Array) -> None:
        self.sizes = array.chunks[0]
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(int).tolist()
        in_memory = bool(futures_of(array))
        if not in_memory and _embedded_bytes(array.blocks[0]) > RECIPE_BYTES:
            array, in_memory = array.persist(), True
        numbers = range(len(self.sizes))
        self.blocks: list[Any] = (
            row_blocks_of(array) if in_memory else [_reader(array.blocks[i]) for i in numbers]
        )
        block_bytes = int(array.nbytes) // max(1, len(self.sizes))
        together = max(1, GATHERED_BYTES // max(1, block_bytes))
        self._per_task = together if in_memory else max(together, BLOCKS_PER_TASK)

    def parts(self) -> list[list[Any]]:
        """Return what each task goes through: blocks and starts, no pairs: Dask forgets those."""
        held = [value for pair in zip(self.blocks, self.starts, strict=True) for value in pair]
        step = 2 * self._per_task
        return [held[first : first + step] for first in range(0, len(held), step)]


def in_pairs(held: Sequence[Any]) -> Iterator[tuple[Block, int]]:
    """Return blocks and their starts, inside a task."""
    return zip(held[::2], held[1::2], strict=True)


def loaded(block: Block) -> NDArray[Any]:
    """Return the rows of a block, inside a task."""
    return np.asarray(block() if callable(block) else block)


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


def row_blocks_of(array: da.Array) -> list[Delayed]:
    """Return the partitions of an array, as whole rows."""
    array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    # Optimising a graph drops the futures in it, and the cluster what nobody else holds.
    return array.to_delayed(optimize_graph=not futures_of(array)).ravel().tolist()


def cut_like(array: da.Array, other: da.Array) -> da.Array:
    """Return an array with the row chunks of another one."""
    return array if array.chunks[0] == other.chunks[0] else array.rechunk({0: other.chunks[0]})


def from_blocks(blocks: Sequence[Delayed], sizes: Sequence[int], like: Array) -> da.Array:
    """Put blocks of so many rows, with the columns and the type of an array, under each other."""
    rest, dtype = like.shape[1:], like.dtype
    pairs = zip(blocks, sizes, strict=True)
    return da.concatenate([da.from_delayed(b, (size, *rest), dtype=dtype) for b, size in pairs])
