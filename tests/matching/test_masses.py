import numpy as np
import pytest
import scipy.sparse as sp

from gmpll.arrays import to_host
from gmpll.graph.local import LocalGraphs
from gmpll.graph.new_rows import NewEdges
from gmpll.matching import DenseLayout, LocalAffinity, match
from gmpll.matching.affinity import PackedLayout
from gmpll.matching.clamped import ClampedAffinity
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


def literally_drawn(support, P, expected_mass, fixed=0.0):
    """The steps one by one; rows without any support, or probabilities, stay as they are."""

    def normalised(values, fallback):
        total = values.sum(axis=1, keepdims=True)
        return np.where(total > 0, values / np.where(total > 0, total, 1.0), fallback)

    held = normalised(support, P)
    for _ in range(N_STEPS):
        mass = held.sum(axis=0) + fixed
        held = normalised(
            held * (expected_mass + HALF_AN_INSTANCE) / (mass + HALF_AN_INSTANCE), held
        )
    return held


@pytest.mark.parametrize("seed", range(4))
def test_all_steps_at_once_are_the_steps_one_by_one(library, seed):
    rng = np.random.RandomState(seed)
    mask = rng.random_sample((40, 7)) < 0.5
    mask[np.arange(40), rng.randint(6, size=40)] = True  # nobody must have the last label
    mask[:, 6] &= seed % 2 == 0
    P, support = (mask * rng.gamma(0.3, size=mask.shape) + 1e-9 * mask for _ in range(2))
    P /= P.sum(axis=1, keepdims=True)
    support[3] = support[20] = 0.0  # these keep what they have,
    P[20] = 0.0  # which is nothing
    support[4] *= 1e-290
    expected = 40.0 * rng.dirichlet(np.full(7, 0.3))
    expected[seed] = 0.0
    wanted = literally_drawn(support, P, expected)
    arrays = library.array(support), library.array(P)
    with np.errstate(all="raise", under="ignore"):
        found = to_host(normalise_masses(DenseLayout(), *arrays, expected_mass=expected))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(found[20], 0.0)
    if library.name == "numpy":
        layout = PackedLayout(mask)
        packed = layout.pack(support), layout.pack(P)
        with np.errstate(all="raise", under="ignore"):
            found = layout.unpack(normalise_masses(layout, *packed, expected_mass=expected))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


def test_masses_of_fixed_rows_count():
    rng = np.random.RandomState(0)
    fixed, support, P = (rng.dirichlet(np.ones(3), size=n) for n in (9, 5, 5))
    edges = NewEdges(sp.csr_array((5, 9)), sp.csr_array((5, 5)))
    layout = ClampedAffinity(edges, fixed).layout
    expected = np.array([9.0, 4.0, 1.0])
    found = normalise_masses(layout, support, P, expected_mass=expected)
    wanted = literally_drawn(support, P, expected, fixed.sum(axis=0))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_many_rows_that_resist_their_capacities_stay_finite(library, precision):
    support = np.ones((20_000, 2), dtype=precision)
    support[1:, 1] = 1e-30
    support[:3] = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    expected = np.array([0.0, 20_000.0])
    found = normalise_masses(
        DenseLayout(), *(library.array(support) for _ in range(2)), expected_mass=expected
    )
    found = to_host(found)
    assert found.dtype == precision
    np.testing.assert_array_equal(found[:3], support[:3])
    np.testing.assert_allclose(found[3:].sum(axis=1), 1.0, rtol=1e-6)
    wanted = literally_drawn(support.astype(float), support.astype(float), expected)
    np.testing.assert_allclose(found, wanted, rtol=1e-3 if precision == np.float32 else 1e-12)


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
