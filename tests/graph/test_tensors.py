"""Tensors against the NumPy classes, in double precision up to rounding."""

import numpy as np
import pytest
from hypothesis import given, settings

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from gmpll.graph.local import LocalGraph  # noqa: E402
from gmpll.graph.neighbors import nearest_neighbors  # noqa: E402
from gmpll.graph.tensors import (  # noqa: E402
    TensorDirectionSpace,
    TensorLocalGraph,
    tensor_nearest_neighbors,
)
from gmpll.graph.views import DirectionSpace  # noqa: E402
from problems import problems, random_problem  # noqa: E402


@settings(max_examples=30, deadline=None)
@given(problem=problems())
def test_directions_equal_those_of_numpy(problem):
    X, _, _ = problem
    X = np.column_stack([X, np.full(len(X), 3.0)])  # a constant feature
    expected, found = DirectionSpace(X), TensorDirectionSpace(torch.from_numpy(X))
    np.testing.assert_allclose(found.rows.numpy(), expected.rows, atol=1e-9)
    unseen = X[:3] + 0.5
    np.testing.assert_allclose(
        found.transform(torch.from_numpy(unseen)).numpy(), expected.transform(unseen), atol=1e-9
    )


@settings(max_examples=30, deadline=None)
@given(problem=problems())
def test_distances_equal_those_of_numpy(problem):
    X, _, _ = problem
    for queries in (None, X[:3] + 0.1):
        expected = nearest_neighbors(X, 3, queries)
        found = tensor_nearest_neighbors(
            torch.from_numpy(X), 3, None if queries is None else torch.from_numpy(queries)
        )
        np.testing.assert_allclose(found.distances.numpy(), expected.distances, atol=1e-6)
        rows = X if queries is None else queries
        offsets = X[found.indices.numpy()] - rows[:, None, :]
        np.testing.assert_allclose(
            np.linalg.norm(offsets, axis=2), found.distances.numpy(), atol=1e-12
        )


def test_a_row_is_not_its_own_neighbour_but_its_copy_is():
    rows = torch.tensor([[0.0, 1.0], [0.0, 1.0], [5.0, 5.0]])
    found = tensor_nearest_neighbors(rows, 5)
    assert found.indices[:2, 0].tolist() == [1, 0]
    assert found.distances[:2, 0].tolist() == [0.0, 0.0]
    assert found.indices.shape == (3, 2)


def test_a_lonely_row_has_no_neighbours():
    graph = TensorLocalGraph(torch.ones(1, 2), 5)
    assert graph.weights.to_dense().tolist() == [[0.0]]


def test_blocks_of_queries_change_nothing(monkeypatch):
    X = torch.from_numpy(random_problem(0, m=60)[0])
    whole = tensor_nearest_neighbors(X, 4)
    monkeypatch.setattr("gmpll.graph.tensors.BLOCK_BYTES", 8 * 60 * 7)
    pieces = tensor_nearest_neighbors(X, 4)
    assert torch.equal(whole.indices, pieces.indices)


@pytest.mark.parametrize("seed", range(5))
def test_the_local_graph_equals_that_of_numpy(seed):
    X, _, _ = random_problem(seed, m=50)
    expected, found = LocalGraph(X, 9), TensorLocalGraph(torch.from_numpy(X), 9)
    np.testing.assert_allclose(
        found.weights.to_dense().numpy(), expected.weights.toarray(), atol=1e-12
    )
    np.testing.assert_allclose(found.scales.numpy(), expected.scales, atol=1e-12)
    unseen = X[:5] + 0.1
    np.testing.assert_allclose(
        found.to_queries(torch.from_numpy(unseen)).to_dense().numpy(),
        expected.to_queries(unseen).toarray(),
        atol=1e-12,
    )


def test_copies_of_a_row_have_weight_one():
    X = torch.tensor([[0.0, 1.0]] * 9 + [[4.0, 4.0]])
    weights = TensorLocalGraph(X, 8).weights.to_dense()
    assert (weights[:9, :9] + torch.eye(9) == 1).all()
    assert (weights == weights.T).all()
