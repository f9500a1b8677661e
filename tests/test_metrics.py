import numpy as np
import pytest

from gmpll.datasets import random_candidates
from gmpll.metrics import (
    approximated_accuracy,
    candidate_lift,
    chance_of_covering,
    covered,
    covering_rate,
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
