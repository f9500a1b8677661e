"""The rows most similar to a row: what a decision is judged by, and what it will influence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from gmpll.graph.features import DirectionSpace
from gmpll.graph.local import SCALE_NEIGHBOR

__all__ = ["SimilarRows", "Similarity"]


class SimilarRows(NamedTuple):
    """The nearest rows of some rows, nearest first, and how similar they are (0 to 1)."""

    rows: NDArray[np.intp]
    weights: NDArray[np.float64]


class Similarity:
    r"""Nearest rows in the space that GM-PLL compares instances in.

    The weight of row j for row i is :math:`\exp(-d_{ij}^2 / \sigma_i^2)`, where :math:`\sigma_i`
    is the distance of row i to its seventh neighbour. Only the rows asked for are searched, so
    nothing of the size n x n or n x k is ever made.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    n_neighbors : int, default=20
        Neighbours of a row; fewer where there are not so many rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.review.evidence import Similarity
    >>> similar = Similarity(np.array([[0.0, 1.0], [0.1, 1.0], [5.0, 0.0]]), n_neighbors=1)
    >>> similar.to(np.array([0])).rows
    array([[1]])
    """

    def __init__(self, features: NDArray[np.floating], n_neighbors: int = 20) -> None:
        self._points = DirectionSpace(np.asarray(features, dtype=np.float64)).rows
        self.n_neighbors = min(n_neighbors, len(self._points) - 1)
        if self.n_neighbors > 0:
            self._search = NearestNeighbors().fit(self._points)

    def to(self, rows: NDArray[np.intp]) -> SimilarRows:
        """Find the nearest other rows of the given rows; arrays of shape (n_rows, k)."""
        k = self.n_neighbors
        if k <= 0 or not len(rows):
            return SimilarRows(np.zeros((len(rows), 0), np.intp), np.zeros((len(rows), 0)))
        distances, found = self._search.kneighbors(self._points[rows], k + 1)
        # A row finds itself, though behind its duplicates or not at all where they are many.
        itself = found == rows[:, None]
        itself[~itself.any(axis=1), -1] = True
        distances = distances[~itself].reshape(len(rows), k)
        found = found[~itself].reshape(len(rows), k)
        return SimilarRows(found, _weights(distances))


def _weights(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    scale = distances[:, [min(SCALE_NEIGHBOR, distances.shape[1]) - 1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.exp(-np.square(distances / scale))
    # Among copies of a row the scale is 0: they are as similar as can be, all others are not.
    return np.where(distances == 0, 1.0, np.where(scale == 0, 0.0, weights))
