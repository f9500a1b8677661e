from __future__ import annotations

import numpy as np
import pytest

from gmpll.graph.features import DirectionSpace
from gmpll.review.evidence import Similarity


def test_neighbours_and_weights_agree_with_all_distances():
    X = np.random.RandomState(0).normal(size=(60, 4))
    points = DirectionSpace(X).rows
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
