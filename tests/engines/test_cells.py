import numpy as np
import pytest

pytest.importorskip("numba")

from gmpll import _threads as threads
from gmpll.engines import cells
from gmpll.engines.cells import neighbors_in_cells
from gmpll.graph.neighbors import nearest_neighbors


def search(rows, k, seed=0):
    return neighbors_in_cells(rows, k, np.random.RandomState(seed))


def nearest_centres(rows, centres):
    squared = ((rows[:, None] - rows[None, centres]) ** 2).sum(axis=2)
    return squared.argmin(axis=1)


def literal_search(rows, k, seed):
    """The nearest of all rows with which a row has shared a cell, pair by pair."""
    rng = np.random.RandomState(seed)
    n = len(rows)
    cell_rows = max(cells.CELL_ROWS, 2 * k)
    group_rows = max(cells.GROUP_CELLS * cell_rows, int(np.sqrt(cell_rows * n)))
    n_groups = -(-n // group_rows)
    met = np.zeros((n, n), dtype=bool)
    for _ in range(cells.MAX_ITERATIONS):
        of_row = nearest_centres(rows, rng.permutation(n)[:n_groups])
        groups = [np.flatnonzero(of_row == g) for g in range(n_groups)]
        groups = sorted((g for g in groups if len(g) > 1), key=len, reverse=True)
        for group, drawn in zip(groups, rng.randint(2**31 - 1, size=len(groups)), strict=True):
            inner = np.random.RandomState(drawn)
            for _ in range(cells.DRAWS):
                centres = inner.permutation(len(group))[: -(-len(group) // cell_rows)]
                cell = nearest_centres(rows[group], centres)
                met[np.ix_(group, group)] |= cell[:, None] == cell
    np.fill_diagonal(met, False)
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    order = np.argsort(np.where(met, distances, np.inf), axis=1)[:, :k]
    return np.where(np.take_along_axis(met, order, axis=1), order, -1)


@pytest.fixture
def small_cells(monkeypatch):
    """Several groups and cells although there are few rows."""
    monkeypatch.setattr(cells, "CELL_ROWS", 10)
    monkeypatch.setattr(cells, "GROUP_CELLS", 8)
    monkeypatch.setattr(cells, "SETTLED", 0.0)


@pytest.mark.usefixtures("small_cells")
@pytest.mark.parametrize("iterations", [1, 3])
def test_a_row_keeps_the_nearest_of_all_that_it_has_met(monkeypatch, iterations):
    monkeypatch.setattr(cells, "MAX_ITERATIONS", iterations)
    rows = np.random.RandomState(0).randn(400, 6)
    distances, indices = search(rows, 5, seed=3)
    expected = literal_search(rows, 5, seed=3)
    np.testing.assert_array_equal(indices, expected)
    assert (expected[:, 0] >= 0).all()
    measured = np.linalg.norm(rows[:, None] - rows[indices], axis=2)
    np.testing.assert_allclose(distances, np.where(indices < 0, np.inf, measured), rtol=1e-5)


@pytest.mark.usefixtures("small_cells")
def test_iterations_find_nearly_all_neighbours():
    rows = np.random.RandomState(1).randn(2000, 8)
    _, indices = search(rows, 5)
    exact = nearest_neighbors(rows, 5).indices
    shared = [len(np.intersect1d(a, b)) for a, b in zip(indices, exact, strict=True)]
    assert np.mean(shared) > 4.5


@pytest.mark.usefixtures("small_cells")
def test_the_number_of_threads_changes_nothing(monkeypatch):
    rows = np.random.RandomState(2).randn(1000, 5)
    results = []
    for number in (1, 3):
        monkeypatch.setattr(threads, "n_threads", lambda number=number: number)
        results.append(search(rows, 4))
    np.testing.assert_array_equal(results[0][1], results[1][1])
    np.testing.assert_array_equal(results[0][0], results[1][0])


def test_few_rows_share_one_cell():
    rows = np.random.RandomState(3).randn(90, 3)
    distances, indices = search(rows, 30)
    exact = nearest_neighbors(rows, 30)
    np.testing.assert_array_equal(indices, exact.indices)
    np.testing.assert_allclose(distances, exact.distances, rtol=1e-5)


def test_more_neighbours_than_a_cell_usually_has_rows():
    rows = np.random.RandomState(4).randn(900, 4)
    _, indices = search(rows, 2 * cells.CELL_ROWS)
    assert indices.min() >= 0
    assert all(len(set(row)) == 2 * cells.CELL_ROWS for row in indices.tolist())


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_unit_and_origin_do_not_matter(unit, offset):
    rows = np.random.RandomState(5).randn(300, 4)
    distances, indices = search(unit * (rows + offset), 6)
    plain = search(rows, 6)
    assert np.mean(indices == plain[1]) > 0.99  # but for what the offset rounds away
    np.testing.assert_allclose(distances / unit, plain[0], rtol=1e-4)


@pytest.mark.usefixtures("small_cells")
@pytest.mark.parametrize("n_different", [1, 2])
def test_copies_do_not_make_endless_groups(monkeypatch, n_different):
    rows = np.tile(np.random.RandomState(6).randn(n_different, 3), (1000 // n_different, 1))
    sizes = []

    def noted(*arguments):
        sizes.extend(len(group) for group in draw_groups(*arguments))
        return draw_groups(*arguments)

    draw_groups = cells._draw_groups
    monkeypatch.setattr(cells, "_draw_groups", noted)
    distances, indices = search(rows, 5)
    assert max(sizes) <= cells.MAX_EXCESS * cells.GROUP_CELLS * cells.CELL_ROWS
    assert (indices != np.arange(1000)[:, None]).all()
    assert indices.min() >= 0
    assert distances.max() == 0


def test_the_search_ends_when_nothing_is_found_any_more(monkeypatch):
    iterations = []

    def noted(*arguments):
        iterations.append(1)
        return draw_groups(*arguments)

    draw_groups = cells._draw_groups
    monkeypatch.setattr(cells, "_draw_groups", noted)
    search(np.random.RandomState(7).randn(1000, 2), 5)
    assert len(iterations) < cells.MAX_ITERATIONS
    iterations.clear()
    monkeypatch.setattr(cells, "SETTLED", 0.0)
    search(np.random.RandomState(7).randn(1000, 2), 5)
    assert len(iterations) == cells.MAX_ITERATIONS


def test_functions_compile_where_nothing_can_be_kept(monkeypatch):
    asked = []

    def without_a_folder(**options):
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    njit = cells.njit
    monkeypatch.setattr(cells, "njit", without_a_folder)

    @cells.compiled
    def double(x):
        return 2 * x

    assert double(3) == 6
    assert [bool(options.get("cache")) for options in asked] == [True, False]
    assert all(options["nogil"] for options in asked)
