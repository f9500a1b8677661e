import numpy as np
import pytest

from gmpll.graph.local import LocalGraph
from gmpll.matching import LocalAffinity, match, uniform_start
from gmpll.matching.same_label import SameLabelAffinity
from problems import random_problem


class Constant:
    """An affinity that gives every assignment a fixed support."""

    def __init__(self, support):
        self.support = support

    def apply(self, P):
        return self.support


def test_probabilities_follow_the_support():
    mask = np.array([[True, True, True]])
    found = match(Constant(np.array([[1.0, 2.0, 1.0]])), mask, max_iter=1)
    np.testing.assert_allclose(found.probabilities, [[0.25, 0.5, 0.25]])


def test_the_prior_weighs_the_support():
    mask = np.array([[True, True]])
    start = np.array([[0.9, 0.1]])
    found = match(Constant(np.array([[1.0, 3.0]])), mask, max_iter=1, start=start)
    np.testing.assert_allclose(found.probabilities, [[0.75, 0.25]])


def test_balance_divides_by_the_mass_of_the_label():
    mask = np.array([[True, True], [True, False], [True, False]])
    support = np.ones((3, 2))
    found = match(Constant(support), mask, balance=1.0, max_iter=1)
    mass = np.array([2.5, 0.5])
    expected = (1 / mass) / (1 / mass).sum()
    np.testing.assert_allclose(found.probabilities[0], expected)


def test_rows_stay_distributions_and_singletons_stay_certain():
    X, mask, _ = random_problem(11, m=30)
    found = match(LocalAffinity(LocalGraph(X, 5).weights, mask), mask, balance=0.5)
    P = found.probabilities
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (P[~mask] == 0).all()
    single = mask.sum(axis=1) == 1
    np.testing.assert_array_equal(P[single], mask[single].astype(float))
    assert len(found.objective_path) == found.n_iter


def test_convergence_is_reported():
    X, mask, _ = random_problem(11, m=30)
    operator = LocalAffinity(LocalGraph(X, 5).weights, mask)
    assert not match(operator, mask, tol=0.0, max_iter=3).converged
    assert match(operator, mask, tol=10.0).n_iter == 1


def test_the_start_has_the_precision_asked_for():
    mask = np.array([[True, True], [False, True]])
    assert uniform_start(mask).dtype == np.float64
    single = uniform_start(mask, np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, [[0.5, 0.5], [0.0, 1.0]])


def test_turns_are_double_whatever_the_start():
    mask = np.array([[True, True]])
    start = np.array([[0.5, 0.5]], dtype=np.float32)
    found = match(Constant(np.array([[1.0, 2.0]])), mask, start=start, max_iter=1)
    assert found.probabilities.dtype == np.float64
    np.testing.assert_allclose(found.probabilities, [[1 / 3, 2 / 3]], rtol=1e-14)
    whole = match(Constant(np.array([[1.0, 2.0]])), mask, start=np.array([[0, 1]]), max_iter=1)
    assert whole.probabilities.dtype == np.float64


def test_the_objective_is_that_before_every_turn():
    mask = np.array([[True, True]])
    found = match(Constant(np.array([[1.0, 3.0]])), mask, max_iter=2, tol=0.0)
    np.testing.assert_allclose(found.objective_path, [2.0, 0.25 * 1.0 + 0.75 * 3.0])


def test_without_support_the_start_is_kept_and_nothing_is_divided_by_zero():
    mask = np.array([[True, True, False], [True, True, False]])
    start = np.array([[0.3, 0.7, 0.0], [0.5, 0.5, 0.0]])
    support = np.array([[0.0, 0.0, 0.0], [1.0, 3.0, 0.0]])
    with np.errstate(all="raise"):
        found = match(Constant(support), mask, balance=0.5, start=start, max_iter=1)
    np.testing.assert_array_equal(found.probabilities[0], start[0])
    mass = np.array([0.8, 1.2])
    expected = np.array([1.0, 3.0]) / mass**0.5
    np.testing.assert_allclose(found.probabilities[1, :2], expected / expected.sum())
    assert found.probabilities[1, 2] == 0


def test_converged_means_moved_by_less_than_tol():
    mask, support = np.array([[True, True]]), Constant(np.array([[1.0, 0.0]]))
    moved = float(np.linalg.norm([0.5, -0.5]))
    exactly = match(support, mask, tol=moved, max_iter=1)
    assert not exactly.converged
    more = match(support, mask, tol=np.nextafter(moved, 1), max_iter=1)
    assert more.converged
    settled = match(support, mask)
    assert settled.converged
    assert settled.n_iter == 2  # the second turn moves nothing


def test_a_packed_affinity_is_asked_instead():
    X, mask, _ = random_problem(3, m=20)
    weights = LocalGraph(X, 4).weights

    class OnlyPacked:
        def packed(self, mask):
            return SameLabelAffinity(weights, mask)

        def apply(self, P):
            pytest.fail("The matching did not use the packed affinity.")

    class NeverPacked(LocalAffinity):
        def packed(self, mask):
            return None

    rng = np.random.RandomState(0)
    start = np.where(mask, rng.random_sample(mask.shape), 0.0)
    arguments = {
        "balance": 0.5,
        "max_iter": 4,
        "tol": 0.0,
        "start": start / start.sum(axis=1, keepdims=True),
        "unary": rng.random_sample(mask.shape),
        "expected_mass": np.array([[8.0, 6.0, 4.0, 2.0]]),
    }
    for left_out in (set(), {"start"}, {"unary"}, {"expected_mass"}):
        some = {name: value for name, value in arguments.items() if name not in left_out}
        found = match(OnlyPacked(), mask, **some)
        expected = match(NeverPacked(weights, mask), mask, **some)
        np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-12)
        assert found.n_iter == 4
