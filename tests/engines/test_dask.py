"""What is special about Dask: partitions, what tasks hold, and what is kept where."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="Dask is not installed")
import dask.array as da  # noqa: E402

from gmpll.engines import dask as module  # noqa: E402
from gmpll.engines import dask_blocks, engine_of  # noqa: E402
from gmpll.engines.dask import as_rows  # noqa: E402
from gmpll.engines.dask_blocks import RowBlocks, loaded  # noqa: E402
from gmpll.graph.local import LocalGraph  # noqa: E402
from gmpll.graph.neighbors import nearest_neighbors  # noqa: E402
from gmpll.graph.views import CosineView  # noqa: E402


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("rows", [100, 33, 7])
def test_neighbours_found_by_partitions_are_the_nearest(rows, stored, monkeypatch):
    monkeypatch.setattr(dask_blocks, "BLOCKS_PER_TASK", 2)
    monkeypatch.setattr(dask_blocks, "GATHERED_BYTES", 1)
    monkeypatch.setattr(dask_blocks, "RECIPE_BYTES", 2**20 if stored else 0)
    X = np.random.RandomState(0).randn(100, 5)
    view = CosineView(da.from_array(X, chunks=(rows, -1)))
    assert isinstance(RowBlocks(view.rows).blocks[0], partial) == stored
    found = nearest_neighbors(view.rows, 9)
    expected = nearest_neighbors(CosineView(X).rows, 9)
    np.testing.assert_array_equal(found.indices.compute(), expected.indices)
    np.testing.assert_allclose(found.distances.compute(), expected.distances, atol=1e-7)


@pytest.mark.parametrize("cut", [(20, 40, 30), (90,), (1, 88, 1), (9,) * 10])
def test_any_partition_gives_the_same_graph(cut):
    X = np.random.RandomState(1).randn(90, 4)
    P, unseen = np.random.RandomState(2).rand(90, 3), X[:20] + 0.1
    expected = LocalGraph(X, 8)
    graph = LocalGraph(da.from_array(X, chunks=(cut, -1)), 8)
    in_cuts = da.from_array(P, chunks=(cut, -1))
    product = graph.weights @ in_cuts
    assert product.chunks == (cut, (3,))
    np.testing.assert_allclose(product.compute(), expected.weights @ P, atol=1e-9)
    np.testing.assert_allclose((graph.weights @ in_cuts.rechunk(50)).compute(), product, atol=1e-12)
    queries = graph.to_queries(da.from_array(unseen, chunks=(7, -1)))
    assert (queries @ in_cuts).chunks == ((7, 7, 6), (3,))
    found = (queries @ in_cuts).compute()
    np.testing.assert_allclose(found, expected.to_queries(unseen) @ P, atol=1e-9)


def test_partitions_far_apart_exchange_nothing():
    rng = np.random.RandomState(0)
    X = np.repeat([[9.0, 0.0, 1.0], [-9.0, 0.0, -1.0]], 40, axis=0) + rng.randn(80, 3)
    graph = LocalGraph(da.from_array(X, chunks=(40, -1)), 5)
    assert [part[1:] for part in graph.weights.edges] == [(0, [0]), (1, [1])]


def test_groups_of_partitions_have_a_limit():
    assert module._groups([0, 1, 3], [5, 5, 5, 9], 10) == [[0, 1], [3]]


def test_a_stored_block_is_read_when_it_is_loaded(tmp_path):
    X = np.arange(12.0).reshape(6, 2)
    np.save(tmp_path / "X.npy", X)
    blocks = RowBlocks(as_rows(tmp_path / "X.npy", partition_rows=4))
    np.save(tmp_path / "X.npy", X + 1)
    np.testing.assert_array_equal(loaded(blocks.blocks[1]), X[4:] + 1)


def test_what_was_kept_is_not_computed_again(tmp_path):
    made = []

    def make(rows):
        made.append(len(rows))
        return rows + 1

    X = da.from_array(np.zeros((30, 2)), chunks=(10, -1))
    for directory in (None, tmp_path):
        with dask.config.set({"gmpll.directory": directory, "gmpll.checkpoint-iterations": 1}):
            keep = engine_of(X).keeper()
            for kept in (engine_of(X).keep(engine_of(X).map_rows(make, X))[0], keep(X + 1)):
                made.clear()
                np.testing.assert_array_equal(kept.compute(), np.ones((30, 2)))
                np.testing.assert_array_equal(kept.compute(), np.ones((30, 2)))
                assert made == []


def test_only_the_newest_checkpoint_stays(tmp_path):
    P = da.from_array(np.zeros((30, 2)), chunks=(10, -1))
    with dask.config.set({"gmpll.directory": tmp_path, "gmpll.checkpoint-iterations": 3}):
        keep = engine_of(P).keeper()
        for iteration in range(1, 12):
            P = keep(P + 1)
            assert len(list(tmp_path.glob("*/*.npy"))) == (3 if iteration >= 3 else 0)
    np.testing.assert_array_equal(P.compute(), np.full((30, 2), 11.0))
    assert not list(tmp_path.glob("*/*.tmp"))


def test_the_number_of_iterations_is_checked():
    with (
        dask.config.set({"gmpll.checkpoint-iterations": 0}),
        pytest.raises(ValueError, match=r"gmpll\.checkpoint-iterations is 0; it must be 1 or more"),
    ):
        engine_of(da.ones(3)).keeper()


def test_whole_numbers_are_features_too():
    X = np.random.RandomState(3).randint(9, size=(40, 3))
    found = CosineView(da.from_array(X, chunks=(15, -1))).rows.compute()
    np.testing.assert_allclose(found, CosineView(X.astype(float)).rows, atol=1e-12)


def test_the_absence_of_dask_is_explained():
    program = (
        "import sys\n"
        "sys.modules['dask'] = None\n"
        "try: import gmpll.engines.dask\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == (
        "Dask arrays need Dask with dask.distributed: pip install 'gmpll[dask]'."
    )
