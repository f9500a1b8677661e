r"""The local graph: an instance is related to its nearest neighbours only.

.. math:: W_{ij} = \exp\left(-\frac{d_{ij}^2}{\sigma_i \sigma_j}\right)

where :math:`d_{ij}` is the distance of the z-scored, row-normalised rows and :math:`\sigma_i` the
distance of row i to its seventh neighbour [1]_, made symmetric by the maximum. It takes O(m k)
memory where the full graph takes O(m^2) work.

Weights have the precision of the distances: double after an exact search, single after an
approximate one, whose graph is large (8 bytes an edge instead of 12).

References
----------
.. [1] L. Zelnik-Manor and P. Perona, "Self-tuning spectral clustering", NIPS 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll._threads import balanced_blocks, in_threads
from gmpll.graph.neighbors import (
    Neighbors,
    approximate_neighbors,
    choose_search,
    nearest_neighbors,
    neighbor_recall,
)

__all__ = ["LocalGraph", "LocalGraphs"]

#: The neighbour whose distance is a row's own scale, after Zelnik-Manor and Perona.
SCALE_NEIGHBOR = 7
#: Rows that a thread works on at a time: temporary arrays stay small beside the graph.
BLOCK_ROWS = 50_000


class LocalGraph:
    r"""Nearest-neighbour graph with self-tuning weights.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Instances.
    n_neighbors : int
        Neighbours of each instance before the graph is made symmetric.
    neighbors : {"auto", "exact", "approximate"}, default="auto"
        How they are searched for, see :func:`gmpll.graph.neighbors.choose_search`.
    random_state : int or RandomState, default=0
        Seed of the approximate search.
    n_jobs : int, default=None
        Parallel search, as in scikit-learn.

    Attributes
    ----------
    weights : csr_array of shape (n_samples, n_samples)
        Symmetric weights in [0, 1], no self-loops.
    scales : ndarray of shape (n_samples,)
        :math:`\sigma_i`.
    search : {"exact", "approximate"}
        How neighbours were searched for.
    recall : float
        Share of the true neighbours that were found: 1.0 for an exact search, otherwise
        estimated on a sample of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.local import LocalGraph
    >>> LocalGraph(np.array([[0.0], [1.0], [2.0]]), 1).weights.toarray().round(3)
    array([[0.   , 0.368, 0.   ],
           [0.368, 0.   , 0.368],
           [0.   , 0.368, 0.   ]])
    """

    def __init__(
        self,
        rows: NDArray[np.floating],
        n_neighbors: int,
        *,
        neighbors: str = "auto",
        random_state: int | np.random.RandomState = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.rows = rows
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        self.search = choose_search(neighbors, *rows.shape)
        near = self._search(random_state)
        self.scales = _scales(near.distances)
        self.weights = _symmetric(self._weights(near, self.scales))

    def _search(self, random_state: int | np.random.RandomState) -> Neighbors:
        if self.search == "exact":
            self.recall = 1.0
            return nearest_neighbors(self.rows, self.n_neighbors, n_jobs=self.n_jobs)
        near = approximate_neighbors(
            self.rows, self.n_neighbors, random_state=random_state, n_jobs=self.n_jobs
        )
        self.recall = neighbor_recall(
            self.rows, near, random_state=random_state, n_jobs=self.n_jobs
        )
        return near

    def to_queries(
        self, queries: NDArray[np.floating], near: Neighbors | None = None
    ) -> sp.csr_array:
        """Weights from unseen rows to the rows of the graph, (n_queries, n_samples).

        Their neighbours are always searched for exactly: what is said of an unseen row must not
        depend on the rows that come with it.

        Parameters
        ----------
        queries : ndarray of shape (n_queries, n_features)
            Unseen rows.
        near : Neighbors, default=None
            Their nearest rows, at least ``n_neighbors``, where these are known already.
        """
        if near is None:
            near = nearest_neighbors(self.rows, self.n_neighbors, queries, n_jobs=self.n_jobs)
        k = self.n_neighbors
        near = Neighbors(near.distances[:, :k], near.indices[:, :k])
        return self._weights(near, _scales(near.distances))

    def _weights(self, near: Neighbors, scales: NDArray[np.floating]) -> sp.csr_array:
        """Weigh every row's edges to its neighbours, in the order of the columns."""
        n, k = near.indices.shape
        values = np.empty((n, k), dtype=near.distances.dtype)
        columns = np.empty((n, k), dtype=_index_type(n * k, self.rows.shape[0]))

        def weigh(block: slice) -> None:
            order = np.argsort(near.indices[block], axis=1)
            columns[block] = np.take_along_axis(near.indices[block], order, axis=1)
            squared = np.square(np.take_along_axis(near.distances[block], order, axis=1))
            spread = scales[block, None] * self.scales[columns[block]]
            values[block] = _self_tuned(squared, spread)

        in_threads(weigh, balanced_blocks(n, BLOCK_ROWS))
        starts = np.arange(n + 1, dtype=columns.dtype) * columns.dtype.type(k)
        matrix = sp.csr_array(
            (values.ravel(), columns.ravel(), starts), shape=(n, self.rows.shape[0])
        )
        matrix.has_canonical_format = True  # sorted above: saves SciPy from looking
        return matrix


class LocalGraphs:
    """One local graph per view of the same rows, their weights added up.

    Parameters
    ----------
    views : sequence of ndarray of shape (n_samples, n_features_v)
        The rows in each view.
    n_neighbors, neighbors, random_state, n_jobs
        As in :class:`LocalGraph`.

    Attributes
    ----------
    weights : csr_array of shape (n_samples, n_samples)
        Sum of the weights of the views.
    recall : float
        The lowest of the views.
    """

    def __init__(
        self,
        views: Sequence[NDArray[np.floating]],
        n_neighbors: int,
        *,
        neighbors: str = "auto",
        random_state: int | np.random.RandomState = 0,
        n_jobs: int | None = None,
    ) -> None:
        self._graphs = [
            LocalGraph(
                rows, n_neighbors, neighbors=neighbors, random_state=random_state, n_jobs=n_jobs
            )
            for rows in views
        ]
        self.weights = self._graphs[0].weights
        for graph in self._graphs[1:]:
            self.weights = _combined(self.weights, graph.weights, "__add__")
        if len(self._graphs) > 1:
            for graph in self._graphs:
                del graph.weights  # what remains is needed for unseen rows
        self.recall = min(graph.recall for graph in self._graphs)

    def to_queries(
        self, views: Sequence[NDArray[np.floating]], near: Neighbors | None = None
    ) -> sp.csr_array:
        """Weights from unseen rows to the rows of the graph, (n_queries, n_samples).

        Parameters
        ----------
        views : sequence of ndarray of shape (n_queries, n_features_v)
            Unseen rows in each view.
        near : Neighbors, default=None
            Their nearest rows in the first view where these are known already.
        """
        total = self._graphs[0].to_queries(views[0], near)
        for graph, rows in zip(self._graphs[1:], views[1:], strict=True):
            total = _combined(total, graph.to_queries(rows), "__add__")
        return total


def _self_tuned(
    squared: NDArray[np.floating], spread: NDArray[np.floating]
) -> NDArray[np.floating]:
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.exp(-squared / spread)
    # Copies of a row are at distance 0 with scale 0: nothing is closer, so their weight is 1.
    return np.where(squared == 0, 1.0, np.where(spread == 0, 0.0, values))


def _symmetric(one_sided: sp.csr_array) -> sp.csr_array:
    """Give both directions of an edge the larger weight."""
    return _combined(one_sided, one_sided.T.tocsr(), "maximum")


def _combined(first: sp.csr_array, second: sp.csr_array, operation: str) -> sp.csr_array:
    """Combine two canonical matrices entry by entry, blocks of rows in parallel."""

    def combine(block: slice) -> Any:
        return getattr(_rows_of(first, block), operation)(_rows_of(second, block))

    blocks = balanced_blocks(first.shape[0], BLOCK_ROWS)
    return _stacked(in_threads(combine, blocks), first.shape)


def _rows_of(matrix: sp.csr_array, block: slice) -> sp.csr_array:
    """Return a block of rows without copying its entries."""
    starts = matrix.indptr[block.start : block.stop + 1]
    entries = slice(starts[0], starts[-1])
    part = sp.csr_array(
        (matrix.data[entries], matrix.indices[entries], starts - starts[0]),
        shape=(block.stop - block.start, matrix.shape[1]),
    )
    part.has_canonical_format = True
    return part


def _stacked(parts: list[Any], shape: tuple[int, int]) -> sp.csr_array:
    """Put blocks of rows under each other, in threads; unlike SciPy's, it frees them on the way."""
    n_entries = sum(part.nnz for part in parts)
    kind = _index_type(n_entries, shape[1])
    data = np.empty(n_entries, dtype=parts[0].dtype)
    indices = np.empty(n_entries, dtype=kind)
    starts = np.zeros(shape[0] + 1, dtype=kind)
    rows = np.cumsum([0, *(part.shape[0] for part in parts)])
    entries = np.cumsum([0, *(part.nnz for part in parts)])

    def place(number: int) -> None:
        part, parts[number] = parts[number], None
        entry = entries[number]
        data[entry : entry + part.nnz] = part.data[: part.nnz]
        indices[entry : entry + part.nnz] = part.indices[: part.nnz]
        starts[rows[number] + 1 : rows[number + 1] + 1] = part.indptr[1:] + kind(entry)

    in_threads(place, range(len(parts)))
    matrix = sp.csr_array((data, indices, starts), shape=shape)
    matrix.has_canonical_format = True
    return matrix


def _index_type(n_entries: int, n_columns: int) -> Any:
    return np.int32 if max(n_entries, n_columns) <= np.iinfo(np.int32).max else np.int64


def _scales(distances: NDArray[np.floating]) -> NDArray[np.floating]:
    k = distances.shape[1]
    if k == 0:
        return np.zeros(distances.shape[0], dtype=distances.dtype)
    return distances[:, min(SCALE_NEIGHBOR, k) - 1].copy()
