import io
import struct

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat

from gmpll.datasets.matfile import HEADER_BYTES, FrameError, NotUsableError, read_variables


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
