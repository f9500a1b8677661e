"""The space in which instances are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler, normalize

__all__ = ["DirectionSpace", "Scaling", "unit_rows"]

#: A z-scored row shorter than this equals the mean row up to rounding: it has no direction.
ZERO_LENGTH = 1e-10


def unit_rows(X: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scale every row to length one; a zero row stays zero."""
    return normalize(X, norm="l2", copy=True)


class Scaling:
    """Z-scoring that can be switched off.

    A constant feature becomes zero, and so does, exactly, a row that equals the mean of the
    training rows up to rounding: otherwise its direction would be made of rounding errors.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    standardize : bool, default=True
        Whether to z-score at all.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.features import Scaling
    >>> Scaling(np.array([[1.0, 5.0], [3.0, 5.0]])).transform(np.eye(2))
    array([[-1., -5.],
           [-2., -4.]])
    """

    def __init__(self, X: NDArray[np.float64], *, standardize: bool = True) -> None:
        self._scaler = StandardScaler().fit(X) if standardize else None

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale rows."""
        if self._scaler is None:
            return X
        scaled = self._scaler.transform(X)
        scaled[np.linalg.norm(scaled, axis=1) < ZERO_LENGTH] = 0.0
        return scaled


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

    def __init__(self, X: NDArray[np.float64]) -> None:
        self.scaling = Scaling(X)
        self.rows = self.transform(X)

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map rows into this space."""
        return unit_rows(self.scaling.transform(X))
