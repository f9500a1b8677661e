import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="Dask is not installed")
pytest.importorskip("numba", reason="numba is not installed")

from gmpll import GMPLL  # noqa: E402
from gmpll.engines import Neighbors, engine_of  # noqa: E402
from gmpll.engines import dask_search as module  # noqa: E402
from gmpll.engines.dask import as_rows  # noqa: E402
from gmpll.engines.dask_search import Found, Numbered  # noqa: E402
from gmpll.graph.local import LocalGraph  # noqa: E402
from gmpll.graph.neighbors import nearest_neighbors  # noqa: E402


def search(X, k, partition_rows=170, **settings):
    rows = as_rows(X, partition_rows=partition_rows)
    settings = {f"gmpll.search-{name}": value for name, value in settings.items()}
    with dask.config.set(settings):
        found = engine_of(rows).nearest_neighbors(rows, k, search="approximate", random_state=0)
        return Neighbors(*(np.asarray(array) for array in found))


def true_share(X, found):
    reach = nearest_neighbors(X, found.indices.shape[1]).distances[:, -1:]
    return np.mean(found.distances <= reach * (1 + 1e-5))


@pytest.mark.parametrize("copies", [1, 40])
@pytest.mark.parametrize("n_groups", [1, 2, 5, 8])
def test_every_row_is_in_one_group_and_groups_are_even(n_groups, copies):
    rng = np.random.RandomState(0)
    X = np.repeat(rng.randn(4000 // copies, 6), copies, axis=0).astype(np.float32)
    rows = Numbered(np.arange(4000), X)
    sample = Numbered(*(values[::2] for values in rows))
    groups = module._random_groups(sample, n_groups, rng)
    collected = []
    for group in groups:
        before = module._collected(group, None, X[:1500], 0)
        collected.append(module._collected(group, before, X[1500:], 1500))
    numbers = np.concatenate([group.numbers for group in collected])
    np.testing.assert_array_equal(np.sort(numbers), np.arange(4000))
    sizes = np.array([len(group.numbers) for group in collected])
    assert sizes.max() < 1.3 * 4000 / n_groups
    for group in collected:
        np.testing.assert_array_equal(group.rows, X[group.numbers])


def test_copies_of_one_row_are_divided_evenly_too():
    rows = Numbered(np.arange(1000), np.ones((1000, 3), dtype=np.float32))
    groups = module._random_groups(rows, 4, np.random.RandomState(0))
    sizes = [len(module._collected(group, None, rows.rows, 0).numbers) for group in groups]
    assert sum(sizes) == 1000
    assert max(sizes) < 300


def test_rounds_find_most_neighbours_and_their_distances():
    X = np.random.RandomState(1).randn(1500, 8)
    once = search(X, 6, rows=400, rounds=1)
    thrice = search(X, 6, rows=400, rounds=3)
    assert true_share(X, once) < true_share(X, thrice)
    assert true_share(X, thrice) > 0.8
    expected = np.linalg.norm(X[:, None] - X[thrice.indices], axis=2)
    np.testing.assert_allclose(thrice.distances, expected, rtol=1e-4)
    assert (np.diff(thrice.distances, axis=1) >= 0).all()
    with_self = np.c_[np.arange(1500), thrice.indices]
    assert all(len(set(row)) == 7 for row in with_self.tolist())


def test_a_single_group_is_searched_as_in_memory():
    X = np.random.RandomState(2).randn(500, 5)
    found = search(X, 4)
    np.testing.assert_allclose(found.distances, nearest_neighbors(X, 4).distances, rtol=1e-5)
    assert found.indices.dtype == np.int64


def test_a_row_that_is_found_twice_counts_once():
    before = np.array([[1.0, 3.0]]), np.array([[7, 9]])
    piece = Found(np.array([4]), np.array([[1.0, 2.0]]), np.array([[7, 8]]))
    distances, indices = module._merged([piece], 4, 1, 2, before)
    assert (distances.tolist(), indices.tolist()) == ([[1.0, 2.0]], [[7, 8]])


def test_groups_are_bounded_by_rows_number_and_bytes():
    assert module._number_of_groups(100_000, 32, 10) == 1
    assert module._number_of_groups(1_000_000, 32, 10) == 8
    assert module._number_of_groups(100_000_000, 32, 10) == 64
    assert module._number_of_groups(1_000_000, 2**12, 10) == 62  # of 256 MiB
    with dask.config.set({"gmpll.search-rows": 5}):
        assert module._number_of_groups(2200, 32, 10) == 10  # of twenty times as many rows
    with (
        dask.config.set({"gmpll.search-rows": -1}),
        pytest.raises(ValueError, match=r"gmpll\.search-rows is -1; it must be 1 or more"),
    ):
        module._number_of_groups(100, 32, 10)


def test_the_graph_estimates_its_recall():
    X = np.random.RandomState(3).randn(1200, 10)
    rows = as_rows(X, partition_rows=300)
    with dask.config.set({"gmpll.search-rows": 300}):
        graph = LocalGraph(rows, 8, neighbor_search="approximate", random_state=0)
    assert graph.search == "approximate"
    found = search(X, 8, 300, rows=300)
    assert graph.recall == pytest.approx(true_share(X, found), abs=0.06)
    assert 0.3 < graph.recall < 1.0


def test_labels_are_those_of_the_exact_search(problem):
    X = as_rows(problem.data, partition_rows=90)
    model = GMPLL("local", neighbor_search="approximate", max_iter=20, random_state=0)
    with dask.config.set({"gmpll.search-rows": 220}):
        found = np.asarray(model.fit(X, problem.candidates).labels_)
    assert 0.5 < model.neighbor_recall_ <= 1.0
    exact = GMPLL("local", max_iter=20, random_state=0).fit(problem.data, problem.candidates)
    assert np.mean(found == exact.labels_) > 0.9
