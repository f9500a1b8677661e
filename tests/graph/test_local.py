import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from gmpll.arrays import to_host
from gmpll.engines.numpy import NumpyEngine
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


def dense(weights, library):
    """The weights themselves: their product with the unit matrix."""
    return to_host(weights @ library.array(np.eye(weights.shape[1])))


@pytest.mark.parametrize("k", [3, 10, 40])
def test_weights_equal_the_definition(library, k):
    X, _, _ = random_problem(0, m=25)
    graph = LocalGraph(library.array(X), k)
    np.testing.assert_allclose(
        dense(graph.weights, library), literal_weights(X, min(k, 24)), atol=1e-9
    )
    assert graph.recall == 1.0


def test_the_graph_is_symmetric_without_loops():
    X, _, _ = random_problem(1, m=30, duplicates=True)
    W = LocalGraph(X, 5).weights.toarray()
    np.testing.assert_array_equal(W, W.T)
    assert (np.diag(W) == 0).all()
    assert np.isfinite(W).all()
    assert W.min() >= 0
    assert W.max() <= 1


def test_copies_of_one_row_are_fully_related(library):
    W = dense(LocalGraph(library.array(np.ones((5, 3))), 10).weights, library)
    np.testing.assert_array_equal(W, 1 - np.eye(5))


def test_one_row_has_no_neighbours(library):
    row = library.array(np.ones((1, 3)))
    assert dense(LocalGraph(row, 10).weights, library) == 0
    assert nearest_neighbors(row, 4).indices.shape == (1, 0)


def test_queries_are_weighted_like_rows(library):
    X, _, _ = random_problem(2, m=30)
    graph = LocalGraph(library.array(X[:-1]), 29)
    weights = dense(graph.to_queries(library.array(X[-1:])), library)[0]
    d = np.linalg.norm(X[:-1] - X[-1], axis=1)
    expected = np.exp(-(d**2) / (np.sort(d)[6] * to_host(graph.scales)))
    np.testing.assert_allclose(weights, expected)


def test_neighbours_that_are_known_are_not_searched_again(monkeypatch):
    X, _, _ = random_problem(3, m=30)
    graph, queries = LocalGraph(X[:20], 5), X[20:]
    near = nearest_neighbors(X[:20], 12, queries)
    expected = graph.to_queries(queries).toarray()
    monkeypatch.setattr(NumpyEngine, "nearest_neighbors", None)
    np.testing.assert_allclose(graph.to_queries(queries, near).toarray(), expected, rtol=1e-12)


def test_the_weights_of_views_add_up(library):
    X, _, _ = random_problem(4, m=30)
    views = [X, X[:, :2]]
    graphs = LocalGraphs([library.array(view[:25]) for view in views], 5)
    each = [LocalGraph(view[:25], 5) for view in views]
    np.testing.assert_allclose(
        dense(graphs.weights, library), sum(graph.weights.toarray() for graph in each), atol=1e-12
    )
    np.testing.assert_allclose(
        dense(graphs.to_queries([library.array(view[25:]) for view in views]), library),
        sum(graph.to_queries(view[25:]).toarray() for graph, view in zip(each, views, strict=True)),
        atol=1e-12,
    )
    assert graphs.recall == 1.0


def test_blocks_of_rows_do_not_change_the_graph(monkeypatch):
    X, _, _ = random_problem(5, m=40, duplicates=True)
    whole = LocalGraph(X, 6).weights
    monkeypatch.setattr("gmpll.engines.numpy.MAP_BYTES", 500)
    parts = LocalGraph(X, 6).weights
    np.testing.assert_array_equal(parts.toarray(), whole.toarray())
    assert parts.has_sorted_indices
    assert parts.indices.dtype == parts.indptr.dtype == np.int32


def test_an_approximate_graph_is_in_single_precision_and_knows_its_recall():
    pytest.importorskip("numba")
    X = np.random.RandomState(6).randn(1200, 10)
    graph = LocalGraph(X, 8, neighbor_search="approximate", random_state=0)
    exact = LocalGraph(X, 8, neighbor_search="exact")
    assert graph.weights.dtype == np.float32
    assert graph.search == "approximate"
    assert 0.9 < graph.recall <= 1.0
    assert exact.recall == 1.0
    close = np.isclose(graph.weights.toarray(), exact.weights.toarray(), atol=1e-4)
    assert close.mean() > 0.99
    np.testing.assert_array_equal(graph.weights.toarray(), graph.weights.toarray().T)


class Backwards:
    """A search of the user's own that happens to be exact, in single precision."""

    def fit(self, X):
        self.rows = X
        return self

    def kneighbors(self, X, n_neighbors):
        distances = np.linalg.norm(X[:, None] - self.rows, axis=2).astype(np.float32)
        order = np.argsort(distances, axis=1)[:, :n_neighbors]
        return np.take_along_axis(distances, order, axis=1), order


def test_any_estimator_of_neighbours_serves():
    X, _, _ = random_problem(7, m=30)
    expected = LocalGraph(X, 5).weights.toarray()
    for search in (NearestNeighbors(algorithm="ball_tree"), Backwards()):
        graph = LocalGraph(X, 5, neighbor_search=search)
        np.testing.assert_allclose(graph.weights.toarray(), expected, atol=1e-5)
        assert graph.recall == 1.0
        assert not hasattr(search, "n_samples_fit_")


def test_a_search_that_an_engine_does_not_have_is_refused(library):
    X = library.array(random_problem(8, m=30)[0])
    with pytest.raises(ValueError, match="'guess'"):
        LocalGraph(X, 5, neighbor_search="guess")
    if library.name == "torch":
        with pytest.raises(ValueError, match="searched exactly, not by 'approximate'"):
            LocalGraph(X, 5, neighbor_search="approximate")
    if library.name == "torch":
        with pytest.raises(ValueError, match="searched exactly, not by 'approximate'"):
            LocalGraph(X, 5, neighbor_search="approximate")
    if library.name != "numpy":
        with pytest.raises(ValueError, match="pass NumPy arrays"):
            LocalGraph(X, 5, neighbor_search=NearestNeighbors())
