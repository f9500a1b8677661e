import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmpll.graph.local import LocalGraph
from gmpll.matching import LocalAffinity, match
from literal import assignments
from problems import problems, random_label_similarity


def dense_affinity(W, mask, A2):
    pairs = assignments(mask)
    return np.array([[A2[la, lb] * W[i, j] for j, lb in pairs] for i, la in pairs])


@settings(max_examples=30, deadline=None)
@given(problem=problems(), with_similarity=st.booleans())
def test_product_sums_and_statistics_equal_the_dense_affinity(problem, with_similarity):
    X, mask, _ = problem
    rng = np.random.RandomState(0)
    A2 = random_label_similarity(rng, mask.shape[1]) if with_similarity else None
    weights = LocalGraph(X, 3).weights
    operator = LocalAffinity(weights, mask, A2)
    K = dense_affinity(weights.toarray(), mask, np.eye(mask.shape[1]) if A2 is None else A2)
    where = tuple(np.array(assignments(mask)).T)
    P = np.where(mask, rng.random_sample(mask.shape), 0.0)
    np.testing.assert_allclose(operator.apply(P)[where], K @ P[where], atol=1e-12)
    np.testing.assert_allclose(operator.row_sums()[where], K.sum(axis=1), atol=1e-12)
    assert operator.statistics().mean == pytest.approx(K.mean(), abs=1e-12)
    assert operator.statistics().std == pytest.approx(K.std(), abs=1e-7)


@settings(max_examples=30, deadline=None)
@given(problem=problems())
def test_the_objective_never_falls_without_balance(problem):
    X, mask, _ = problem
    path = match(LocalAffinity(LocalGraph(X, 4).weights, mask), mask, tol=0.0).objective_path
    assert (np.diff(path) >= -1e-10 * np.abs(path[1:])).all()
