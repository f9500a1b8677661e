"""A small output folder of ``gmpll disambiguate``, written by hand in the agreed layout."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np

CLASSES = ["cat", "dog", "<img src=x onerror=alert(1)>", "=HYPERLINK(1)"]
GROUP = 10  # rows of each of the first three labels


def png(shade: int) -> bytes:
    """A picture of one pixel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes([0, shade]))
    content = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + content


def arrays(folder: Path) -> dict[str, object]:
    rng = np.random.RandomState(0)
    truth = np.repeat(np.arange(3), GROUP)
    n, q = len(truth), len(CLASSES)
    features = np.eye(3)[truth] * 4 + rng.normal(size=(n, 3))
    mask = np.eye(q, dtype=bool)[truth]
    mask[np.arange(n), (truth + 1) % q] = True
    gold = np.full(n, -1)
    gold[0] = 0
    mask[1] = np.eye(q, dtype=bool)[0]  # one candidate only
    confidence = np.where(mask, rng.uniform(0.2, 1.0, size=(n, q)), 0.0)
    confidence /= confidence.sum(axis=1, keepdims=True)
    display = [
        json.dumps({"text": f"text {i} about {CLASSES[truth[i]]}", "image": f"p{i}.png", "page": i})
        for i in range(n)
    ]
    return {
        "format": np.asarray(1),
        "ids": np.array([f"r{i}" for i in range(n)]),
        "classes": np.array(CLASSES),
        "mask": mask,
        "gold": gold,
        "labels": confidence.argmax(axis=1),
        "confidence": confidence.astype(np.float32),
        "features": features.astype(np.float32),
        "display": np.array(display),
        "text_column": np.asarray("text"),
        "image_column": np.asarray("image"),
        "source": np.asarray(str(folder / "input" / "rows.csv")),
        "settings": np.asarray(json.dumps({"method": "gmpll", "seed": 0, "parameters": {}})),
        "weights": np.empty((0, 0), dtype=np.float32),
        "votes": np.empty((0, 3), dtype=np.int64),
        "annotators": np.empty(0, dtype=str),
        "outside": np.empty(0),
        "suggested": np.empty(0, dtype=np.int64),
    }


def write(folder: Path, **changed: object) -> Path:
    """Write the folder with its input beside; ``changed`` replaces arrays."""
    (folder / "input").mkdir(exist_ok=True)
    for i in range(3 * GROUP):
        (folder / "input" / f"p{i}.png").write_bytes(png(8 * i))
    out = folder / "out"
    out.mkdir(exist_ok=True)
    np.savez_compressed(out / "matching.npz", **{**arrays(folder), **changed})
    return out


def rematch(saved, gold):
    """The label of the nearest decided row if it is a candidate: enough to see changes."""
    labels, confidence = saved.labels.copy(), saved.confidence.copy()
    known = np.array(sorted(gold))
    distances = ((saved.features[:, None] - saved.features[known]) ** 2).sum(axis=2)
    nearest = np.array([gold[row] for row in known])[distances.argmin(axis=1)]
    fits = saved.mask[np.arange(len(labels)), nearest] & (distances.min(axis=1) < 4)
    labels[fits] = nearest[fits]
    labels[known] = [gold[row] for row in known]
    moved = fits.copy()
    moved[known] = True
    confidence[moved] = np.eye(confidence.shape[1], dtype=np.float32)[labels[moved]]
    return replace(saved, labels=labels, confidence=confidence)
