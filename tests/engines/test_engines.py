"""The primitives of every engine against what they mean in NumPy."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.special import ndtri

from gmpll.arrays import to_host
from gmpll.engines import engine_of

ROWS = np.random.RandomState(0).randn(40, 3)


def test_the_engine_of_an_array_has_the_name_of_its_library(library):
    engine = engine_of(library.array(ROWS))
    assert engine.name == library.name
    assert "." not in library.name
    assert engine.xp.sum(library.array(ROWS)) is not None


def test_small_results_can_be_used_beside_the_arrays(library):
    X = library.array(ROWS)
    engine = engine_of(X)
    mean, high = engine.small(engine.xp.mean(X, axis=0), engine.xp.max(X, axis=0))
    assert engine_of(mean).name == ("torch" if library.name == "torch" else "numpy")
    np.testing.assert_allclose(to_host((X - mean) / high), (ROWS - ROWS.mean(0)) / ROWS.max(0))


def test_what_is_kept_is_the_same(library):
    X = library.array(ROWS)
    engine = engine_of(X)
    kept, twice = engine.keep(X, 2 * X)
    np.testing.assert_array_equal(to_host(kept), ROWS)
    np.testing.assert_array_equal(to_host(twice), 2 * ROWS)
    keep = engine.keeper()
    for _ in range(25):
        X = keep(X + 1)
    np.testing.assert_allclose(to_host(X), ROWS + 25)


def test_rows_are_mapped_alone(library, monkeypatch):
    monkeypatch.setattr("gmpll.engines.numpy.MAP_BYTES", 200)
    X, factors = library.array(ROWS), library.array(np.arange(40.0))
    engine = engine_of(X)
    found = engine.map_rows(lambda rows, factor: rows[:, :2] * factor[:, None], X, factors)
    np.testing.assert_allclose(to_host(found), ROWS[:, :2] * np.arange(40)[:, None])
    lengths = engine.map_rows(lambda rows: (rows * rows).sum(1), X)
    np.testing.assert_allclose(to_host(lengths), (ROWS**2).sum(axis=1))


def test_many_tensors_are_mapped_in_blocks(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("gmpll.engines.torch.MAP_ROWS", 7)
    X, sizes = torch.as_tensor(ROWS), []

    def double(rows):
        sizes.append(len(rows))
        return 2 * rows

    found = engine_of(X).map_rows(double, X)
    np.testing.assert_array_equal(found.numpy(), 2 * ROWS)
    assert max(sizes) == 7


def test_some_rows_get_other_values(library):
    X = library.array(ROWS)
    engine = engine_of(X)
    rows = np.array([0, 7, 8, 39])
    (values,) = engine.small(X[rows, :])
    expected = ROWS.copy()
    expected[rows] *= -1.0
    np.testing.assert_array_equal(to_host(engine.with_rows(X + 0.0, rows, -values)), expected)


@pytest.mark.parametrize("gathered", [2**25, 100])
def test_queries_are_mapped_with_their_neighbours(library, gathered, monkeypatch):
    monkeypatch.setattr("gmpll.engines.numpy.MAP_BYTES", gathered)
    if library.name != "numpy":
        module = pytest.importorskip(f"gmpll.engines.{library.name}")
        monkeypatch.setattr(module, "BLOCK_BYTES", gathered, raising=False)
        monkeypatch.setattr(module, "GATHERED_BYTES", gathered, raising=False)
    rng = np.random.RandomState(1)
    indices, queries = rng.randint(40, size=(25, 4)), rng.randn(25, 3)
    X, near, Q = library.array(ROWS), library.array(indices), library.array(queries)
    engine = engine_of(X)

    def products(rows, query):
        return (rows * query[:, None, :]).sum(2)

    found = engine.map_neighbors(products, X, near, Q)
    np.testing.assert_allclose(to_host(found), np.einsum("nkd,nd->nk", ROWS[indices], queries))
    numbers = engine.map_neighbors(lambda of: 2 * of, library.array(ROWS[:, 0]), near)
    np.testing.assert_allclose(to_host(numbers), 2 * ROWS[:, 0][indices])


def test_some_rows_come_to_the_host(library):
    X = library.array(ROWS)
    for rows in (slice(None), slice(0, 40, 3), np.array([31, 2, 17])):
        found = engine_of(X).rows_on_host(X, rows)
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, ROWS[rows])


def test_normal_quantiles(library):
    p = np.linspace(0, 1, 9)
    blocks = np.asarray if library.name == "dask" else library.array  # as in map_rows
    found = engine_of(library.array(p)).ndtri(blocks(p))
    np.testing.assert_allclose(to_host(found), ndtri(p), atol=1e-12)


def one_sided(indices, values, n):
    W = np.zeros((len(indices), n))
    np.put_along_axis(W, indices, values, axis=1)
    return W


@pytest.fixture
def edges():
    rng = np.random.RandomState(2)
    indices = np.array([rng.permutation(np.delete(np.arange(40), i))[:5] for i in range(40)])
    return indices, rng.rand(40, 5), rng.rand(40, 6)


@pytest.mark.parametrize("part_rows", [10_000, 30, 1])
def test_weights_are_as_large_both_ways(library, edges, part_rows, monkeypatch):
    if library.name == "dask":
        monkeypatch.setattr("gmpll.engines.dask.PART_ROWS", part_rows)
    indices, values, P = edges
    W = one_sided(indices, values, 40)
    engine = engine_of(library.array(values))
    weights = engine.symmetric_weights(library.array(indices), library.array(values))
    assert tuple(weights.shape) == (40, 40)
    np.testing.assert_allclose(to_host(weights @ library.array(P)), np.maximum(W, W.T) @ P)
    both = engine.sum_of_weights(weights, weights)
    np.testing.assert_allclose(to_host(both @ library.array(P)), 2 * np.maximum(W, W.T) @ P)


def test_weights_of_queries(library, edges):
    indices, values, P = edges
    indices, values = indices[:13], values[:13]
    engine = engine_of(library.array(values))
    weights = engine.query_weights(library.array(indices), library.array(values), 40)
    other = engine.query_weights(library.array(39 - indices), library.array(2 * values), 40)
    W = one_sided(indices, values, 40)
    assert tuple(weights.shape) == (13, 40)
    np.testing.assert_allclose(to_host(weights @ library.array(P)), W @ P)
    W += one_sided(39 - indices, 2 * values, 40)
    both = engine.sum_of_weights(weights, other)
    np.testing.assert_allclose(to_host(both @ library.array(P)), W @ P)


def test_weights_without_any_edge(library):
    none = library.array(np.zeros((6, 0)))
    engine = engine_of(none)
    weights = engine.symmetric_weights(library.array(np.zeros((6, 0), dtype=int)), none)
    assert (to_host(weights @ library.array(np.ones((6, 2)))) == 0).all()


def test_other_libraries_are_loaded_late():
    program = (
        "import sys, numpy, gmpll.graph.local\n"
        "from gmpll.graph.views import views_of\n"
        "views_of(numpy.eye(3), ('cosine', 'rank'), numpy.random.RandomState(0))\n"
        "print([name in sys.modules for name in ('torch', 'dask', 'numba')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split("\n")[0] == "[False, False, False]", done.stderr
