"""PyTorch tensors on any device: exact neighbours and sparse CSR weights.

In general the search scores blocks of rows against all others. For many rows on CUDA, with Triton,
it goes in two steps: a kernel computes all inner products from half-precision rows but writes only
the largest of every group of columns to memory; then the rows of the most promising groups are
compared in full precision. The result is certified: a column outside the chosen groups cannot beat
the k-th neighbour found, by more than what rounding to half precision can hide. Rows for which that
cannot be said are searched in full.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import gen_batches
from torch import Tensor
from torch.nn import functional

from gmpll.arrays import Array, array_namespace, to_host
from gmpll.engines.base import Engine, Neighbors

#: Memory for a block of scores or of compared rows, off and on CUDA.
BLOCK_BYTES = 2**26
CUDA_BLOCK_BYTES = 2**31
#: Fewer rows than this are searched in full.
MIN_GROUPED_ROWS = 2**15
#: Rows that are mapped at a time: to the kernel with landmarks, for instance, of 8 KB a row.
MAP_ROWS = 2**15
#: Groups that are looked into beyond those that must be, so that the result can be certified.
SPARE_GROUPS = 14
#: If more than this share of the rows is not certified, the inner products need more bits.
MAX_UNCERTAIN_SHARE = 0.05
#: Rows are scaled to about this length, so that the second parts of their entries are no subnormal
#: numbers and their inner products stay far from overflow.
ROW_SCALE = 64.0


class TorchEngine(Engine):
    """See :class:`gmpll.engines.base.Engine`."""

    name = "torch"
    xp = array_namespace(torch.zeros(1))

    def map_rows(self, function: Callable[..., Array], X: Array, *others: Array) -> Array:
        """Apply the function to many rows at a time."""
        if len(X) <= MAP_ROWS:
            return function(X, *others)
        blocks = zip(*(array.split(MAP_ROWS) for array in (X, *others)), strict=True)
        return torch.cat([function(*block) for block in blocks])

    def map_neighbors(
        self, function: Callable[..., Array], array: Array, indices: Array, *others: Array
    ) -> Array:
        """Apply a function to blocks of queries whose neighbours fit in a part of the memory."""
        numbers_per_query = indices.shape[1] * math.prod(array.shape[1:])
        parts = [
            function(array[indices[block]], *(other[block] for other in others))
            for block in _query_blocks(array, numbers_per_query, len(indices))
        ]
        return torch.cat(parts)

    def rows_on_host(self, X: Array, rows: slice | NDArray[np.integer]) -> NDArray[Any]:
        """Copy some rows to the main memory."""
        return to_host(X[rows])

    def ndtri(self, probabilities: Array) -> Array:
        """Return quantiles of the standard normal distribution."""
        return torch.special.ndtri(probabilities)

    def choose_search(self, search: Any, n_rows: int, n_features: int) -> Any:
        """Return ``"exact"``."""
        if search not in ("auto", "exact"):
            raise ValueError(
                f"The neighbours of tensors are searched exactly, not by {search!r}: leave that "
                "out, or pass NumPy arrays."
            )
        return "exact"

    def _exact(self, rows: Array, k: int, queries: Array | None, **options: Any) -> Neighbors:
        searched = rows if queries is None else queries
        grouped = options.get("grouped")
        if grouped is None:
            many = rows.is_cuda and len(rows) >= MIN_GROUPED_ROWS
            grouped = many and find_spec("triton") is not None
        own = torch.arange(len(rows), device=rows.device) if queries is None else None
        search = GroupedSearch(rows, k) if grouped else partial(_search_all, rows, k)
        return _nearest_first(rows, searched, search(searched, own))

    def symmetric_weights(self, indices: Array, values: Array) -> Tensor:
        """Return a sparse CSR tensor."""
        n, k = indices.shape
        own = torch.arange(n, device=indices.device).repeat_interleave(k)
        other = indices.flatten()
        keys = torch.cat([own * n + other, other * n + own])
        return _from_keys(keys, values.flatten().repeat(2), (n, n), "amax")

    def query_weights(self, indices: Array, values: Array, n_rows: int) -> Tensor:
        """Return a sparse CSR tensor."""
        n, k = indices.shape
        starts = torch.arange(n + 1, device=indices.device) * k
        return _csr(starts, indices.flatten(), values.flatten(), (n, n_rows))

    def sum_of_weights(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the sum of two sparse CSR tensors as another one."""
        keys = torch.cat([_keys(first), _keys(second)])
        return _from_keys(keys, torch.cat([first.values(), second.values()]), first.shape, "sum")


# Sparse weights


def _from_keys(keys: Tensor, values: Tensor, shape: Sequence[int], reduce: str) -> Tensor:
    """Return entries by their numbers in the matrix, row after row; those of a number joined."""
    n_rows, n_columns = shape
    keys, place = torch.unique(keys, return_inverse=True)
    joined = values.new_zeros(len(keys)).scatter_reduce_(0, place, values, reduce)
    starts = torch.searchsorted(keys, torch.arange(n_rows + 1, device=keys.device) * n_columns)
    return _csr(starts, keys % n_columns, joined, (n_rows, n_columns))


def _keys(weights: Tensor) -> Tensor:
    starts = weights.crow_indices().to(torch.int64)
    owners = torch.arange(weights.shape[0], device=starts.device).repeat_interleave(starts.diff())
    return owners * weights.shape[1] + weights.col_indices()


def _csr(starts: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    narrow = torch.int32 if max(*size, len(columns)) < 2**31 else torch.int64
    with warnings.catch_warnings():
        # PyTorch calls its sparse rows a beta; only their product with a matrix is used here.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly")
        return torch.sparse_csr_tensor(
            starts.to(narrow), columns.to(narrow), values, size=size, check_invariants=False
        )


# The search for neighbours


def _handicaps(rows: Tensor) -> Tensor:
    """Half the squared lengths: of two rows the one with larger x.y - |y|^2 / 2 is nearer to x."""
    return 0.5 * rows.square().sum(dim=1)


def _search_all(rows: Tensor, k: int, queries: Tensor, own: Tensor | None) -> Tensor:
    """Score blocks of queries against all rows; ``own`` are the queries' own places in rows."""
    handicaps = _handicaps(rows)
    found = torch.empty((len(queries), k), dtype=torch.int64, device=rows.device)
    for block in _query_blocks(queries, len(rows), len(queries)):
        scores = torch.addmm(handicaps, queries[block], rows.T, beta=-1.0)
        if own is not None:
            scores.scatter_(1, own[block, None], -math.inf)
        found[block] = scores.topk(k, dim=1).indices
    return found


def _nearest_first(rows: Tensor, queries: Tensor, indices: Tensor) -> Neighbors:
    """Measure distances by differences, which are exactly zero for copies, and sort by them."""
    distances = rows.new_empty(indices.shape)
    order = torch.empty_like(indices)
    for block in _query_blocks(queries, indices.shape[1] * rows.shape[1], len(queries)):
        offsets = rows[indices[block]] - queries[block, None, :]
        distances[block], order[block] = torch.linalg.vector_norm(offsets, dim=2).sort(dim=1)
    return Neighbors(distances, indices.gather(1, order))


def _query_blocks(like: Tensor, numbers_per_query: int, n_queries: int) -> list[slice]:
    """Cut queries into blocks for which so many numbers each fit in a part of the memory."""
    n_bytes = CUDA_BLOCK_BYTES if like.is_cuda else BLOCK_BYTES
    size = max(1, n_bytes // (like.element_size() * max(numbers_per_query, 1)))
    return list(gen_batches(max(n_queries, 1), size))


# Sums of half-precision matrices, the numbers that tensor cores multiply fastest


def split(values: Tensor, n_parts: int) -> list[Tensor]:
    """Write values as a sum of half-precision numbers, the largest first."""
    parts = []
    for _ in range(n_parts):
        parts.append(values.to(torch.float16))
        values = values - parts[-1].to(values.dtype)
    return parts


def padded(values: Tensor, n_rows: int, n_columns: int) -> Tensor:
    """Add rows and columns of zeros."""
    if values.shape == (n_rows, n_columns):
        return values
    return functional.pad(values, (0, n_columns - values.shape[1], 0, n_rows - values.shape[0]))


class GroupedSearch:
    """Exact search that looks into few groups of rows per query."""

    def __init__(self, rows: Tensor, k: int) -> None:
        from gmpll.engines.triton_products import BLOCK, GROUP, feature_width

        self.rows, self.k, self.group = rows, k, GROUP
        self._n_padded = math.ceil(len(rows) / BLOCK) * BLOCK
        self._width, _ = feature_width(rows.shape[1])
        self._padded = padded(rows, self._n_padded, rows.shape[1])
        self._handicaps = _handicaps(self._padded)
        # One group more for the query itself, and one for the padded end.
        self.n_groups = min(k + 2 + SPARE_GROUPS, self._n_padded // GROUP)
        self._longest = float(self._handicaps.max().mul(2.0).sqrt())
        self._scale = 2.0 ** math.floor(math.log2(ROW_SCALE / max(self._longest, 1e-30)))
        self._halves: dict[int, list[Tensor]] = {}

    def __call__(self, queries: Tensor, own: Tensor | None) -> Tensor:
        """Return the k nearest rows of every query."""
        found = torch.empty((len(queries), self.k), dtype=torch.int64, device=queries.device)
        n_parts = 1
        uncertain = []
        for block in _query_blocks(queries, self._n_padded // self.group, len(queries)):
            places = None if own is None else own[block]
            found[block], certain = self._search(queries[block], places, n_parts)
            if n_parts == 1 and float((~certain).float().mean()) > MAX_UNCERTAIN_SHARE:
                n_parts = 2
                found[block], certain = self._search(queries[block], places, n_parts)
            uncertain.append(block.start + (~certain).nonzero()[:, 0])
        left = torch.cat(uncertain)
        if len(left):
            places = None if own is None else own[left]
            found[left] = _search_all(self.rows, self.k, queries[left], places)
        return found

    def _search(self, queries: Tensor, own: Tensor | None, n_parts: int) -> tuple[Tensor, Tensor]:
        """Return neighbours, and whether nothing outside the groups looked into can be nearer."""
        maxima, groups = self._maxima(queries, n_parts).topk(self.n_groups, dim=1)
        found, worst = self._compare(queries, own, groups)
        if self.n_groups * self.group >= self._n_padded:
            return found, torch.ones_like(worst, dtype=torch.bool)
        lengths = torch.linalg.vector_norm(queries, dim=1)
        return found, worst >= maxima[:, -1] + self._rounding(n_parts) * lengths

    def _rounding(self, n_parts: int) -> float:
        """Bound of the error of an inner product with a query of length one."""
        relative = {1: 2.0**-10, 2: 2.0**-20}[n_parts]
        accumulated = (self._width + 8) * 2.0**-23
        return 1.01 * self._longest * (relative + accumulated)

    def _maxima(self, queries: Tensor, n_parts: int) -> Tensor:
        from gmpll.engines.triton_products import BLOCK, group_maxima

        if n_parts not in self._halves:
            self._halves[n_parts] = self._half(self._padded, self._n_padded, n_parts)
        n = math.ceil(len(queries) / BLOCK) * BLOCK
        maxima = group_maxima(
            self._half(queries, n, n_parts),
            self._halves[n_parts],
            (self._handicaps * self._scale**2).float(),
        )[: len(queries)]
        empty = (self._n_padded - len(self.rows)) // self.group
        if empty:
            maxima[:, -empty:] = -math.inf
        return maxima / self._scale**2

    def _half(self, rows: Tensor, n: int, n_parts: int) -> list[Tensor]:
        return split(self._scale * padded(rows, n, self._width), n_parts)

    def _compare(
        self, queries: Tensor, own: Tensor | None, groups: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the k best rows of the groups, and the score of the last of them."""
        from gmpll.engines.triton_products import group_scores

        found = torch.empty((len(queries), self.k), dtype=torch.int64, device=queries.device)
        worst = queries.new_empty(len(queries))
        within = torch.arange(self.group, device=queries.device)
        for block in _query_blocks(queries, self.n_groups * self.group, len(queries)):
            columns = (groups[block, :, None] * self.group + within).flatten(1)
            scores = group_scores(queries[block], self._padded, self._handicaps, groups[block])
            scores.masked_fill_(columns >= len(self.rows), -math.inf)
            if own is not None:
                scores.masked_fill_(columns == own[block, None], -math.inf)
            best = scores.topk(self.k, dim=1)
            found[block] = columns.gather(1, best.indices)
            worst[block] = best.values[:, -1]
        return found, worst
