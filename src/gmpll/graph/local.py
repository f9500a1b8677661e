r"""The local graph: an instance is related to its nearest neighbours only.

.. math:: W_{ij} = \exp\left(-\frac{d_{ij}^2}{\sigma_i \sigma_j}\right)

where :math:`d_{ij}` is the distance of the z-scored, row-normalised rows and :math:`\sigma_i` the
distance of row i to its seventh neighbour [1]_, made symmetric by the maximum. It takes O(m k)
memory where the full graph takes O(m^2) work.

References
----------
.. [1] L. Zelnik-Manor and P. Perona, "Self-tuning spectral clustering", NIPS 2004.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll.graph.neighbors import nearest_neighbors

__all__ = ["LocalGraph", "LocalGraphs"]

#: The neighbour whose distance is a row's own scale, after Zelnik-Manor and Perona.
SCALE_NEIGHBOR = 7


class LocalGraph:
    r"""Nearest-neighbour graph with self-tuning weights.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Instances.
    n_neighbors : int
        Neighbours of each instance before the graph is made symmetric.
    n_jobs : int, default=None
        Parallel search, as in scikit-learn.

    Attributes
    ----------
    weights : csr_array of shape (n_samples, n_samples)
        Symmetric weights in [0, 1], no self-loops.
    scales : ndarray of shape (n_samples,)
        :math:`\sigma_i`.
    """

    def __init__(
        self, rows: NDArray[np.floating], n_neighbors: int, *, n_jobs: int | None = None
    ) -> None:
        self.rows = rows
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        distances, indices = nearest_neighbors(rows, n_neighbors, n_jobs=n_jobs)
        self.scales = _scales(distances)
        one_sided = self._weights(distances, indices, self.scales)
        self.weights = one_sided.maximum(one_sided.T).tocsr()

    def to_queries(self, queries: NDArray[np.floating]) -> sp.csr_array:
        """Weights from unseen rows to the rows of the graph, (n_queries, n_samples)."""
        distances, indices = nearest_neighbors(
            self.rows, self.n_neighbors, queries, n_jobs=self.n_jobs
        )
        return self._weights(distances, indices, _scales(distances))

    def _weights(
        self,
        distances: NDArray[np.float64],
        indices: NDArray[np.intp],
        scales: NDArray[np.float64],
    ) -> sp.csr_array:
        n, k = indices.shape
        spread = scales[:, None] * self.scales[indices]
        squared = np.square(distances)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.exp(-squared / spread)
        # Copies of a row are at distance 0 with scale 0: nothing is closer, so their weight is 1.
        values = np.where(squared == 0, 1.0, np.where(spread == 0, 0.0, values))
        starts = np.arange(0, n * k + 1, k) if k else np.zeros(n + 1, dtype=np.intp)
        return sp.csr_array(
            (values.ravel(), indices.ravel(), starts), shape=(n, self.rows.shape[0])
        )


class LocalGraphs:
    """One local graph per view of the same rows, their weights added up.

    Parameters
    ----------
    views : sequence of ndarray of shape (n_samples, n_features_v)
        The rows in each view.
    n_neighbors, n_jobs
        As in :class:`LocalGraph`.

    Attributes
    ----------
    weights : csr_array of shape (n_samples, n_samples)
        Sum of the weights of the views.
    """

    def __init__(
        self,
        views: Sequence[NDArray[np.floating]],
        n_neighbors: int,
        *,
        n_jobs: int | None = None,
    ) -> None:
        self._graphs = [LocalGraph(rows, n_neighbors, n_jobs=n_jobs) for rows in views]
        self.weights = _added([graph.weights for graph in self._graphs])

    def to_queries(self, views: Sequence[NDArray[np.floating]]) -> sp.csr_array:
        """Weights from unseen rows to the rows of the graph, (n_queries, n_samples)."""
        return _added(
            [graph.to_queries(rows) for graph, rows in zip(self._graphs, views, strict=True)]
        )


def _added(matrices: list[sp.csr_array]) -> sp.csr_array:
    total = matrices[0]
    for matrix in matrices[1:]:
        total = (total + matrix).tocsr()
    return total


def _scales(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    k = distances.shape[1]
    if k == 0:
        return np.zeros(distances.shape[0])
    return distances[:, min(SCALE_NEIGHBOR, k) - 1]
