"""The space in which instances are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import QuantileTransformer, StandardScaler, normalize

__all__ = ["DirectionSpace", "RankSpace", "Scaling", "unit_rows"]

#: A z-scored row shorter than this equals the mean row up to rounding: it has no direction.
ZERO_LENGTH = 1e-10
#: Resolution of the ranks, how many rows they are taken from, and where normal scores are cut:
#: the extreme ones are made of a single row each.
N_QUANTILES = 200
RANK_SAMPLE = 100_000
LARGEST_SCORE = 3.0


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


class RankSpace:
    """Directions of features that were first replaced by their normal scores.

    A value becomes the quantile of the normal distribution that belongs to its rank among the
    training rows: outliers and skewed scales lose their weight. The scores are then z-scored and
    row-normalised as in :class:`DirectionSpace`.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    random_state : int
        Draws the rows from which the ranks are taken if there are very many.

    Attributes
    ----------
    rows : ndarray of shape (n_samples, n_features)
        The mapped training rows.
    """

    def __init__(self, X: NDArray[np.float64], random_state: int = 0) -> None:
        self._ranks = QuantileTransformer(
            n_quantiles=min(N_QUANTILES, X.shape[0]),
            output_distribution="normal",
            subsample=RANK_SAMPLE,
            random_state=random_state,
        ).fit(X)
        self._directions = DirectionSpace(self._scores(X))
        self.rows = self._directions.rows

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map rows into this space."""
        return self._directions.transform(self._scores(X))

    def _scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(self._ranks.transform(X), -LARGEST_SCORE, LARGEST_SCORE)
