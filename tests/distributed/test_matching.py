import dask
import numpy as np
import pytest
import scipy.sparse as sp

from gmpll.distributed.checkpoints import Checkpoints
from gmpll.distributed.graph import GraphPart
from gmpll.distributed.matching import match_blocks, uniform_block
from gmpll.matching import LocalAffinity, match

pytestmark = pytest.mark.usefixtures("in_threads")


@pytest.mark.parametrize("checkpoint_turns", [1, 4, 100])
@pytest.mark.parametrize("balance", [0.0, 0.7])
def test_turns_of_partitions_are_those_of_the_whole(balance, checkpoint_turns):
    rng = np.random.RandomState(0)
    W = sp.random_array((30, 30), density=0.2, rng=np.random.default_rng(0)).toarray()
    W = W + W.T
    W[[4, 25]] = W[:, [4, 25]] = 0.0  # rows without any edge
    mask = rng.random_sample((30, 5)) < 0.4
    mask[np.arange(30), rng.randint(5, size=30)] = True
    expected = match(
        LocalAffinity(sp.csr_array(W), mask), mask, balance=balance, max_iter=9, tol=0.0
    )

    cut = [slice(0, 12), slice(12, 30)]
    graph = [
        [GraphPart(dask.delayed(sp.csr_array(W[rows, cut[j]])), [j]) for j in range(2)]
        for rows in cut
    ]
    found = match_blocks(
        [dask.delayed(uniform_block)(sp.csr_array(mask[rows].astype(float))) for rows in cut],
        graph,
        similarity=None,
        balance=balance,
        max_iter=9,
        tol=0.0,
        checkpoints=Checkpoints(),
        checkpoint_turns=checkpoint_turns,
    )
    P = np.vstack([block.compute().toarray() for block in found.probabilities])
    np.testing.assert_allclose(P, expected.probabilities, atol=1e-12)
    np.testing.assert_allclose(found.objective_path, expected.objective_path)
    assert (found.n_iter, found.converged) == (expected.n_iter, expected.converged)


def test_it_stops_when_a_turn_moves_nothing():
    mask = np.eye(3)
    graph = [[GraphPart(dask.delayed(sp.csr_array(np.ones((3, 3)))), [0])]]
    found = match_blocks(
        [dask.delayed(sp.csr_array(mask))],
        graph,
        similarity=None,
        balance=0.5,
        max_iter=50,
        tol=1e-4,
        checkpoints=Checkpoints(),
        checkpoint_turns=10,
    )
    assert (found.n_iter, found.converged) == (1, True)


def test_a_checkpoint_is_a_new_start(tmp_path):
    made = []

    def make(value):
        made.append(value)
        return value

    for checkpoints in (Checkpoints(), Checkpoints(tmp_path)):
        made.clear()
        kept = checkpoints.keep([dask.delayed(make)(i) for i in range(3)], "numbers")
        assert dask.compute(*kept) == (0, 1, 2)
        assert dask.compute(*kept) == (0, 1, 2)
        assert sorted(made) == [0, 1, 2], "what lies before a checkpoint was computed again"
