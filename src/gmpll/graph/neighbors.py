"""Nearest neighbours, with the edge cases that a small or repetitive data set brings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

__all__ = ["Neighbors", "nearest_neighbors"]


class Neighbors(NamedTuple):
    """Distances and indices of the nearest training rows, nearest first."""

    distances: NDArray[np.float64]
    indices: NDArray[np.intp]


def nearest_neighbors(
    rows: NDArray[np.floating],
    k: int,
    queries: NDArray[np.floating] | None = None,
    *,
    n_jobs: int | None = None,
) -> Neighbors:
    """Find the k nearest rows by Euclidean distance.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Where to search.
    k : int
        How many; fewer are returned where there are not so many.
    queries : ndarray of shape (n_queries, n_features), default=None
        Whose neighbours; by default those of ``rows`` themselves, where no row is its own
        neighbour (its duplicates are).
    n_jobs : int, default=None
        Processes or threads, as in scikit-learn.

    Returns
    -------
    Neighbors
        Arrays of shape (n_queries, k).
    """
    available = rows.shape[0] - (queries is None)
    k = min(k, available)
    if k <= 0:
        n_queries = rows.shape[0] if queries is None else queries.shape[0]
        return Neighbors(np.zeros((n_queries, 0)), np.zeros((n_queries, 0), dtype=np.intp))
    search = NearestNeighbors(n_neighbors=k, n_jobs=n_jobs).fit(rows)
    return Neighbors(*search.kneighbors(queries))
