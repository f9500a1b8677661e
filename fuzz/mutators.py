"""Changes of inputs that keep their frame: what lies behind a checksum or a magic number changes.

Every function takes the bytes of an input and a source of chance and returns other bytes. None of
them knows a reader; an input whose frame is broken already is changed byte by byte.
"""

from __future__ import annotations

import io
import json
import re
import struct
import tomllib
import warnings
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

Mutator = Callable[[bytes, Random], bytes]

#: Numbers at which something tends to give way.
_EDGES = (
    0,
    1,
    2,
    7,
    8,
    127,
    128,
    255,
    256,
    65535,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**64 - 1,
)
#: JSON and TOML values of every kind.
_VALUES: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 10**9, 2**63, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"),
    True, False, "", " ", "a", "all", "0", "nan", "\x00", "\ud800", "é\u2028", "x" * 300,
    [], [[]], [0], [None], ["a"], ["a", "a"], {}, {"": 0}, {"a": {"a": []}},
)  # fmt: skip


def bytes_changed(data: bytes, rng: Random) -> bytes:
    """Flip, insert, remove, repeat or cut a few bytes."""
    changed = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(changed):
            changed[at] = rng.randrange(256)
        elif kind == 1 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            changed[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 3:
            del changed[at : at + rng.randrange(1, 9)]
        elif kind == 4:
            size = rng.choice((1, 2, 4, 8))
            number = rng.choice(_EDGES) % 2 ** (8 * size)
            changed[at : at + size] = number.to_bytes(size, rng.choice(("little", "big")))
        elif kind == 5:
            other = rng.randrange(len(changed) + 1)
            changed[at:at] = changed[other : other + rng.randrange(1, 33)]
        elif rng.random() < 0.2:
            del changed[at:]
    return bytes(changed)


def tree_changed(value: Any, rng: Random) -> Any:
    """Replace, remove, copy or change one node of a value made of dicts and lists."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        copy = dict(value)
        key = rng.choice(list(copy))
        kind = rng.random()
        if kind < 0.1:
            del copy[key]
        elif kind < 0.2:
            copy[rng.choice([*copy, "", "id", "x"])] = copy[key]
        else:
            copy[key] = tree_changed(copy[key], rng)
        return copy
    if isinstance(value, list) and value and rng.random() < 0.85:
        copy = list(value)
        at = rng.randrange(len(copy))
        kind = rng.random()
        if kind < 0.1:
            del copy[at]
        elif kind < 0.2:
            copy.insert(rng.randrange(len(copy) + 1), copy[at])
        else:
            copy[at] = tree_changed(copy[at], rng)
        return copy
    if isinstance(value, str) and rng.random() < 0.3:
        changed = bytes_changed(value.encode("utf-8", "surrogatepass"), rng)
        return changed.decode("utf-8", "replace")
    if isinstance(value, int) and rng.random() < 0.3:
        return value + rng.choice((-1, 1, 2**31, -(2**63), 10**30))
    if rng.random() < 0.03:
        return [[[[[[[[value]]]]]]]]
    return rng.choice(_VALUES)


def json_changed(data: bytes, rng: Random) -> bytes:
    """Change a node of a JSON value."""
    try:
        return json.dumps(tree_changed(json.loads(data), rng)).encode()
    except (ValueError, RecursionError):
        return bytes_changed(data, rng)


def json_lines_changed(data: bytes, rng: Random) -> bytes:
    """Change a node of one line."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = json_changed(lines[at], rng)
    return b"\n".join(lines)


def toml_changed(data: bytes, rng: Random) -> bytes:
    """Change a node of a TOML document; tables come back as inline tables."""
    try:
        content = tree_changed(tomllib.loads(data.decode()), rng)
        if not isinstance(content, dict):
            return bytes_changed(data, rng)
        return "\n".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in content.items()).encode()
    except (ValueError, RecursionError):
        return bytes_changed(data, rng)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, default=str)


def csv_changed(data: bytes, rng: Random) -> bytes:
    """Swap, copy, empty or change the cells and lines of delimited text."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    cells = lines[at].split(b",")
    place = rng.randrange(len(cells))
    kind = rng.randrange(7)
    if kind == 0:
        cells[place] = rng.choice((
            b"", b'"', b'"a\nb"', b"nan", b"1e999", b"?", b"-0", b"\xef\xbb\xbf", b"\xff", b"[1]",
            b"a|b", b" ", b"\0", b"1_0", b"9" * 400, b"0x1", "\u2028".encode(), b"\x0c", b"\r",
        ))  # fmt: skip
    elif kind == 1:
        cells.insert(place, rng.choice(cells))
    elif kind == 2:
        del cells[place]
    elif kind == 3:
        lines.insert(at, rng.choice(lines))
    elif kind == 4 and len(lines) > 1:
        del lines[at]
        return b"\n".join(lines)
    elif kind == 5:
        cells[place] = bytes_changed(cells[place], rng)
    else:
        return bytes_changed(data, rng)
    lines[min(at, len(lines) - 1)] = b",".join(cells)
    return b"\n".join(lines)


def npy_changed(data: bytes, rng: Random) -> bytes:
    """Change the header of a NumPy file, its length corrected, or the numbers behind it."""
    if not data.startswith(b"\x93NUMPY\x01\x00") or len(data) < 10:
        return bytes_changed(data, rng)
    (length,) = struct.unpack("<H", data[8:10])
    header, body = data[10 : 10 + length], data[10 + length :]
    kind = rng.randrange(4)
    if kind == 0:
        body = bytes_changed(body, rng)
    elif kind == 1:
        header = bytes_changed(header, rng)
    else:
        old, new = rng.choice((
            (b"'<f8'", b"'<f4'"), (b"'<f8'", b"'|O'"), (b"'<f8'", b"'<c16'"), (b"'<f4'", b"'<f8'"),
            (b"'<f8'", b"'<M8[s]'"), (b"'<f8'", b"'|V8'"), (b"'<f8'", b"[('a', '<f8')]"),
            (b"'<i8'", b"'<f8'"), (b"'<i8'", b"'<u8'"), (b"'|b1'", b"'|u1'"), (b"'<U", b"'>U"),
            (b"'<U", b"'<S"), (b"False", b"True"), (b"(", b"(1000000000000, "), (b"(", b"(0, "),
            (b"(", b"(-1, "), (b"(", b"(2, "), (b", )", b", 3)"), (b"'<f8'", b"'<U5'"),
        ))  # fmt: skip
        header = header.replace(old, new, 1)
    return data[:8] + struct.pack("<H", len(header) % 65536) + header + body


def zip_changed(inner: Callable[[str], Mutator]) -> Mutator:
    """Return a mutator of one member of a zip archive; ``inner`` gives the one for its name."""

    def change(data: bytes, rng: Random) -> bytes:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
        except Exception:  # the frame is broken already
            return bytes_changed(data, rng)
        if not members or rng.random() < 0.1:
            return bytes_changed(data, rng)
        at = rng.randrange(len(members))
        name, content = members[at]
        kind = rng.random()
        if kind < 0.05:
            del members[at]
        elif kind < 0.1:
            members.append((rng.choice([n for n, _ in members] + ["x.npy"]), content))
        elif kind < 0.2:
            members[at] = (name, rng.choice(members)[1])
        else:
            members[at] = (name, inner(name)(content, rng))
        return zipped(members, zipfile.ZIP_STORED)

    return change


def zipped(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip archive."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", compression) as archive:
        warnings.simplefilter("ignore")  # two members of the same name are meant
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def mat_changed(data: bytes, rng: Random) -> bytes:
    """Change one element of a MATLAB file, also inside of its compression."""
    if len(data) < 136:
        return bytes_changed(data, rng)
    elements, at = [], 128
    while at + 8 <= len(data):
        kind, size = struct.unpack("<II", data[at : at + 8])
        elements.append((kind, data[at + 8 : at + 8 + min(size, len(data))]))
        at += 8 + size
    which = rng.randrange(len(elements))
    kind, content = elements[which]
    if kind == 15:
        try:
            content = zlib.compress(bytes_changed(zlib.decompress(content), rng), 1)
        except zlib.error:
            content = bytes_changed(content, rng)
    else:
        content = bytes_changed(content, rng)
    elements[which] = (kind, content)
    return data[:128] + b"".join(struct.pack("<II", k, len(c)) + c for k, c in elements)


def parquet_changed(data: bytes, rng: Random) -> bytes:
    """Change the footer of a Parquet file, its length corrected, or the pages before it."""
    if len(data) < 12 or data[-4:] != b"PAR1":
        return bytes_changed(data, rng)
    (length,) = struct.unpack("<I", data[-8:-4])
    start = len(data) - 8 - length
    if start < 4:
        return bytes_changed(data, rng)
    pages, footer = data[:start], data[start:-8]
    if rng.random() < 0.5:
        footer = bytes_changed(footer, rng)
    else:
        pages = pages[:4] + bytes_changed(pages[4:], rng)
    return pages + footer + struct.pack("<I", len(footer)) + b"PAR1"


def xml_changed(data: bytes, rng: Random) -> bytes:
    """Change an element, an attribute or a text of an XML document, or a few of its bytes."""
    parts = re.split(rb"(<[^>]*>)", data)
    at = rng.randrange(len(parts))
    kind = rng.random()
    if kind < 0.2:
        del parts[at]
    elif kind < 0.4:
        parts.insert(at, rng.choice(parts))
    elif kind < 0.7:
        values = (b"", b"0", b"-1", b"1e999", b"A1", b"XFD1048576", b"\xff", b"x" * 300, b"nan")
        parts[at] = re.sub(rb'"[^"]*"', b'"' + rng.choice(values) + b'"', parts[at], count=1)
    elif kind < 0.85:
        parts[at] = rng.choice((b"", b"7", b"a|b", b"2024-01-01", b"&amp;", b"&#0;", b"<v>1</v>"))
    else:
        parts[at] = bytes_changed(parts[at], rng)
    return b"".join(parts)


def after_the_first_byte(inner: Mutator) -> Mutator:
    """Return a mutator of inputs whose first byte chooses how the rest is read."""

    def change(data: bytes, rng: Random) -> bytes:
        first = data[:1] or b"\0"
        if rng.random() < 0.1:
            first = rng.randbytes(1)
        return first + inner(data[1:], rng)

    return change
