import numpy as np
import pytest

from gmpll.graph import local
from gmpll.graph.local import LocalGraph, LocalGraphs
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


def test_neighbours_that_are_known_are_not_searched_again(monkeypatch):
    X, _, _ = random_problem(3, m=30)
    graph, queries = LocalGraph(X[:20], 5), X[20:]
    near = nearest_neighbors(X[:20], 12, queries)
    expected = graph.to_queries(queries).toarray()
    monkeypatch.setattr(local, "nearest_neighbors", None)
    np.testing.assert_allclose(graph.to_queries(queries, near).toarray(), expected, rtol=1e-12)


def test_the_weights_of_views_add_up():
    X, _, _ = random_problem(4, m=30)
    views = [X, X[:, :2]]
    graphs = LocalGraphs([view[:25] for view in views], 5)
    each = [LocalGraph(view[:25], 5) for view in views]
    np.testing.assert_allclose(
        graphs.weights.toarray(), sum(graph.weights.toarray() for graph in each)
    )
    np.testing.assert_allclose(
        graphs.to_queries([view[25:] for view in views]).toarray(),
        sum(graph.to_queries(view[25:]).toarray() for graph, view in zip(each, views, strict=True)),
    )
    assert graphs.recall == 1.0


def test_blocks_of_rows_do_not_change_the_graph(monkeypatch):
    X, _, _ = random_problem(5, m=40, duplicates=True)
    whole = LocalGraph(X, 6).weights
    monkeypatch.setattr(local, "BLOCK_ROWS", 7)
    parts = LocalGraph(X, 6).weights
    np.testing.assert_array_equal(parts.toarray(), whole.toarray())
    assert parts.has_sorted_indices
    assert parts.indices.dtype == parts.indptr.dtype == np.int32


def test_an_approximate_graph_is_in_single_precision_and_knows_its_recall():
    pytest.importorskip("numba")
    X = np.random.RandomState(6).randn(1200, 10)
    graph = LocalGraph(X, 8, neighbors="approximate", random_state=0)
    exact = LocalGraph(X, 8, neighbors="exact")
    assert graph.weights.dtype == np.float32
    assert graph.search == "approximate"
    assert 0.9 < graph.recall <= 1.0
    assert exact.recall == 1.0
    close = np.isclose(graph.weights.toarray(), exact.weights.toarray(), atol=1e-4)
    assert close.mean() > 0.99
    np.testing.assert_array_equal(graph.weights.toarray(), graph.weights.toarray().T)
