"""Approximate nearest neighbours by comparing the rows that share a random cell.

A random row claims the rows that are nearer to it than to other random rows. Near rows often have
the same nearest one, however many dimensions there are, so all pairs within such a cell are
compared, then cells are drawn anew, and every row keeps the nearest of all that it has met. Cells
are drawn in two steps, groups and cells within a group, as in a tree of two levels with many
branches. Compared with trees of many levels with two branches a pair of neighbours meets about as
often for each comparison, but all comparisons are matrix products on rows that lie together in
memory. Groups share no rows, so threads work on them without locks, and their number does not
change the result.

The module needs numba (the extra ``neighbors``).
"""

import math
from typing import Any

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  # compiled products use it: loaded here, limited below
from numba import njit
from numpy.typing import NDArray

from gmpll._threads import balanced_blocks, in_threads, one_blas_thread

Floats = NDArray[np.float32]
Numbers = NDArray[np.int32]
Places = NDArray[np.intp]

#: Mean size of a cell, at least twice the number of neighbours.
CELL_ROWS = 100
#: A larger group or cell than this many times the mean is cut.
MAX_EXCESS = 4
#: Mean size of a group where this is more than balances the two steps.
GROUP_CELLS = 50
#: How often groups are drawn, and cells within them.
MAX_ITERATIONS = 40
DRAWS = 2
#: The search ends when an iteration finds less than this share of the neighbours.
SETTLED = 0.002
#: Rows that a thread works on at a time.
BLOCK_ROWS = 4096
#: Compiled functions hold no lock. fastmath is limited to what keeps infinities and NaN intact:
#: sums may be reordered.
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract", "arcp"}}


def neighbors_in_cells(
    rows: NDArray[np.floating], k: int, rng: np.random.RandomState
) -> tuple[Floats, Numbers]:
    """Find nearly the k nearest other rows of every row; infinity and -1 if it met too few."""
    n_rows = len(rows)
    # Around the mean the products that stand for distances lose the least to rounding, and
    # between -1 and 1 nothing overflows.
    centred = rows - rows.mean(axis=0)
    scale = float(np.abs(centred).max()) or 1.0
    rows = np.asarray(centred / scale, dtype=np.float32)
    del centred
    half_norms = 0.5 * np.einsum("ij,ij->i", rows, rows)
    indices = np.full((n_rows, k), -1, dtype=np.int32)
    distances = np.full((n_rows, k), np.inf, dtype=np.float32)
    cell_rows = max(CELL_ROWS, 2 * k)
    largest = MAX_EXCESS * cell_rows

    def join(group_and_seed: tuple[Places, int]) -> int:
        group, seed = group_and_seed
        drawn = np.random.RandomState(seed)
        within, norms = rows[group], half_norms[group]
        found = 0
        for _ in range(DRAWS):
            centres = drawn.permutation(len(group))[: math.ceil(len(group) / cell_rows)]
            nearest = _nearest_centres(within, norms, centres)
            order, ends = _sorted_by_centre(nearest, len(centres))
            found += _join_cells(within, norms, group, order, ends, largest, indices, distances)
        return found

    with one_blas_thread():  # the threads are here
        for _ in range(MAX_ITERATIONS):
            groups = _draw_groups(rows, half_norms, cell_rows, rng)
            seeds = rng.randint(2**31 - 1, size=len(groups))
            if sum(in_threads(join, zip(groups, seeds, strict=True))) < SETTLED * indices.size:
                break
    in_threads(
        lambda block: _measure(rows, indices, distances, block.start, block.stop),
        balanced_blocks(n_rows, BLOCK_ROWS),
    )
    distances *= np.float32(scale)
    return distances, indices


def _draw_groups(
    rows: Floats, half_norms: Floats, cell_rows: int, rng: np.random.RandomState
) -> list[Places]:
    """Put every row to the nearest of some random rows; largest groups first."""
    n_rows = len(rows)
    group_rows = max(GROUP_CELLS * cell_rows, math.isqrt(cell_rows * n_rows))
    n_groups = math.ceil(n_rows / group_rows)
    centres = rng.permutation(n_rows)[:n_groups]
    blocks = balanced_blocks(n_rows, BLOCK_ROWS)
    parts = in_threads(lambda part: _nearest_centres(rows, half_norms, centres, part), blocks)
    order, ends = _sorted_by_centre(np.concatenate(parts), n_groups)
    pieces: list[Places] = []
    for group in np.split(order, ends[:-1]):
        if len(group) > MAX_EXCESS * group_rows:  # copies of one row, say: cut elsewhere every time
            pieces.extend(np.array_split(rng.permutation(group), -(-len(group) // group_rows)))
        elif len(group) > 1:
            pieces.append(group)
    return sorted(pieces, key=len, reverse=True)


def _nearest_centres(
    rows: Floats, half_norms: Floats, centres: Places, part: slice = slice(None)
) -> NDArray[np.uint32]:
    """Return for some rows which of the centres, which are rows too, is the nearest."""
    closeness = rows[part] @ rows[centres].T
    closeness -= half_norms[centres]
    return closeness.argmax(axis=1).astype(np.uint32)


def _sorted_by_centre(nearest: NDArray[np.uint32], n_centres: int) -> tuple[Places, Places]:
    """Return the rows in the order of their centres, and where each centre's rows end."""
    if n_centres <= 2**16:
        nearest = nearest.astype(np.uint16)  # sorted by counting
    order = np.argsort(nearest, kind="stable")
    return order, np.cumsum(np.bincount(nearest, minlength=n_centres))


def compiled(function: Any) -> Any:
    """Compile a function when it is called first; keep it on disk where that can be written."""
    try:
        return njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no folder for the compiled code can be written
        return njit(**OPTIONS)(function)


@compiled
def _join_cells(
    rows: Floats,
    half_norms: Floats,
    names: Places,
    order: Places,
    ends: Places,
    largest: int,
    indices: Numbers,
    distances: Floats,
) -> int:
    """Compare all rows of a group that share a cell; return how many neighbours were found.

    ``names`` are the numbers of the group's rows among all rows; ``order`` puts them cell by cell.
    Neighbours are a heap, the farthest first; half of the squared distance stands for the distance.
    """
    k = indices.shape[1]
    found = 0
    members = np.empty((largest, rows.shape[1]), dtype=np.float32)
    norms = np.empty(largest, dtype=np.float32)
    nearer = np.empty(largest + 1, dtype=np.intp)
    start = 0
    for cell in range(len(ends)):
        while start < ends[cell]:
            n = min(ends[cell] - start, largest)
            cell_rows = order[start : start + n]
            for i in range(n):
                members[i] = rows[cell_rows[i]]
                norms[i] = half_norms[cell_rows[i]]
            products = np.dot(members[:n], members[:n].T)
            for i in range(n):
                row = names[cell_rows[i]]
                excess = products[i]
                for j in range(n):
                    excess[j] = norms[j] - excess[j]
                excess[i] = np.inf
                limit = distances[row, 0] - norms[i]
                n_nearer = 0
                for j in range(n):
                    nearer[n_nearer] = j
                    n_nearer += excess[j] < limit
                for c in range(n_nearer):
                    j = nearer[c]
                    distance = max(excess[j] + norms[i], np.float32(0.0))
                    if distance < distances[row, 0]:
                        name = names[cell_rows[j]]
                        found += _keep(indices[row], distances[row], k, name, distance)
            start += n
    return found


@compiled
def _keep(indices: Numbers, distances: Floats, k: int, name: int, distance: float) -> int:
    """Put a row in the place of the farthest neighbour unless it is there; say if it was put."""
    for c in range(k):
        if indices[c] == name:
            return 0
    place = 0
    while True:
        child = 2 * place + 1
        if child >= k:
            break
        if child + 1 < k and distances[child + 1] > distances[child]:
            child += 1
        if distances[child] <= distance:
            break
        distances[place] = distances[child]
        indices[place] = indices[child]
        place = child
    distances[place] = distance
    indices[place] = name
    return 1


@compiled
def _measure(rows: Floats, indices: Numbers, distances: Floats, start: int, stop: int) -> None:
    """Replace what stood for distances by distances, and sort by them."""
    for row in range(start, stop):
        for c in range(indices.shape[1]):
            name = indices[row, c]
            squared = np.float32(np.inf)
            if name >= 0:
                squared = np.float32(0.0)
                for f in range(rows.shape[1]):
                    difference = rows[row, f] - rows[name, f]
                    squared += difference * difference
            place = c
            while place > 0 and distances[row, place - 1] > squared:
                distances[row, place] = distances[row, place - 1]
                indices[row, place] = indices[row, place - 1]
                place -= 1
            distances[row, place] = squared
            indices[row, place] = name
        for c in range(indices.shape[1]):
            distances[row, c] = np.sqrt(distances[row, c])
