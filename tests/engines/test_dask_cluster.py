"""What only a real cluster shows: workers that die, and workers that are too small."""

import gc
import os
import signal
import sys
from functools import partial

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="Dask is not installed")

from gmpll.datasets import make_partial_label_problem  # noqa: E402
from gmpll.engines import engine_of  # noqa: E402
from gmpll.engines.dask import DaskEngine, as_rows  # noqa: E402
from gmpll.graph.local import LocalGraph  # noqa: E402
from gmpll.graph.views import CosineView  # noqa: E402

unix = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
ITERATIONS = 10


def spread(graph, P, before_iteration=lambda number: None):
    """Let values spread over the graph, as a matching does."""
    keep = engine_of(P).keeper()
    for number in range(ITERATIONS):
        before_iteration(number)
        P = P + graph.weights @ P
        (total,) = engine_of(P).small(engine_of(P).xp.sum(P, axis=0))
        P = keep(P / total)
    return np.asarray(P)


def kill_one(client):
    """Kill one of the two worker processes."""
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)
    return pid


@unix
@pytest.mark.slow
@pytest.mark.parametrize(("moment", "directory"), [(0, False), (8, True)])
def test_a_worker_that_dies_costs_time_but_not_the_result(
    problem, tmp_path, make_cluster, moment, directory
):
    X, P = problem.data, problem.candidates.astype(float)
    expected = spread(LocalGraph(CosineView(X).rows, 10), P)
    client = make_cluster()
    np.save(tmp_path / "X.npy", X)
    killed = []

    def die(number):
        if number == moment:
            killed.append(kill_one(client))

    folder = str(tmp_path / "kept") if directory else None
    with dask.config.set({"gmpll.directory": folder, "gmpll.checkpoint-iterations": 5}):
        rows = CosineView(as_rows(tmp_path / "X.npy", partition_rows=100)).rows
        graph = LocalGraph(rows, 10)
        found = spread(graph, as_rows(P, partition_rows=100), die)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert len(killed) == 1
    assert killed[0] not in client.run(os.getpid).values()


@unix
@pytest.mark.slow
@pytest.mark.parametrize("directory", [True, False])
def test_a_worker_that_dies_between_rounds_of_the_search(
    problem, tmp_path, make_cluster, monkeypatch, directory
):
    pytest.importorskip("numba")
    np.save(tmp_path / "X.npy", problem.data)
    folder = str(tmp_path / "kept") if directory else None
    keep = DaskEngine.keep
    killed = []

    def search():
        rows = as_rows(tmp_path / "X.npy", partition_rows=100)
        found = engine_of(rows).nearest_neighbors(rows, 5, search="approximate", random_state=0)
        return [np.asarray(array) for array in found]

    def keep_and_die(self, *arrays):
        kept = keep(self, *arrays)
        if not killed:
            killed.append(kill_one(client))
        return kept

    with dask.config.set({"gmpll.directory": folder, "gmpll.search-rows": 200}):
        with dask.config.set({"gmpll.search-rounds": 2, "scheduler": "synchronous"}):
            expected = search()
        client = make_cluster()
        monkeypatch.setattr(DaskEngine, "keep", keep_and_die)
        with dask.config.set({"gmpll.search-rounds": 2}):
            found = search()
    assert len(killed) == 1
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_neighbours_in_memory_stay_until_they_are_asked_for(make_cluster):
    """Rows that are sent to the cluster once are there when a lazy result is computed later."""
    make_cluster()
    X = np.random.RandomState(0).randn(150_000, 2)
    indices = np.random.RandomState(1).randint(len(X), size=(30, 3))
    rows, near = as_rows(X, partition_rows=75_000), as_rows(indices, partition_rows=20)
    lazy = engine_of(rows).map_neighbors(partial(np.sum, axis=1), rows, near)
    gc.collect()
    np.testing.assert_allclose(lazy.compute(), X[indices].sum(axis=1))


#: A worker with the libraries loaded takes more than half of it.
WORKER_BYTES = 560 * 10**6


@pytest.mark.slow
def test_a_file_larger_than_the_memory_of_a_worker(tmp_path, make_cluster):
    small = make_partial_label_problem(1050, 20, 4, 2.0, random_state=0)
    # Copies of the features change neither cosines nor neighbours: the small problem is the
    # reference for the large one.
    copies = 3400
    X = np.lib.format.open_memmap(
        tmp_path / "X.npy", mode="w+", dtype=np.float64, shape=(1050, 20 * copies)
    )
    for start in range(0, 1050, 50):
        X[start : start + 50] = np.tile(small.data[start : start + 50], copies)
    X.flush()
    assert X.nbytes > WORKER_BYTES
    del X

    P = small.candidates.astype(float)
    client = make_cluster(memory_limit=WORKER_BYTES)
    before = set(client.run(os.getpid).values())
    rows = CosineView(as_rows(tmp_path / "X.npy", partition_rows=70)).rows
    found = spread(LocalGraph(rows, 10), as_rows(P, partition_rows=70))
    assert set(client.run(os.getpid).values()) == before, "a worker ran out of memory"
    expected = spread(LocalGraph(CosineView(small.data).rows, 10), P)
    np.testing.assert_allclose(found, expected, atol=1e-6)
