"""What every engine offers, and the neighbours that it finds."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils import check_random_state

from gmpll._typing import RandomSource
from gmpll.arrays import Array

#: Rows on which the share of true neighbours is estimated.
RECALL_SAMPLE = 200
#: Distances that differ by less, relatively, are ties: approximate searches are in single
#: precision.
DISTANCE_TOLERANCE = 1e-5


class Neighbors(NamedTuple):
    """Distances and indices of the nearest rows, nearest first, each of shape (n_queries, k)."""

    distances: Array
    indices: Array


class Weights(Protocol):
    """Sparse weights of edges; ``weights @ P`` is all that is asked of them."""

    @property
    def shape(self) -> Any:
        """Numbers of rows and columns."""
        ...

    def __matmul__(self, P: Array, /) -> Array:
        """Return the product with a dense matrix of the same engine."""
        ...


class Engine(Protocol):
    """The primitives in which array libraries differ; everything else is written over ``xp``.

    ``xp`` is the library's namespace after the array API standard.
    """

    name: str
    xp: Any

    def small(self, *arrays: Array) -> tuple[Array, ...]:
        """Return small results (a number per feature, a matrix of labels) where they can be used.

        Dask computes all of them together, as NumPy arrays; other engines change nothing.
        """
        return arrays

    def keep(self, *arrays: Array) -> tuple[Array, ...]:
        """Return arrays that are not computed again; Dask persists them together."""
        return arrays

    def keeper(self) -> Callable[[Array], Array]:
        """Return a function that keeps the array of every iteration of a loop.

        On a Dask cluster it also cuts off, every so many iterations, what the array was made from.
        """
        return lambda array: array

    def map_rows(self, function: Callable[..., Array], X: Array, *others: Array) -> Array:
        """Apply a function of whole rows; it may be given blocks of rows, one after the other.

        It takes rows of X and the same rows of ``others``, as NumPy arrays from Dask, and returns
        an array with a row for each; what a row becomes depends on that row alone.
        """
        ...

    def map_neighbors(
        self, function: Callable[..., Array], array: Array, indices: Array, *others: Array
    ) -> Array:
        """Apply a function to what an array holds for the neighbours of queries, block by block.

        It takes ``array[indices]`` for a block of queries and the same queries of ``others``, as
        NumPy arrays from Dask, and returns an array with a row for each. ``array``, of one or two
        dimensions, has a row per instance; ``indices`` are (n_queries, k).
        """
        ...

    def rows_on_host(self, X: Array, rows: slice | NDArray[np.integer]) -> NDArray[Any]:
        """Return some rows, no more than fit into the main memory, as a NumPy array."""
        ...

    def with_rows(self, array: Array, rows: NDArray[np.integer], values: Array) -> Array:
        """Return an array with other values in some rows, in ascending order; it may be changed."""
        array[rows] = values
        return array

    def ndtri(self, probabilities: Array) -> Array:
        """Return quantiles of the standard normal distribution, of a block inside ``map_rows``."""
        return ndtri(probabilities)

    def choose_search(self, search: Any, n_rows: int, n_features: int) -> Any:
        """Return what ``"auto"`` means for rows of this shape; refuse what the engine cannot do."""
        ...

    def nearest_neighbors(
        self,
        rows: Array,
        k: int,
        queries: Array | None = None,
        *,
        search: Any = "exact",
        random_state: RandomSource = 0,
        **options: Any,
    ) -> Neighbors:
        """Find the k nearest rows by Euclidean distance; fewer where there are not so many.

        Without ``queries``, (n_queries, n_features), those of the rows themselves are found, where
        no row is its own neighbour (its duplicates are). Only this ``search`` may be "approximate",
        seeded by ``random_state``, or by a k-NN estimator; queries are searched exactly. Of the
        other options ``n_jobs`` is as in scikit-learn; for tensors ``grouped`` says whether to
        search in two steps, which needs Triton, by default for many rows on CUDA.
        """
        searched = rows if queries is None else queries
        k = min(k, rows.shape[0] - (queries is None))
        if k <= 0:
            nothing = searched[:, :0]
            return Neighbors(nothing, self.xp.astype(nothing, self.xp.int64))
        if queries is not None or search == "exact":
            return self._exact(rows, k, queries, **options)
        return self._inexact(rows, k, search, check_random_state(random_state), **options)

    def _exact(self, rows: Array, k: int, queries: Array | None, **options: Any) -> Neighbors:
        """Find the k nearest rows of queries or, without any, of the rows."""
        ...

    def _inexact(
        self, rows: Array, k: int, search: Any, rng: np.random.RandomState, **options: Any
    ) -> Neighbors:
        """Find about the k nearest rows of the rows; exactly where the engine has no other way."""
        return self._exact(rows, k, None, **options)

    def recall(
        self, rows: Array, found: Neighbors, *, random_state: RandomSource = 0, **options: Any
    ) -> float:
        """Estimate the share of the true nearest neighbours that a search found.

        A sample of rows is searched exactly. A neighbour counts as true if it is no farther than
        the farthest of the exact ones, so that ties do not matter.
        """
        n_rows, k = found.indices.shape
        if k == 0:
            return 1.0
        sample = np.sort(check_random_state(random_state).permutation(n_rows)[:RECALL_SAMPLE])
        # A row is the nearest to itself: the last of k + 1 is the last of its k neighbours.
        exact = self.nearest_neighbors(rows, k + 1, rows[sample], **options)
        reach = self.rows_on_host(exact.distances, slice(None))[:, -1:] * (1 + DISTANCE_TOLERANCE)
        return float((self.rows_on_host(found.distances, sample) <= reach).mean())

    def symmetric_weights(self, indices: Array, values: Array) -> Weights:
        """Return the weights of edges from every row to its neighbours, as large both ways.

        Indices and values are (n_rows, k); of the two weights of a pair the larger one counts.
        """
        ...

    def query_weights(self, indices: Array, values: Array, n_rows: int) -> Weights:
        """Return the weights of edges from queries to ``n_rows`` rows, (n_queries, n_rows)."""
        ...

    def sum_of_weights(self, first: Any, second: Any) -> Weights:
        """Return the sum of two weights of the same shape."""
        return first + second
