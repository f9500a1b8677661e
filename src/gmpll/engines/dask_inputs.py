"""From what users have on disk or in a cluster to Dask arrays cut into whole rows."""

from __future__ import annotations

import mmap
from os import PathLike
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from gmpll.candidates import as_candidates

__all__ = ["as_candidate_rows", "as_rows", "check_finite"]

#: A partition takes about this much as float64, and no more rows than this, because a partition's
#: neighbours take memory too.
PARTITION_BYTES = 2**25
MAX_PARTITION_ROWS = 2**15


def as_rows(X: Any, partition_rows: int | None = None) -> da.Array:
    """Return features as a Dask array of known row chunks and a single column chunk.

    Parameters
    ----------
    X : dask array, dask DataFrame, Zarr array, memory map, path or array-like
        A path names a ``.npy`` file or a Zarr array.
    partition_rows : int, default=None
        Rows of a chunk where X has no chunks of its own (files, arrays); by default as many as
        take 32 MiB, and 32768 at most.

    Returns
    -------
    dask.array.Array

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.engines.dask_inputs import as_rows
    >>> as_rows(np.ones((5, 3)), partition_rows=2).chunks
    ((2, 2, 1), (3,))
    """
    array = _as_dask(X, partition_rows, "X")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"X holds {array.dtype} values; the features must be numbers.")
    return _whole_rows(array, "X")


def check_finite(X: da.Array) -> None:
    """Raise a ValueError that names the first row with a NaN or an infinite value.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.engines.dask_inputs import as_rows, check_finite
    >>> check_finite(as_rows(np.array([[1.0], [2.0], [np.nan]]), partition_rows=2))
    Traceback (most recent call last):
    ValueError: Input X contains NaN or infinity in row 2: drop the row or fill in the value.
    """
    row = _first_row(~da.isfinite(X).all(axis=1))
    if row is not None:
        raise ValueError(
            f"Input X contains NaN or infinity in row {row}: drop the row or fill in the value."
        )


def as_candidate_rows(y: Any, X: da.Array) -> tuple[da.Array, NDArray[Any]]:
    """Return candidates as a Dask array with the row chunks of X, and the labels of its columns.

    Parameters
    ----------
    y : dask array, dask DataFrame, Zarr array, memory map, path or candidate sets
        A 0/1 matrix with a column per label, or candidate sets in memory in any form that
        :func:`gmpll.as_candidates` takes.
    X : dask.array.Array
        What :func:`as_rows` returned.

    Returns
    -------
    candidates : dask.array.Array of shape (n_samples, n_classes), bool
        Every row has at least one.
    classes : ndarray of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.engines.dask_inputs import as_candidate_rows, as_rows
    >>> rows = as_rows(np.ones((3, 2)), partition_rows=2)
    >>> candidates, classes = as_candidate_rows([{"a"}, {"a", "b"}, {"b"}], rows)
    >>> candidates.chunks, classes.tolist()
    (((2, 1), (2,)), ['a', 'b'])
    """
    rows = X.chunks[0]
    if not _is_stored(y):
        sets = as_candidates(y, n_samples=X.shape[0])
        return da.from_array(sets.mask, chunks=(rows, -1)), sets.classes
    names = np.asarray(list(y.columns)) if hasattr(y, "columns") else None
    array = _whole_rows(_as_dask(y, None, "y"), "y")
    if array.shape[0] != X.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} rows but y has candidate sets for {array.shape[0]}: "
            "they need one row each per instance."
        )
    if array.chunks[0] != rows:
        if isinstance(y, da.Array):
            raise ValueError(
                f"X and y are cut into different row chunks, {_shown(rows)} and "
                f"{_shown(array.chunks[0])}: give y those of X, y.rechunk({{0: X.chunks[0]}})."
            )
        array = array.rechunk({0: rows})
    _check_entries(array)
    return array == 1, np.arange(array.shape[1]) if names is None else names


def _check_entries(array: da.Array) -> None:
    """Raise a ValueError that names the first row that is no candidate set."""
    bad = ((array != 0) & (array != 1)).any(axis=1)
    row = _first_row(bad | ~(array == 1).any(axis=1))
    if row is None:
        return
    entries = array[row].compute()
    for column in np.flatnonzero((entries != 0) & (entries != 1)):
        raise ValueError(
            f"The candidate matrix has the entry {entries[column]} at row {row}, column {column}; "
            "entries must be 0 or 1."
        )
    raise ValueError(
        f"Row {row} has an empty candidate set: every row needs at least one candidate. Drop such "
        "rows, or give them all labels if nothing is known."
    )


def _first_row(flags: da.Array) -> int | None:
    first = int(da.argmax(flags).compute())
    return first if bool(flags[first].compute()) else None


def _is_stored(y: Any) -> bool:
    """Whether y is a matrix outside of this process's memory."""
    return (
        isinstance(y, (da.Array, np.memmap, str, PathLike))
        or hasattr(y, "to_dask_array")
        or _is_zarr(y)
    )


def _is_zarr(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "zarr"


def _as_dask(data: Any, partition_rows: int | None, name: str) -> da.Array:
    if isinstance(data, (str, PathLike)):
        data = _opened(Path(data), name)
    if isinstance(data, da.Array):
        return data
    if hasattr(data, "to_dask_array"):
        # Dask may join small partitions of a file: their number is known when they are read.
        return data.to_dask_array().compute_chunk_sizes()
    if isinstance(data, np.memmap):
        return _from_memory_map(_two_dimensional(data, name), partition_rows, name)
    if _is_zarr(data):
        return _from_zarr(_two_dimensional(data, name), partition_rows)
    array = _two_dimensional(np.asarray(data), name)
    return da.from_array(array, chunks=(_rows_of_chunk(array, partition_rows), -1))


def _opened(path: Path, name: str) -> Any:
    if path.suffix == ".npy":
        try:
            return np.load(path, mmap_mode="r")
        except FileNotFoundError:
            raise ValueError(f"{name} names the file {path}, which does not exist.") from None
    try:
        import zarr

        opened = zarr.open(str(path), mode="r")
    except ImportError as error:
        raise ImportError(
            "Reading Zarr needs zarr, which is not installed: pip install 'gmpll[dask]'."
        ) from error
    except (OSError, ValueError) as error:
        raise ValueError(f"{name} names {path}, which holds no .npy file or Zarr array.") from error
    if not hasattr(opened, "chunks"):
        raise ValueError(f"{name} names {path}, which is a Zarr group: name one of its arrays.")
    return opened


def _two_dimensional(array: Any, name: str) -> Any:
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimensions; a row per instance makes it two.")
    return array


def _rows_of_chunk(array: Any, partition_rows: int | None) -> int:
    rows = max(1, PARTITION_BYTES // (8 * max(array.shape[1], 1)))
    return partition_rows or min(rows, MAX_PARTITION_ROWS)


def _from_zarr(array: Any, partition_rows: int | None) -> da.Array:
    # Chunks of the file are read whole, so a partition is made of whole ones.
    stored = array.chunks[0]
    rows = max(_rows_of_chunk(array, partition_rows) // stored, 1) * stored
    return da.from_zarr(array, chunks=(rows, array.shape[1]))


def _from_memory_map(array: np.memmap, partition_rows: int | None, name: str) -> da.Array:
    """Cut a mapped file into chunks that every task reads for itself.

    Dask would send the whole file along with every task.
    """
    if not (isinstance(array.base, mmap.mmap) and array.flags.c_contiguous and array.filename):
        raise ValueError(
            f"{name} is a part or a transposition of a memory map: give the whole map of a file "
            "in C order, or its path."
        )
    rows = _rows_of_chunk(array, partition_rows)
    read = dask.delayed(_read_rows, pure=True)
    blocks = []
    for start in range(0, array.shape[0], rows):
        shape = (min(rows, array.shape[0] - start), array.shape[1])
        offset = array.offset + start * array.strides[0]
        block = read(str(array.filename), str(array.dtype), offset, shape)
        blocks.append(da.from_delayed(block, shape, dtype=array.dtype))
    if not blocks:
        raise ValueError(f"{name} has no rows.")
    return da.concatenate(blocks)


def _read_rows(path: str, dtype: str, offset: int, shape: tuple[int, int]) -> NDArray[Any]:
    count = shape[0] * shape[1]
    return np.fromfile(path, dtype=dtype, count=count, offset=offset).reshape(shape)


def _whole_rows(array: da.Array, name: str) -> da.Array:
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimensions; a row per instance makes it two.")
    if any(np.isnan(size) for size in array.chunks[0] + array.chunks[1]):
        raise ValueError(
            f"{name} has chunks of unknown size: call {name}.compute_chunk_sizes() first."
        )
    if 0 in array.shape:
        raise ValueError(
            f"{name} has the shape {array.shape}: it needs at least a row and a column."
        )
    if 0 in array.chunks[0]:
        array = array.rechunk({0: tuple(size for size in array.chunks[0] if size)})
    return array if array.numblocks[1] == 1 else array.rechunk({1: -1})


def _shown(sizes: tuple[int, ...]) -> str:
    more = ", ..." if len(sizes) > 3 else ""
    return f"({', '.join(map(str, sizes[:3]))}{more})"
