"""Nearest neighbours on every engine; how they are found is in :mod:`gmpll.engines`."""

import warnings

from gmpll.arrays import Array
from gmpll.engines import Neighbors, engine_of

__all__ = ["Neighbors", "nearest_neighbors", "warn_of_few_rows"]


def nearest_neighbors(
    rows: Array, k: int, queries: Array | None = None, *, n_jobs: int | None = None
) -> Neighbors:
    """Find the k nearest rows by Euclidean distance, exactly.

    All is as in :meth:`gmpll.engines.Engine.nearest_neighbors`.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.neighbors import nearest_neighbors
    >>> nearest_neighbors(np.array([[0.0], [1.0], [3.0]]), 1).indices.ravel()
    array([1, 0, 1])
    """
    return engine_of(rows).nearest_neighbors(rows, k, queries, n_jobs=n_jobs)


def warn_of_few_rows(method: str, n_neighbors: int, n_samples: int) -> None:
    """Warn that a method is given no more rows than it asks for neighbours."""
    if n_samples <= n_neighbors:
        warnings.warn(
            f"{method} was given n_samples={n_samples} rows and n_neighbors={n_neighbors}, so that "
            "every row has all others for neighbours: give more rows or ask for fewer neighbours.",
            stacklevel=2,
        )
