import numpy as np
import pytest
from scipy import stats

from gmpll.apps.experiments.statistics import (
    TTest,
    friedman_nemenyi,
    outcome,
    paired_t_test,
)

RNG = np.random.default_rng(0)
A, B = RNG.normal(0.7, 0.05, 10), RNG.normal(0.68, 0.05, 10)


def test_paired_t_test_is_scipys():
    expected = stats.ttest_rel(A, B)
    assert paired_t_test(A, B) == pytest.approx((expected.statistic, expected.pvalue))


def test_corrected_test_by_hand():
    # Differences 0.1, 0.2, 0.1: mean 2/15, variance 1/300; ten folds: 1/3 + 1/9 = 4/9.
    test = paired_t_test([0.7, 0.8, 0.9], [0.6, 0.6, 0.8], test_share=0.1)
    statistic = (2 / 15) / np.sqrt((4 / 9) / 300)
    assert test.statistic == pytest.approx(statistic)
    assert test.p_value == pytest.approx(2 * stats.t(2).sf(statistic))


def test_the_correction_makes_differences_harder_to_find():
    plain, corrected = paired_t_test(A, B), paired_t_test(A, B, test_share=0.1)
    assert abs(corrected.statistic) == pytest.approx(abs(plain.statistic) / np.sqrt(1 + 10 / 9))
    assert corrected.p_value > plain.p_value


@pytest.mark.parametrize("test", [paired_t_test, lambda a, b: paired_t_test(a, b, test_share=0.1)])
class TestDegenerateCases:
    def test_no_difference_at_all(self, test):
        assert test(A, A) == TTest(0.0, 1.0)

    def test_a_constant_lead(self, test):
        # 0.1 is not exact in binary: the differences differ in the last bits.
        assert test(A + 0.1, A) == TTest(np.inf, 0.0)
        assert test(A, A + 0.1) == TTest(-np.inf, 0.0)

    def test_too_few_pairs(self, test):
        assert np.isnan(test([0.5], [0.4])).all()
        assert np.isnan(test([], [])).all()

    def test_missing_figures_leave_their_pair_out(self, test):
        with_gap = A.copy()
        with_gap[3] = np.nan
        keep = np.arange(10) != 3
        assert test(with_gap, B) == pytest.approx(test(A[keep], B[keep]))

    def test_unequal_lengths(self, test):
        with pytest.raises(ValueError, match="equally long"):
            test(A, B[:5])


def test_outcomes():
    assert outcome(paired_t_test(A + 0.1, A)) == "win"
    assert outcome(paired_t_test(A, A + 0.1)) == "loss"
    assert outcome(paired_t_test(A, A)) == "tie"
    assert outcome(TTest(np.nan, np.nan)) == "tie"
    assert outcome(TTest(2.0, 0.03), level=0.01) == "tie"


@pytest.mark.parametrize("share", [1, -0.1])
def test_a_share_that_is_none(share):
    with pytest.raises(ValueError, match="test_share"):
        paired_t_test(A, B, test_share=share)


def test_ranks_and_friedman_by_hand():
    # Ranks: 1 2 3 / 1 3 2 / 1.5 1.5 3 / 1 2 3.
    table = [[0.9, 0.8, 0.7], [0.8, 0.6, 0.7], [0.7, 0.7, 0.5], [0.9, 0.6, 0.1]]
    ranked = friedman_nemenyi(table)
    np.testing.assert_allclose(ranked.average_ranks, [4.5 / 4, 8.5 / 4, 11 / 4])
    expected = stats.friedmanchisquare(*np.transpose(table))
    assert ranked.statistic == pytest.approx(expected.statistic)
    assert ranked.p_value == pytest.approx(expected.pvalue)


@pytest.mark.parametrize(
    ("n_methods", "n_datasets", "q"),
    # Critical values of the two-tailed Nemenyi test at 0.05, as tabled by Demsar (2006).
    [(3, 10, 2.343), (5, 14, 2.728), (9, 15, 3.102), (10, 30, 3.164)],
)
def test_critical_difference_against_the_published_table(n_methods, n_datasets, q):
    table = RNG.random((n_datasets, n_methods))
    expected = q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))
    assert friedman_nemenyi(table).critical_difference == pytest.approx(expected, rel=1e-3)


def test_pairs_further_apart_than_the_critical_difference_are_the_significant_ones():
    table = RNG.random((12, 5)) + np.array([0.0, 0.2, 0.4, 0.8, 1.2])
    ranked = friedman_nemenyi(table)
    ranks = ranked.average_ranks.to_numpy()
    apart = np.abs(np.subtract.outer(ranks, ranks))
    np.testing.assert_array_equal(
        ranked.pairwise_p_values < 0.05, apart > ranked.critical_difference
    )
    assert (apart > ranked.critical_difference).any()


def test_everything_tied():
    ranked = friedman_nemenyi(np.full((4, 3), 0.5))
    assert (ranked.statistic, ranked.p_value) == (0.0, 1.0)
    np.testing.assert_array_equal(ranked.average_ranks, [2, 2, 2])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0, 2.0, 3.0]], "two data sets"),
        ([[1.0, 2.0], [1.0, 2.0]], "three methods"),
        ([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]], "Data set 1 has no figure for method 1"),
    ],
)
def test_tables_that_cannot_be_ranked(table, message):
    with pytest.raises(ValueError, match=message):
        friedman_nemenyi(table)
