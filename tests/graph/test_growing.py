import numpy as np
import pytest

from gmpll.graph.growing import edges_of_new_rows, grown_graphs
from gmpll.graph.local import LocalGraph, LocalGraphs
from gmpll.graph.neighbors import nearest_neighbors


def some_rows(seed, m=40, d=3):
    return np.random.RandomState(seed).randn(m, d)


def grown(rows, first, k):
    """The graph of the first rows with all others added at once."""
    return grown_graphs(LocalGraphs([rows[:first]], k), [rows[first:]]).graphs[0]


@pytest.mark.parametrize("first", [1, 3, 20, 39])
@pytest.mark.parametrize("k", [2, 10, 60])
def test_a_grown_graph_is_the_graph_of_all_rows(first, k):
    rows = some_rows(first)
    expected = LocalGraph(rows, k)
    found = grown(rows, first, k)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_allclose(found.scales, expected.scales, atol=1e-7)
    np.testing.assert_allclose(found.weights.toarray(), expected.weights.toarray(), atol=1e-6)


def test_rows_are_added_to_numpy_arrays_only(library):
    if library.name == "numpy":
        return
    rows = library.array(some_rows(0))
    with pytest.raises(ValueError, match="Rows can only be added to the graph of NumPy arrays"):
        grown(rows, 20, 5)
    with pytest.raises(ValueError, match="Rows can only be added to the graph of NumPy arrays"):
        edges_of_new_rows(LocalGraphs([rows], 5), [rows])


def test_copies_of_rows_are_neighbours_and_no_row_is_its_own():
    rows = some_rows(0)
    rows[[20, 30, 39]] = rows[0]
    near = grown(rows, 25, 5).near
    expected = nearest_neighbors(rows, 5)  # which of several copies is a neighbour is open
    np.testing.assert_allclose(near.distances, expected.distances, atol=1e-7)
    for row, copies in {0: {20, 30, 39}, 39: {0, 20, 30}}.items():
        assert set(near.indices[row, :3].tolist()) == copies
    assert (near.indices != np.arange(40)[:, None]).all()


def test_rows_can_be_added_one_by_one():
    rows = np.random.RandomState(0).randn(25, 2)
    graphs = LocalGraphs([rows[:2]], 4)
    for row in rows[2:]:
        graphs = grown_graphs(graphs, [row[None, :]])
    expected = LocalGraph(rows, 4).weights.toarray()
    np.testing.assert_allclose(graphs.weights.toarray(), expected, atol=1e-6)


def test_graphs_of_several_views_grow_together_and_stay_as_they_were():
    views = [some_rows(0), some_rows(1, d=5)]
    fitted = LocalGraphs([view[:25] for view in views], 6)
    before = fitted.weights.toarray()
    found = grown_graphs(fitted, [view[25:] for view in views])
    expected = LocalGraphs(views, 6).weights.toarray()
    np.testing.assert_allclose(found.weights.toarray(), expected, atol=1e-6)
    queries = [view[:4] + 0.1 for view in views]
    np.testing.assert_allclose(
        found.to_queries(queries).toarray(),
        LocalGraphs(views, 6).to_queries(queries).toarray(),
        atol=1e-6,
    )
    near = found.graphs[0].near.indices.copy()
    grown_graphs(found, [view[:2] + 0.2 for view in views])
    np.testing.assert_array_equal(found.graphs[0].near.indices, near)
    np.testing.assert_array_equal(fitted.weights.toarray(), before)
    assert fitted.graphs[0].near is None


def literal_edges(rows, new, k):
    """Weights of the new rows to all rows, from the definition, one-sided."""

    def neighbours(x, others):
        distance = np.linalg.norm(others - x, axis=1)
        order = np.argsort(distance)[:k]
        return order, distance, distance[order][min(7, len(order)) - 1]

    fitted_scales = [neighbours(x, np.delete(rows, i, axis=0))[2] for i, x in enumerate(rows)]
    together = np.vstack([rows, new])
    found = []
    for j, x in enumerate(new):
        others = np.delete(np.arange(len(together)), len(rows) + j)
        order, distance, scale = neighbours(x, together[others])
        found.append((others[order], distance[order], scale))
    scales = np.array([*fitted_scales, *(scale for *_, scale in found)])
    weights = np.zeros((len(new), len(together)))
    for j, (indices, distances, scale) in enumerate(found):
        weights[j, indices] = np.exp(-(distances**2) / (scale * scales[indices]))
    return weights


@pytest.mark.parametrize("n_new", [1, 2, 15])
def test_edges_of_new_rows_are_those_of_the_definition(n_new):
    rng = np.random.RandomState(n_new)
    rows, new = rng.randn(30, 3), rng.randn(n_new, 3)
    expected = literal_edges(rows, new, 9)
    among = expected[:, 30:]
    edges = edges_of_new_rows(LocalGraphs([rows], 9), [new])
    np.testing.assert_allclose(edges.to_graph.toarray(), expected[:, :30], atol=1e-7)
    np.testing.assert_allclose(edges.among.toarray(), np.maximum(among, among.T), atol=1e-7)
