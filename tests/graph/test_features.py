import numpy as np
import pytest

from gmpll.graph.features import DirectionSpace, PositionSpace, RankSpace, Scaling


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
