"""Approximate nearest neighbours of Dask arrays: groups of near rows are searched in memory.

Random planes cut all rows into groups of equal size: each plane stands upright between two random
rows and divides the rows of a sample in two. A task collects the rows of a group, wherever they
are, and searches them as NumPy arrays are searched (:mod:`gmpll.engines.cells`). Then other
planes are drawn, and every row keeps the nearest of all that it has met. With m rows of d features
in g groups a round reads the data g times and takes close to O(m d) time in the groups and
O(m g d) for the planes; a task holds the m / g rows of a group in single precision.

Two settings of Dask bound it: ``gmpll.search-rows``, how many rows a task searches at a time (by
default 131,072, more where there would be more than 64 groups, and no more than take 256 MiB), and
``gmpll.search-rounds``, how often planes are drawn (3). What a round found is kept as what other
steps find is (:mod:`gmpll.engines.dask`): a lost worker costs no more than the round.
"""

import math
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import dask
import numpy as np
from numpy.typing import NDArray

from gmpll.engines.base import Neighbors
from gmpll.engines.dask_blocks import RowBlocks, from_blocks, in_pairs, loaded, row_blocks_of
from gmpll.engines.numpy import NumpyEngine, nearest_of_both

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]

#: Rows by which planes divide the others evenly.
SAMPLE_ROWS = 8192
#: Rows of a group, unless there would be too many groups or too large ones.
GROUP_ROWS = 2**17
MAX_GROUPS = 64
GROUP_BYTES = 2**28
#: A group holds at least so many times the neighbours that are asked for.
ROWS_PER_NEIGHBOR = 20
#: How often planes are drawn.
ROUNDS = 3
#: Groups of no more rows are searched exactly.
EXACT_ROWS = 4096
#: Rows on a plane fall to either side: heights are moved by this share of the largest.
TIE_SHARE = 1e-6

_NUMPY = NumpyEngine()


class Numbered(NamedTuple):
    """Some rows with their numbers among all rows."""

    numbers: Numbers
    rows: Floats


class Plane(NamedTuple):
    """Rows whose height over the plane is below the threshold are on its lower side."""

    direction: Floats
    threshold: float
    moved_by: float

    def heights(self, some: Numbered) -> NDArray[np.floating]:
        """Return the heights of rows; those of copies of a row differ by their numbers."""
        spread = some.numbers * 0.6180339887498949 % 1.0  # as even as random numbers
        return some.rows @ self.direction + self.moved_by * spread


#: The planes that bound a group, and on which side of them it lies.
Group = list[tuple[Plane, bool]]


class Found(NamedTuple):
    """Rows of a group by their numbers, ascending, and the nearest of the other ones."""

    numbers: Numbers
    distances: Floats
    indices: Numbers


def neighbors_by_groups(
    blocks: RowBlocks,
    sample: Numbered,
    n_rows: int,
    k: int,
    rng: np.random.RandomState,
    keep: Callable[..., Sequence[Any]],
) -> Neighbors:
    """Find nearly the k nearest other rows of every row; ``keep`` is applied to every round."""
    n_groups = _number_of_groups(n_rows, sample.rows.shape[1], k)
    n_rounds = int(dask.config.get("gmpll.search-rounds", ROUNDS)) if n_groups > 1 else 1
    collect, search = dask.delayed(_collected, pure=False), dask.delayed(_searched, pure=False)
    pick, merge = dask.delayed(_picked, pure=False), dask.delayed(_merged, pure=False, nout=2)
    like = np.empty((0, k), dtype=np.float32), np.empty((0, k), dtype=np.int64)
    best: Sequence[Any] = []
    for _ in range(n_rounds):
        found = []
        for group in _random_groups(sample, n_groups, rng):
            rows: Any = None
            for held in blocks.parts():
                rows = collect(group, rows, *held)
            found.append(search(rows, k, int(rng.randint(2**31 - 1))))
        made = []
        earlier = zip(*map(row_blocks_of, best), strict=True) if best else repeat(None)
        for start, size, before in zip(blocks.starts, blocks.sizes, earlier, strict=False):
            pieces = [pick(of_group, start, start + size) for of_group in found]
            made.append(merge(pieces, start, size, k, before))
        best = keep(*map(from_blocks, zip(*made, strict=True), repeat(blocks.sizes), like))
    return Neighbors(*best)


def _number_of_groups(n_rows: int, n_features: int, k: int) -> int:
    largest = min(max(GROUP_ROWS, n_rows // MAX_GROUPS), GROUP_BYTES // (4 * n_features))
    given = int(dask.config.get("gmpll.search-rows", None) or largest)
    if given < 1:
        raise ValueError(f"The setting gmpll.search-rows is {given}; it must be 1 or more.")
    return math.ceil(n_rows / max(given, ROWS_PER_NEIGHBOR * (k + 1)))


def _random_groups(sample: Numbered, n_groups: int, rng: np.random.RandomState) -> list[Group]:
    """Cut space into groups that hold as many rows of a sample each."""
    if n_groups == 1:
        return [[]]
    direction = np.zeros(sample.rows.shape[1], dtype=np.float32)
    if len(sample.rows) > 1:
        first, second = sample.rows[rng.choice(len(sample.rows), 2, replace=False)]
        direction = first - second
    if not direction.any():
        direction = rng.randn(len(direction)).astype(np.float32)
    direction /= np.linalg.norm(direction)
    largest = float(np.abs(sample.rows @ direction).max(initial=0.0)) or 1.0
    n_lower = n_groups // 2
    plane = Plane(direction, 0.0, TIE_SHARE * largest)
    heights = plane.heights(sample)
    threshold = float(np.quantile(heights, n_lower / n_groups)) if len(heights) else 0.0
    plane = plane._replace(threshold=threshold)
    groups: list[Group] = []
    for is_lower, n_there in ((True, n_lower), (False, n_groups - n_lower)):
        there = Numbered(*(values[(heights < threshold) == is_lower] for values in sample))
        groups += [[(plane, is_lower), *rest] for rest in _random_groups(there, n_there, rng)]
    return groups


# Inside of tasks


def _collected(group: Group, before: Numbered | None, *held: Any) -> Numbered:
    """Add the rows of some blocks that lie in a group to those of earlier blocks."""
    parts = [] if before is None else [before]
    for block, start in in_pairs(held):
        rows = loaded(block).astype(np.float32, copy=False)
        some = Numbered(np.arange(start, start + len(rows)), rows)
        for plane, is_lower in group:
            inside = (plane.heights(some) < plane.threshold) == is_lower
            some = Numbered(some.numbers[inside], some.rows[inside])
        parts.append(some)
    return Numbered(*map(np.concatenate, zip(*parts, strict=True)))


def _searched(group: Numbered, k: int, seed: int) -> Found:
    """Search the rows of a group; where they are too few, -1 stands for the rest."""
    n_rows = len(group.rows)
    search = "exact" if n_rows <= EXACT_ROWS else "approximate"
    near = _NUMPY.nearest_neighbors(group.rows, k, search=search, random_state=seed)
    distances = np.full((n_rows, k), np.inf, dtype=np.float32)
    indices = np.full((n_rows, k), -1, dtype=np.int64)
    n_found = near.indices.shape[1]
    distances[:, :n_found] = near.distances
    indices[:, :n_found] = group.numbers[near.indices]
    return Found(group.numbers, distances, indices)


def _picked(found: Found, start: int, stop: int) -> Found:
    """Return what was found for the rows of a partition."""
    first, last = np.searchsorted(found.numbers, [start, stop])
    parts: Any = (values[first:last].copy() for values in found)
    return Found(*parts)


def _merged(pieces: Sequence[Found], start: int, size: int, k: int, before: Any) -> Neighbors:
    """Put the pieces of a partition together and merge them with what was found before."""
    distances = np.full((size, k), np.inf, dtype=np.float32)
    indices = np.full((size, k), -1, dtype=np.int64)
    for piece in pieces:
        distances[piece.numbers - start] = piece.distances
        indices[piece.numbers - start] = piece.indices
    if before is None:
        return Neighbors(distances, indices)
    for found_before in before[1].T:
        distances[indices == found_before[:, None]] = np.inf  # the same row, found twice
    return nearest_of_both(Neighbors(*before), Neighbors(distances, indices), k)
