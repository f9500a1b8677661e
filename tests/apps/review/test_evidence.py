from __future__ import annotations

import numpy as np
import pytest

from gmpll.apps.review.ordering import Similarity
from gmpll.graph.views import CosineView, EuclideanView


def test_neighbours_and_weights_agree_with_all_distances():
    X = np.random.RandomState(0).normal(size=(60, 4))
    points = EuclideanView(X).rows
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(distances, np.inf)
    rows = np.array([3, 41])
    similar = Similarity(X, n_neighbors=9).to(rows)
    for line, row in enumerate(rows):
        nearest = np.argsort(distances[row])[:9]
        np.testing.assert_array_equal(similar.rows[line], nearest)
        scale = distances[row, nearest[6]]
        expected = np.exp(-((distances[row, nearest] / scale) ** 2))
        np.testing.assert_allclose(similar.weights[line], expected)


def test_with_one_feature_the_nearest_values_are_the_most_similar():
    X = np.random.RandomState(0).permutation(np.linspace(20, 60, 80))[:, None]
    row = int(np.argmin(np.abs(X - 39.9)))
    similar = Similarity(X, n_neighbors=8, labels=(X[:, 0] > 40).astype(int)).to(np.array([row]))
    nearest = np.argsort(np.abs(X[:, 0] - X[row, 0]), kind="stable")[1:9]
    assert set(similar.rows[0]) == set(nearest)
    assert similar.weights[0, -1] < 0.5


def test_directions_are_compared_where_they_tell_the_labels_apart():
    rng = np.random.RandomState(0)
    labels = np.repeat(np.arange(6), 40)
    lengths = rng.lognormal(sigma=0.5, size=(240, 1))
    X = lengths * (rng.normal(size=(6, 20))[labels] + 1.5 * rng.normal(size=(240, 20)))
    np.testing.assert_array_equal(Similarity(X)._points, EuclideanView(X).rows)
    np.testing.assert_array_equal(Similarity(X, labels=labels)._points, CosineView(X).rows)


def test_a_far_outlier_does_not_hide_the_other_values():
    X = np.r_[np.linspace(0, 1, 30), 1e12][:, None]
    assert set(Similarity(X, n_neighbors=2).to(np.array([10])).rows[0]) == {9, 11}


def test_a_row_is_never_its_own_neighbour_even_among_copies():
    X = np.vstack([np.tile([1.0, 2.0], (30, 1)), [[5.0, -1.0]]])
    rows = np.arange(30)
    similar = Similarity(X, n_neighbors=5).to(rows)
    assert not (similar.rows == rows[:, None]).any()
    np.testing.assert_array_equal(similar.weights, 1.0)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_have_few_neighbours(n):
    similar = Similarity(np.arange(2.0 * n).reshape(n, 2)).to(np.arange(n))
    assert similar.rows.shape == similar.weights.shape == (n, n - 1)
    assert np.isfinite(similar.weights).all()
