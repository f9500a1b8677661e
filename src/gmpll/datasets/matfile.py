"""Reading a partial label data set from a MATLAB v5 file.

The files of the field hold ``data`` (n x d), ``partial_target`` and ``target`` (both q x n, that
is, transposed, with entries 0 and 1, sparse or dense). A file is refused rather than repaired.
SciPy believes the type codes and sizes in a file, so that a damaged one can end the whole process:
the few kinds of elements that these files consist of are measured and read here.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmpll._typing import Floats, Mask, Places
from gmpll.datasets.errors import check_features, fault, refuse_rows

KEYS = ("data", "partial_target", "target")
HEADER_BYTES = 128
#: A variable that unpacks to more is none of the field.
MAX_VARIABLE_BYTES = 2**31
#: A sparse matrix with more places than this is no matrix of the field but a damaged shape.
MAX_PLACES = 2**25

_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED = 1, 5, 6, 14, 15
#: Codes of integers and floating point numbers, and NumPy's.
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
_NUMBERS |= {12: "i8", 13: "u8"}
_SPARSE = 5
_DENSE = range(6, 16)
_COMPLEX_FLAG = 0x0800


class FrameError(ValueError):
    """The bytes do not make up a MATLAB file; the text says where they fail."""


class NotUsableError(ValueError):
    """A variable is sound but not what is wanted."""


class PartialLabelArrays(NamedTuple):
    """Features, candidates and true labels of a data set, a row each."""

    data: Floats
    candidates: Mask  # a column per label row of the file, also of labels never true
    target: Places  # column of the true label


def read_mat(path: Path) -> PartialLabelArrays:
    """Read and check a partial label data set from a MATLAB v5 file."""
    content = path.read_bytes()
    if content.startswith((b"MATLAB 7.3", b"\x89HDF")):
        raise fault(path, "it is a MATLAB v7.3 (HDF5) file: save it again with the option -v7")
    if len(content) < HEADER_BYTES or not content.startswith(b"MATLAB 5.0"):
        raise fault(path, "it is not a MATLAB v5 file")
    try:
        contents = read_variables(content, KEYS)
    except FrameError as error:
        raise fault(path, f"it is damaged or cut short ({error})") from error
    except NotUsableError as error:
        raise fault(path, str(error)) from error
    missing = [key for key in KEYS if key not in contents]
    if missing:
        raise fault(path, f"it has no variable {' and no '.join(missing)}")
    check_features(contents["data"], "data", path)
    data = np.ascontiguousarray(contents["data"], dtype=np.float64)
    candidates, truth = (_labels(contents[key], key, len(data), path) for key in KEYS[1:])
    if truth.shape != candidates.shape:
        n_true, n_candidates = truth.shape[1], candidates.shape[1]
        raise fault(path, f"target has {n_true} labels and partial_target {n_candidates}")
    refuse_rows(~candidates.any(axis=1), "has no candidate label", path)
    refuse_rows(truth.sum(axis=1) != 1, "does not have exactly one true label", path)
    outside = (truth & ~candidates).any(axis=1)
    refuse_rows(outside, "has its true label outside its candidates", path)
    return PartialLabelArrays(data, candidates, truth.argmax(axis=1))


def _labels(array: NDArray[Any], key: str, n_samples: int, path: Path) -> Mask:
    if array.ndim != 2 or array.shape[0] == 0 or array.shape[1] != n_samples:
        raise fault(path, f"{key} has the shape {array.shape}, not (labels, {n_samples})")
    if not np.isin(array, (0, 1)).all():
        raise fault(path, f"{key} has entries other than 0 and 1")
    return np.ascontiguousarray(array.T != 0)


def read_variables(content: bytes, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Return the matrices of these names, dense; the other variables are only measured."""
    order = {b"IM": "<", b"MI": ">"}.get(content[HEADER_BYTES - 2 : HEADER_BYTES])
    if order is None:
        raise FrameError("its header does not tell the order of bytes")
    found = {}
    for kind, body in _elements(memoryview(content)[HEADER_BYTES:], order, padded=False):
        if kind == _COMPRESSED:
            kind, body = _unpacked(body, order)
        if kind != _MATRIX:
            raise FrameError(f"there is an element of type {kind} where a variable must stand")
        parts = list(_elements(body, order))
        if [part for part, _ in parts[:3]] != [_UINT32, _INT32, _INT8] or len(parts[0][1]) != 8:
            raise FrameError("a variable does not begin with flags, shape and name")
        name = bytes(parts[2][1]).decode("latin-1")
        if name in names:
            found[name] = _matrix(parts, order, name)
    return found


def _elements(
    buffer: memoryview, order: str, *, padded: bool = True
) -> Iterator[tuple[int, memoryview]]:
    """Yield type and content of one element after the other."""
    at = 0
    while at < len(buffer):
        if at + 8 > len(buffer):
            raise FrameError("it ends within the head of an element")
        kind, size = struct.unpack_from(f"{order}II", buffer, at)
        start = at + 8
        if kind >> 16:  # a small element: its size, type and content share eight bytes
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
            if size > 4:
                raise FrameError(f"a small element has {size} bytes")
            at += 8
        else:
            at = start + size + (-size % 8 if padded else 0)
        if start + size > len(buffer):
            raise FrameError(f"an element of type {kind} is longer than what holds it")
        yield kind, buffer[start : start + size]


def _unpacked(packed: memoryview, order: str) -> tuple[int, memoryview]:
    try:
        stream = zlib.decompressobj()
        content = stream.decompress(packed, MAX_VARIABLE_BYTES)
    except zlib.error as error:
        raise FrameError("a compressed variable is damaged") from error
    if stream.unconsumed_tail or not stream.eof:
        raise FrameError("a compressed variable is cut short or too large")
    elements = list(_elements(memoryview(content), order))
    if len(elements) != 1:
        raise FrameError("a compressed variable is not one matrix")
    return elements[0]


def _matrix(parts: list[tuple[int, memoryview]], order: str, name: str) -> NDArray[Any]:
    """Read the numbers of a variable; sparse ones have row numbers and column ends before them."""
    (flags,) = struct.unpack_from(f"{order}I", parts[0][1])
    kind, codes = flags & 0xFF, [code for code, _ in parts[3:]]
    if kind not in (_SPARSE, *_DENSE) or flags & _COMPLEX_FLAG:
        raise NotUsableError(f"{name} is not a matrix of real numbers")
    if len(codes) != (3 if kind == _SPARSE else 1) or not _NUMBERS.keys() >= set(codes):
        raise FrameError("a matrix does not hold the numbers that it announces")
    if kind == _SPARSE and not {_INT32, _UINT32}.issuperset(codes[:2]):
        raise FrameError("the places in a sparse matrix are no integers")
    try:
        shape = tuple(np.frombuffer(parts[1][1], f"{order}i4").tolist())
        arrays = [np.frombuffer(body, f"{order}{_NUMBERS[code]}") for code, body in parts[3:]]
        if kind != _SPARSE:
            # A negative length would be worked out by NumPy from the others.
            return arrays[0].reshape([length % 2**32 for length in shape], order="F")
    except ValueError as error:
        raise FrameError("a matrix does not hold the numbers that it announces") from error
    rows, ends, values = arrays
    return _dense(rows, ends, values, shape, name)


def _dense(
    rows: NDArray[Any], ends: NDArray[Any], values: NDArray[Any], shape: tuple[int, ...], name: str
) -> NDArray[Any]:
    if len(shape) != 2 or min(shape) <= 0 or shape[0] * shape[1] > MAX_PLACES:
        raise NotUsableError(f"{name} has the shape {shape}, which is empty or too large")
    ends = ends.astype(np.int64)
    sound = (
        len(ends) == shape[1] + 1
        and ends[0] == 0
        and (np.diff(ends) >= 0).all()
        and ends[-1] <= min(len(rows), len(values))
        and ((rows >= 0) & (rows < shape[0])).all()
    )
    if not sound:
        raise NotUsableError(f"{name} is a damaged sparse matrix")
    dense = np.zeros(shape)
    columns = np.repeat(np.arange(shape[1]), np.diff(ends))
    np.add.at(dense, (rows[: ends[-1]], columns), values[: ends[-1]])
    return dense
