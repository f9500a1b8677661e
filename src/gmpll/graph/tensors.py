r"""Directions, nearest neighbours and the local graph on PyTorch tensors, on any device.

The counterparts of :mod:`gmpll.graph.views`, :mod:`gmpll.graph.neighbors` and
:mod:`gmpll.graph.local`: same results up to rounding, on the device of the rows.

The search for neighbours is exact. In general it scores blocks of rows against all others. For
many rows on CUDA, with Triton, it goes in two steps: a kernel computes all inner products from
half-precision rows but writes only the largest of every group of columns to memory; then the rows
of the most promising groups are compared in full precision. The result is certified: a column
outside the chosen groups cannot beat the k-th neighbour found, by more than what rounding to half
precision can hide. Rows for which that cannot be said are searched in full.
"""

from __future__ import annotations

import math
import warnings
from importlib.util import find_spec
from typing import NamedTuple

try:
    import torch
except ImportError as error:
    raise ImportError(
        "Tensors need PyTorch, which is not installed: pip install 'gmpll[torch]'."
    ) from error

from gmpll.graph._halves import ROW_SCALE, padded, split

__all__ = [
    "TensorDirectionSpace",
    "TensorLocalGraph",
    "TensorNeighbors",
    "query_blocks",
    "tensor_nearest_neighbors",
]

#: As in `gmpll.graph.views` and `gmpll.graph.local`.
NEARLY_CONSTANT = 1e-9
ZERO_LENGTH = 1e-10
SCALE_NEIGHBOR = 7
#: Values are cut at this power of the largest number: they are squared and added up.
LARGEST_POWER = 0.45
#: Memory for a block of scores or of compared rows, off and on CUDA.
BLOCK_BYTES = 2**26
CUDA_BLOCK_BYTES = 2**31
#: Fewer rows than this are searched in full.
FEWEST_GROUPED_ROWS = 2**15
#: Groups that are looked into beyond those that must be, so that the result can be certified.
SPARE_GROUPS = 14
#: If more than this share of the rows is not certified, the inner products need more bits.
UNCERTAIN_SHARE = 0.05


class TensorDirectionSpace:
    """Z-scored, row-normalised features, see :class:`gmpll.graph.views.DirectionSpace`.

    Parameters
    ----------
    X : tensor of shape (n_samples, n_features)
        Training rows, single or double precision.

    Attributes
    ----------
    rows : tensor of shape (n_samples, n_features)
        The mapped training rows.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from gmpll.graph.tensors import TensorDirectionSpace
    >>> TensorDirectionSpace(torch.tensor([[1.0, 5.0], [3.0, 5.0]])).rows
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """

    def __init__(self, X: torch.Tensor) -> None:
        self._even = _evening_factors(X)
        even = self._evened(X)
        variance, self._mean = torch.var_mean(even, dim=0, correction=0)
        # A constant feature's deviation is made of rounding errors, about this large.
        noise = len(X) * torch.finfo(X.dtype).eps
        constant = variance <= noise * variance + (noise * self._mean).square()
        self._scale = torch.where(constant, 1.0, variance.sqrt())
        self.rows = self._directions(even)

    def transform(self, X: torch.Tensor) -> torch.Tensor:
        """Map rows into this space."""
        return self._directions(self._evened(X))

    def _evened(self, X: torch.Tensor) -> torch.Tensor:
        largest = torch.finfo(X.dtype).max ** LARGEST_POWER
        return (X * self._even).clamp_(-largest, largest)

    def _directions(self, even: torch.Tensor) -> torch.Tensor:
        scaled = even.sub_(self._mean).div_(self._scale)
        length = torch.linalg.vector_norm(scaled, dim=1, keepdim=True)
        return scaled.masked_fill_(length < ZERO_LENGTH, 0.0).div_(length.clamp(min=ZERO_LENGTH))


def _evening_factors(X: torch.Tensor) -> torch.Tensor:
    """Powers of two that bring features to about one, see `gmpll.graph.views`."""
    low, high = torch.aminmax(X, dim=0)
    half_range = high / 2 - low / 2
    size = torch.maximum(high.abs(), low.abs())
    exponents = torch.frexp(half_range)[1].where(half_range > NEARLY_CONSTANT * size, 0)
    # Of numbers that are hardly numbers the factor would be none.
    limit = 1 - math.frexp(torch.finfo(X.dtype).tiny)[1]
    return torch.exp2(-exponents.clamp(-limit, limit).to(X.dtype))


class TensorNeighbors(NamedTuple):
    """Distances and indices of the nearest training rows, nearest first."""

    distances: torch.Tensor
    indices: torch.Tensor


def tensor_nearest_neighbors(
    rows: torch.Tensor,
    k: int,
    queries: torch.Tensor | None = None,
    *,
    grouped: bool | None = None,
) -> TensorNeighbors:
    """Find the k nearest rows by Euclidean distance, exactly.

    Parameters
    ----------
    rows : tensor of shape (n_rows, n_features)
        Where to search.
    k : int
        How many; fewer are returned where there are not so many.
    queries : tensor of shape (n_queries, n_features), default=None
        Whose neighbours; by default those of ``rows`` themselves, where no row is its own
        neighbour (its duplicates are).
    grouped : bool, default=None
        Whether to search in two steps, which needs Triton; by default for many rows on CUDA.

    Returns
    -------
    TensorNeighbors
        Tensors of shape (n_queries, k).

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from gmpll.graph.tensors import tensor_nearest_neighbors
    >>> tensor_nearest_neighbors(torch.tensor([[0.0], [1.0], [3.0]]), 1)
    TensorNeighbors(distances=tensor([[1.],
            [1.],
            [2.]]), indices=tensor([[1],
            [0],
            [1]]))
    """
    searched = rows if queries is None else queries
    k = min(k, rows.shape[0] - (queries is None))
    if k <= 0:
        empty = rows.new_zeros((len(searched), 0))
        return TensorNeighbors(empty, empty.to(torch.int64))
    if grouped is None:
        grouped = (
            rows.is_cuda and len(rows) >= FEWEST_GROUPED_ROWS and find_spec("triton") is not None
        )
    own = torch.arange(len(rows), device=rows.device) if queries is None else None
    if grouped:
        indices = _GroupedSearch(rows, k)(searched, own)
    else:
        indices = _search_all(rows, k, searched, own)
    return _nearest_first(rows, searched, indices)


class TensorLocalGraph:
    r"""Nearest-neighbour graph with self-tuning weights, see :class:`gmpll.graph.local.LocalGraph`.

    Parameters
    ----------
    rows : tensor of shape (n_samples, n_features)
        Instances.
    n_neighbors : int
        Neighbours of each instance before the graph is made symmetric.
    grouped : bool, default=None
        How neighbours are searched, see :func:`tensor_nearest_neighbors`.

    Attributes
    ----------
    weights : sparse CSR tensor of shape (n_samples, n_samples)
        Symmetric weights in [0, 1], no self-loops.
    scales : tensor of shape (n_samples,)
        :math:`\sigma_i`.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from gmpll.graph.tensors import TensorLocalGraph
    >>> graph = TensorLocalGraph(torch.tensor([[0.0], [1.0], [3.0]]), 1)
    >>> graph.weights.to_dense().round(decimals=2)
    tensor([[0.0000, 0.3700, 0.0000],
            [0.3700, 0.0000, 0.1400],
            [0.0000, 0.1400, 0.0000]])
    """

    def __init__(
        self, rows: torch.Tensor, n_neighbors: int, *, grouped: bool | None = None
    ) -> None:
        self.rows = rows
        self.n_neighbors = n_neighbors
        self.grouped = grouped
        near = tensor_nearest_neighbors(rows, n_neighbors, grouped=grouped)
        self.scales = _scales(near.distances)
        values = self._values(near, self.scales)
        self.weights = _symmetric(values, near.indices)

    def to_queries(self, queries: torch.Tensor) -> torch.Tensor:
        """Weights from unseen rows to the rows of the graph, sparse (n_queries, n_samples)."""
        near = tensor_nearest_neighbors(self.rows, self.n_neighbors, queries, grouped=self.grouped)
        values = self._values(near, _scales(near.distances))
        n, k = near.indices.shape
        starts = torch.arange(n + 1, device=queries.device) * k
        return _csr(starts, near.indices.flatten(), values.flatten(), (n, len(self.rows)))

    def _values(self, near: TensorNeighbors, scales: torch.Tensor) -> torch.Tensor:
        spread = scales[:, None] * self.scales[near.indices]
        squared = near.distances.square()
        # Copies of a row are at distance 0 with scale 0: nothing is closer, so their weight is 1.
        values = torch.where(spread == 0, 0.0, torch.exp(-squared / spread))
        return torch.where(squared == 0, 1.0, values)


def _scales(distances: torch.Tensor) -> torch.Tensor:
    k = distances.shape[1]
    if k == 0:
        return distances.new_zeros(len(distances))
    return distances[:, min(SCALE_NEIGHBOR, k) - 1]


def _symmetric(values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Make one-sided weights symmetric by the maximum."""
    n, k = indices.shape
    own = torch.arange(n, device=indices.device).repeat_interleave(k)
    other = indices.flatten()
    keys = torch.cat([own * n + other, other * n + own])
    keys, place = torch.unique(keys, return_inverse=True)
    weights = values.new_zeros(len(keys))
    weights.scatter_reduce_(0, place, values.flatten().repeat(2), "amax")
    starts = torch.searchsorted(keys, torch.arange(n + 1, device=keys.device) * n)
    return _csr(starts, keys % n, weights, (n, n))


def _csr(
    starts: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, size: tuple[int, int]
) -> torch.Tensor:
    narrow = torch.int32 if max(*size, len(columns)) < 2**31 else torch.int64
    with warnings.catch_warnings():
        # PyTorch calls its sparse rows a beta; only their product with a matrix is used here.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly")
        return torch.sparse_csr_tensor(
            starts.to(narrow), columns.to(narrow), values, size=size, check_invariants=False
        )


# The search for neighbours


def _handicaps(rows: torch.Tensor) -> torch.Tensor:
    """Half the squared lengths: of two rows the one with larger x.y - |y|^2 / 2 is nearer to x."""
    return 0.5 * rows.square().sum(dim=1)


def _search_all(
    rows: torch.Tensor, k: int, queries: torch.Tensor, own: torch.Tensor | None
) -> torch.Tensor:
    """Score blocks of queries against all rows; ``own`` are the queries' own places in rows."""
    handicaps = _handicaps(rows)
    found = torch.empty((len(queries), k), dtype=torch.int64, device=rows.device)
    for block in query_blocks(queries, len(rows)):
        scores = torch.addmm(handicaps, queries[block], rows.T, beta=-1.0)
        if own is not None:
            scores.scatter_(1, own[block, None], -math.inf)
        found[block] = scores.topk(k, dim=1).indices
    return found


def _nearest_first(
    rows: torch.Tensor, queries: torch.Tensor, indices: torch.Tensor
) -> TensorNeighbors:
    """Measure distances by differences, which are exactly zero for copies, and sort by them."""
    distances = rows.new_empty(indices.shape)
    order = torch.empty_like(indices)
    for block in query_blocks(queries, indices.shape[1] * rows.shape[1]):
        offsets = rows[indices[block]] - queries[block, None, :]
        distances[block], order[block] = torch.linalg.vector_norm(offsets, dim=2).sort(dim=1)
    return TensorNeighbors(distances, indices.gather(1, order))


def query_blocks(queries: torch.Tensor, numbers_per_query: int) -> list[slice]:
    """Cut queries into blocks for which so many numbers each fit in a part of the memory."""
    n_bytes = CUDA_BLOCK_BYTES if queries.is_cuda else BLOCK_BYTES
    size = max(1, n_bytes // (queries.element_size() * max(numbers_per_query, 1)))
    return [slice(start, start + size) for start in range(0, len(queries), size)]


class _GroupedSearch:
    """Exact search that looks into few groups of rows per query."""

    def __init__(self, rows: torch.Tensor, k: int) -> None:
        from gmpll.graph._triton import BLOCK, GROUP, feature_width

        self.rows, self.k, self.group = rows, k, GROUP
        self._n_padded = math.ceil(len(rows) / BLOCK) * BLOCK
        self._width, _ = feature_width(rows.shape[1])
        self._padded = padded(rows, self._n_padded, rows.shape[1])
        self._handicaps = _handicaps(self._padded)
        # One group more for the query itself, and one for the padded end.
        self.n_groups = min(k + 2 + SPARE_GROUPS, self._n_padded // GROUP)
        self._longest = float(self._handicaps.max().mul(2.0).sqrt())
        self._scale = 2.0 ** math.floor(math.log2(ROW_SCALE / max(self._longest, 1e-30)))
        self._halves: dict[int, list[torch.Tensor]] = {}

    def __call__(self, queries: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        """Return the k nearest rows of every query."""
        found = torch.empty((len(queries), self.k), dtype=torch.int64, device=queries.device)
        n_parts = 1
        uncertain = []
        for block in self._chunks(queries):
            places = None if own is None else own[block]
            found[block], certain = self._search(queries[block], places, n_parts)
            if n_parts == 1 and float((~certain).float().mean()) > UNCERTAIN_SHARE:
                n_parts = 2
                found[block], certain = self._search(queries[block], places, n_parts)
            uncertain.append(block.start + (~certain).nonzero()[:, 0])
        left = torch.cat(uncertain)
        if len(left):
            places = None if own is None else own[left]
            found[left] = _search_all(self.rows, self.k, queries[left], places)
        return found

    def _chunks(self, queries: torch.Tensor) -> list[slice]:
        size = CUDA_BLOCK_BYTES // (4 * (self._n_padded // self.group))
        size = max(1, size // 1024) * 1024
        return [slice(start, start + size) for start in range(0, len(queries), size)]

    def _search(
        self, queries: torch.Tensor, own: torch.Tensor | None, n_parts: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
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

    def _maxima(self, queries: torch.Tensor, n_parts: int) -> torch.Tensor:
        from gmpll.graph._triton import BLOCK, group_maxima

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

    def _half(self, rows: torch.Tensor, n: int, n_parts: int) -> list[torch.Tensor]:
        return split(self._scale * padded(rows, n, self._width), n_parts)

    def _compare(
        self, queries: torch.Tensor, own: torch.Tensor | None, groups: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the k best rows of the groups, and the score of the last of them."""
        found = torch.empty((len(queries), self.k), dtype=torch.int64, device=queries.device)
        worst = queries.new_empty(len(queries))
        grouped = self._padded.view(-1, self.group, self.rows.shape[1])
        within = torch.arange(self.group, device=queries.device)
        for block in query_blocks(queries, self.n_groups * self.group * self.rows.shape[1]):
            columns = (groups[block, :, None] * self.group + within).flatten(1)
            rows = grouped[groups[block]].flatten(1, 2)
            scores = (rows @ queries[block, :, None])[:, :, 0] - self._handicaps[columns]
            scores.masked_fill_(columns >= len(self.rows), -math.inf)
            if own is not None:
                scores.masked_fill_(columns == own[block, None], -math.inf)
            best = scores.topk(self.k, dim=1)
            found[block] = columns.gather(1, best.indices)
            worst[block] = best.values[:, -1]
        return found, worst
