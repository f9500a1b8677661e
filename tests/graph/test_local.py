import numpy as np
import pytest

from gmpll.graph.local import LocalGraph
from gmpll.graph.neighbors import nearest_neighbors
from problems import random_problem


def literal_weights(X, k, scale_neighbor=7):
    m = len(X)
    D = np.linalg.norm(X[:, None] - X[None, :], axis=2)
    near = [
        np.argsort(np.where(np.arange(m) == i, np.inf, D[i]), kind="stable")[:k] for i in range(m)
    ]
    sigma = [D[i, near[i][min(scale_neighbor, k) - 1]] for i in range(m)]
    W = np.zeros((m, m))
    for i in range(m):
        for j in near[i]:
            W[i, j] = np.exp(-(D[i, j] ** 2) / (sigma[i] * sigma[j]))
    return np.maximum(W, W.T)


@pytest.mark.parametrize("k", [3, 10])
def test_weights_equal_the_definition(k):
    X, _, _ = random_problem(0, m=25)
    np.testing.assert_allclose(LocalGraph(X, k).weights.toarray(), literal_weights(X, k), atol=1e-9)


def test_the_graph_is_symmetric_without_loops():
    X, _, _ = random_problem(1, m=30, duplicates=True)
    W = LocalGraph(X, 5).weights.toarray()
    np.testing.assert_array_equal(W, W.T)
    assert (np.diag(W) == 0).all()
    assert np.isfinite(W).all()
    assert W.min() >= 0
    assert W.max() <= 1


def test_copies_of_one_row_are_fully_related():
    W = LocalGraph(np.ones((5, 3)), 10).weights.toarray()
    np.testing.assert_array_equal(W, 1 - np.eye(5))


def test_one_row_has_no_neighbours():
    assert LocalGraph(np.ones((1, 3)), 10).weights.nnz == 0
    assert nearest_neighbors(np.ones((1, 3)), 4).indices.shape == (1, 0)


def test_queries_are_weighted_like_rows():
    X, _, _ = random_problem(2, m=30)
    graph = LocalGraph(X[:-1], 29)
    weights = graph.to_queries(X[-1:]).toarray()[0]
    d = np.linalg.norm(X[:-1] - X[-1], axis=1)
    expected = np.exp(-(d**2) / (np.sort(d)[6] * graph.scales))
    np.testing.assert_allclose(weights, expected)
