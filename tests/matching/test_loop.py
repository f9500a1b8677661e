import numpy as np

from gmpll.graph.local import LocalGraph
from gmpll.matching import LocalAffinity, match
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
