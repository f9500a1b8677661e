import numpy as np
import pytest

from gmpll.arrays import to_host
from gmpll.graph.local import LocalGraphs
from gmpll.matching import DenseLayout, LocalAffinity, match
from gmpll.matching.affinity import PackedLayout
from gmpll.matching.masses import HALF_AN_INSTANCE, N_STEPS, normalise_masses
from literal import standardize_features
from problems import random_problem


def problem(seed=0):
    X, mask, _ = random_problem(seed, m=60, d=4, q=4)
    weights = LocalGraphs([standardize_features(X)], 8).weights
    return weights, mask


def test_masses_are_corrected_by_the_formula(library):
    _, mask = problem()
    rng = np.random.RandomState(0)
    P, support = (np.where(mask, rng.random_sample(mask.shape), 0.0) for _ in range(2))
    P /= P.sum(axis=1, keepdims=True)
    expected = np.array([30.0, 10.0, 15.0, 5.0])
    balanced = support / P.sum(axis=0) ** 0.5
    balanced /= balanced.sum(axis=1, keepdims=True)
    held = support / support.sum(axis=1, keepdims=True)
    for _ in range(N_STEPS):
        held *= (expected + HALF_AN_INSTANCE) / (held.sum(axis=0) + HALF_AN_INSTANCE)
        held /= held.sum(axis=1, keepdims=True)
    for options, new in (
        ({"balance": 0.5}, balanced),
        ({"balance": 0.5, "expected_mass": library.array(expected)}, held),
    ):
        found = normalise_masses(DenseLayout(), library.array(support), library.array(P), **options)
        np.testing.assert_allclose(to_host(found), new)
        if library.name == "numpy":
            layout = PackedLayout(mask)
            packed = normalise_masses(layout, layout.pack(support), layout.pack(P), **options)
            np.testing.assert_allclose(layout.unpack(packed), new)


def test_without_correction_support_is_normalised(library):
    support = library.array([[1.0, 3.0], [2.0, 2.0]])
    found = normalise_masses(DenseLayout(), support, library.array([[0.5, 0.5], [1.0, 0.0]]))
    np.testing.assert_allclose(to_host(found), [[0.25, 0.75], [0.5, 0.5]])


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


def test_capacities_that_can_be_met_are_met():
    weights, mask = problem()
    everything = np.ones_like(mask)
    wanted = np.array([30.0, 15.0, 10.0, 5.0])
    found = match(LocalAffinity(weights, everything), everything, expected_mass=wanted)
    np.testing.assert_allclose(found.probabilities.sum(axis=0), wanted, atol=1.0)


def test_priors_of_ones_change_nothing_and_strong_ones_decide():
    weights, mask = problem()
    affinity = LocalAffinity(weights, mask)
    plain = match(affinity, mask, balance=0.5)
    ones = match(affinity, mask, balance=0.5, priors=np.ones(mask.shape))
    np.testing.assert_array_equal(plain.probabilities, ones.probabilities)
    chosen = mask.argmax(axis=1)
    strong = np.full(mask.shape, 1e-9)
    strong[np.arange(60), chosen] = 1.0
    decided = match(affinity, mask, priors=strong).probabilities
    supported = (weights @ (mask * 1.0))[np.arange(60), chosen] > 0
    np.testing.assert_array_equal(decided.argmax(axis=1)[supported], chosen[supported])
