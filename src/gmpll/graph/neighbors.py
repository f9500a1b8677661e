"""Nearest neighbours, exact or approximate, with the edge cases that real data bring."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

__all__ = [
    "APPROXIMATE_ROWS",
    "Neighbors",
    "approximate_neighbors",
    "choose_search",
    "nearest_neighbors",
    "neighbor_recall",
    "warn_of_few_rows",
]

#: From this many rows on ``"auto"`` searches approximately. An exact search takes O(m^2 d) time,
#: for 64 features on two cores about half a minute here; the approximate one takes a fifth of that.
APPROXIMATE_ROWS = 100_000
#: With few features trees make the exact search fast however many rows there are.
TREE_FEATURES = 5
#: Rows on which the share of true neighbours is estimated.
RECALL_SAMPLE = 200
#: Distances that differ by less, relatively, are ties: the approximate search is in single
#: precision.
DISTANCE_TOLERANCE = 1e-5


class Neighbors(NamedTuple):
    """Distances and indices of the nearest training rows, nearest first."""

    distances: NDArray[np.floating]
    indices: NDArray[np.integer]


def nearest_neighbors(
    rows: NDArray[np.floating],
    k: int,
    queries: NDArray[np.floating] | None = None,
    *,
    n_jobs: int | None = None,
) -> Neighbors:
    """Find the k nearest rows by Euclidean distance, exactly.

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

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.neighbors import nearest_neighbors
    >>> nearest_neighbors(np.array([[0.0], [1.0], [3.0]]), 1).indices.ravel()
    array([1, 0, 1])
    """
    available = rows.shape[0] - (queries is None)
    k = min(k, available)
    if k <= 0:
        n_queries = rows.shape[0] if queries is None else queries.shape[0]
        return Neighbors(np.zeros((n_queries, 0)), np.zeros((n_queries, 0), dtype=np.intp))
    search = NearestNeighbors(n_neighbors=k, n_jobs=n_jobs).fit(rows)
    return Neighbors(*search.kneighbors(queries))


def warn_of_few_rows(method: str, n_neighbors: int, n_samples: int) -> None:
    """Warn that a method is given no more rows than it asks for neighbours.

    Examples
    --------
    >>> import warnings
    >>> from gmpll.graph.neighbors import warn_of_few_rows
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_few_rows("PLKNN", n_neighbors=10, n_samples=11)
    ...     warn_of_few_rows("PLKNN", n_neighbors=10, n_samples=10)
    >>> len(caught)
    1
    """
    if n_samples <= n_neighbors:
        warnings.warn(
            f"{method} was given n_samples={n_samples} rows and n_neighbors={n_neighbors}, so that "
            "every row has all others for neighbours: give more rows or ask for fewer neighbours.",
            stacklevel=2,
        )


def approximate_neighbors(
    rows: NDArray[np.floating],
    k: int,
    *,
    random_state: int | np.random.RandomState = 0,
    n_jobs: int | None = None,
) -> Neighbors:
    """Find nearly the k nearest rows of every row, see :mod:`gmpll.graph.cells`.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Where to search, and whose neighbours.
    k : int
        How many; fewer are returned where there are not so many. No row is its own neighbour.
    random_state : int or RandomState, default=0
        Seed: the same rows and seed give the same neighbours.
    n_jobs : int, default=None
        As in :func:`nearest_neighbors`, for the few rows that are searched exactly in the end.
        The approximate search itself uses all cores.

    Returns
    -------
    Neighbors
        Arrays of shape (n_rows, k) in single precision and 32 bit integers: half the memory.
    """
    n_rows = rows.shape[0]
    k = min(k, n_rows - 1)
    if k <= 0:
        return Neighbors(
            np.zeros((n_rows, 0), dtype=np.float32), np.zeros((n_rows, 0), dtype=np.int32)
        )
    from gmpll.graph.cells import neighbors_in_cells

    found = Neighbors(*neighbors_in_cells(rows, k, check_random_state(random_state)))
    return _completed(found, rows, n_jobs)


def choose_search(method: str, n_rows: int, n_features: int) -> str:
    """Return ``"exact"`` or ``"approximate"``: what ``"auto"`` means for rows of this shape.

    Parameters
    ----------
    method : {"auto", "exact", "approximate"}
        ``"auto"`` is exact below :data:`APPROXIMATE_ROWS` rows, in few dimensions and, with a
        warning, where the library for the approximate search is missing.
    n_rows, n_features : int
        Shape of the rows to search.

    Raises
    ------
    ImportError
        If an approximate search is asked for and numba is not installed.

    Examples
    --------
    >>> from gmpll.graph.neighbors import choose_search
    >>> choose_search("auto", 1000, 64)
    'exact'
    """
    if method == "exact":
        return "exact"
    installed = find_spec("numba") is not None
    if method == "approximate":
        if not installed:
            raise ImportError(
                "The approximate search for neighbours needs numba: "
                "pip install 'gmpll[neighbors]', or use neighbors=\"exact\"."
            )
        return "approximate"
    if n_rows < APPROXIMATE_ROWS or n_features <= TREE_FEATURES:
        return "exact"
    if not installed:
        warnings.warn(
            f"The exact search for neighbours among {n_rows} rows takes long: "
            "pip install 'gmpll[neighbors]' for an approximate one.",
            stacklevel=2,
        )
        return "exact"
    return "approximate"


def neighbor_recall(
    rows: NDArray[np.floating],
    found: Neighbors,
    *,
    random_state: int | np.random.RandomState = 0,
    n_jobs: int | None = None,
) -> float:
    """Estimate the share of the true nearest neighbours that a search found.

    A sample of rows is searched exactly. A neighbour counts as true if it is no farther than the
    farthest of the exact ones, so that ties do not matter.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        The rows that were searched.
    found : Neighbors
        Neighbours of all rows.
    random_state : int or RandomState, default=0
        Draws the sample.
    n_jobs : int, default=None
        As in :func:`nearest_neighbors`.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.neighbors import Neighbors, nearest_neighbors, neighbor_recall
    >>> rows = np.random.RandomState(0).randn(50, 3)
    >>> neighbor_recall(rows, nearest_neighbors(rows, 5))
    1.0
    """
    n_rows, k = found.indices.shape
    if k == 0:
        return 1.0
    sample = check_random_state(random_state).permutation(n_rows)[:RECALL_SAMPLE]
    exact = _neighbors_of_some(rows, sample, k, n_jobs)
    reach = exact.distances[:, -1:] * (1 + DISTANCE_TOLERANCE)
    return float((found.distances[sample] <= reach).mean())


def _completed(found: Neighbors, rows: NDArray[np.floating], n_jobs: int | None) -> Neighbors:
    """Search exactly for the rows with which the approximate search had no luck."""
    missed = np.flatnonzero((found.indices < 0).any(axis=1))
    if missed.size:
        exact = _neighbors_of_some(rows, missed, found.indices.shape[1], n_jobs)
        found.distances[missed], found.indices[missed] = exact
    return found


def _neighbors_of_some(
    rows: NDArray[np.floating], chosen: NDArray[np.intp], k: int, n_jobs: int | None
) -> Neighbors:
    """Search exactly for the neighbours of some rows, which are not their own neighbours."""
    distances, indices = nearest_neighbors(rows, k + 1, rows[chosen], n_jobs=n_jobs)
    others = indices != chosen[:, None]
    others[others.all(axis=1), -1] = False
    shape = (len(chosen), k)
    return Neighbors(distances[others].reshape(shape), indices[others].reshape(shape))
