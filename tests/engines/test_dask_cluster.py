"""What only a real cluster shows: workers that die, and workers that are too small."""

import os
import signal
import sys

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="Dask is not installed")

from gmpll.datasets import make_partial_label_problem  # noqa: E402
from gmpll.engines import engine_of  # noqa: E402
from gmpll.engines.dask import as_rows  # noqa: E402
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
@pytest.mark.parametrize("directory", [True, False])
@pytest.mark.parametrize("moment", [0, 8])
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


#: A worker with the libraries loaded takes more than half of it.
WORKER_BYTES = 420 * 10**6


@pytest.mark.slow
def test_a_file_larger_than_the_memory_of_a_worker(tmp_path, make_cluster):
    small = make_partial_label_problem(1050, 20, 4, 2.0, random_state=0)
    # Copies of the features change neither cosines nor neighbours: the small problem is the
    # reference for the large one.
    copies = 2550
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
    rows = CosineView(as_rows(tmp_path / "X.npy", partition_rows=35)).rows
    found = spread(LocalGraph(rows, 10), as_rows(P, partition_rows=35))
    assert set(client.run(os.getpid).values()) == before, "a worker ran out of memory"
    expected = spread(LocalGraph(CosineView(small.data).rows, 10), P)
    np.testing.assert_allclose(found, expected, atol=1e-6)
