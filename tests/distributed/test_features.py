import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from gmpll.distributed.features import Directions, block_statistics, merged_statistics
from gmpll.graph.views import DirectionSpace


def in_parts(X, cuts):
    parts = np.split(X, cuts)
    starts = [0, *cuts]
    return [block_statistics(part, start) for part, start in zip(parts, starts, strict=True)]


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_statistics_of_parts_are_those_of_the_whole(shift):
    X = np.random.RandomState(0).randn(100, 4) + shift
    merged = merged_statistics(in_parts(X, [7, 50, 51]))
    scaler = StandardScaler().fit(X)
    np.testing.assert_allclose(merged.mean, scaler.mean_, rtol=1e-12)
    np.testing.assert_allclose(merged.squared / merged.n_rows, scaler.var_, rtol=1e-8)


def test_constant_features_and_rows_like_the_mean_have_no_direction():
    X = np.random.RandomState(1).randn(30, 3)
    X[-1] = X[:-1].mean(axis=0)
    X[:, 1] = 0.1
    mapped = Directions(merged_statistics(in_parts(X, [11, 19]))).transform(X)
    np.testing.assert_allclose(mapped, DirectionSpace(X).rows, atol=1e-12)
    assert (np.abs(mapped[:, 1]) < 1e-12).all()
    assert (mapped[-1] == 0).all()


def test_mapping_changes_nothing_in_place_and_keeps_the_precision_asked_for():
    X = np.random.RandomState(2).randn(9, 3)
    before = X.copy()
    mapped = Directions(block_statistics(X, 0), "float32").transform(X)
    assert mapped.dtype == np.float32
    np.testing.assert_array_equal(X, before)


def test_the_first_row_that_is_not_finite_is_named():
    X = np.ones((20, 2))
    X[13, 1], X[17, 0] = np.inf, np.nan
    assert merged_statistics(in_parts(X, [5, 10, 15])).bad_row == 13
