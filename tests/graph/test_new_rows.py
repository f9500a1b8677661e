import numpy as np
import pytest

from gmpll.graph.local import LocalGraphs
from gmpll.graph.new_rows import edges_of_new_rows


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
