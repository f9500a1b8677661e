import numpy as np
import pytest

from gmpll.rounding import best_labels, confidences_within


def test_the_largest_score_wins():
    scores = np.random.RandomState(0).randn(50, 6)
    np.testing.assert_array_equal(
        best_labels(scores, rng=np.random.RandomState(0)), scores.argmax(axis=1)
    )


def test_ties_are_drawn_evenly():
    scores = np.tile([1.0, 0.2, 1.0, 1.0], (6000, 1))
    counts = np.bincount(best_labels(scores, rng=np.random.RandomState(0)), minlength=4)
    assert counts[1] == 0
    assert np.abs(counts[[0, 2, 3]] - 2000).max() < 200


def test_rounding_errors_are_ties_and_differences_are_not():
    rng = np.random.RandomState(0)
    almost = np.tile([0.1 + 0.2, 0.3], (200, 1))
    assert set(best_labels(almost, rng=rng)) == {0, 1}
    assert set(best_labels(np.tile([0.3, 0.3 + 1e-9], (200, 1)), rng=rng)) == {1}


def test_priority_decides_ties_row_by_row():
    scores = np.array([[1.0, 1.0, 0.0], [-np.inf, 2.0, 2.0]])
    np.testing.assert_array_equal(best_labels(scores, priority=np.array([2, 0, 1])), [0, 2])


def test_ties_need_a_rule():
    with pytest.raises(TypeError, match="rng or priority"):
        best_labels(np.ones((1, 2)))


def test_rows_without_score_become_uniform():
    mask = np.array([[True, True, False], [True, False, True]])
    found = confidences_within(np.array([[0.0, 0.0, 5.0], [3.0, 1.0, 1.0]]), mask)
    np.testing.assert_allclose(found, [[0.5, 0.5, 0.0], [0.75, 0.0, 0.25]])
