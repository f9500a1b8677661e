"""Is the difference real? The paper's test, a corrected one, and ranks over many data sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats


class TTest(NamedTuple):
    """Result of a two-sided t-test of the differences a - b; NaN with fewer than two pairs."""

    statistic: float  # positive where a is larger, infinite if all differences are one and not zero
    p_value: float  # 1 if all differences are zero


def paired_t_test(a: ArrayLike, b: ArrayLike, *, test_share: float = 0.0) -> TTest:
    """Compare accuracies of two methods over the same folds; pairs with a NaN are left out.

    By default it is the paper's test, which finds differences too easily because training sets of
    cross-validation overlap. Told which share of the rows a fold tests on, 0.1 of ten folds, it is
    the corrected resampled test of C. Nadeau and Y. Bengio (Inference for the generalization error,
    Machine Learning 52, 2003): the variance of the mean difference is
    ``(1 / n + n_test / n_train) * var`` instead of ``var / n``.
    """
    if not 0 <= test_share < 1:
        raise ValueError(f"test_share is {test_share}; it must be at least 0 and less than 1.")
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(
            f"Paired tests need two equally long lists of figures, not {first.shape} and "
            f"{second.shape}."
        )
    differences = first - second
    differences = differences[~np.isnan(differences)]
    n = len(differences)
    if n < 2:
        return TTest(float("nan"), float("nan"))
    mean, variance = float(differences.mean()), float(differences.var(ddof=1))
    # Differences that should be equal differ by rounding; their "variance" is no information.
    rounding = np.finfo(float).eps * max(1.0, float(np.abs(differences).max()))
    if np.sqrt(variance) <= 4 * rounding:
        if abs(mean) <= 4 * rounding:
            return TTest(0.0, 1.0)
        return TTest(float(np.copysign(np.inf, mean)), 0.0)
    statistic = mean / np.sqrt((1 / n + test_share / (1 - test_share)) * variance)
    return TTest(float(statistic), float(2 * stats.t.sf(abs(statistic), n - 1)))


def outcome(test: TTest, *, level: float = 0.05) -> str:
    """Say what a test means for the first method: ``"win"``, ``"tie"`` or ``"loss"``."""
    if not test.p_value < level:  # NaN is no evidence either
        return "tie"
    return "win" if test.statistic > 0 else "loss"


@dataclass(frozen=True)
class RankComparison:
    """Methods ranked over data sets, with Friedman's test and Nemenyi's critical difference."""

    average_ranks: pd.Series  # 1 is best; ties share their mean rank
    statistic: float
    p_value: float  # that all methods are equal; 1 if all are tied everywhere
    critical_difference: float  # average ranks further apart than this differ at the level
    pairwise_p_values: pd.DataFrame
    data_sets: list[str]
    #: What lacked figures, so that it could not be ranked or ranked on.
    left_out_methods: Sequence[str] = ()
    left_out_data_sets: Sequence[str] = ()


def friedman_nemenyi(scores: Any, *, level: float = 0.05) -> RankComparison:
    """Rank methods (columns) over data sets (rows) and test the ranks; larger scores are better.

    See J. Demsar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006.
    """
    from scikit_posthocs import posthoc_nemenyi_friedman

    table = pd.DataFrame(scores, dtype=float)
    n_datasets, n_methods = table.shape
    if n_datasets < 2 or n_methods < 3:
        raise ValueError(
            f"Ranks need a table of at least two data sets and three methods, not {table.shape}."
        )
    figures = table.to_numpy()
    for row, column in np.argwhere(~np.isfinite(figures)):
        raise ValueError(
            f"Data set {row} has no figure for method {column}: leave one of them out."
        )
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it must lie strictly between 0 and 1.")
    ranks = table.rank(axis=1, ascending=False)
    # Friedman's statistic is 0 / 0 where everything is tied.
    is_tied = np.ptp(ranks.to_numpy()) == 0
    statistic, p_value = (0.0, 1.0) if is_tied else stats.friedmanchisquare(*figures.T)
    quantile = stats.studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    standard_error = np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))
    pairwise = np.asarray(posthoc_nemenyi_friedman(figures), dtype=float)
    return RankComparison(
        ranks.mean(),
        float(statistic),
        float(p_value),
        critical_difference=float(quantile * standard_error),
        pairwise_p_values=pd.DataFrame(pairwise, table.columns, table.columns),
        data_sets=list(table.index),
    )
