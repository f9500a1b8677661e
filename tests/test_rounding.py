import numpy as np
import pytest

from gmpll.arrays import to_host
from gmpll.rounding import as_probabilities, best_labels, confidences_within


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


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("sign", [1, -1])
def test_how_close_scores_are_tied(scale, sign):
    def best(difference):
        row = scale * np.array([sign + difference, sign, 0.0 if sign > 0 else -np.inf])
        return best_labels(row[None, :], priority=np.array([0, 1, 2]))[0]

    assert best(0.5e-12) == 1  # tied, the priority decides
    assert best(1.5e-12) == 0


def test_single_precision_is_tied_at_its_own_resolution():
    eps = np.finfo(np.float32).eps
    for units, expected in ((4, 1), (7.5, 1), (8.5, 0), (16, 0)):
        row = np.array([[1.0, 1.0 - units * eps]], dtype=np.float32)
        assert best_labels(row, priority=np.array([0, 1]))[0] == expected


def test_labels_out_of_the_question_do_not_count_in_the_scale():
    scores = np.array([[-np.inf, 1.0, 2.0], [-np.inf, -5.0, -np.inf], [-np.inf, 0.0, 0.0]])
    with np.errstate(all="raise"):
        found = best_labels(scores, priority=np.array([9, 1, 2]))
    np.testing.assert_array_equal(found, [2, 1, 2])


def test_every_row_has_a_scale_of_its_own():
    scores = np.array(
        [[1e3, 1e3 + 1e-10], [1e-6, 1e-6 + 1e-10], [-np.inf, -1e-14], [1e-14, -np.inf]]
    )
    np.testing.assert_array_equal(best_labels(scores, priority=np.array([1, 0])), [0, 1, 1, 0])
    tiny = np.array([[-np.inf, 2e-13, 1e-13]])
    assert best_labels(tiny, priority=np.array([0, 1, 2]))[0] == 1


@pytest.mark.parametrize("shift", [0.0, -1.0, -50.0])
def test_a_low_priority_still_beats_labels_that_are_not_tied(shift):
    scores = np.array([[0.0, 1.0, 1.0]])
    assert best_labels(scores, priority=np.array([5.0, 0.1, 0.5]) + shift)[0] == 2
    assert best_labels(scores, priority=np.array([5.0, 0.0, 0.0]) + shift)[0] == 1


def test_every_row_has_draws_of_its_own_and_decided_rows_take_none():
    scores = np.tile([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0]], (10, 1))
    draws = np.random.RandomState(3).random_sample((20, 2)).argmax(axis=1)
    found = best_labels(scores, rng=np.random.RandomState(3), priority=np.array([0, 1]))
    np.testing.assert_array_equal(found[1::2], draws)
    np.testing.assert_array_equal(found[::2], np.tile([0, 1], 10))
    assert found.dtype.kind == "i"


def test_rows_without_candidates_or_with_an_infinite_score_divide_nothing_by_zero():
    mask = np.array([[False, False], [True, True], [True, True], [True, False]])
    scores = np.array([[1.0, 2.0], [np.inf, 1.0], [0.0, 0.0], [4.0, 1.0]])
    with np.errstate(divide="raise", invalid="ignore"):
        found = confidences_within(scores, mask)
    np.testing.assert_array_equal(found, [[0, 0], [0.5, 0.5], [0.5, 0.5], [1, 0]])
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(confidences_within(scores[2:], mask[2:]), found[2:])


def test_confidences_are_double_for_whole_numbers():
    found = confidences_within(np.array([[1, 3]]), np.array([[True, True]]))
    np.testing.assert_array_equal(found, [[0.25, 0.75]])


def test_many_rows_are_handled_as_few(monkeypatch):
    rng = np.random.RandomState(0)
    scores, mask = rng.randint(3, size=(50, 4)).astype(float), rng.rand(50, 4) < 0.5
    whole = confidences_within(scores, mask), best_labels(scores, rng=np.random.RandomState(1))
    monkeypatch.setattr("gmpll.engines.numpy.MAP_BYTES", 250)
    np.testing.assert_array_equal(confidences_within(scores, mask), whole[0])
    np.testing.assert_array_equal(best_labels(scores, rng=np.random.RandomState(1)), whole[1])


def test_scores_become_probabilities():
    found = as_probabilities(np.array([[3.0, -5.0, 1.0], [-1.0, -2.0, 0.0]]))
    np.testing.assert_allclose(found, [[0.75, 0.0, 0.25], [1 / 3, 1 / 3, 1 / 3]])


def test_confidences_are_the_same_in_every_library(library):
    rng = np.random.RandomState(0)
    mask = rng.random_sample((60, 4)) < 0.5
    mask[np.arange(60), rng.randint(4, size=60)] = True
    scores = np.where(mask, rng.randint(3, size=mask.shape) / 2.0, 3.0)
    found = confidences_within(library.array(scores), library.array(mask))
    np.testing.assert_allclose(to_host(found), confidences_within(scores, mask), atol=1e-15)


@pytest.mark.parametrize("how", ["priority", "rng"])
def test_the_best_labels_are_the_same_on_tensors(how):
    torch = pytest.importorskip("torch")
    scores = np.random.RandomState(0).randint(3, size=(60, 4)) / 2.0
    scores[3, :2] = -np.inf

    def found(values):
        if how == "rng":
            return best_labels(values, rng=np.random.RandomState(5))
        return best_labels(values, priority=np.array([2, 0, 3, 1]))

    np.testing.assert_array_equal(to_host(found(torch.from_numpy(scores))), found(scores))


def test_ties_in_single_precision_are_ties():
    torch = pytest.importorskip("torch")
    almost = torch.tensor([[0.1 + 0.2, 0.3]] * 200)
    assert set(best_labels(almost, rng=np.random.RandomState(0)).tolist()) == {0, 1}
    apart = torch.tensor([[0.3, 0.30001]] * 200)
    assert set(best_labels(apart, rng=np.random.RandomState(0)).tolist()) == {1}
