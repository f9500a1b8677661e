r"""The local graph: an instance is related to its nearest neighbours only.

.. math:: W_{ij} = \exp\left(-\frac{d_{ij}^2}{\sigma_i \sigma_j}\right)

where :math:`d_{ij}` is the distance of the rows in a view and :math:`\sigma_i` the distance of row
i to its seventh neighbour [1]_, made symmetric by the maximum. It takes O(m k) memory where the
full graph takes O(m^2) work.

Weights have the precision of the distances: double after an exact search of double-precision rows,
single after an approximate one, whose graph is large (8 bytes an edge instead of 12).

References
----------
.. [1] L. Zelnik-Manor and P. Perona, "Self-tuning spectral clustering", NIPS 2004.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from gmpll._typing import RandomSource
from gmpll.arrays import Array, array_namespace
from gmpll.engines import Neighbors, engine_of
from gmpll.graph.views import View

#: The neighbour whose distance is a row's own scale, after Zelnik-Manor and Perona.
SCALE_NEIGHBOR = 7


class LocalGraph:
    r"""Nearest-neighbour graph of rows, or of a view, with self-tuning weights.

    A view is kept instead of its rows, and files of models do not hold them twice. How neighbours
    are searched for, and by how many jobs, is said as in :class:`gmpll.GMPLL`.

    Attributes
    ----------
    rows : array of shape (n_samples, n_features)
        The instances.
    weights : csr_array, sparse CSR tensor or :class:`gmpll.engines.dask.BlockWeights`
        Symmetric, in [0, 1], no self-loops; (n_samples, n_samples).
    scales : array of shape (n_samples,)
        :math:`\sigma_i`.
    search : {"exact", "approximate"} or estimator
        How neighbours were searched for.
    recall : float
        Share of the true neighbours that were found, estimated unless the search is exact.

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
        given: Array | View,
        n_neighbors: int,
        *,
        neighbor_search: Any = "auto",
        random_state: RandomSource = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.given = given
        rows = self.rows
        engine = engine_of(rows)
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        self.search = engine.choose_search(neighbor_search, *rows.shape)
        options: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs}
        near = engine.nearest_neighbors(rows, n_neighbors, search=self.search, **options)
        self.recall = 1.0
        if self.search != "exact":
            self.recall = engine.recall(rows, near, **options)
        # A copy, which does not hold all distances in memory.
        (self.scales,) = engine.keep(engine.xp.asarray(row_scales(near.distances), copy=True))
        self.weights = engine.symmetric_weights(near.indices, self._edge_values(near))

    @property
    def rows(self) -> Array:
        """The instances."""
        return self.given.rows if hasattr(self.given, "transform") else self.given

    def to_queries(self, queries: Array, near: Neighbors | None = None) -> Any:
        """Weights from unseen rows to the rows of the graph, (n_queries, n_samples).

        ``near`` are their nearest rows, at least ``n_neighbors``, where these are known already.
        """
        engine = engine_of(self.rows)
        k = self.n_neighbors
        if near is None:
            near = engine.nearest_neighbors(self.rows, k, queries, n_jobs=self.n_jobs)
        near = Neighbors(near.distances[:, :k], near.indices[:, :k])
        return engine.query_weights(near.indices, self._edge_values(near), self.rows.shape[0])

    def _edge_values(self, near: Neighbors) -> Array:
        """Return the weights, (n_queries, k), of edges to neighbours in the graph."""
        engine = engine_of(self.rows)
        return engine.map_neighbors(self_tuning_weights, self.scales, near.indices, near.distances)


class LocalGraphs:
    """One :class:`LocalGraph` per view of the same rows, their weights added up.

    ``graphs`` are those of the views, whose own weights are dropped where there are several;
    ``recall`` is the lowest of them.
    """

    def __init__(self, views: Sequence[Array | View], n_neighbors: int, **options: Any) -> None:
        self.graphs = [LocalGraph(rows, n_neighbors, **options) for rows in views]
        self.weights = self._sum([graph.weights for graph in self.graphs])
        if len(self.graphs) > 1:
            for graph in self.graphs:
                del graph.weights
        self.recall = min(graph.recall for graph in self.graphs)

    def to_queries(self, views: Sequence[Array]) -> Any:
        """Weights from unseen rows, given in each view, to the rows of the graph."""
        pairs = zip(self.graphs, views, strict=True)
        return self._sum([graph.to_queries(rows) for graph, rows in pairs])

    def _sum(self, weights: list[Any]) -> Any:
        return reduce(engine_of(self.graphs[0].rows).sum_of_weights, weights)


def row_scales(distances: Array) -> Array:
    """Return every row's own scale: the distance to its seventh neighbour, or to its last."""
    k = distances.shape[1]
    if k == 0:
        return array_namespace(distances).sum(distances, axis=1)
    return distances[:, min(SCALE_NEIGHBOR, k) - 1]


def self_tuning_weights(neighbor_scales: Array, distances: Array) -> Array:
    r"""Return :math:`\exp(-d_{ij}^2 / (\sigma_i \sigma_j))` for a block of rows, (n_rows, k).

    ``neighbor_scales`` are the scales of the neighbours of every row; its own scale is one of its
    distances to them, nearest first.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.local import self_tuning_weights
    >>> self_tuning_weights(np.array([[1.0, 0.5]]), np.array([[1.0, 2.0]])).round(3)
    array([[0.607, 0.018]])
    """
    xp = array_namespace(distances)
    squared = distances * distances
    spread = row_scales(distances)[:, None] * neighbor_scales
    flat = spread == 0
    values = xp.exp(-squared / xp.where(flat, xp.ones_like(spread), spread))
    # Copies of a row are at distance 0 with scale 0: nothing is closer, so their weight is 1.
    values = xp.where(flat, xp.zeros_like(values), values)
    return xp.where(squared == 0, xp.ones_like(values), values)
