import io
import struct

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat

from gmpll.datasets import DatasetFormatError
from gmpll.datasets.matfile import (
    HEADER_BYTES,
    FrameError,
    NotUsableError,
    read_mat,
    read_variables,
)


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


@pytest.fixture
def arrays(write_mat):
    from scipy.io import loadmat

    return loadmat(write_mat(), spmatrix=False)


@pytest.mark.parametrize("sparse", [False, True])
def test_reads_transposed_labels_dense_or_sparse(write_mat, arrays, sparse):
    read = read_mat(write_mat(sparse=sparse))
    np.testing.assert_array_equal(read.data, arrays["data"])
    np.testing.assert_array_equal(read.candidates, arrays["partial_target"].T == 1)
    np.testing.assert_array_equal(np.eye(4)[read.target], arrays["target"].T)
    assert read.data.dtype == np.float64
    assert read.candidates.dtype == bool
    assert read.candidates.shape == (12, 4)  # also the label that is never true


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int16"])
def test_reads_other_number_types(write_mat, arrays, dtype):
    labels = {key: arrays[key].astype(dtype) for key in ("partial_target", "target")}
    read = read_mat(write_mat(**labels, data=sp.csc_array(arrays["data"])))
    np.testing.assert_array_equal(read.data, arrays["data"])
    np.testing.assert_array_equal(read.candidates, arrays["partial_target"].T == 1)


FAULTS = {
    "no data": (lambda a: {"data": None}, "it has no variable data"),
    "no labels": (
        lambda a: {"partial_target": None, "target": None},
        "it has no variable partial_target and no target",
    ),
    "words": (lambda a: {"data": "abc"}, "data is not a matrix of real numbers"),
    "complex": (lambda a: {"data": a["data"] * 1j}, "data is not a matrix of real numbers"),
    "empty": (lambda a: {"data": np.zeros((0, 3))}, r"data has the shape \(0, 3\)"),
    "nan": (
        lambda a: {"data": changed(a["data"], (5, 1), np.nan)},
        r"row 5 has a feature that is not finite \(1 such rows\)",
    ),
    "infinity": (
        lambda a: {"data": changed(a["data"], (0, 0), np.inf)},
        "row 0 has a feature that is not finite",
    ),
    "not transposed": (
        lambda a: {"partial_target": a["partial_target"].T},
        r"partial_target has the shape \(12, 4\), not \(labels, 12\)",
    ),
    "too few rows": (
        lambda a: {"target": a["target"][:, :-1]},
        r"target has the shape \(4, 11\), not \(labels, 12\)",
    ),
    "other labels": (
        lambda a: {"target": a["target"][:-1]},
        "target has 3 labels and partial_target 4",
    ),
    "a two": (
        lambda a: {"partial_target": 2 * a["partial_target"]},
        "partial_target has entries other than 0 and 1",
    ),
    "a nan label": (
        lambda a: {"target": changed(a["target"], (0, 0), np.nan)},
        "target has entries other than 0 and 1",
    ),
    "no candidates": (
        lambda a: {"partial_target": changed(a["partial_target"], (slice(None), 3), 0)},
        r"row 3 has no candidate label \(1 such rows\)",
    ),
    "no truth": (
        lambda a: {"target": changed(a["target"], (slice(None), 2), 0)},
        "row 2 does not have exactly one true label",
    ),
    "two truths": (
        lambda a: {"target": changed(a["target"], (slice(None, 2), 7), 1)},
        "row 7 does not have exactly one true label",
    ),
    "truth outside": (
        lambda a: {"partial_target": changed(changed(a["partial_target"], (0, 0), 0), (3, 0), 1)},
        "row 0 has its true label outside its candidates",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_refuses_what_is_malformed_and_names_file_and_fault(write_mat, arrays, fault):
    change, message = FAULTS[fault]
    path = write_mat("Soccer Player.mat", **change(arrays))
    with pytest.raises(DatasetFormatError, match=message) as caught:
        read_mat(path)
    text = str(caught.value)
    assert text.startswith(f"{path} is not a usable partial label data set: ")
    assert text.endswith(".")
    assert "\n" not in text


@pytest.mark.parametrize("key", ["partial_target", "target"])
def test_refuses_a_sparse_two(write_mat, arrays, key):
    path = write_mat(**{key: sp.csc_array(2 * arrays[key])})
    with pytest.raises(DatasetFormatError, match=f"{key} has entries other than 0 and 1"):
        read_mat(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a MATLAB v5 file"),
        (b"junk" * 100, "not a MATLAB v5 file"),
        (b"MATLAB 5.0 MAT-file", "not a MATLAB v5 file"),
        (b"MATLAB 7.3 MAT-file".ljust(600), r"v7.3 \(HDF5\) file: save it again with"),
        (b"\x89HDF\r\n\x1a\n".ljust(600), r"v7.3 \(HDF5\) file"),
        (b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"\xff" * 300, "damaged or cut short"),
    ],
)
def test_refuses_other_files(tmp_path, content, message):
    path = tmp_path / "lost.mat"
    path.write_bytes(content)
    with pytest.raises(DatasetFormatError, match=message):
        read_mat(path)


def test_refuses_matlab_4(tmp_path, arrays):
    path = tmp_path / "old.mat"
    savemat(path, {"data": arrays["data"]}, format="4")
    with pytest.raises(DatasetFormatError, match="not a MATLAB v5 file"):
        read_mat(path)


def test_refuses_a_file_cut_at_any_place(write_mat):
    path = write_mat()
    whole = path.read_bytes()
    for length in range(0, len(whole), 17):
        path.write_bytes(whole[:length])
        with pytest.raises(DatasetFormatError, match=r"lost\.mat is not a usable"):
            read_mat(path)


def saved(**variables):
    compressed = variables.pop("compressed", False)
    file = io.BytesIO()
    savemat(file, variables, do_compression=compressed)
    return file.getvalue()


def patched(content, at, *numbers):
    """Overwrite 32 bit integers, counted in bytes from the first variable."""
    changed = bytearray(content)
    struct.pack_into(f"<{len(numbers)}I", changed, HEADER_BYTES + at, *numbers)
    return bytes(changed)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    "matrix",
    [
        np.arange(6.0).reshape(2, 3),
        np.ones((2, 2), dtype=np.uint8),
        np.zeros((0, 3)),
        np.array([[True, False]]),
        sp.csc_matrix(np.eye(3)),
        sp.csc_matrix((3, 2)),
    ],
    ids=["doubles", "bytes", "empty", "boolean", "sparse", "sparse zeros"],
)
def test_sound_matrices_pass(matrix, compressed):
    read = read_variables(saved(data=matrix, other="words", compressed=compressed), ("data",))
    np.testing.assert_array_equal(read["data"], matrix.toarray() if sp.issparse(matrix) else matrix)


@pytest.mark.parametrize(
    "value", ["words", {"a": 1}, np.array([[1 + 2j]]), np.array([[1], [2, 3]], dtype=object)]
)
def test_other_kinds_are_told_from_damage(value):
    read_variables(saved(data=value), ("target",))
    with pytest.raises(NotUsableError, match="data is not a matrix of real numbers"):
        read_variables(saved(data=value), ("data",))


# A variable begins with: type, size; flags (16 bytes); shape (16 bytes); name, small (8 bytes).
def test_a_type_that_does_not_exist_is_refused():
    content = saved(data=np.ones((2, 3)))
    with pytest.raises(FrameError, match="does not hold the numbers"):
        read_variables(patched(content, 48, 200), ("data",))


def test_sizes_that_lead_outside_are_refused():
    content = saved(data=np.ones((2, 3)))
    with pytest.raises(FrameError, match="longer than what holds it"):
        read_variables(patched(content, 52, 2**31), ("data",))
    with pytest.raises(FrameError, match="longer than what holds it"):
        read_variables(patched(content, 4, 2**31), ("data",))
    with pytest.raises(FrameError, match="ends within the head"):
        read_variables(content + b"\0\0", ("data",))


def test_a_damaged_compression_is_refused():
    content = saved(data=np.ones((20, 30)), compressed=True)
    with pytest.raises(FrameError, match="compressed"):
        read_variables(patched(content, 12, 0, 0), ("data",))
    packed = len(content) - HEADER_BYTES - 8
    with pytest.raises(FrameError, match="cut short"):
        read_variables(patched(content[:-6], 4, packed - 6), ("data",))


def test_the_order_of_bytes_must_be_known():
    content = bytearray(saved(data=np.ones((2, 3))))
    content[126:128] = b"??"
    with pytest.raises(FrameError, match="order of bytes"):
        read_variables(bytes(content), ("data",))
