import sys
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from gmpll.arrays import to_host
from gmpll.engines import Neighbors, engine_of
from gmpll.engines import numpy as module
from gmpll.engines.numpy import NumpyEngine
from gmpll.graph.neighbors import nearest_neighbors, warn_of_few_rows
from problems import problems

needs_numba = pytest.mark.skipif(module.find_spec("numba") is None, reason="numba is not installed")


@pytest.fixture
def without_numba(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "numba", None)


choose_search = engine_of(np.zeros(1)).choose_search


def approximate_neighbors(rows, k, random_state=0):
    engine = engine_of(rows)
    return engine.nearest_neighbors(rows, k, search="approximate", random_state=random_state)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(problem=problems())
def test_every_library_finds_the_nearest(library, problem):
    X, _, _ = problem
    for queries in (None, X[:3] + 0.1):
        Q = X if queries is None else queries
        distances = np.linalg.norm(Q[:, None] - X, axis=2)
        if queries is None:
            np.fill_diagonal(distances, np.inf)
        found = nearest_neighbors(
            library.array(X), 3, None if queries is None else library.array(queries)
        )
        indices, measured = to_host(found.indices), to_host(found.distances)
        np.testing.assert_allclose(measured, np.sort(distances, axis=1)[:, :3], atol=1e-6)
        np.testing.assert_allclose(
            np.take_along_axis(distances, indices, axis=1), measured, atol=1e-6
        )
        assert all(len(set(row)) == len(row) for row in indices.tolist())


def test_a_row_is_not_its_own_neighbour_but_its_copy_is(library):
    found = nearest_neighbors(library.array(np.array([[0.0, 1.0], [0.0, 1.0], [5.0, 5.0]])), 5)
    assert to_host(found.indices)[:2, 0].tolist() == [1, 0]
    assert to_host(found.distances)[:2, 0].tolist() == [0.0, 0.0]
    assert found.indices.shape == (3, 2)


def test_fewer_rows_than_neighbours(library):
    X = library.array(np.random.RandomState(0).randn(5, 3))
    assert sorted(to_host(nearest_neighbors(X, 40).indices)[0]) == [1, 2, 3, 4]
    unseen = nearest_neighbors(X, 40, X)
    assert to_host(unseen.indices)[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert unseen.indices.shape == (5, 5)


def test_blocks_of_tensors_change_nothing(monkeypatch):
    torch = pytest.importorskip("torch")
    X = torch.from_numpy(np.random.RandomState(0).randn(60, 4))
    whole = nearest_neighbors(X, 4)
    monkeypatch.setattr("gmpll.engines.torch.BLOCK_BYTES", 8 * 60 * 7)
    assert torch.equal(whole.indices, nearest_neighbors(X, 4).indices)


def test_few_rows_are_warned_of():
    with pytest.warns(UserWarning, match="PLKNN was given n_samples=10 rows"):
        warn_of_few_rows("PLKNN", n_neighbors=10, n_samples=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_few_rows("PLKNN", n_neighbors=10, n_samples=11)


@needs_numba
def test_most_approximate_neighbours_are_the_true_ones():
    rows = np.random.RandomState(0).randn(2000, 12)
    found = approximate_neighbors(rows, 10, random_state=0)
    exact = nearest_neighbors(rows, 10)
    shared = [len(np.intersect1d(a, b)) for a, b in zip(found.indices, exact.indices, strict=True)]
    assert np.mean(shared) > 9
    assert NumpyEngine().recall(rows, found) == pytest.approx(np.mean(shared) / 10, abs=0.05)
    assert (np.diff(found.distances, axis=1) >= 0).all()
    measured = np.linalg.norm(rows[:, None] - rows[found.indices], axis=2)
    np.testing.assert_allclose(found.distances, measured, rtol=1e-4)


@needs_numba
def test_the_approximate_search_is_repeatable():
    rows = np.random.RandomState(1).randn(1500, 8)
    first, again = (approximate_neighbors(rows, 10, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.indices, again.indices)
    np.testing.assert_array_equal(first.distances, again.distances)


@needs_numba
@pytest.mark.parametrize("copies", [30, 600])
def test_no_row_is_its_own_approximate_neighbour(copies):
    rows = np.repeat(np.random.RandomState(2).randn(600 // copies, 5), copies, axis=0)
    found = approximate_neighbors(rows, 20, random_state=0)
    assert found.indices.shape == (600, 20)
    assert (found.indices != np.arange(600)[:, None]).all()
    assert found.indices.min() >= 0
    assert found.distances.max() == 0


@needs_numba
def test_rows_that_were_not_served_are_searched_exactly(monkeypatch):
    from gmpll.engines import cells

    rows = np.random.RandomState(3).randn(40, 4)
    exact = nearest_neighbors(rows, 5)

    def with_failures(rows, k, rng):
        indices = exact.indices.astype(np.int32)
        distances = exact.distances.astype(np.float32)
        indices[7, 3:], distances[7, 3:] = -1, np.inf
        return distances, indices

    monkeypatch.setattr(cells, "neighbors_in_cells", with_failures)
    found = approximate_neighbors(rows, 5)
    np.testing.assert_array_equal(found.indices, exact.indices)
    np.testing.assert_allclose(found.distances, exact.distances, rtol=1e-6)


@pytest.mark.parametrize("n_rows", [1, 3])
def test_few_rows_have_few_approximate_neighbours(n_rows):
    if n_rows > 1:
        pytest.importorskip("numba")
    found = approximate_neighbors(np.arange(float(n_rows))[:, None], 10)
    assert found.indices.shape == (n_rows, n_rows - 1)


def test_recall_counts_the_true_neighbours():
    rows = np.arange(30.0)[:, None]
    exact = nearest_neighbors(rows, 4)
    distances = exact.distances.copy()
    distances[:, -1] = 100.0  # one of four is far away
    assert NumpyEngine().recall(rows, exact) == 1.0
    assert NumpyEngine().recall(rows, Neighbors(distances, exact.indices)) == 0.75


def test_auto_is_exact_for_few_rows_and_in_few_dimensions():
    many = module.APPROXIMATE_ROWS
    assert choose_search("auto", many - 1, 64) == "exact"
    assert choose_search("auto", 100 * many, module.TREE_FEATURES) == "exact"
    assert choose_search("exact", 100 * many, 64) == "exact"


@needs_numba
def test_auto_is_approximate_for_many_rows():
    assert choose_search("auto", module.APPROXIMATE_ROWS, 64) == "approximate"
    assert choose_search("approximate", 10, 2) == "approximate"


@pytest.mark.usefixtures("without_numba")
def test_without_the_extra_the_search_is_exact_and_says_so():
    with pytest.warns(UserWarning, match=r"200000 rows.*pip install 'gmpll\[neighbors\]'"):
        assert choose_search("auto", 200_000, 64) == "exact"
    with pytest.raises(ImportError, match=r"pip install 'gmpll\[neighbors\]'"):
        choose_search("approximate", 100, 64)
