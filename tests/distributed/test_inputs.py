import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr

from gmpll.distributed import DaskGMPLL
from gmpll.distributed.inputs import as_candidate_rows, as_rows

pytestmark = pytest.mark.usefixtures("in_threads")


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
    np.testing.assert_array_equal(candidates.compute() == 1, problem.candidates)
    expected = [f"label {i}" for i in range(7)] if form == "parquet" else list(range(7))
    assert classes.tolist() == expected


@pytest.mark.parametrize("form", ["memory map", "zarr", "parquet"])
def test_fitting_from_files(stored, form):
    expected = DaskGMPLL(max_iter=5, random_state=0).fit(*stored["array"])
    model = DaskGMPLL(max_iter=5, partition_rows=130, random_state=0).fit(*stored[form])
    np.testing.assert_allclose(
        model.label_confidences_.compute(), expected.label_confidences_.compute(), atol=1e-9
    )


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
        "overflow": (
            da.from_array(with_nan[:50] + 1e300 * np.eye(50, 3), chunks=(25, 3)),
            y[:50],
            "too large",
        ),
        "one dimension": (X, y[:, 0], "y has 1 dimensions"),
        "text": (da.from_array(numbers.astype(str), chunks=(25, 3)), y, "must be numbers"),
        "no rows": (X[:0], y[:0], r"X has the shape \(0, 3\)"),
        "no file": ("nowhere.npy", y, "nowhere.npy, which does not exist"),
        "no zarr": ("nowhere.zarr", y, "no .npy file or Zarr array"),
    }


@pytest.mark.parametrize("mistake", list(mistakes()))
def test_mistakes_are_answered_in_a_sentence(mistake):
    X, y, message = mistakes()[mistake]
    with pytest.raises(ValueError, match=message) as error:
        DaskGMPLL(graph_neighbors=3).fit(X, y)
    assert "\n" not in str(error.value)


def test_part_of_a_memory_map_is_refused(stored):
    X, y = stored["memory map"]
    with pytest.raises(ValueError, match="part or a transposition of a memory map"):
        DaskGMPLL().fit(X[10:], np.asarray(y)[10:])
    with pytest.raises(ValueError, match="pass the memory map itself"):
        DaskGMPLL().fit(da.from_array(X, chunks=(100, -1)), np.asarray(y))
