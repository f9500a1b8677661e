"""The frame of a MATLAB v5 file, checked before SciPy reads what is in it.

SciPy believes the type codes and sizes in a file and looks them up without a check: a damaged file
can end the whole process. Here every element is measured first.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator

__all__ = ["FrameError", "NotNumbersError", "check_frame"]

HEADER_BYTES = 128
#: A variable that unpacks to more is none of the field.
MAX_VARIABLE_BYTES = 2**31

_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED = 1, 5, 6, 14, 15
#: Codes of integers and floating point numbers.
_NUMBERS = frozenset((1, 2, 3, 4, 5, 6, 7, 9, 12, 13))
_SPARSE = 5
_DENSE = range(6, 16)
_COMPLEX_FLAG = 0x0800
#: Flags, shape and name come before the content of a matrix.
_N_DESCRIPTIONS = 3


class FrameError(ValueError):
    """The bytes do not make up a MATLAB file; the text says where they fail."""


class NotNumbersError(ValueError):
    """A variable is sound but holds no numbers."""


def check_frame(content: bytes, names: Collection[str]) -> None:
    """Refuse a file whose elements do not fit together.

    The variables of the given names must be dense or sparse matrices of numbers; others are only
    measured.
    """
    order = {b"IM": "<", b"MI": ">"}.get(content[HEADER_BYTES - 2 : HEADER_BYTES])
    if order is None:
        raise FrameError("its header does not tell the order of bytes")
    for kind, body in _elements(memoryview(content)[HEADER_BYTES:], order, padded=False):
        if kind == _COMPRESSED:
            kind, body = _unpacked(body, order)
        if kind != _MATRIX:
            raise FrameError(f"there is an element of type {kind} where a variable must stand")
        _check_variable(body, order, names)


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


def _check_variable(body: memoryview, order: str, names: Collection[str]) -> None:
    parts = list(_elements(body, order))
    kinds = [kind for kind, _ in parts]
    if kinds[:_N_DESCRIPTIONS] != [_UINT32, _INT32, _INT8] or len(parts[0][1]) != 8:
        raise FrameError("a variable does not begin with flags, shape and name")
    name = bytes(parts[2][1]).decode("latin-1")
    if name not in names:
        return
    (flags,) = struct.unpack_from(f"{order}I", parts[0][1])
    is_sparse = flags & 0xFF == _SPARSE
    if not is_sparse and flags & 0xFF not in _DENSE:
        raise NotNumbersError(f"{name} is not a matrix of real numbers")
    # Sparse matrices hold row numbers and column ends before their values.
    expected = (3 if is_sparse else 1) + bool(flags & _COMPLEX_FLAG)
    contents = kinds[_N_DESCRIPTIONS:]
    if len(contents) != expected or not _NUMBERS.issuperset(contents):
        raise FrameError("a matrix does not hold the numbers that it announces")
    if is_sparse and not {_INT32, _UINT32}.issuperset(contents[:2]):
        raise FrameError("the places in a sparse matrix are no integers")
