import numpy as np
import scipy.sparse as sp

from gmpll.graph.new_rows import NewEdges
from gmpll.matching import LocalAffinity, match
from gmpll.matching.clamped import ClampedAffinity
from problems import random_label_similarity


def problem(seed, n_fixed=8, n_new=5, q=3):
    rng = np.random.RandomState(seed)
    weights = rng.random_sample((n_fixed + n_new, n_fixed + n_new)) * (
        rng.random_sample((n_fixed + n_new, n_fixed + n_new)) < 0.5
    )
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    fixed = rng.dirichlet(np.ones(q), size=n_fixed)
    new = rng.dirichlet(np.ones(q), size=n_new)
    edges = NewEdges(
        sp.csr_array(weights[n_fixed:, :n_fixed]), sp.csr_array(weights[n_fixed:, n_fixed:])
    )
    return weights, edges, fixed, new


def test_support_and_masses_are_those_of_all_rows_together():
    weights, edges, fixed, new = problem(0)
    similarity = random_label_similarity(np.random.RandomState(1), 3)
    together = np.vstack([fixed, new])
    whole = LocalAffinity(sp.csr_array(weights), np.ones(together.shape, dtype=bool), similarity)
    clamped = ClampedAffinity(edges, fixed, similarity)
    np.testing.assert_allclose(clamped.apply(new), whole.apply(together)[len(fixed) :])
    np.testing.assert_allclose(clamped.layout.class_mass(new), together.sum(axis=0))


def test_an_iteration_is_one_of_all_rows_in_which_the_fixed_ones_do_not_move():
    weights, edges, fixed, new = problem(2)
    mask = np.ones(new.shape, dtype=bool)
    P = new
    for _ in range(4):
        support = P * (weights[len(fixed) :] @ np.vstack([fixed, P]))
        support /= (fixed.sum(axis=0) + P.sum(axis=0)) ** 0.5
        P = support / support.sum(axis=1, keepdims=True)
    found = match(ClampedAffinity(edges, fixed), mask, balance=0.5, start=new, max_iter=4, tol=0.0)
    np.testing.assert_allclose(found.probabilities, P)
