import numpy as np
import pytest
from sklearn.preprocessing import QuantileTransformer

from gmpll.graph.views import (
    DirectionSpace,
    PositionSpace,
    RankSpace,
    Scaling,
    Taming,
    TreeSpace,
)


@pytest.mark.parametrize("space", [DirectionSpace, PositionSpace, RankSpace])
def test_a_feature_that_is_constant_up_to_rounding_counts_for_nothing(space):
    X = np.random.RandomState(0).randn(60, 3)
    X[:, 1] = 0.1
    X[7, 1] = np.nextafter(0.1, 1)
    without = space(np.delete(X, 1, axis=1)).rows
    rows = space(X).rows
    if space is not RankSpace:  # ranks cannot tell rounding from a value
        np.testing.assert_allclose(np.delete(rows, 1, axis=1), without, atol=1e-12)
        np.testing.assert_allclose(rows[:, 1], 0.0, atol=1e-12)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_scales_whose_squares_are_no_numbers(scale):
    X = np.random.RandomState(0).randn(30, 2)
    np.testing.assert_allclose(PositionSpace(X * scale).rows, PositionSpace(X).rows, atol=1e-9)
    np.testing.assert_allclose(DirectionSpace(X * scale).rows, DirectionSpace(X).rows, atol=1e-9)


def test_positions_are_z_scores_and_directions_forget_their_length():
    X = np.random.RandomState(1).randn(40, 3) * [1.0, 5.0, 0.1] + 2.0
    positions = PositionSpace(X)
    np.testing.assert_allclose(positions.rows.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(positions.rows.std(axis=0), 1.0)
    lengths = np.linalg.norm(positions.rows, axis=1, keepdims=True)
    np.testing.assert_allclose(DirectionSpace(X).rows, positions.rows / lengths)
    np.testing.assert_allclose(positions.transform(X[:3]), Scaling(X).transform(X[:3]))


@pytest.mark.parametrize("far", [1e10, -1e45, 1e308])
def test_taming_keeps_the_order_and_the_other_features(far):
    X = np.random.RandomState(2).randn(50, 3)
    X[4, 1] = far
    X[5, 1] = -far
    tamed = Taming(X)(X)
    np.testing.assert_array_equal(np.argsort(tamed, axis=0), np.argsort(X, axis=0))
    np.testing.assert_array_equal(tamed[:, [0, 2]], X[:, [0, 2]])
    others = np.delete(tamed[:, 1], [4, 5])
    assert np.unique(others.astype(np.float32)).size == 48
    assert np.abs(tamed).max() <= 1e3
    assert X[4, 1] == far  # X itself stays


def test_usual_features_are_not_tamed():
    rng = np.random.RandomState(3)
    X = np.c_[rng.randn(200), np.exp(3 * rng.randn(200)), rng.poisson(0.05, 200), np.ones(200)]
    assert Taming(X)(X) is X
    np.testing.assert_array_equal(TreeSpace(X).rows, PositionSpace(X).rows)


def test_one_value_far_out_hides_no_order():
    """Ranks, and trees, see the same whether the largest value is large or enormous."""
    X = np.random.RandomState(4).randn(60, 2)
    X[0] = 50.0
    enormous = X.copy()
    enormous[0, 1] = 1e12
    np.testing.assert_allclose(RankSpace(enormous).rows, RankSpace(X).rows, atol=1e-6)
    rows = TreeSpace(enormous).rows.astype(np.float32)
    np.testing.assert_array_equal(np.argsort(rows, axis=0), np.argsort(X, axis=0))
    unseen = np.array([[0.1, 1e300], [0.2, -1e300]])
    assert np.isfinite(RankSpace(enormous).transform(unseen)).all()
    assert np.isfinite(TreeSpace(enormous).transform(unseen)).all()


def test_normal_scores_are_those_of_scikit_learn():
    rng = np.random.RandomState(5)
    X = np.c_[rng.randn(300), rng.poisson(1.0, 300), rng.rand(300)]
    X[:20, 2] = X[:, 2].min() + 1e-8 * rng.rand(20)  # the smallest up to rounding
    unseen = np.c_[3 * rng.randn(40), rng.poisson(2.0, 40), 2 * rng.rand(40)]
    reference = QuantileTransformer(n_quantiles=200, output_distribution="normal").fit(X)
    trained, scores = (np.clip(reference.transform(rows), -3.0, 3.0) for rows in (X, unseen))
    expected = DirectionSpace(trained).transform(scores)
    np.testing.assert_array_equal(RankSpace(X).transform(unseen), expected)


def test_ranks_of_models_that_were_saved_earlier():
    X = np.random.RandomState(6).randn(80, 3)
    space = RankSpace(X)
    expected = space.transform(X[:10] + 0.1)
    space._ranks = QuantileTransformer(n_quantiles=80, output_distribution="normal").fit(X)
    del space._taming
    np.testing.assert_array_equal(space.transform(X[:10] + 0.1), expected)
