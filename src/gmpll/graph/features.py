"""The space in which instances are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler, normalize

__all__ = ["DirectionSpace", "unit_rows"]

#: A z-scored row shorter than this equals the mean row up to rounding: it has no direction.
ZERO_LENGTH = 1e-10


def unit_rows(X: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scale every row to length one; a zero row stays zero."""
    return normalize(X, norm="l2", copy=True)


class DirectionSpace:
    """Z-scored, row-normalised features: the cosine becomes an inner product.

    The z-scores use the statistics of the rows it was made from, so unseen rows are mapped with
    the training statistics. A constant feature becomes zero.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training rows.

    Attributes
    ----------
    rows : ndarray of shape (n_samples, n_features)
        The mapped training rows.
    """

    def __init__(self, X: NDArray[np.floating]) -> None:
        self.scaler = StandardScaler().fit(X)
        self.rows = self.transform(X)

    def transform(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Map rows into this space."""
        scaled = self.scaler.transform(X)
        scaled[np.linalg.norm(scaled, axis=1) < ZERO_LENGTH] = 0.0
        return unit_rows(scaled)
