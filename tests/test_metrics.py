import numpy as np
import pytest

from gmpll.datasets import random_candidates
from gmpll.metrics import (
    approximated_accuracy,
    candidate_lift,
    chance_of_covering,
    covered,
    covering_rate,
    mean_absolute_label_error,
    row_lifts,
)


def test_covered():
    mask = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 1]])
    np.testing.assert_array_equal(covered(mask, [1, 0, 2]), [True, False, True])
    assert covering_rate(mask, [1, 0, 2]) == pytest.approx(2 / 3)


def test_a_label_that_is_no_candidate_anywhere_is_a_miss():
    assert covering_rate([{"a"}, {"b"}], ["a", "zebra"]) == 0.5


def test_singletons_give_the_accuracy():
    assert covering_rate(["a", "b", "b"], ["a", "b", "a"]) == pytest.approx(2 / 3)


def test_lift_is_zero_for_blind_guesses_and_one_for_the_truth():
    rng = np.random.RandomState(0)
    y = rng.randint(6, size=20_000)
    mask = random_candidates(y, 1.0, 2, n_classes=6, random_state=0)
    assert candidate_lift(mask, y) == 1.0
    guesses = rng.randint(6, size=20_000)
    assert abs(candidate_lift(mask, guesses)) < 0.02


def test_lift_with_the_class_prior_estimates_the_accuracy():
    rng = np.random.RandomState(0)
    y = rng.choice(5, p=[0.5, 0.2, 0.1, 0.1, 0.1], size=50_000)
    mask = random_candidates(y, 0.8, 1, n_classes=5, random_state=0)
    wrong = rng.random_sample(50_000) < 0.3
    predicted = np.where(wrong, (y + rng.randint(1, 5, size=50_000)) % 5, y)
    prior = np.bincount(y) / len(y)
    assert candidate_lift(mask, predicted, prior) == pytest.approx(0.7, abs=0.02)
    assert candidate_lift(mask, predicted) < 0.65


def test_a_label_in_every_set_tells_nothing():
    assert candidate_lift(np.array([[1, 1], [1, 0]]), [0, 0]) == 0.0


def test_chance_solves_the_frequency_equation():
    prior, chance = np.array([0.3, 0.1]), np.array([0.2, 0.6])
    frequency = prior + (1 - prior) * chance
    np.testing.assert_allclose(chance_of_covering(frequency, prior), chance)


def test_approximated_accuracy():
    mask = np.array([[1, 1, 0], [0, 1, 1]])
    probabilities = np.array([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2]])
    assert approximated_accuracy(mask, probabilities) == pytest.approx((2 / 3 + 0) / 2)
    with pytest.raises(ValueError, match="one each per label"):
        approximated_accuracy(mask, probabilities[:, :2])


def test_label_error_is_the_mean_distance():
    rng = np.random.RandomState(0)
    y, predicted = rng.randint(60, size=(2, 50))
    expected = sum(abs(int(a) - int(b)) for a, b in zip(y, predicted, strict=True)) / 50
    assert mean_absolute_label_error(y, predicted) == pytest.approx(expected)
    assert mean_absolute_label_error(predicted, y) == pytest.approx(expected)
    assert mean_absolute_label_error(y, y) == 0.0
    assert mean_absolute_label_error(y * 2.5, predicted * 2.5) == pytest.approx(2.5 * expected)


def test_label_error_of_unsigned_labels_does_not_wrap_around():
    grades = np.array([1, 3], dtype=np.uint8)
    assert mean_absolute_label_error(grades, grades[::-1]) == 2.0


@pytest.mark.parametrize("labels", [["3", "4"], [True, False], [[1], [2]], 3, [None, 1]])
def test_label_error_needs_numbers(labels):
    with pytest.raises(ValueError, match="The predicted labels must be a vector of numbers"):
        mean_absolute_label_error([3, 4], labels)
    with pytest.raises(ValueError, match="The true labels must be a vector of numbers"):
        mean_absolute_label_error(labels, [3, 4])


def test_label_error_needs_a_prediction_for_every_row():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        mean_absolute_label_error([1, 2, 3], [1, 2])


def test_a_row_counts_its_hit_less_chance():
    hit, chance = np.array([True, False, True, True, False]), np.array([0.5, 0.5, 0.99, 1.0, 0.995])
    with np.errstate(all="raise"):
        found = row_lifts(np.diag(hit), np.arange(5), chance)
    np.testing.assert_allclose(found, [1.0, -1.0, 1.0, 0.0, 0.0])


def test_a_prediction_of_no_set_counts_nothing_in_the_lift():
    mask = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
    with_unknown = candidate_lift(mask, [0, 7, 2, 0])
    assert with_unknown == pytest.approx((1.0 + 0.0 + 1.0 - 1.0) / 4)
    np.testing.assert_array_equal(covered(np.ones((2, 3)), [7, 2]), [False, True])


def test_chance_stays_between_zero_and_one_for_any_prior():
    frequency = np.array([0.2, 1.0, 0.5, 0.995])
    with np.errstate(all="raise"):
        found = chance_of_covering(frequency, [0.4, 1.0, 0.0, 0.99])
    np.testing.assert_allclose(found, [0.0, 1.0, 0.5, 0.5])
    assert chance_of_covering(np.array([1, 0])).dtype == np.float64


@pytest.mark.parametrize(
    "wrong", [[0.5, 0.5], [[0.5, -0.5]], [[np.nan, 0.5]], [[np.inf, 0.5]], [[[0.5, 0.5]]]]
)
def test_what_is_no_table_of_probabilities_is_refused(wrong):
    with pytest.raises(ValueError, match="table of numbers that are not negative"):
        approximated_accuracy(np.ones((1, 2)), wrong)


def test_approximated_accuracy_of_rows_without_probability_on_their_candidates():
    mask = np.array([[1, 0, 0], [0, 1, 1]])
    with np.errstate(all="raise"):
        found = approximated_accuracy(mask, [[0.0, 0.5, 0.5], [0.0, 0.25, 0.75]])
    assert found == pytest.approx(0.75 / 2)


@pytest.mark.parametrize("score", [covered, covering_rate, candidate_lift])
def test_predictions_must_be_a_vector(score):
    with pytest.raises(ValueError, match=r"must be a vector .* shape is \(2, 1\)"):
        score(np.ones((2, 2)), [[0], [1]])
