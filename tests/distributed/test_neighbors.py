import dask
import dask.array as da
import numpy as np
import pytest

from gmpll.distributed.blocks import RowBlocks, StoredBlock, loaded
from gmpll.distributed.features import Directions, block_statistics
from gmpll.distributed.neighbors import UNSEEN, neighbors_of_block
from gmpll.graph.neighbors import nearest_neighbors
from gmpll.graph.views import DirectionSpace

pytestmark = pytest.mark.usefixtures("in_threads")


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("rows", [100, 33, 7])
def test_neighbours_found_by_partitions_are_the_nearest(rows, stored, monkeypatch):
    monkeypatch.setattr("gmpll.distributed.blocks.BLOCKS_PER_TASK", 2)
    monkeypatch.setattr("gmpll.distributed.blocks.RECIPE_BYTES", 2**20 if stored else 0)
    X = np.random.RandomState(0).randn(100, 5)
    blocks = RowBlocks(da.from_array(X, chunks=(rows, -1)))
    assert isinstance(blocks.blocks[0], StoredBlock) == stored
    space = dask.delayed(Directions(block_statistics(X, 0)))
    found = dask.compute(
        *(
            neighbors_of_block(block, start, blocks, space, 9)
            for block, start in zip(blocks.blocks, blocks.starts, strict=True)
        )
    )
    expected = nearest_neighbors(DirectionSpace(X).rows, 9)
    np.testing.assert_array_equal(np.vstack([part.indices for part in found]), expected.indices)
    np.testing.assert_allclose(
        np.vstack([part.distances for part in found]), expected.distances, atol=1e-7
    )


def test_fewer_rows_than_neighbours():
    X = np.random.RandomState(0).randn(5, 3)
    blocks = RowBlocks(da.from_array(X, chunks=(2, -1)))
    space = dask.delayed(Directions(block_statistics(X, 0)))
    own = neighbors_of_block(blocks.blocks[0], 0, blocks, space, 40).compute()
    assert sorted(own.indices[0]) == [1, 2, 3, 4]
    unseen = neighbors_of_block(blocks.blocks[0], UNSEEN, blocks, space, 40).compute()
    assert unseen.indices[0, 0] == 0


def test_a_stored_block_is_read_when_it_is_loaded(tmp_path):
    X = np.arange(12.0).reshape(6, 2)
    np.save(tmp_path / "X.npy", X)
    from gmpll.distributed.inputs import as_rows

    blocks = RowBlocks(as_rows(tmp_path / "X.npy", partition_rows=4))
    np.save(tmp_path / "X.npy", X + 1)
    np.testing.assert_array_equal(loaded(blocks.blocks[1]), X[4:] + 1)
