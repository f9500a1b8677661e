"""NumPy arrays: neighbours found exactly, approximately or by a given estimator; CSR weights."""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from gmpll._threads import balanced_blocks, in_threads
from gmpll._typing import Places
from gmpll.arrays import Array, array_namespace
from gmpll.engines.base import Engine, Neighbors

#: From this many rows on ``"auto"`` searches approximately. An exact search takes O(m^2 d) time,
#: for 64 features on two cores about half a minute here; the approximate one takes a fifth of that.
APPROXIMATE_ROWS = 100_000
#: With few features trees make the exact search fast however many rows there are.
TREE_FEATURES = 5
#: Bytes of rows, or of neighbours, that are mapped at a time: temporary arrays stay in the cache.
MAP_BYTES = 2**22


class NumpyEngine(Engine):
    """See :class:`gmpll.engines.base.Engine`."""

    name = "numpy"
    xp = array_namespace(np.zeros(1))

    def map_rows(self, function: Callable[..., Array], X: Array, *others: Array) -> Array:
        """Apply a function to blocks of rows, several at a time."""
        bytes_of_row = sum(array[:1].nbytes for array in (X, *others))
        return _in_blocks(function, (X, *others), bytes_of_row)

    def map_neighbors(
        self, function: Callable[..., Array], array: Array, indices: Array, *others: Array
    ) -> Array:
        """Apply a function to blocks of queries, several at a time."""

        def of_neighbors(near: Array, *others: Array) -> Array:
            return function(array[near], *others)

        bytes_of_query = indices.shape[1] * array[:1].nbytes
        return _in_blocks(of_neighbors, (indices, *others), bytes_of_query)

    def rows_on_host(self, X: Array, rows: slice | NDArray[np.integer]) -> NDArray[Any]:
        """Return ``X[rows]``."""
        return np.asarray(X[rows])

    def choose_search(self, search: Any, n_rows: int, n_features: int) -> Any:
        """Choose by the numbers; warn where the approximate search is meant but missing."""
        if search == "exact" or hasattr(search, "kneighbors"):
            return search
        installed = find_spec("numba") is not None
        if search == "approximate":
            if not installed:
                raise ImportError(
                    "The approximate search for neighbours needs numba: "
                    "pip install 'gmpll[neighbors]', or ask for an exact search."
                )
            return search
        if search != "auto":
            raise ValueError(
                f"Neighbours are searched by 'auto', 'exact', 'approximate' or an estimator with "
                f"kneighbors, not by {search!r}."
            )
        if n_rows < APPROXIMATE_ROWS or n_features <= TREE_FEATURES:
            return "exact"
        if not installed:
            warnings.warn(
                f"The exact search for neighbours among {n_rows} rows takes long: "
                "pip install 'gmpll[neighbors]' for an approximate one.",
                stacklevel=3,
            )
            return "exact"
        return "approximate"

    def _exact(self, rows: Array, k: int, queries: Array | None, **options: Any) -> Neighbors:
        return Neighbors(*NearestNeighbors(n_neighbors=k, **options).fit(rows).kneighbors(queries))

    def _inexact(
        self, rows: Array, k: int, search: Any, rng: np.random.RandomState, **options: Any
    ) -> Neighbors:
        """An approximate search returns single precision and 32 bit integers: half the memory."""
        if search == "approximate":
            from gmpll.engines.cells import neighbors_in_cells

            found = Neighbors(*neighbors_in_cells(rows, k, rng))
        else:
            estimator = clone(search, safe=False).fit(rows)
            with_self = Neighbors(*estimator.kneighbors(rows, n_neighbors=k + 1))
            found = without_self(with_self, np.arange(len(rows)))
        missed = np.flatnonzero((found.indices < 0).any(axis=1))
        if missed.size:  # the approximate search had no luck with them
            exact = without_self(self._exact(rows, k + 1, rows[missed], **options), missed)
            found.distances[missed], found.indices[missed] = exact
        return found

    def symmetric_weights(self, indices: Array, values: Array) -> sp.csr_array:
        """Return a canonical CSR matrix."""
        one_sided = self.query_weights(indices, values, len(indices))
        return one_sided.maximum(one_sided.T.tocsr()).copy()  # without SciPy's spare room

    def query_weights(self, indices: Array, values: Array, n_rows: int) -> sp.csr_array:
        """Return a canonical CSR matrix."""
        n, k = indices.shape
        kind = np.int32 if max(n * k, n_rows) <= np.iinfo(np.int32).max else np.int64
        starts = np.arange(n + 1, dtype=kind) * kind(k)
        columns = indices.ravel().astype(kind)
        matrix = sp.csr_array((values.flatten(), columns, starts), shape=(n, n_rows))
        matrix.sort_indices()
        return matrix

    def sum_of_weights(self, first: sp.csr_array, second: sp.csr_array) -> sp.csr_array:
        """Return the sum."""
        return (first + second).copy()


def nearest_of_both(first: Neighbors, second: Neighbors, k: int) -> Neighbors:
    """Merge two lists of neighbours of the same rows; of equally near ones the first wins."""
    distances = np.hstack([first.distances, second.distances.astype(first.distances.dtype)])
    indices = np.hstack([first.indices, second.indices.astype(first.indices.dtype)])
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return Neighbors(
        np.take_along_axis(distances, order, axis=1), np.take_along_axis(indices, order, axis=1)
    )


def _in_blocks(
    function: Callable[..., Array], arrays: tuple[Array, ...], bytes_of_row: int
) -> Array:
    """Put the results for blocks of the arrays' rows into one array; the first one says which."""
    n_rows = len(arrays[0])
    blocks = balanced_blocks(n_rows, MAP_BYTES // max(bytes_of_row, 1)) or [slice(0, 0)]

    def compute(block: slice) -> Array:
        return function(*(array[block] for array in arrays))

    first = compute(blocks[0])
    if len(blocks) == 1:
        return first
    result = np.empty((n_rows, *first.shape[1:]), dtype=first.dtype)
    result[blocks[0]] = first

    def fill(block: slice) -> None:
        result[block] = compute(block)

    in_threads(fill, blocks[1:])
    return result


def without_self(found: Neighbors, own: Places) -> Neighbors:
    """Take every row out of its own neighbours, or else the farthest of them."""
    distances, indices = found
    others = indices != own[:, None]
    others[others.all(axis=1), -1] = False
    shape = (len(own), indices.shape[1] - 1)
    return Neighbors(distances[others].reshape(shape), indices[others].reshape(shape))
