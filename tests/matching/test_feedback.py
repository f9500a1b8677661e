import numpy as np
import pytest

from gmpll.matching.feedback import feedback
from gmpll.matching.masses import mass_pull

MASK = np.array([[True, True, False], [False, True, True], [True, True, True]])


def test_opinions_are_squared_and_normalised_within_the_candidates():
    opinions = np.array([[0.3, 0.1, 0.9], [0.5, 0.2, 0.2], [0.1, -0.4, 0.2]])
    found = feedback(lambda P: opinions, MASK, MASK / 3, balance=0.0, turns=1)
    np.testing.assert_allclose(found[0], [0.9, 0.1, 0.0], atol=1e-4)
    np.testing.assert_allclose(found[1], [0.0, 0.5, 0.5], atol=1e-4)
    np.testing.assert_allclose(found[2], [0.2, 0.0, 0.8], atol=1e-4)


def test_balance_divides_by_the_mass():
    P = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]])
    found = feedback(lambda P: np.ones((3, 3)), MASK, P, balance=1.0, turns=1)
    np.testing.assert_allclose(found[0], [0.8, 0.2, 0.0], atol=1e-6)


def test_no_turn_changes_nothing_and_silence_is_uniform():
    P = MASK / MASK.sum(axis=1, keepdims=True)
    assert feedback(lambda P: P, MASK, P, balance=0.5, turns=0) is P
    silent = feedback(lambda P: np.zeros((3, 3)), MASK, P, balance=0.0)
    np.testing.assert_allclose(silent, P)


def test_the_regression_is_asked_ten_times_by_default():
    asked = []

    def opinion(P):
        asked.append(P)
        return P

    P = MASK / MASK.sum(axis=1, keepdims=True)
    feedback(opinion, MASK, P, balance=0.5)
    assert len(asked) == 10
    assert asked[0] is P
    assert asked[1] is not P


def test_a_candidate_that_gets_nothing_keeps_a_millionth():
    opinions = np.array([[1.0, -0.5, 0.0]] * 3)
    found = feedback(lambda P: opinions, MASK, MASK / 3, balance=0.0, turns=1)
    assert found[0, 1] == pytest.approx(1e-6, rel=1e-4)


def test_a_label_without_mass_divides_nothing_by_zero():
    P = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
    opinions = np.array([[0.3, 0.1, 0.9], [0.5, 0.2, 0.4], [0.1, 0.4, 0.2]])
    with np.errstate(all="raise"):
        found = feedback(lambda P: opinions, MASK, P, balance=1.0, turns=1)
    support = MASK * (opinions**2 + 1e-6) / np.array([1.0, 2.0, 1.0])
    np.testing.assert_allclose(found, support / support.sum(axis=1, keepdims=True))


def test_turns_are_the_formula():
    rng = np.random.RandomState(0)
    opinions, unary = rng.random_sample((2, 3, 3))
    expected_mass = np.array([[1.5, 0.5, 1.0]])
    P = MASK / MASK.sum(axis=1, keepdims=True)
    found = feedback(
        lambda P: opinions * P, MASK, P, balance=0.5, turns=2, unary=unary,
        expected_mass=expected_mass,
    )  # fmt: skip
    for _ in range(2):
        support = MASK * unary * ((opinions * P) ** 2 + 1e-6) / P.sum(axis=0) ** 0.5
        P = support / support.sum(axis=1, keepdims=True)
        P = P * mass_pull(P.sum(axis=0), expected_mass)
        P /= P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, P)
