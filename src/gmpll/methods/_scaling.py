"""Features as the comparison methods want them: z-scored with the statistics of the training."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from gmpll.graph.features import ZERO_LENGTH

__all__ = ["Scaling"]


class Scaling:
    """Z-scoring that can be switched off.

    A constant feature becomes zero, and so does, exactly, a row that equals the mean of the
    training rows up to rounding: otherwise its direction would be made of rounding errors.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    standardize : bool
        Whether to z-score at all.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.methods._scaling import Scaling
    >>> Scaling(np.array([[1.0, 5.0], [3.0, 5.0]]), standardize=True).transform(np.eye(2))
    array([[-1., -5.],
           [-2., -4.]])
    """

    def __init__(self, X: NDArray[np.float64], *, standardize: bool) -> None:
        self._scaler = StandardScaler().fit(X) if standardize else None

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale rows."""
        if self._scaler is None:
            return X
        scaled = self._scaler.transform(X)
        scaled[np.linalg.norm(scaled, axis=1) < ZERO_LENGTH] = 0.0
        return scaled
