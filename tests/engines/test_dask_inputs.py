import numpy as np
import pandas as pd
import pytest

da = pytest.importorskip("dask.array", reason="Dask is not installed")
zarr = pytest.importorskip("zarr", reason="zarr is not installed")

from gmpll.engines import dask_inputs, engine_of  # noqa: E402
from gmpll.engines.dask import as_candidate_rows, as_rows, check_finite  # noqa: E402


@pytest.fixture
def stored(problem, tmp_path):
    """The same problem in every form that X and y may have."""
    import dask.dataframe as dd

    X, mask = problem.data, problem.candidates
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", mask)
    for name, array in (("X", X), ("y", mask)):
        file = zarr.open_array(
            str(tmp_path / f"{name}.zarr"),
            mode="w",
            shape=array.shape,
            chunks=(50, array.shape[1]),
            dtype=array.dtype,
        )
        file[:] = array
    columns = [f"f{i}" for i in range(X.shape[1])]
    table = pd.DataFrame(X, columns=columns)
    labels = [f"label {i}" for i in range(mask.shape[1])]
    table[labels] = mask.astype(np.int8)
    dd.from_pandas(table, npartitions=3).to_parquet(tmp_path / "table.parquet")
    frame = dd.read_parquet(tmp_path / "table.parquet")
    return {
        "array": (X, mask),
        "dask array": (da.from_array(X, chunks=(100, -1)), da.from_array(mask, chunks=(100, -1))),
        "column chunks": (da.from_array(X, chunks=(100, 7)), da.from_array(mask, chunks=(100, 3))),
        "memory map": (np.load(tmp_path / "X.npy", "r"), np.load(tmp_path / "y.npy", "r")),
        "path": (tmp_path / "X.npy", str(tmp_path / "y.npy")),
        "zarr": (zarr.open(str(tmp_path / "X.zarr")), zarr.open(str(tmp_path / "y.zarr"))),
        "zarr path": (tmp_path / "X.zarr", tmp_path / "y.zarr"),
        "parquet": (frame[columns], frame[labels]),
    }


FORMS = ["dask array", "column chunks", "memory map", "path", "zarr", "zarr path", "parquet"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_alike(problem, stored, form):
    X, y = stored[form]
    rows = as_rows(X, partition_rows=120)
    candidates, classes = as_candidate_rows(y, rows)
    assert rows.numblocks[0] > 1
    assert rows.chunks[0] == candidates.chunks[0]
    np.testing.assert_array_equal(rows.compute(), problem.data)
    assert candidates.dtype == bool
    np.testing.assert_array_equal(candidates.compute(), problem.candidates)
    expected = [f"label {i}" for i in range(7)] if form == "parquet" else list(range(7))
    assert classes.tolist() == expected


@pytest.mark.parametrize("form", ["memory map", "zarr", "parquet"])
def test_neighbours_in_files(problem, stored, form):
    rows = as_rows(stored[form][0], partition_rows=130)
    found = engine_of(rows).nearest_neighbors(rows, 5)
    expected = engine_of(problem.data).nearest_neighbors(problem.data, 5)
    np.testing.assert_array_equal(found.indices.compute(), expected.indices)
    np.testing.assert_allclose(found.distances.compute(), expected.distances, atol=1e-7)


def test_partitions_have_a_size_for_tasks():
    assert as_rows(np.ones((70_000, 2))).chunks[0] == (2**15, 2**15, 4464)
    assert dask_inputs._rows_of_chunk(np.ones((1, 1000)), None) == 4194


def test_a_partition_of_a_zarr_array_is_made_of_whole_chunks(stored):
    assert as_rows(stored["zarr"][0], partition_rows=120).chunks[0] == (100, 100, 100, 100)


def test_empty_partitions_are_no_obstacle(problem):
    rows = da.from_array(problem.data, chunks=((100, 0, 300), -1))
    assert as_rows(rows).chunks[0] == (100, 300)
    np.testing.assert_array_equal(as_rows(rows).compute(), problem.data)


def mistakes():
    X = da.ones((100, 3), chunks=(25, 3))
    y = da.ones((100, 2), chunks=(25, 2), dtype=int)
    numbers = np.ones((100, 3))
    with_nan = numbers.copy()
    with_nan[[61, 87], 1] = np.nan, np.inf
    sets = np.ones((100, 2), dtype=int)
    sets[[38, 77]] = 0
    counts = np.ones((100, 2), dtype=int)
    counts[52, 1] = 3
    unknown = X[X[:, 0] > 0]
    return {
        "chunks differ": (
            X,
            y.rechunk({0: 50}),
            r"different row chunks, \(25, 25, 25, ...\) and \(50, 50\).*y.rechunk",
        ),
        "rows differ": (X, y[:75], "X has 100 rows but y has candidate sets for 75"),
        "unknown chunks": (unknown, y, r"X has chunks of unknown size: call X.compute_chunk"),
        "unknown chunks of y": (X, y[y[:, 0] > 0], "y has chunks of unknown size"),
        "empty set": (X, da.from_array(sets, chunks=(25, 2)), "Row 38 has an empty candidate set"),
        "entry": (X, da.from_array(counts, chunks=(25, 2)), "entry 3 at row 52, column 1"),
        "NaN": (da.from_array(with_nan, chunks=(25, 3)), y, "NaN or infinity in row 61"),
        "one dimension": (X, y[:, 0], "y has 1 dimensions"),
        "text": (da.from_array(numbers.astype(str), chunks=(25, 3)), y, "must be numbers"),
        "no rows": (X[:0], y[:0], r"X has the shape \(0, 3\)"),
        "no file": ("nowhere.npy", y, "nowhere.npy, which does not exist"),
        "no zarr": ("nowhere.zarr", y, "no .npy file or Zarr array"),
    }


def checked(X, y):
    rows = as_rows(X)
    check_finite(rows)
    as_candidate_rows(y, rows)


@pytest.mark.parametrize("mistake", list(mistakes()))
def test_mistakes_are_answered_in_a_sentence(mistake):
    X, y, message = mistakes()[mistake]
    with pytest.raises(ValueError, match=message) as error:
        checked(X, y)
    assert "\n" not in str(error.value)


def test_part_of_a_memory_map_is_refused(stored):
    X, _ = stored["memory map"]
    with pytest.raises(ValueError, match="part or a transposition of a memory map"):
        as_rows(X[10:])
    rows = da.from_array(X, chunks=(100, -1))
    with pytest.raises(ValueError, match="pass the memory map itself"):
        engine_of(rows).nearest_neighbors(rows, 3)
