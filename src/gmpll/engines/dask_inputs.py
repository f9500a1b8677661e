"""From what users have on disk or in a cluster to Dask arrays cut into whole rows."""

import math
import mmap
from os import PathLike
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

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

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.engines.dask_inputs import as_rows
    >>> as_rows(np.ones((5, 3)), partition_rows=2).chunks
    ((2, 2, 1), (3,))
    """
    data = _opened(Path(X)) if isinstance(X, (str, PathLike)) else X
    data = data if hasattr(data, "ndim") else np.asarray(data)
    if data.ndim != 2:
        raise ValueError(f"X has {data.ndim} dimensions; a row per instance makes it two.")
    array = _as_dask(data, partition_rows)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"X holds {array.dtype} values; the features must be numbers.")
    if any(np.isnan(size) for size in array.chunks[0] + array.chunks[1]):
        raise ValueError("X has chunks of unknown size: call X.compute_chunk_sizes() first.")
    if 0 in array.shape:
        raise ValueError(f"X has the shape {array.shape}: it needs at least a row and a column.")
    if 0 in array.chunks[0]:
        array = array.rechunk({0: tuple(size for size in array.chunks[0] if size)})
    return array if array.numblocks[1] == 1 else array.rechunk({1: -1})


def _as_dask(data: Any, partition_rows: int | None) -> da.Array:
    if isinstance(data, da.Array):
        return data
    if hasattr(data, "to_dask_array"):
        # Dask may join small partitions of a file: their number is known when they are read.
        return data.to_dask_array().compute_chunk_sizes()
    fitting = max(1, PARTITION_BYTES // (8 * max(data.shape[1], 1)))
    rows = partition_rows or min(fitting, MAX_PARTITION_ROWS)
    if isinstance(data, np.memmap):
        return _from_memory_map(data, rows)
    if type(data).__module__.partition(".")[0] == "zarr":
        stored = data.chunks[0]  # are read whole, so a partition is made of whole ones
        return da.from_zarr(data, chunks=(max(rows // stored, 1) * stored, data.shape[1]))
    return da.from_array(np.asarray(data), chunks=(rows, -1))


def _opened(path: Path) -> Any:
    if path.suffix == ".npy":
        try:
            return np.load(path, mmap_mode="r")
        except FileNotFoundError:
            raise ValueError(f"X names the file {path}, which does not exist.") from None
    try:
        import zarr

        opened = zarr.open(str(path), mode="r")
    except ImportError as error:
        raise ImportError(
            "Reading Zarr needs zarr, which is not installed: pip install 'gmpll[dask]'."
        ) from error
    except (OSError, ValueError) as error:
        raise ValueError(f"X names {path}, which holds no .npy file or Zarr array.") from error
    if not hasattr(opened, "chunks"):
        raise ValueError(f"X names {path}, which is a Zarr group: name one of its arrays.")
    return opened


def _from_memory_map(array: np.memmap, rows: int) -> da.Array:
    """Cut a mapped file into chunks that tasks read for themselves; Dask would send it along."""
    if not (isinstance(array.base, mmap.mmap) and array.flags.c_contiguous and array.filename):
        raise ValueError(
            "X is a part or a transposition of a memory map: give the whole map of a file "
            "in C order, or its path."
        )
    read = dask.delayed(np.fromfile, pure=True)
    blocks = []
    for start in range(0, array.shape[0], rows):
        shape = (min(rows, array.shape[0] - start), array.shape[1])
        offset = array.offset + start * array.strides[0]
        held = read(str(array.filename), str(array.dtype), math.prod(shape), "", offset)
        blocks.append(da.from_delayed(held.reshape(shape), shape, dtype=array.dtype))
    if not blocks:
        raise ValueError("X has no rows.")
    return da.concatenate(blocks)
