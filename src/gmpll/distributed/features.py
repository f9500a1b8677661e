"""Z-scored directions of rows that are nowhere all in one place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmpll.distributed.blocks import StoredBlock, loaded
from gmpll.graph.views import ZERO_LENGTH

__all__ = ["Directions", "FeatureStatistics", "block_statistics", "merged_statistics"]


class FeatureStatistics(NamedTuple):
    """Mean and sum of squared deviations of the features of some rows.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    mean, squared : ndarray of shape (n_features,)
        Mean, and sum of squared deviations from it.
    bad_row : int
        Number of the first row with a NaN or an infinite value, -1 if there is none.
    """

    n_rows: int
    mean: NDArray[np.float64]
    squared: NDArray[np.float64]
    bad_row: int

    @property
    def overflows(self) -> bool:
        """Whether squares of the values are too large for numbers."""
        return not np.isfinite(self.squared).all()


def block_statistics(block: StoredBlock | NDArray[Any], start: int) -> FeatureStatistics:
    """Return the statistics of a block whose first row has the number ``start``."""
    rows = loaded(block)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        nothing = np.zeros(rows.shape[1])
        return FeatureStatistics(len(rows), nothing, nothing, start + int(np.argmin(finite)))
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean
    with np.errstate(over="ignore"):
        squared = np.einsum("ij,ij->j", centred, centred)
    return FeatureStatistics(len(rows), mean, squared, -1)


def merged_statistics(parts: Iterable[FeatureStatistics]) -> FeatureStatistics:
    """Return the statistics of all rows together (Chan, Golub and LeVeque, 1979).

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.distributed.features import block_statistics, merged_statistics
    >>> X = np.arange(12.0).reshape(6, 2) ** 2
    >>> both = merged_statistics([block_statistics(X[:4], 0), block_statistics(X[4:], 4)])
    >>> bool(np.allclose(both.squared / both.n_rows, X.var(axis=0)))
    True
    """
    parts = list(parts)
    n_rows, mean, squared, _ = parts[0]
    for part in parts[1:]:
        total = n_rows + part.n_rows
        shift = part.mean - mean
        mean = mean + shift * (part.n_rows / total)
        squared = squared + part.squared + np.square(shift) * (n_rows * part.n_rows / total)
        n_rows = total
    bad = [part.bad_row for part in parts if part.bad_row >= 0]
    return FeatureStatistics(n_rows, mean, squared, min(bad, default=-1))


class Directions:
    """Map rows as :class:`gmpll.graph.views.DirectionSpace` does, from statistics alone.

    Parameters
    ----------
    statistics : FeatureStatistics
        Of the training rows.
    dtype : str, default="float64"
        Precision of mapped rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.distributed.features import Directions, block_statistics
    >>> from gmpll.graph.views import DirectionSpace
    >>> X = np.random.RandomState(0).randn(9, 3)
    >>> mapped = Directions(block_statistics(X, 0)).transform(X)
    >>> bool(np.allclose(mapped, DirectionSpace(X).rows))
    True
    """

    def __init__(self, statistics: FeatureStatistics, dtype: str = "float64") -> None:
        self.mean = statistics.mean
        self.scale = _scale(statistics)
        self.dtype = dtype

    def transform(self, rows: NDArray[Any]) -> NDArray[np.floating]:
        """Map rows into this space; they are copied once, and not changed."""
        mapped = rows.astype(np.float64)  # a copy: everything below is done in place
        mapped -= self.mean
        mapped /= self.scale
        lengths = np.sqrt(np.einsum("ij,ij->i", mapped, mapped))
        flat = lengths < ZERO_LENGTH
        mapped[flat] = 0.0
        mapped /= np.where(flat, 1.0, lengths)[:, None]
        return mapped.astype(self.dtype, copy=False)


def _scale(statistics: FeatureStatistics) -> NDArray[np.float64]:
    """Standard deviations; 1 for features that are constant up to rounding, as in scikit-learn."""
    n, eps = statistics.n_rows, np.finfo(np.float64).eps
    variance = statistics.squared / n
    rounding = n * eps * variance + (n * statistics.mean * eps) ** 2
    return np.where(variance <= rounding, 1.0, np.sqrt(variance))
