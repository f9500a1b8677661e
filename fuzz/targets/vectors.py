"""Readers of embeddings: NumPy arrays, archives of them, Parquet."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
from fuzz.mutators import npy_changed, parquet_changed, zip_changed
from fuzz.target import Target, written

from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.features import read_embeddings

IDS = np.array(["a", "b", "c"])
VECTORS = np.arange(6.0).reshape(3, 2)


def _check(suffix: str, data: bytes) -> None:
    vectors = read_embeddings(written("vectors", f"vectors{suffix}", data), IDS)
    assert vectors.shape[0] == 3
    assert np.isfinite(vectors).all()


def _npy(data: bytes) -> None:
    _check(".npy", data)


def _npz(data: bytes) -> None:
    _check(".npz", data)


def _parquet(data: bytes) -> None:
    _check(".parquet", data)


def npy_bytes(array: object) -> bytes:
    """Return an array as a NumPy file."""
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def _npy_seeds() -> list[bytes]:
    return [npy_bytes(VECTORS.astype(kind)) for kind in (np.float64, np.float32, np.int8)]


def _npz_seeds() -> list[bytes]:
    seeds = []
    for save in (np.savez, np.savez_compressed):
        for more in ({}, {"ids": IDS[::-1]}):
            file = io.BytesIO()
            save(file, embeddings=VECTORS, **more)
            seeds.append(file.getvalue())
    return seeds


def _parquet_seeds() -> list[bytes]:
    seeds = []
    for frame in (
        pd.DataFrame(VECTORS, columns=["x", "y"]),
        pd.DataFrame({"id": IDS, "v": VECTORS.tolist()}),
    ):
        file = io.BytesIO()
        frame.to_parquet(file, compression=None, index=False)
        seeds.append(file.getvalue())
    return seeds


_INPUT = (InputError,)
TARGETS = (
    Target("vectors-npy", _npy, _npy_seeds, _INPUT, npy_changed),
    Target("vectors-npz", _npz, _npz_seeds, _INPUT, zip_changed(lambda name: npy_changed)),
    Target("vectors-parquet", _parquet, _parquet_seeds, _INPUT, parquet_changed),
)
