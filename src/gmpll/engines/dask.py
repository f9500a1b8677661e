"""Dask arrays: rows in partitions, of which no task ever holds more than a few.

Arrays are cut into chunks of whole rows, see :func:`gmpll.engines.dask_inputs.as_rows`. Work goes
to the active ``distributed.Client``, or to threads of this process if there is none. With m rows in
partitions of b rows, d features and k neighbours a task holds O(b (d + k)) numbers, whatever m is.
All pairs of partitions meet in the exact search for neighbours, so it takes O(m^2 d) time, and
every partition of a file is read ``m / b`` times. The approximate one is in
:mod:`gmpll.engines.dask_search`.

Two settings of Dask say what is kept where::

    dask.config.set({"gmpll.directory": "/shared/folder", "gmpll.checkpoint-iterations": 10})

``gmpll.directory`` is a folder that all workers reach under this name. What is kept is then written
to it, in a folder of its own for every process, and may be removed when the model is no longer
needed. Without it what a lost worker held is computed again, and checkpoints go through the client
to the scheduler. ``gmpll.checkpoint-iterations``, 10 by default, says after how many iterations of
a loop a checkpoint is made: no more iterations are repeated when a worker is lost.
"""

import math
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import repeat
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

try:
    import dask
    import dask.array as da
    import dask.distributed
except ImportError as error:
    raise ImportError(
        "Dask arrays need Dask with dask.distributed: pip install 'gmpll[dask]'."
    ) from error
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll._typing import AnyFloats
from gmpll.arrays import Array, array_namespace
from gmpll.engines.base import Engine, Neighbors
from gmpll.engines.dask_blocks import (
    GATHERED_BYTES,
    Block,
    RowBlocks,
    cut_like,
    from_blocks,
    in_pairs,
    loaded,
    row_blocks_of,
)
from gmpll.engines.dask_inputs import as_rows
from gmpll.engines.dask_search import SAMPLE_ROWS, Numbered, neighbors_by_groups
from gmpll.engines.numpy import TREE_FEATURES, NumpyEngine, nearest_of_both

__all__ = ["BlockWeights", "DaskEngine", "as_rows"]


#: Edges of a partition are kept in parts that lead to so many rows at most, or to one partition.
PART_ROWS = 2**17
#: The start of a block that is not among the rows searched.
UNSEEN = -1
#: Folder of this process in ``gmpll.directory``: processes that share one keep out of each
#: other's way.
_RUN = f"gmpll-{uuid.uuid4().hex[:12]}"

_NUMPY = NumpyEngine()


class DaskEngine(Engine):
    """See :class:`gmpll.engines.base.Engine`."""

    name = "dask"
    xp = array_namespace(da.zeros(1))

    def small(self, *arrays: Array) -> tuple[Array, ...]:
        """Compute the arrays together."""
        return dask.compute(*arrays)

    def keep(self, *arrays: Array) -> tuple[Array, ...]:
        """Persist the arrays together, in ``gmpll.directory`` if there is one."""
        folder = _folder()
        return dask.persist(*arrays) if folder is None else tuple(_in_files(arrays, folder)[0])

    def keeper(self) -> Callable[[Array], Array]:
        """Return a function that persists the array of every iteration; some are checkpoints."""
        every = int(dask.config.get("gmpll.checkpoint-iterations", 10))
        if every < 1:
            raise ValueError(
                f"The setting gmpll.checkpoint-iterations is {every}; it must be 1 or more."
            )
        count = 0
        files: list[Path] = []

        def keep(array: Array) -> Array:
            nonlocal count, files
            count += 1
            if count % every:
                return array.persist()
            folder = _folder()
            if folder is None:
                return _in_scheduler(array)
            earlier = files
            (kept,), files = _in_files([array], folder)
            for file in earlier:  # only the newest checkpoint stays
                file.unlink(missing_ok=True)
            return kept

        return keep

    def map_rows(self, function: Callable[..., Array], X: Array, *others: Array) -> Array:
        """Apply the function to every partition, as NumPy arrays."""
        arrays = [cut_like(array, X) for array in (X, *others)]
        made = function(*(np.zeros((1, *array.shape[1:]), array.dtype) for array in arrays))
        # In blocks: the function may make several copies of its rows.
        apply = dask.delayed(partial(_NUMPY.map_rows, function), pure=False)
        partitions = zip(*map(row_blocks_of, arrays), strict=True)
        return from_blocks([apply(*blocks) for blocks in partitions], X.chunks[0], made)

    def map_neighbors(
        self, function: Callable[..., Array], array: Array, indices: Array, *others: Array
    ) -> Array:
        """Gather what is needed from the partitions, a few at a time, then apply the function."""
        k = indices.shape[1]
        rows = RowBlocks(array)
        row_bytes = array.dtype.itemsize * math.prod(array.shape[1:])
        empty = np.zeros((1, k, *array.shape[1:]), array.dtype)
        made = function(empty, *(np.zeros((1, *o.shape[1:]), o.dtype) for o in others))
        blocks = [row_blocks_of(cut_like(array, indices)) for array in (indices, *others)]
        piece = max(1, GATHERED_BYTES // max(1, k * row_bytes))
        gather, apply = dask.delayed(_gather, pure=False), dask.delayed(function, pure=False)
        join = dask.delayed(np.concatenate, pure=False)
        results = []
        for size, near, *rest in zip(indices.chunks[0], *blocks, strict=True):
            parts = []
            for start in range(0, size, piece):
                part = slice(start, start + piece)
                found: Any = None
                for held in rows.parts():
                    found = gather(near[part], found, *held)
                parts.append(apply(found, *(other[part] for other in rest)))
            results.append(parts[0] if len(parts) == 1 else join(parts))
        return from_blocks(results, indices.chunks[0], made)

    def rows_on_host(self, X: Array, rows: slice | NDArray[np.integer]) -> NDArray[Any]:
        """Compute some rows."""
        if isinstance(rows, slice):
            return X[rows].compute()
        ascending, places = np.unique(rows, return_inverse=True)
        return X[ascending].compute()[places]

    def choose_search(self, search: Any, n_rows: int, n_features: int) -> Any:
        """Choose as for NumPy arrays, but few features do not help: no tree holds all rows."""
        if hasattr(search, "kneighbors"):
            raise ValueError(
                "The neighbours of rows in Dask arrays are searched by 'auto', 'exact' or "
                "'approximate', not by an estimator: leave that out, or pass NumPy arrays."
            )
        return _NUMPY.choose_search(search, n_rows, max(n_features, TREE_FEATURES + 1))

    def _inexact(
        self, rows: Array, k: int, search: Any, rng: np.random.RandomState, **options: Any
    ) -> Neighbors:
        chosen = np.sort(rng.permutation(rows.shape[0])[:SAMPLE_ROWS])
        sample = Numbered(chosen, self.rows_on_host(rows, chosen).astype(np.float32))
        return neighbors_by_groups(RowBlocks(rows), sample, rows.shape[0], k, rng, self.keep)

    def _exact(self, rows: Array, k: int, queries: Array | None, **options: Any) -> Neighbors:
        """Search one pair of partitions at a time; what rows themselves get is kept."""
        blocks = RowBlocks(rows)
        if queries is None:
            searched, starts, sizes = blocks.blocks, blocks.starts, blocks.sizes
        else:
            searched, sizes = row_blocks_of(queries), queries.chunks[0]
            starts = [UNSEEN] * len(sizes)
        find = dask.delayed(_search, pure=False, nout=2)
        found = []
        for block, start in zip(searched, starts, strict=True):
            best: Any = None
            for held in blocks.parts():
                best = find(block, start, k, best, *held)
            found.append(best)
        like = (np.empty((0, k)), np.empty((0, k), dtype=np.int64))
        arrays = map(from_blocks, zip(*found, strict=True), repeat(sizes), like)
        return Neighbors(*(arrays if queries is not None else self.keep(*arrays)))

    def symmetric_weights(self, indices: Array, values: Array) -> "BlockWeights":
        """Return the weights in parts; every piece also goes, transposed, to its other end."""
        sizes = indices.chunks[0]
        near, weights = row_blocks_of(indices), row_blocks_of(cut_like(values, indices))
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        aims = dask.compute(*(dask.delayed(_aims)(block, bounds) for block in near))
        edges_of = dask.delayed(_NUMPY.query_weights, pure=False)
        one_sided = [edges_of(*pair, int(bounds[-1])) for pair in zip(near, weights, strict=True)]
        pieces = {
            (i, j): one_sided[i][:, int(bounds[j]) : int(bounds[j + 1])]
            for i, aimed in enumerate(aims)
            for j in aimed
        }
        join = dask.delayed(_joined_both_ways, pure=False)
        edges = []
        for i in range(len(sizes)):
            related = [j for j in range(len(sizes)) if (i, j) in pieces or (j, i) in pieces]
            for to in _groups(related, sizes, PART_ROWS):
                there, back = [pieces.get((i, j)) for j in to], [pieces.get((j, i)) for j in to]
                edges.append(Edges(join(there, back), i, to))
        kept = zip(edges, dask.persist(*(part.weights for part in edges)), strict=True)
        return BlockWeights([part._replace(weights=weights) for part, weights in kept], sizes)

    def query_weights(self, indices: Array, values: Array, n_rows: int) -> "QueryWeights":
        """Return the weights as they are; they are sorted by partitions when they are used."""
        return QueryWeights([(indices, values)], (indices.shape[0], n_rows))


class Edges(NamedTuple):
    """Edges from the rows of a partition to those of the partitions ``to``, one after the other."""

    weights: Any  # Delayed, of a csr_array
    partition: int
    to: list[int]


class BlockWeights:
    """Symmetric weights: the edges of all partitions of ``sizes`` rows, in parts."""

    def __init__(self, edges: list[Edges], sizes: Sequence[int]) -> None:
        self.edges = edges
        self.sizes = tuple(sizes)
        self.shape = (sum(sizes), sum(sizes))

    def __matmul__(self, P: Array) -> Array:
        """Return the product with a Dask array, cut into the same partitions."""
        P = P.rechunk({0: self.sizes, 1: -1})
        blocks = row_blocks_of(P)
        product = dask.delayed(_product, pure=False)
        zeros = dask.delayed(np.zeros)
        totals = [zeros((size, P.shape[1]), dtype=P.dtype) for size in self.sizes]
        for part in self.edges:  # one after the other: a task holds the rows of one part only
            there = [blocks[j] for j in part.to]
            totals[part.partition] = product(part.weights, there, totals[part.partition])
        return from_blocks(totals, self.sizes, P)

    def __add__(self, other: "BlockWeights") -> "BlockWeights":
        """Return the sum."""
        return BlockWeights(self.edges + other.edges, self.sizes)


@dataclass
class QueryWeights:
    """Weights from queries to rows, of (indices, values) that add up, made when multiplied."""

    edges: list[tuple[Array, Array]]
    shape: tuple[int, int]

    def __matmul__(self, P: Array) -> Array:
        """Return the product with a Dask array of a row per row."""
        P = P.rechunk({1: -1})
        products = [DaskEngine().map_neighbors(_weighted_sum, P, *pair) for pair in self.edges]
        return reduce(add, products)

    def __add__(self, other: "QueryWeights") -> "QueryWeights":
        """Return the sum."""
        return QueryWeights(self.edges + other.edges, self.shape)


def _groups(numbers: Iterable[int], sizes: Sequence[int], most: int) -> list[list[int]]:
    """Cut partitions into runs of no more than ``most`` rows (or a single one)."""
    groups: list[list[int]] = []
    room = 0
    for number in numbers:
        if not groups or sizes[number] > room:
            groups.append([])
            room = most
        groups[-1].append(number)
        room -= sizes[number]
    return groups


# Inside of tasks


def _search(block: Block, start: int, k: int, best: Neighbors | None, *held: Any) -> Neighbors:
    """Search some blocks for neighbours of one, and keep the best of these and earlier ones."""
    queries = loaded(block)
    for other, other_start in in_pairs(held):
        pair = (queries, k) if other_start == start else (loaded(other), k, queries)
        distances, indices = _NUMPY.nearest_neighbors(*pair)
        found = Neighbors(distances.astype(np.float64), indices.astype(np.int64) + other_start)
        best = found if best is None else nearest_of_both(best, found, k)
    assert best is not None
    return best


def _gather(indices: NDArray[np.integer], found: NDArray[Any] | None, *held: Any) -> NDArray[Any]:
    """Put the rows that some blocks hold into their places."""
    for block, start in in_pairs(held):
        rows = loaded(block)
        if found is None:
            found = np.zeros((*indices.shape, *rows.shape[1:]), dtype=rows.dtype)
        inside = (indices >= start) & (indices < start + len(rows))
        if inside.any():
            found = found if found.flags.writeable else found.copy()
            found[inside] = rows[indices[inside] - start]
    assert found is not None
    return found


def _aims(indices: NDArray[np.integer], bounds: NDArray[np.integer]) -> list[int]:
    """Return the partitions that some neighbour lies in."""
    return np.unique(np.searchsorted(bounds, indices.ravel(), side="right") - 1).tolist()


def _joined_both_ways(
    there: Sequence[sp.csr_array | None], back: Sequence[sp.csr_array | None]
) -> sp.csr_array:
    """Join pieces side by side, each the maximum of those of the two directions."""
    joined = []
    for out, into in zip(there, back, strict=True):
        ways = [way for way in (out, None if into is None else into.T.tocsr()) if way is not None]
        joined.append(ways[0] if len(ways) == 1 else ways[0].maximum(ways[1]))
    return sp.hstack(joined, format="csr")


def _product(weights: sp.csr_array, P: list[AnyFloats], total: AnyFloats) -> AnyFloats:
    return total + weights @ np.concatenate(P)


def _weighted_sum(P: AnyFloats, values: AnyFloats) -> AnyFloats:
    return (values[:, None, :] @ P)[:, 0, :]


# Results that survive their worker


def _folder() -> Path | None:
    directory = dask.config.get("gmpll.directory", None)
    if directory is None:
        return None
    folder = Path(directory).resolve() / _RUN
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _in_files(arrays: Sequence[da.Array], folder: Path) -> tuple[list[da.Array], list[Path]]:
    """Write arrays to files of a partition each; return arrays that are read from there."""
    blocks = [row_blocks_of(array) for array in arrays]
    files = [[folder / f"{uuid.uuid4().hex}.npy" for _ in parts] for parts in blocks]
    write, read = dask.delayed(_write, pure=False), dask.delayed(np.load, pure=False)
    names = [file for group in files for file in group]
    parts = [block for group in blocks for block in group]
    dask.compute(*(write(*pair) for pair in zip(parts, names, strict=True)))
    kept = [
        from_blocks([read(str(file)) for file in group], array.chunks[0], array)
        for group, array in zip(files, arrays, strict=True)
    ]
    return list(dask.persist(*kept)), names


def _write(array: NDArray[Any], file: Path) -> None:
    # A repeated task may write while another one reads: only whole files get the name.
    beside = file.with_name(f"{uuid.uuid4().hex}.tmp")
    with open(beside, "wb") as stream:
        np.save(stream, array)
    beside.replace(file)


def _in_scheduler(array: da.Array) -> da.Array:
    """Collect an array in the client and let the scheduler keep it."""
    values = dask.compute(*row_blocks_of(array))
    # One at a time: what is sent along with a task is meant to be small.
    kept = [dask.persist(dask.delayed(np.asarray, pure=False)(value))[0] for value in values]
    return from_blocks(kept, array.chunks[0], array)
