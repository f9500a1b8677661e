"""Embeddings: one vector per row, from .npy, .npz and .parquet files or from columns of lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gmpll.apps.tables.errors import InputError, quoted
from gmpll.apps.tables.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["embeddings_of_column", "read_embeddings"]

_ARRAY_NAMES = ("embeddings", "embedding", "features", "vectors", "X", "x", "arr_0")
_ID_NAMES = ("ids", "id")


def read_embeddings(path: Path, ids: NDArray[np.str_]) -> NDArray[np.float32]:
    """Read a file with one vector for every row.

    That is a ``.npy`` array; a ``.npz`` file with one array, or one called ``embeddings``,
    ``features``, ``vectors`` or ``X``; a Parquet file with columns of numbers or of lists. A
    ``.npz`` array ``ids`` or a Parquet column ``id`` puts its vectors in the order of the rows;
    otherwise they must be in that order.
    """
    if not path.is_file():
        raise InputError(f"There is no embeddings file {path}: check --features.")
    try:
        vectors, own_ids = _read(path)
    except InputError:
        raise
    except Exception as error:  # a damaged file shows in a dozen kinds of exception
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise InputError(
            f"The embeddings file {path} cannot be read ({reason}): write it again with "
            "numpy.save, numpy.savez or pandas.to_parquet."
        ) from error
    return checked_vectors(_in_order(vectors, own_ids, ids, path), str(path), len(ids))


def embeddings_of_column(column: pd.Series, name: str) -> NDArray[np.float32]:
    """Stack a column of lists of numbers."""
    lengths = column.map(lambda value: len(value) if hasattr(value, "__len__") else -1)
    wrong = np.flatnonzero((lengths != lengths.iloc[0]).to_numpy())
    if wrong.size:
        raise InputError(
            f"The vectors in the column {name} differ in length: row 1 has {lengths.iloc[0]} "
            f"numbers, row {wrong[0] + 1} has {max(lengths.iloc[wrong[0]], 0)}."
        )
    try:
        stacked = np.stack([np.asarray(value, dtype=np.float32) for value in column])
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"The column {name} must hold lists of numbers.") from error
    return checked_vectors(stacked, f"the column {name}", len(column))


def checked_vectors(vectors: Any, where: str, n_rows: int) -> NDArray[np.float32]:
    """Refuse vectors of the wrong shape, kind or number, and values that are not finite."""
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiub" or vectors.shape[1] == 0:
        raise InputError(
            f"The embeddings in {where} have the shape {vectors.shape} and type {vectors.dtype}: "
            "a table of numbers with one row per item is needed."
        )
    if len(vectors) != n_rows:
        raise InputError(
            f"The embeddings in {where} are for {len(vectors)} rows but the input has {n_rows}."
        )
    vectors = vectors.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        raise InputError(
            f"The embedding of row {bad[0] + 1} in {where} holds NaN or infinity: fix or remove it."
        )
    return vectors


def _read(path: Path) -> tuple[NDArray[Any], list[str] | None]:
    """Return the vectors in a file, and their ids if it has some."""
    if path.suffix.lower() == ".npy":
        return np.load(path, allow_pickle=False, mmap_mode="r"), None
    return _read_npz(path) if path.suffix.lower() == ".npz" else _read_parquet(path)


def _read_npz(path: Path) -> tuple[NDArray[Any], list[str] | None]:
    with np.load(path, allow_pickle=False) as file:
        names = [name for name in file.files if name not in _ID_NAMES]
        if len(names) > 1:
            names = [name for name in _ARRAY_NAMES if name in names][:1] or names
        if len(names) != 1:
            raise InputError(
                f"{path} holds the arrays {', '.join(file.files) or '(none)'}: call the one with "
                "the vectors 'embeddings'."
            )
        own = next((file[name] for name in _ID_NAMES if name in file.files), None)
        # What is no array in such a file comes as bytes.
        return np.asarray(file[names[0]]), None if own is None else own.astype(str).ravel().tolist()


def _read_parquet(path: Path) -> tuple[NDArray[Any], list[str] | None]:
    table = read_table(path, format="parquet")
    own = next((name for name in table.frame.columns if name.lower() in _ID_NAMES), "")
    parts = []
    for name in table.frame.columns:
        column = table.frame[name]
        if name == own:
            continue
        if column.dtype.kind in "fiub":
            parts.append(column.to_numpy(dtype=np.float32)[:, None])
        elif column.dtype == object and isinstance(column.iloc[0], (np.ndarray, list)):
            parts.append(embeddings_of_column(column, name))
    if not parts:
        raise InputError(f"{path} holds no column of numbers or of lists of numbers.")
    return np.hstack(parts), table.text(own).tolist() if own else None


def _in_order(
    vectors: NDArray[Any], own: list[str] | None, ids: NDArray[np.str_], path: Path
) -> NDArray[Any]:
    if own is None or vectors.ndim != 2:
        return vectors
    if len(own) != len(vectors):
        raise InputError(f"{path} holds {len(own)} ids for {len(vectors)} vectors.")
    place = {identity: row for row, identity in enumerate(own)}
    missing = next((identity for identity in ids.tolist() if identity not in place), None)
    if missing is not None:
        raise InputError(f"{path} holds no embedding for the id {quoted(missing)}.")
    return np.asarray(vectors)[[place[identity] for identity in ids.tolist()]]
