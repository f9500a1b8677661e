"""Temperatures from candidate sets, held against those from true labels."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from gmpll.datasets import class_dependent_candidates, random_candidates
from gmpll.evidence.temperature import (
    candidate_temperature,
    confidence_exponent,
    false_candidate_rates,
    set_likelihood,
    sharpen,
    temper,
)
from gmpll.uncertainty.reliability import expected_calibration_error


def boastful_world(seed=0, n_samples=4000, n_labels=5, boast=3.0, favour=0.0):
    """True probabilities, labels drawn by them, and a model that is too sure of itself."""
    rng = np.random.RandomState(seed)
    logits = 1.5 * rng.randn(n_samples, n_labels)
    logits[:, 0] += favour
    true = softmax(logits, axis=1)
    labels = (true.cumsum(axis=1) < rng.random_sample((n_samples, 1))).sum(axis=1)
    return true, labels, softmax(boast * np.log(true), axis=1)


def temperature_of_truth(probabilities, labels):
    def loss(log_temperature):
        p = temper(probabilities, np.exp(log_temperature))
        return -np.log(p[np.arange(len(labels)), labels]).sum()

    return np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x)


@pytest.mark.parametrize("boast", [0.4, 3.0])
def test_candidates_give_the_temperature_that_true_labels_give(boast):
    _, labels, claimed = boastful_world(boast=boast)
    mask = random_candidates(labels, p=0.8, r=2, random_state=0)
    goal = temperature_of_truth(claimed, labels)
    assert abs(np.log(candidate_temperature(claimed, mask) / goal)) < 0.15
    right = claimed.argmax(axis=1) == labels
    calibrated = temper(claimed, candidate_temperature(claimed, mask))
    after = expected_calibration_error(calibrated.max(axis=1), right)
    assert after < 0.05
    assert after < 0.3 * expected_calibration_error(claimed.max(axis=1), right)


def test_the_correction_matters_where_a_label_sits_in_most_sets():
    _, labels, claimed = boastful_world(1, n_samples=20_000, favour=1.5)
    transition = np.where(np.arange(5) == 0, 0.95, 0.05) * np.ones((5, 1))
    np.fill_diagonal(transition, 1.0)
    mask = class_dependent_candidates(labels, transition, random_state=0)
    goal = np.log(temperature_of_truth(claimed, labels))
    plain = np.log(candidate_temperature(claimed, mask))
    corrected = np.log(candidate_temperature(claimed, mask, transition[1]))
    assert abs(corrected - goal) < 0.1
    assert plain < goal - 0.2  # covered nearly always, the model looks better than it is


def test_rates_of_wrong_candidates_are_recovered():
    true, labels, _ = boastful_world(2, n_samples=20_000)
    transition = np.tile([0.8, 0.1, 0.3, 0.1, 0.1], (5, 1))
    np.fill_diagonal(transition, 1.0)
    mask = class_dependent_candidates(labels, transition, random_state=0)
    posterior = true / [0.8, 0.1, 0.3, 0.1, 0.1]
    rates = false_candidate_rates(posterior, mask)
    np.testing.assert_allclose(rates, [0.8, 0.1, 0.3, 0.1, 0.1], atol=0.03)


def test_candidates_that_follow_the_model_make_it_look_right():
    """What the documentation warns of: annotators who doubt where the model errs."""
    _, labels, claimed = boastful_world(3)
    mask = np.eye(5, dtype=bool)[labels]
    mask[np.arange(len(labels)), claimed.argmax(axis=1)] = True
    assert candidate_temperature(claimed, mask) < 0.5 * temperature_of_truth(claimed, labels)


def test_tempering_keeps_the_order_and_full_sets_say_nothing():
    _, _, claimed = boastful_world(4, n_samples=50)
    for temperature in (0.1, 1.0, 8.0):
        p = temper(claimed, temperature)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_array_equal(p.argmax(axis=1), claimed.argmax(axis=1))
    assert candidate_temperature(claimed, np.ones((50, 5), dtype=bool)) == 1.0


def test_confidences_of_training_rows_go_halfway():
    rng = np.random.RandomState(0)
    mask = rng.random_sample((200, 5)) < 0.5
    mask[:, 0] = True
    confidences = np.where(mask, rng.random_sample((200, 5)) ** 3, 0.0)
    confidences /= confidences.sum(axis=1, keepdims=True)
    posterior = mask / mask.sum(axis=1, keepdims=True)
    tempered = sharpen(confidences, mask, confidence_exponent(confidences, mask, posterior))
    found = confidences.argmax(axis=1)
    np.testing.assert_array_equal(tempered.argmax(axis=1), found)
    assert (tempered[~mask] == 0).all()
    np.testing.assert_allclose(tempered.sum(axis=1), 1.0)
    halfway = 0.5 * (confidences.max(axis=1) + posterior[np.arange(200), found]).mean()
    np.testing.assert_allclose(tempered.max(axis=1).mean(), halfway, atol=1e-4)
    single = np.eye(5, dtype=bool)[found]
    assert confidence_exponent(single * 1.0, single, single * 1.0) == 1.0
    np.testing.assert_array_equal(sharpen(single * 1.0, single, 3.0), single)


def test_a_model_that_is_right_three_times_of_four_claims_no_more():
    probabilities = np.tile([0.99, 0.005, 0.005], (400, 1))
    mask = np.tile([True, False, False], (400, 1))
    mask[::4] = [False, True, False]
    tempered = temper(probabilities[:1], candidate_temperature(probabilities, mask))
    assert tempered.max() == pytest.approx(0.75, abs=0.005)


def test_powers_by_hand():
    np.testing.assert_allclose(temper(np.array([[0.6, 0.4]]), 0.5), [[0.69, 0.31]], atol=0.005)
    mask = np.array([[True, True, False]])
    squared = sharpen(np.array([[0.6, 0.4, 0.0]]), mask, 2.0)
    np.testing.assert_allclose(squared, [[0.36 / 0.52, 0.16 / 0.52, 0.0]])
    sure, less_sure = np.array([[0.9, 0.1, 0.0]]), np.array([[0.7, 0.3, 0.0]])
    halfway = sharpen(sure, mask, confidence_exponent(sure, mask, less_sure))
    np.testing.assert_allclose(halfway, [[0.8, 0.2, 0.0]], atol=1e-4)


def test_the_likelihood_of_sets_is_that_of_the_best_scale():
    """Against a grid of scales; the unit of the scores does not matter."""
    rng = np.random.RandomState(0)
    scores = rng.rand(300, 4)
    truth = (3.0 * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    mask = random_candidates(truth, 0.5, 1, n_classes=4, random_state=0)

    def literal_likelihood(scale):
        rows = zip(softmax(scale * scores, axis=1), mask, strict=True)
        return np.mean([np.log(p[candidates].sum()) for p, candidates in rows])

    literal = max(literal_likelihood(scale) for scale in np.exp(np.linspace(-3.0, 6.0, 400)))
    assert set_likelihood(scores, mask) == pytest.approx(literal, abs=1e-4)
    assert set_likelihood(1e-9 * scores, mask) == pytest.approx(literal, abs=1e-4)


def test_scores_that_tell_nothing_have_the_likelihood_of_chance():
    mask = np.array([[True, False, False, False], [True, True, False, False]])
    expected = (np.log(1 / 4) + np.log(2 / 4)) / 2
    for scores in (np.zeros((2, 4)), np.ones((2, 4))):
        assert set_likelihood(scores, mask) == pytest.approx(expected)
    right = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    assert set_likelihood(right, mask) == pytest.approx(0.0, abs=1e-6)


def test_sets_that_leave_no_label_out_have_no_likelihood():
    full = np.ones((3, 2), dtype=bool)
    assert set_likelihood(np.eye(3)[:, :2], full) == 0.0
    some = np.array([[True, False], [True, True]])
    scores = np.array([[0.2, 0.4], [5.0, -5.0]])
    assert set_likelihood(scores, some) == pytest.approx(set_likelihood(scores[:1], some[:1]))
