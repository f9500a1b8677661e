"""Readers of a review: its decisions, the input that an export is made from, pictures."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from functools import cache

import numpy as np
from fuzz.mutators import bytes_changed, json_changed
from fuzz.target import Target, scratch, written
from fuzz.targets.models import matching
from fuzz.targets.tables import ARGILLA, LABEL_STUDIO

from gmpll.apps.decisions.errors import ReviewError
from gmpll.apps.decisions.store import Decision, Rematched, Store
from gmpll.apps.pages.images import PictureError, read_picture
from gmpll.apps.review.export import FORMATS
from gmpll.apps.review.guidelines import ELEMENTS, definitions, read_guidelines
from gmpll.apps.review.session import ReviewSession

BASE = "base"


def _read_decisions(data: bytes) -> None:
    path = written("decisions", "review.sqlite", data)
    for rest in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + rest).unlink(missing_ok=True)
    store = Store(path, "rows")
    try:
        store.decisions()
        store.log()
        store.load_rematched(BASE)
        store.decide(1, Decision("label", code=0), seen_version=store.version(1), tab="t")
        store.undo("t")
    finally:
        store.close()


def _decisions_seeds() -> list[bytes]:
    path = scratch("decisions") / "seed.sqlite"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as connection:  # small pages: more of the bytes mean something
        connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")
    connection.close()
    store = Store(path, "rows")
    store.decide(0, Decision("label", code=1), seen_version=0, tab="a")
    store.decide(2, Decision("other", name="x"), seen_version=0, tab="a")
    store.undo("a")
    labels, confidence = np.array([0, 1]), np.zeros((2, 2), np.float32)
    store.save_rematched(BASE, Rematched("now", labels, confidence, np.array([0])))
    store.close()
    plain = sqlite3.connect(path)
    plain.execute("PRAGMA journal_mode = DELETE")
    plain.close()
    return [path.read_bytes()]


@cache
def _session() -> ReviewSession:
    saved = replace(matching(), source=str(scratch("source") / "source.json"))
    return ReviewSession(saved, Store(":memory:", saved.rows.key()), lambda saved, gold: saved)


def _read_source(data: bytes) -> None:
    written("source", "source.json", data)
    for format in FORMATS.values():
        format.write(_session())


def _source_seeds() -> list[bytes]:
    return [json.dumps(records).encode() for records in (LABEL_STUDIO, ARGILLA)]


def _read_picture(data: bytes) -> None:
    """Read a picture by any name; the first line is the name."""
    name, _, content = data.partition(b"\n")
    folder = written("pictures", "inside/picture.png", content).parent
    written("pictures", "outside.png", b"\x89PNG\r\n\x1a\nsecret")
    image = read_picture(name.decode("utf-8", "surrogateescape"), folder)
    assert image.content == content, "a picture outside of the folder was read"


def _picture_seeds() -> list[bytes]:
    return [
        b"picture.png\n\x89PNG\r\n\x1a\n",
        b"./picture.png\n\x89PNG\r\n\x1a\n",
        b"../outside.png\n\x89PNG",
        b"../inside/picture.png\n\x89PNG\r\n\x1a\n",
    ]


def _read_guidelines(data: bytes) -> None:
    """Read guidelines; only harmless elements may come out."""
    nodes = read_guidelines(written("guidelines", "guide.md", data))
    definitions(nodes, ("cat", "dog"))
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, str):
            assert node[0] in ELEMENTS, f"an element {node[0]}"
            waiting += node[1]


def _guidelines_seeds() -> list[bytes]:
    return [
        b"# Labels\n\n- **cat**: *purrs* `x`\n  1. > deep\n\n## dog\n\nbarks\n",
        b"<script>x</script> [a](javascript:b) ![c](d)\n\n|a|b|\n|-|-|\n|1|2|\n",
        b"```\n<b>\n```\n\n---\n\n    indented\n\n[x]: http://y\n\n[x] &amp; \\* ~~s~~\n",
    ]


_REVIEW = (ReviewError,)
TARGETS = (
    Target("decisions", _read_decisions, _decisions_seeds, _REVIEW, bytes_changed),
    Target("source", _read_source, _source_seeds, _REVIEW, json_changed),
    Target("guidelines", _read_guidelines, _guidelines_seeds, _REVIEW, bytes_changed),
    Target("picture", _read_picture, _picture_seeds, (PictureError,), bytes_changed),
)
