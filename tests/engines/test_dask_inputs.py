import numpy as np
import pandas as pd
import pytest

da = pytest.importorskip("dask.array", reason="Dask is not installed")
zarr = pytest.importorskip("zarr", reason="zarr is not installed")

from gmpll.engines import engine_of  # noqa: E402
from gmpll.engines.dask import as_rows  # noqa: E402


@pytest.fixture
def stored(problem, tmp_path):
    """The same rows in every form that X may have."""
    import dask.dataframe as dd

    X = problem.data
    np.save(tmp_path / "X.npy", X)
    file = zarr.open_array(
        str(tmp_path / "X.zarr"), mode="w", shape=X.shape, chunks=(50, X.shape[1]), dtype=X.dtype
    )
    file[:] = X
    table = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    dd.from_pandas(table, npartitions=3).to_parquet(tmp_path / "table.parquet")
    return {
        "array": X,
        "dask array": da.from_array(X, chunks=(100, -1)),
        "column chunks": da.from_array(X, chunks=(100, 7)),
        "memory map": np.load(tmp_path / "X.npy", "r"),
        "path": tmp_path / "X.npy",
        "zarr": zarr.open(str(tmp_path / "X.zarr")),
        "zarr path": str(tmp_path / "X.zarr"),
        "parquet": dd.read_parquet(tmp_path / "table.parquet"),
    }


FORMS = [
    "array",
    "dask array",
    "column chunks",
    "memory map",
    "path",
    "zarr",
    "zarr path",
    "parquet",
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_alike(problem, stored, form):
    rows = as_rows(stored[form], partition_rows=120)
    assert rows.numblocks[0] > 1
    assert rows.numblocks[1] == 1
    np.testing.assert_array_equal(rows.compute(), problem.data)


@pytest.mark.parametrize("form", ["memory map", "zarr", "parquet"])
def test_neighbours_in_files(problem, stored, form):
    rows = as_rows(stored[form], partition_rows=130)
    found = engine_of(rows).nearest_neighbors(rows, 5)
    expected = engine_of(problem.data).nearest_neighbors(problem.data, 5)
    np.testing.assert_array_equal(found.indices.compute(), expected.indices)
    np.testing.assert_allclose(found.distances.compute(), expected.distances, atol=1e-7)


def test_partitions_have_a_size_for_tasks():
    assert as_rows(np.ones((70_000, 2))).chunks[0] == (2**15, 2**15, 4464)
    wide = np.broadcast_to(1.0, (5000, 1000))
    assert as_rows(wide).chunks[0] == (4194, 806)


def test_a_partition_of_a_zarr_array_is_made_of_whole_chunks(stored):
    assert as_rows(stored["zarr"], partition_rows=120).chunks[0] == (100, 100, 100, 100)


def test_empty_partitions_are_no_obstacle(problem):
    rows = da.from_array(problem.data, chunks=((100, 0, 300), -1))
    assert as_rows(rows).chunks[0] == (100, 300)
    np.testing.assert_array_equal(as_rows(rows).compute(), problem.data)


X = da.ones((100, 3), chunks=(25, 3))
MISTAKES = {
    "unknown chunks": (X[X[:, 0] > 0], r"X has chunks of unknown size: call X.compute_chunk"),
    "one dimension": (X[:, 0], "X has 1 dimensions"),
    "three dimensions in memory": (np.ones((2, 2, 2)), "X has 3 dimensions"),
    "text": (X.astype(str), "must be numbers"),
    "no rows": (X[:0], r"X has the shape \(0, 3\)"),
    "no file": ("nowhere.npy", "nowhere.npy, which does not exist"),
    "no zarr": ("nowhere.zarr", "no .npy file or Zarr array"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_answered_in_a_sentence(mistake):
    X, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=message) as error:
        as_rows(X)
    assert "\n" not in str(error.value)


def test_part_of_a_memory_map_is_refused(stored):
    X = stored["memory map"]
    with pytest.raises(ValueError, match="part or a transposition of a memory map"):
        as_rows(X[10:])
    rows = da.from_array(X, chunks=(100, -1))
    with pytest.raises(ValueError, match="pass the memory map itself"):
        engine_of(rows).nearest_neighbors(rows, 3)
