"""How far stated confidences can be believed, measured against true labels: for evaluation only.

What can be done without true labels is in :mod:`gmpll.uncertainty.calibration`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gmpll._typing import Floats, Places


class ReliabilityCurve(NamedTuple):
    """Stated confidence beside the share of right answers, bin by bin; empty bins are left out.

    For every bin the mean confidence, the share of right answers and the number of rows.
    """

    confidence: Floats
    accuracy: Floats
    n_rows: Places


class AccuracyCoverage(NamedTuple):
    """Accuracy of the most confident rows.

    For every number of answered rows their share, the share of right answers among them, and the
    least confidence among them.
    """

    coverage: Floats
    accuracy: Floats
    threshold: Floats


def reliability_curve(
    confidence: ArrayLike, right: ArrayLike, *, n_bins: int = 15
) -> ReliabilityCurve:
    """Compare confidences with the share of right answers in bins of equal width.

    Parameters
    ----------
    confidence : array-like of shape (n_samples,)
        Stated confidence in the answer, between 0 and 1.
    right : array-like of shape (n_samples,), bool
        Whether the answer is right.
    n_bins : int, default=15
        Number of bins of equal width between 0 and 1.

    Examples
    --------
    >>> from gmpll.uncertainty.reliability import reliability_curve
    >>> curve = reliability_curve([0.9, 0.9, 0.3], [True, False, False], n_bins=2)
    >>> curve.confidence.round(2), curve.accuracy, curve.n_rows
    (array([0.3, 0.9]), array([0. , 0.5]), array([1, 2]))
    """
    stated, hit = _checked(confidence, right)
    bins = np.clip((stated * n_bins).astype(np.intp), 0, n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    filled = count > 0
    mean_stated = np.bincount(bins, stated, n_bins)[filled] / count[filled]
    mean_hit = np.bincount(bins, hit, n_bins)[filled] / count[filled]
    return ReliabilityCurve(mean_stated, mean_hit, count[filled])


def expected_calibration_error(
    confidence: ArrayLike, right: ArrayLike, *, n_bins: int = 15
) -> float:
    """Mean distance between confidence and accuracy over bins of equal width.

    It is 0 if every bin is right as often as it claims. With few rows, chance alone lifts it above
    0: compare only figures of the same rows and bins. The arguments are those of
    :func:`reliability_curve`.

    Examples
    --------
    >>> from gmpll.uncertainty.reliability import expected_calibration_error
    >>> round(expected_calibration_error([0.9, 0.9, 0.3], [True, False, False], n_bins=2), 3)
    0.367
    """
    curve = reliability_curve(confidence, right, n_bins=n_bins)
    gaps = np.abs(curve.confidence - curve.accuracy)
    return float(gaps @ curve.n_rows / curve.n_rows.sum())


def accuracy_coverage_curve(confidence: ArrayLike, right: ArrayLike) -> AccuracyCoverage:
    """Accuracy if only the most confident rows are answered, for every number of rows.

    Examples
    --------
    >>> from gmpll.uncertainty.reliability import accuracy_coverage_curve
    >>> curve = accuracy_coverage_curve([0.9, 0.2, 0.5, 0.7], [True, False, False, True])
    >>> curve.coverage, curve.accuracy.round(2)
    (array([0.25, 0.5 , 0.75, 1.  ]), array([1.  , 1.  , 0.67, 0.5 ]))
    """
    stated, hit = _checked(confidence, right)
    order = np.argsort(-stated, kind="stable")
    answered = np.arange(1, len(order) + 1)
    return AccuracyCoverage(
        answered / len(order), np.cumsum(hit[order]) / answered, stated[order].copy()
    )


def _checked(confidence: ArrayLike, right: ArrayLike) -> tuple[Floats, Floats]:
    stated = np.asarray(confidence, dtype=np.float64)
    hit = np.asarray(right, dtype=np.float64)
    if stated.ndim != 1 or stated.shape != hit.shape or not stated.size:
        raise ValueError(
            f"confidence and right have the shapes {stated.shape} and {hit.shape}: "
            "they need one number each per row, and at least one row."
        )
    return stated, hit
