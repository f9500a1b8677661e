import numpy as np
import pytest

from gmpll.graph.local import LocalGraphs
from gmpll.matching import LocalAffinity, match
from gmpll.matching.feedback import feedback
from gmpll.matching.masses import HALF_AN_INSTANCE, PULL, mass_pull
from literal import standardize_features
from problems import random_problem


class PlainAffinity:
    """Nothing but the product, so that the plain loop runs."""

    def __init__(self, weights, mask):
        self.weights = weights

    def apply(self, P):
        return self.weights @ P


def problem(seed=0):
    X, mask, _ = random_problem(seed, m=60, d=4, q=4)
    weights = LocalGraphs([standardize_features(X)], 8).weights
    return weights, mask


def test_a_turn_is_the_formula():
    weights, mask = problem()
    expected = np.array([[30.0, 10.0, 15.0, 5.0]])
    unary = np.where(mask, np.random.RandomState(0).uniform(0.2, 1.0, mask.shape), 0.0)
    P = mask / mask.sum(axis=1, keepdims=True)
    support = unary * P * (weights @ P) / P.sum(axis=0) ** 0.5
    new = support / support.sum(axis=1, keepdims=True)
    new = new * ((expected + HALF_AN_INSTANCE) / (new.sum(axis=0) + HALF_AN_INSTANCE)) ** PULL
    new /= new.sum(axis=1, keepdims=True)
    for kind in (LocalAffinity, PlainAffinity):
        found = match(
            kind(weights, mask),
            mask,
            balance=0.5,
            max_iter=1,
            unary=unary,
            expected_mass=expected,
        )
        np.testing.assert_allclose(found.probabilities, new, atol=1e-6)


@pytest.mark.parametrize("balance", [0.0, 0.5])
def test_masses_move_towards_what_is_expected(balance):
    weights, mask = problem()
    affinity = LocalAffinity(weights, mask)
    free = match(affinity, mask, balance=balance).probabilities.sum(axis=0)
    for label in range(4):
        wanted = free.copy()
        wanted[label] += 8.0
        wanted *= 60 / wanted.sum()
        drawn = match(affinity, mask, balance=balance, expected_mass=wanted[None, :])
        mass = drawn.probabilities.sum(axis=0)
        assert np.abs(mass - wanted).sum() < np.abs(free - wanted).sum()


def test_what_is_as_expected_is_left_alone():
    mass = np.array([3.0, 0.0, 7.0])
    np.testing.assert_array_equal(mass_pull(mass, mass), 1.0)


def test_unary_of_ones_changes_nothing_and_a_strong_one_decides():
    weights, mask = problem()
    affinity = LocalAffinity(weights, mask)
    plain = match(affinity, mask, balance=0.5)
    ones = match(affinity, mask, balance=0.5, unary=np.ones(mask.shape))
    np.testing.assert_array_equal(plain.probabilities, ones.probabilities)
    chosen = mask.argmax(axis=1)
    strong = np.full(mask.shape, 1e-9)
    strong[np.arange(60), chosen] = 1.0
    decided = match(affinity, mask, unary=strong).probabilities
    supported = (weights @ (mask * 1.0))[np.arange(60), chosen] > 0
    np.testing.assert_array_equal(decided.argmax(axis=1)[supported], chosen[supported])


def test_feedback_takes_both():
    mask = np.array([[True, True, False], [False, True, True], [True, True, True]])
    P = mask / mask.sum(axis=1, keepdims=True)
    opinions = np.full((3, 3), 0.5)
    unary = np.array([[1.0, 0.25, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.5]])
    found = feedback(lambda P: opinions, mask, P, balance=0.0, turns=1, unary=unary)
    np.testing.assert_allclose(found, unary / unary.sum(axis=1, keepdims=True))
    expected = np.array([[0.2, 0.3, 2.5]])
    drawn = feedback(lambda P: opinions, mask, P, balance=0.0, expected_mass=expected)
    assert drawn[:, 2].sum() > P[:, 2].sum()
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)
