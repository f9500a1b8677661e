"""The space in which instances are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.preprocessing import QuantileTransformer, StandardScaler, normalize
from sklearn.utils.extmath import row_norms

__all__ = [
    "DirectionSpace",
    "PositionSpace",
    "RankSpace",
    "Scaling",
    "Taming",
    "TreeSpace",
    "spaces_of",
    "unit_rows",
]

#: A z-scored row shorter than this equals the mean row up to rounding: it has no direction.
ZERO_LENGTH = 1e-10
#: A feature whose spread is a smaller share of its size is left as it is.
NEARLY_CONSTANT = 1e-9
#: Rows of other sizes than the training rows' must not overflow when they are squared.
LARGEST_VALUE = 1e140
#: Resolution of the ranks, how many rows they are taken from, and where normal scores are cut:
#: the extreme ones are made of a single row each.
N_QUANTILES = 200
RANK_SAMPLE = 100_000
LARGEST_SCORE = 3.0
#: So near the smallest or largest value of a feature a value is that up to rounding.
AT_THE_END = 1e-7
#: Binary exponents of spreads for which the ranks can be taken as they are.
USUAL_SPREAD = (-10, 30)
#: A feature is wild if it goes further from its median than so many times its usual deviation.
WILD_SPREAD = 2.0**20
#: Where a wild feature ends; the logarithm of no number is larger.
LARGEST_LOGARITHM = 1e3


def unit_rows(X: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scale every row to length one; a zero row stays zero."""
    return normalize(X, norm="l2", copy=True)


def spread_exponents(X: NDArray[np.float64]) -> NDArray[np.intc]:
    """Return e so that ``X / 2**e`` spreads over about one; 0 for a constant feature.

    Powers of two change no digit, but the squares of features that are all near 1e300 or 1e-300
    would not be numbers any more.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.views import spread_exponents
    >>> spread_exponents(np.array([[0.0, 1e-300], [2.0, 3e-300]])).tolist()
    [1, -996]
    """
    high, low = X.max(axis=0), X.min(axis=0)
    half_range = high / 2 - low / 2  # the whole one may be too large
    # Enlarging a feature that is constant up to rounding would enlarge the rounding errors.
    size = np.maximum(np.abs(high), np.abs(low))
    return np.where(half_range > NEARLY_CONSTANT * size, np.frexp(half_range)[1], 0).astype(np.intc)


def _evened(X: NDArray[np.float64], exponents: NDArray[np.intc]) -> NDArray[np.float64]:
    with np.errstate(over="ignore", under="ignore"):
        even = np.ldexp(X, -exponents)
    return np.clip(even, -LARGEST_VALUE, LARGEST_VALUE, out=even)


class Taming:
    """Bring the far outliers of wild features in, so that the other values stay apart.

    Beside one value of 1e10 all others are the same in single precision, and within the tolerance
    of the ranks. Such a feature becomes ``arcsinh((x - median) / u)``, where u is the median of
    the deviations from the median that are not zero: linear about the median, logarithmic far
    out, in the same order. Other features stay as they are.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.views import Taming
    >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [1e10, 4.0]])
    >>> Taming(X)(X).round(1)
    array([[-1.2,  1. ],
           [-0.5,  2. ],
           [ 0.5,  3. ],
           [23.7,  4. ]])
    """

    def __init__(self, X: NDArray[np.float64]) -> None:
        some = X[:: max(1, len(X) // RANK_SAMPLE)]
        self._centre = np.median(some, axis=0)
        self._unit = np.ones(X.shape[1])
        with np.errstate(over="ignore"):
            largest = np.maximum(X.max(axis=0) - self._centre, self._centre - X.min(axis=0))
            for feature, values in enumerate(some.T):
                deviation = np.abs(values - self._centre[feature])
                if deviation.any():
                    self._unit[feature] = np.median(deviation[deviation > 0])
            self._wild = np.flatnonzero(largest > WILD_SPREAD * self._unit)

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows, the wild features changed; X itself if there are none."""
        if not len(self._wild):
            return X
        tamed = X.copy()
        with np.errstate(over="ignore"):
            away = (X[:, self._wild] - self._centre[self._wild]) / self._unit[self._wild]
            logarithms = np.arcsinh(away)
        tamed[:, self._wild] = np.clip(logarithms, -LARGEST_LOGARITHM, LARGEST_LOGARITHM)
        return tamed


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
    >>> from gmpll.graph.views import Scaling
    >>> Scaling(np.array([[1.0, 5.0], [3.0, 5.0]])).transform(np.eye(2))
    array([[-1., -5.],
           [-2., -4.]])
    """

    def __init__(self, X: NDArray[np.float64], *, standardize: bool = True) -> None:
        self._scaler = None
        if standardize:
            self._exponents = spread_exponents(X)
            self._scaler = StandardScaler().fit(_evened(X, self._exponents))

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale rows."""
        if self._scaler is None:
            return X
        scaled = self._scaler.transform(_evened(X, self._exponents), copy=False)
        scaled[row_norms(scaled) < ZERO_LENGTH] = 0.0
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
        # In place: z-scoring has made a copy of X already.
        return normalize(self.scaling.transform(X), norm="l2", copy=False)


class PositionSpace:
    """Z-scored features as they are: how far a row is from the mean counts too.

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
        return self.scaling.transform(X)


class TreeSpace:
    """Z-scored features after :class:`Taming`, for trees, which ask for the order of values alone.

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
        self._taming = Taming(X)
        self.scaling = Scaling(self._taming(X))
        self.rows = self.transform(X)

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map rows into this space."""
        return self.scaling.transform(self._taming(X))


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

    _taming: Taming | None = None  # of older saved models

    def __init__(self, X: NDArray[np.float64], random_state: int = 0) -> None:
        self._taming = Taming(X)
        X = self._tamed(X)
        # Values next to the smallest or largest are taken for those: features of a spread at which
        # that is much, or less than their last digit, are evened out.
        spread = spread_exponents(X)
        ordinary = (spread >= USUAL_SPREAD[0]) & (spread <= USUAL_SPREAD[1])
        self._exponents = np.where(ordinary, 0, spread)
        self._ranks = QuantileTransformer(
            n_quantiles=min(N_QUANTILES, X.shape[0]),
            output_distribution="uniform",
            subsample=RANK_SAMPLE,
            random_state=random_state,
        ).fit(_evened(X, self._exponents))
        self._directions = DirectionSpace(self._scores(X))
        self.rows = self._directions.rows

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map rows into this space."""
        return self._directions.transform(self._scores(self._tamed(X)))

    def _tamed(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return X if self._taming is None else self._taming(X)

    def _scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        even = _evened(X, self._exponents)
        scores = self._ranks.transform(even)
        # The transformer makes normal scores too, but takes much longer for it; models that were
        # saved earlier let it.
        if self._ranks.output_distribution == "uniform":
            scores[even + AT_THE_END > self._ranks.quantiles_[-1]] = 1.0
            scores[even - AT_THE_END < self._ranks.quantiles_[0]] = 0.0
            scores = ndtri(scores)
        return np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)


def spaces_of(
    X: NDArray[np.float64], views: tuple[str, ...], rng: np.random.RandomState
) -> list[Any]:
    """Return the views in which rows are compared; each has ``rows`` and ``transform``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    views : tuple of {"cosine", "rank", "euclidean"}
        Their names.
    rng : RandomState
        Draws the rows from which the ranks are taken if there are very many.
    """
    made: list[Any] = []
    for name in views:
        if name == "rank":
            made.append(RankSpace(X, random_state=rng.randint(np.iinfo(np.int32).max)))
        else:
            made.append(DirectionSpace(X) if name == "cosine" else PositionSpace(X))
    return made
