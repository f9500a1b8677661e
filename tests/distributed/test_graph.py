import dask
import dask.array as da
import numpy as np
import pytest

from gmpll.distributed.blocks import RowBlocks
from gmpll.distributed.graph import local_graph, row_scales
from gmpll.graph.local import LocalGraph
from gmpll.graph.neighbors import Neighbors, nearest_neighbors

pytestmark = pytest.mark.usefixtures("in_threads")


@pytest.mark.parametrize("budget", [10_000, 40, 1])
def test_the_parts_make_up_the_graph(budget):
    X = np.random.RandomState(0).randn(90, 4)
    X[50] = X[3]  # a duplicate in another partition
    blocks = RowBlocks(da.from_array(X, chunks=((20, 40, 30), -1)))
    near = nearest_neighbors(X, 8)
    parts = [
        Neighbors(near.distances[start : start + size], near.indices[start : start + size])
        for start, size in zip(blocks.starts, blocks.sizes, strict=True)
    ]
    neighbors = [dask.delayed(part) for part in parts]
    scales = [dask.delayed(row_scales(part)) for part in parts]
    graph = local_graph(neighbors, scales, blocks, budget)

    numbers = np.split(np.arange(90), blocks.starts[1:])
    found = np.zeros((90, 90))
    for i, row_parts in enumerate(graph):
        for part in row_parts:
            columns = np.concatenate([numbers[j] for j in part.columns])
            assert len(part.columns) == 1 or len(columns) <= budget
            found[np.ix_(numbers[i], columns)] += part.weights.compute().toarray()
    np.testing.assert_allclose(found, LocalGraph(X, 8).weights.toarray(), atol=1e-9)
