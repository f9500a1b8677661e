"""What only a real cluster shows: workers that die, and workers that are too small."""

import os
import signal
import sys

import dask.array as da
import numpy as np
import pytest

from gmpll import GMPLL
from gmpll.datasets import make_partial_label_problem
from gmpll.distributed import DaskGMPLL, matching
from gmpll.distributed import estimator as pipeline

unix = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")


def kill_one(client):
    """Kill one of the two worker processes."""
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)
    return pid


@unix
@pytest.mark.slow
@pytest.mark.parametrize("moment", ["neighbours are found", "turns are made"])
def test_a_worker_that_dies_costs_time_but_not_the_result(
    problem, tmp_path, make_cluster, monkeypatch, moment
):
    X, mask = problem.data, problem.candidates
    settings = {"graph_neighbors": 10, "max_iter": 10, "tol": 0.0}
    expected = GMPLL(prediction="independent", label_similarity=None, **settings).fit(X, mask)
    client = make_cluster()
    killed, turns = [], []
    graph, turn = pipeline.local_graph, matching._turn

    def graph_after_a_death(*arguments):
        killed.append(kill_one(client))
        return graph(*arguments)

    def turn_after_a_death(*arguments):
        turns.append(len(turns))
        if len(turns) == 8:
            killed.append(kill_one(client))
        return turn(*arguments)

    if moment == "neighbours are found":
        np.save(tmp_path / "X.npy", X)
        rows = tmp_path / "X.npy"
        monkeypatch.setattr(pipeline, "local_graph", graph_after_a_death)
    else:
        rows = da.from_array(X, chunks=(100, -1)).persist()
        monkeypatch.setattr(matching, "_turn", turn_after_a_death)
    model = DaskGMPLL(**settings, partition_rows=100, checkpoint_turns=5, random_state=0)
    model.fit(rows, mask)
    np.testing.assert_allclose(
        model.label_confidences_.compute(), expected.label_confidences_, atol=1e-6
    )
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

    settings = {"graph_neighbors": 10, "max_iter": 5}
    client = make_cluster(memory_limit=WORKER_BYTES)
    before = set(client.run(os.getpid).values())
    model = DaskGMPLL(**settings, partition_rows=70, random_state=0)
    model.fit(tmp_path / "X.npy", small.candidates)
    confidences = model.label_confidences_.compute()
    assert set(client.run(os.getpid).values()) == before, "a worker ran out of memory"
    expected = GMPLL(prediction="independent", label_similarity=None, **settings)
    expected.fit(small.data, small.candidates)
    np.testing.assert_allclose(confidences, expected.label_confidences_, atol=1e-6)
