import numpy as np
import pytest
from scipy.optimize import nnls

from gmpll.arrays import to_host
from gmpll.graph.reconstruction import reconstruction_weights

SUM_WEIGHT = 1e5  # of the row that makes nnls keep the sum


def loop(queries, rows, neighbors, sum_to_one):
    result = []
    for x, near in zip(queries, neighbors, strict=True):
        system, right = rows[near].T, x
        if sum_to_one:
            system = np.vstack([system, SUM_WEIGHT * np.ones(len(near))])
            right = np.append(right, SUM_WEIGHT)
        result.append(nnls(system, right)[0])
    return np.array(result)


def residual(queries, rows, neighbors, weights):
    return np.linalg.norm(queries - np.einsum("nk,nkd->nd", weights, rows[neighbors]), axis=1)


@pytest.mark.parametrize("sum_to_one", [True, False])
@pytest.mark.parametrize("d", [10, 12, 40])
def test_weights_equal_a_loop_over_nnls(sum_to_one, d):
    rng = np.random.RandomState(0)
    rows, queries = rng.randn(80, d), rng.randn(150, d)
    neighbors = np.array([rng.choice(80, 10, replace=False) for _ in queries])
    weights = reconstruction_weights(queries, rows, neighbors, sum_to_one=sum_to_one)
    np.testing.assert_allclose(weights, loop(queries, rows, neighbors, sum_to_one), atol=1e-6)
    assert weights.min() >= 0
    if sum_to_one:
        np.testing.assert_allclose(weights.sum(axis=1), 1.0)


@pytest.mark.parametrize("sum_to_one", [True, False])
def test_the_residual_is_minimal_where_the_weights_are_not_unique(sum_to_one):
    rng = np.random.RandomState(1)
    rows, queries = np.repeat(rng.randn(20, 3), 4, axis=0), rng.randn(100, 3)
    neighbors = np.array([rng.choice(80, 10, replace=False) for _ in queries])
    weights = reconstruction_weights(queries, rows, neighbors, sum_to_one=sum_to_one)
    best = loop(queries, rows, neighbors, sum_to_one)
    assert weights.min() >= 0
    assert (
        residual(queries, rows, neighbors, weights)
        <= residual(queries, rows, neighbors, best) + 1e-4
    ).all()


def test_a_query_among_its_neighbours_is_reconstructed_by_itself():
    rng = np.random.RandomState(2)
    rows = rng.randn(10, 20)
    weights = reconstruction_weights(rows[:3], rows, np.tile(np.arange(5), (3, 1)))
    np.testing.assert_allclose(weights, np.eye(3, 5), atol=1e-6)


def test_blocks_do_not_change_the_answer(monkeypatch):
    rng = np.random.RandomState(3)
    rows, queries = rng.randn(30, 15), rng.randn(25, 15)
    neighbors = np.array([rng.choice(30, 6, replace=False) for _ in queries])
    whole = reconstruction_weights(queries, rows, neighbors)
    monkeypatch.setattr("gmpll.engines.numpy.MAP_BYTES", 8 * 6 * 15 * 4)
    np.testing.assert_allclose(reconstruction_weights(queries, rows, neighbors), whole, atol=1e-9)


def test_zero_rows_and_no_neighbours():
    zero = np.zeros((3, 4))
    weights = reconstruction_weights(zero, zero, np.array([[0, 1], [1, 2], [0, 2]]))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    empty = reconstruction_weights(zero, zero, np.zeros((3, 0), dtype=int))
    assert empty.shape == (3, 0)


@pytest.mark.parametrize("sum_to_one", [True, False])
@pytest.mark.parametrize("d", [2, 4, 10, 30])
def test_no_weight_can_be_moved_to_gain_anything(sum_to_one, d):
    """The optimality conditions, which hold whether or not the minimiser is unique."""
    rng = np.random.RandomState(4)
    rows, queries = rng.randn(60, d), 0.5 * rng.randn(200, d)
    neighbors = np.array([rng.choice(60, 10, replace=False) for _ in queries])
    weights = reconstruction_weights(queries, rows, neighbors, sum_to_one=sum_to_one)
    error = queries - np.einsum("nk,nkd->nd", weights, rows[neighbors])
    gain = np.einsum("nd,nkd->nk", error, rows[neighbors])  # of making a weight larger
    if sum_to_one:
        gain -= (gain * weights).sum(axis=1, keepdims=True)
    assert gain.max() < 1e-7
    assert np.abs(gain[weights > 0]).max() < 1e-7
    assert weights.min() >= 0


def test_dependent_neighbours_are_chosen_one_by_one():
    """Of copies of a row the first serves; weights are not spread by rounding errors."""
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    weights = reconstruction_weights(np.array([[0.5, 0.5]]), rows, np.array([[0, 1, 2]]))
    np.testing.assert_allclose(weights, [[0.5, 0.0, 0.5]], atol=1e-9)


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_the_size_of_the_differences_does_not_matter(size):
    rng = np.random.RandomState(5)
    rows, queries = rng.randn(60, 4), rng.randn(100, 4)
    neighbors = np.array([rng.choice(60, 10, replace=False) for _ in queries])
    weights = reconstruction_weights(queries, rows, neighbors)
    moved = reconstruction_weights(1.0 + size * queries, 1.0 + size * rows, neighbors)
    np.testing.assert_allclose(moved, weights, atol=1e-5)


def test_single_precision_rows_and_small_integers_are_taken():
    rng = np.random.RandomState(6)
    rows, queries = rng.randn(20, 8).astype(np.float32), rng.randn(5, 8).astype(np.float32)
    neighbors = np.array([rng.choice(20, 4, replace=False) for _ in queries], dtype=np.int32)
    weights = reconstruction_weights(queries, rows, neighbors)
    np.testing.assert_allclose(weights, loop(queries, rows, neighbors, True), atol=1e-4)


@pytest.mark.parametrize("sum_to_one", [True, False])
def test_every_library_finds_the_same(library, sum_to_one):
    rng = np.random.RandomState(7)
    rows, queries = rng.randn(50, 12), rng.randn(20, 12)
    neighbors = np.array([rng.choice(50, 6, replace=False) for _ in queries])
    arrays = [library.array(values) for values in (queries, rows, neighbors)]
    found = to_host(reconstruction_weights(*arrays, sum_to_one=sum_to_one))
    np.testing.assert_allclose(found, loop(queries, rows, neighbors, sum_to_one), atol=1e-6)
