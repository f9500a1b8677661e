"""Views: the spaces in which instances are compared, on every engine.

A view is made from (n_samples, n_features) training rows, which it has mapped as ``rows``, and
maps unseen rows with their statistics. Statistics are reductions over all rows; the mapping works
on blocks of rows (:mod:`gmpll.engines`).
"""

import math
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import resample

from gmpll._typing import Floats
from gmpll.arrays import Array, array_namespace, device, to_host
from gmpll.engines import engine_of

#: A z-scored row shorter than this equals the mean row up to rounding: it has no direction.
ZERO_LENGTH = 1e-10
#: A feature whose spread is a smaller share of its size is left as it is.
NEARLY_CONSTANT = 1e-9
#: Rows of other sizes than the training rows' are cut at this power of the largest number: they
#: must not overflow when they are squared and added up.
MAX_POWER = 0.45
#: Resolution of the ranks, how many rows they are taken from, and where normal scores are cut:
#: the extreme ones are made of a single row each.
N_QUANTILES = 200
RANK_SAMPLE = 100_000
MAX_SCORE = 3.0
#: Few rows are compared with all quantiles at once, up to so many comparisons.
COMPARED_AT_ONCE = 2**18
#: So near the smallest or largest value of a feature a value is that up to rounding.
AT_THE_END = 1e-7
#: Binary exponents of spreads for which the ranks can be taken as they are.
USUAL_SPREAD = (-10, 30)
#: A feature is heavy-tailed if it goes further from its median than so many times its usual
#: deviation.
HEAVY_TAILED_SPREAD = 2.0**20
#: Where a heavy-tailed feature ends; the logarithm of no number is larger.
MAX_LOGARITHM = 1e3


class View(Protocol):
    """A space in which rows are compared: the training rows in it, and the way into it."""

    @property
    def rows(self) -> Array:
        """The training rows in this space."""
        ...

    @property
    def variances(self) -> Floats:
        """Variances of the features before they were scaled, up to a common factor."""
        ...

    def transform(self, X: Array) -> Array:
        """Map rows into this space."""
        ...


def unit_rows(X: Array) -> Array:
    """Scale every row to length one; a zero row stays zero."""
    return engine_of(X).map_rows(_unit_rows, X)


def _unit_rows(X: Array) -> Array:
    xp = array_namespace(X)
    lengths = _lengths(X)
    return X / xp.where(lengths > 0, lengths, xp.ones_like(lengths))[:, None]


def _lengths(X: Array) -> Array:
    xp = array_namespace(X)
    return xp.sqrt(xp.einsum("ij,ij->i", X, X))


class Scaling:
    """Z-scoring that can be switched off.

    A constant feature becomes zero, and so does, exactly, a row that equals the mean of the
    training rows up to rounding: otherwise its direction would be made of rounding errors.

    Features are first brought to a spread of about one. Powers of two change no digit, but the
    squares of features that are all near 1e300 or 1e-300 would not be numbers any more.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.views import Scaling
    >>> Scaling(np.array([[1.0, 5.0], [3.0, 5.0]])).transform(np.eye(2))
    array([[-1., -5.],
           [-2., -4.]])
    """

    def __init__(self, X: Array, *, standardize: bool = True) -> None:
        self.standardize = standardize
        if not standardize:
            return
        engine = engine_of(X)
        xp = engine.xp
        low, high = engine.small(xp.min(X, axis=0), xp.max(X, axis=0))
        self._factors = 2.0 ** -_spread_exponents(low, high)
        even = engine.map_rows(partial(_evened, factors=self._factors), X)
        n_samples = X.shape[0]
        (self._mean,) = engine.small(xp.mean(even, axis=0))
        even -= self._mean
        rest = xp.sum(even, axis=0)  # what rounding has left in the mean
        even *= even
        squared, rest = engine.small(xp.sum(even, axis=0), rest)
        variance = (squared - rest * rest / n_samples) / n_samples
        self._scale = _deviations(variance, self._mean, n_samples)

    @property
    def variances(self) -> Floats:
        """Variances of the features, up to a common factor; constant ones have any."""
        exponents = -np.log2(to_host(self._factors))
        return to_host(self._scale) ** 2 * 4.0 ** (exponents - exponents.max())

    def transform(self, X: Array) -> Array:
        """Scale rows."""
        return engine_of(X).map_rows(self, X)

    def __call__(self, X: Array) -> Array:
        """Scale a block of rows."""
        if not self.standardize:
            return X
        scaled = _evened(X, self._factors)
        scaled -= self._mean
        scaled /= self._scale
        scaled[_lengths(scaled) < ZERO_LENGTH] = 0.0
        return scaled


def _spread_exponents(low: Array, high: Array) -> Array:
    """Return e so that features divided by ``2**e`` spread over about one; 0 for constant ones."""
    xp = array_namespace(low)
    half_range = high / 2 - low / 2  # the whole one may be too large
    # Enlarging a feature that is constant up to rounding would enlarge the rounding errors.
    spreads = half_range > NEARLY_CONSTANT * xp.maximum(xp.abs(high), xp.abs(low))
    smallest = float(xp.finfo(half_range.dtype).smallest_normal)
    exponents = xp.floor(xp.log2(xp.where(spreads, half_range, xp.ones_like(half_range)))) + 1
    largest = -math.log2(smallest)  # so that a power of two is a number
    exponents = xp.clip(exponents, -largest, largest)
    return xp.where(spreads, exponents, xp.zeros_like(exponents))


def _evened(X: Array, factors: Array) -> Array:
    """Multiply features by their factors; what would overflow as a square is cut. A new array."""
    xp = array_namespace(X)
    with np.errstate(over="ignore", under="ignore"):
        even = X * factors
    largest = float(xp.finfo(even.dtype).max) ** MAX_POWER
    return xp.clip(even, -largest, largest)


def _deviations(variance: Array, mean: Array, n_samples: int) -> Array:
    """Return standard deviations; 1 where a feature is constant up to rounding."""
    xp = array_namespace(variance)
    noise = n_samples * float(xp.finfo(variance.dtype).eps)
    constant = variance <= noise * variance + (noise * mean) ** 2
    return xp.sqrt(xp.where(constant, xp.ones_like(variance), variance))


def in_single_precision(X: Array) -> NDArray[np.float32] | None:
    """Return a copy of NumPy rows in single precision, None where that would lose something."""
    if not isinstance(X, np.ndarray):
        return None
    with np.errstate(over="ignore"):
        single = X.astype(np.float32)
    return single if np.array_equal(single, X) else None


class _ScaledView:
    """A view of z-scored rows after an optional ``first`` step, of length one if it ``is_unit``.

    Where the training rows are numbers of single precision, files hold those and not the mapped
    rows, which are made again: ``source``, of which all views of the same rows share one, and
    ``scaling`` if there is no first step.
    """

    is_unit = False

    def __init__(
        self,
        X: Array,
        *,
        source: NDArray[np.float32] | None = None,
        first: Any = None,
        scaling: Scaling | None = None,
    ) -> None:
        self._source = in_single_precision(X) if source is None else source
        self._dtype = X.dtype
        engine = engine_of(X)
        rows = X if first is None else engine.map_rows(first, X)
        scaling = scaling or Scaling(rows)
        last = [scaling, _unit_rows] if self.is_unit else [scaling]
        self.variances = scaling.variances
        self._steps = last if first is None else [first, *last]
        self.rows = engine.map_rows(partial(_chained, last), rows)

    @cached_property
    def rows(self) -> Array:
        """The training rows in this space."""
        assert self._source is not None
        return self.transform(self._source.astype(self._dtype))

    def transform(self, X: Array) -> Array:
        """Map rows into this space."""
        return engine_of(X).map_rows(partial(_chained, self._steps), X)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the rows out where they can be made again: none were added later."""
        state = self.__dict__.copy()
        if self._source is not None and len(self._source) == len(self.rows):
            del state["rows"]
        return state

    def __copy__(self) -> Any:
        """Return a view that shares the rows."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin


def _chained(steps: Sequence[Any], X: Array) -> Array:
    for step in steps:
        X = step(X)
    return X


class CosineView(_ScaledView):
    """Z-scored, row-normalised features: the cosine becomes an inner product.

    The z-scores use the statistics of the rows it was made from, so unseen rows are mapped with
    the training statistics. A constant feature becomes zero.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.views import CosineView
    >>> CosineView(np.array([[1.0, 5.0], [3.0, 5.0]])).rows
    array([[-1.,  0.],
           [ 1.,  0.]])
    """

    is_unit = True


class EuclideanView(_ScaledView):
    """Z-scored features as they are: how far a row is from the mean counts too.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.views import EuclideanView
    >>> EuclideanView(np.array([[1.0], [2.0], [3.0]])).rows.round(2).ravel()
    array([-1.22,  0.  ,  1.22])
    """


class OutlierCompression:
    """Bring the far outliers of heavy-tailed features in, so that the other values stay apart.

    Beside one value of 1e10 all others are the same in single precision, and within the tolerance
    of the ranks. Such a feature becomes ``arcsinh((x - median) / u)``, where u is the median of
    the deviations from the median that are not zero: linear about the median, logarithmic far
    out, in the same order. Other features stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.views import OutlierCompression
    >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [1e10, 4.0]])
    >>> OutlierCompression(X)(X).round(1)
    array([[-1.2,  1. ],
           [-0.5,  2. ],
           [ 0.5,  3. ],
           [23.7,  4. ]])
    """

    def __init__(self, X: Array) -> None:
        engine = engine_of(X)
        xp = engine.xp
        low, high = map(to_host, engine.small(xp.min(X, axis=0), xp.max(X, axis=0)))
        self.ends = np.stack([low, high])
        some = engine.rows_on_host(X, slice(None, None, max(1, X.shape[0] // RANK_SAMPLE)))
        columns = np.sort(np.ascontiguousarray(some.T), axis=1)
        centre = _middle(columns, np.zeros(len(columns), dtype=int))
        with np.errstate(over="ignore"):
            deviations = np.sort(np.abs(columns - centre[:, None]), axis=1)
            unit = _middle(deviations, np.sum(deviations == 0, axis=1))
            unit = np.where(unit > 0, unit, 1.0)
            farthest = np.maximum(high - centre, centre - low)
            self._heavy_tailed = farthest > HEAVY_TAILED_SPREAD * unit
        self._centre, self._unit = centre, unit

    def __call__(self, X: Array) -> Array:
        """Return a block of rows, heavy-tailed features compressed; X itself if there are none."""
        if not self._heavy_tailed.any():
            return X
        xp = array_namespace(X)
        heavy_tailed, centre, unit = (
            xp.asarray(values, device=device(X))
            for values in (self._heavy_tailed, self._centre, self._unit)
        )
        with np.errstate(over="ignore"):
            logarithms = xp.asinh((X - centre) / unit)
        return xp.where(heavy_tailed, xp.clip(logarithms, -MAX_LOGARITHM, MAX_LOGARITHM), X)


def _middle(columns: Floats, first: NDArray[np.int_]) -> Floats:
    """Return the medians of sorted columns, each from a place on; the last value if none is."""
    n = columns.shape[1]
    every = np.arange(len(columns))
    low, high = (
        columns[every, (first + n - 1) // 2],
        columns[every, np.minimum((first + n) // 2, n - 1)],
    )
    return low + (high - low) / 2


class TreeView(_ScaledView):
    """Z-scored features after :class:`OutlierCompression`, for trees: like these, on the host."""

    def __init__(self, X: Array) -> None:
        X = to_host(X)
        super().__init__(X, first=OutlierCompression(X))

    def transform(self, X: Array) -> NDArray[Any]:
        """Map rows into this space."""
        return super().transform(to_host(X))


class RankView(_ScaledView):
    """Directions of features that were first replaced by their normal scores.

    A value becomes the quantile of the normal distribution that belongs to its rank among the
    training rows: outliers and skewed scales lose their weight. The scores are then z-scored and
    row-normalised as in :class:`CosineView`. If there are very many rows, ``random_state`` draws
    those from which the ranks are taken.
    """

    is_unit = True

    def __init__(
        self, X: Array, random_state: int = 0, *, source: NDArray[np.float32] | None = None
    ) -> None:
        source = in_single_precision(X) if source is None else source
        super().__init__(X, source=source, first=_NormalScores(X, random_state, source))


class _NormalScores:
    """Replace values by the normal scores of their ranks among the training rows."""

    def __init__(
        self, X: Array, random_state: int, source: NDArray[np.float32] | None = None
    ) -> None:
        engine = engine_of(X)
        n_samples = X.shape[0]
        self._source = source if n_samples <= RANK_SAMPLE else None
        self._dtype = X.dtype
        self._compression = OutlierCompression(X)
        # Compression keeps the order, so the ends of a feature stay its ends.
        low, high = self._compression(self._compression.ends)
        # Values next to the smallest or largest are taken for those: features of a spread at which
        # that is much, or less than their last digit, are evened out.
        spread = _spread_exponents(low, high)
        ordinary = (spread >= USUAL_SPREAD[0]) & (spread <= USUAL_SPREAD[1])
        self._factors = np.where(ordinary, 1.0, 2.0**-spread)
        chosen: Any = slice(None)
        if n_samples > RANK_SAMPLE:
            sampling = {"n_samples": RANK_SAMPLE, "random_state": random_state}
            chosen = resample(np.arange(n_samples), replace=False, **sampling)
        self._quantiles = self._quantiles_of(engine.rows_on_host(X, chosen))

    def _quantiles_of(self, some: NDArray[Any]) -> Floats:
        sample = _evened(self._compression(some), self._factors)
        columns = np.sort(np.ascontiguousarray(sample.T), axis=1)
        place = np.linspace(0, len(sample) - 1, min(N_QUANTILES, len(sample)))
        low = place.astype(int)
        before = np.take(columns, low, axis=1)
        after = np.take(columns, np.minimum(low + 1, len(sample) - 1), axis=1)
        return np.maximum.accumulate(before + (place - low) * (after - before), axis=1)

    @cached_property
    def _quantiles(self) -> Floats:
        assert self._source is not None
        return self._quantiles_of(self._source.astype(self._dtype))

    def __getstate__(self) -> dict[str, Any]:
        """Leave the quantiles out where they can be made again."""
        state = self.__dict__.copy()
        if self._source is not None:
            del state["_quantiles"]
        return state

    def __call__(self, X: Array) -> Array:
        """Return the scores of a block of rows."""
        xp = array_namespace(X)
        factors, quantiles = (
            xp.asarray(values, dtype=X.dtype, device=device(X))
            for values in (self._factors, self._quantiles)
        )
        even = _evened(self._compression(X), factors)
        scores = _mid_ranks(even, quantiles)
        scores[even + AT_THE_END > quantiles[:, -1]] = 1.0
        scores[even - AT_THE_END < quantiles[:, 0]] = 0.0
        return xp.clip(engine_of(X).ndtri(scores), -MAX_SCORE, MAX_SCORE)


def _mid_ranks(values: Array, quantiles: Array) -> Array:
    """Return the ranks in [0, 1] of values among quantiles, interpolated from both sides."""
    xp = array_namespace(values)
    n_features, n = quantiles.shape
    ranks = xp.linspace(0.0, 1.0, n, dtype=values.dtype, device=device(values))
    n_below, n_up_to = _counts(values, quantiles)
    above, below = xp.clip(n_below, max=n - 1), xp.clip(n_up_to - 1, min=0)
    feature = xp.arange(n_features, device=device(values))
    low, high = quantiles[feature, below], quantiles[feature, above]
    gap = high - low
    between = gap > 0
    slope = xp.where(between, ranks[above] - ranks[below], 0.0) / xp.where(between, gap, 1.0)
    from_below = slope * (values - low) + ranks[below]
    from_above = ranks[above] - slope * (high - values)
    return 0.5 * (from_below + from_above)


def _counts(values: Array, quantiles: Array) -> tuple[Array, Array]:
    """Count the quantiles of its feature below each value, and those not above it."""
    xp = array_namespace(values)
    if values.shape[0] * math.prod(quantiles.shape) <= COMPARED_AT_ONCE:
        compared = values[:, :, None]
        return xp.sum(quantiles < compared, axis=2), xp.sum(quantiles <= compared, axis=2)
    columns = [xp.asarray(values[:, j], copy=True) for j in range(values.shape[1])]  # in one piece
    left, right = (
        xp.stack(
            [xp.searchsorted(q, v, side=side) for q, v in zip(quantiles, columns, strict=True)],
            axis=1,
        )
        for side in ("left", "right")
    )
    return left, right


#: The views by name.
VIEWS: dict[str, Any] = {"cosine": CosineView, "rank": RankView, "euclidean": EuclideanView}


def views_of(X: Array, names: Sequence[str], rng: np.random.RandomState) -> list[View]:
    """Return the named views of training rows X; ``rng`` draws for the ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.graph.views import views_of
    >>> views = views_of(np.eye(3), ("cosine", "rank"), np.random.RandomState(0))
    >>> [type(view).__name__ for view in views]
    ['CosineView', 'RankView']
    """
    made: list[View] = []
    source = in_single_precision(X)
    shared: dict[str, Any] = {}
    for name in names:
        if name not in VIEWS:
            raise ValueError(f"There is no view {name!r}: choose from {', '.join(VIEWS)}.")
        if name == "rank":
            own: dict[str, Any] = {"random_state": rng.randint(np.iinfo(np.int32).max)}
        else:
            own = shared = shared or {"scaling": Scaling(X)}
        made.append(VIEWS[name](X, source=source, **own))
    return made
