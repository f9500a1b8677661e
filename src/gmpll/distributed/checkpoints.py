"""Results that survive their worker.

Dask repeats the tasks whose results a lost worker held, and those that they were made from, back
to the start. A checkpoint is a new start: what was made before it is never made again.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import dask
from dask.delayed import Delayed

__all__ = ["Checkpoints"]


class Checkpoints:
    """Keep blocks outside of the workers' memory.

    Parameters
    ----------
    directory : path-like, default=None
        A folder that all workers reach under this name; the newest blocks stay in it. Without
        one, blocks are collected by the client and kept by the scheduler.

    Examples
    --------
    >>> import dask
    >>> from gmpll.distributed.checkpoints import Checkpoints
    >>> kept = Checkpoints().keep([dask.delayed(sum)([1, 2])], "sums")
    >>> kept[0].compute()
    3
    """

    def __init__(self, directory: str | PathLike[str] | None = None) -> None:
        self.directory = None
        if directory is not None:
            # Runs that share a folder keep out of each other's way.
            self.directory = Path(directory).resolve() / f"gmpll-{uuid.uuid4().hex[:12]}"
            self.directory.mkdir(parents=True)
        self._latest: dict[str, list[Path]] = {}

    def keep(self, blocks: Sequence[Delayed], name: str) -> list[Delayed]:
        """Return the same blocks, to be read from where they are kept.

        Earlier blocks kept under the same name are dropped.
        """
        if self.directory is None:
            values = dask.compute(*blocks)
            # One at a time: what is sent along with a task is meant to be small.
            return [dask.persist(dask.delayed(_same, pure=False)(value))[0] for value in values]
        files = [self.directory / f"{name}-{uuid.uuid4().hex[:8]}" for _ in blocks]
        write, read = dask.delayed(_write, pure=False), dask.delayed(_read, pure=False)
        dask.compute(*(write(block, file) for block, file in zip(blocks, files, strict=True)))
        kept = list(dask.persist(*(read(file) for file in files)))
        self._drop(name)
        self._latest[name] = files
        return kept

    def _drop(self, name: str) -> None:
        for file in self._latest.pop(name, []):
            file.unlink(missing_ok=True)


def _same(value: Any) -> Any:
    return value


def _write(value: Any, file: Path) -> None:
    # A repeated task may write while another one reads: only whole files get the name.
    beside = file.with_name(f"{file.name}-{uuid.uuid4().hex[:8]}.tmp")
    with open(beside, "wb") as stream:
        pickle.dump(value, stream, protocol=pickle.HIGHEST_PROTOCOL)
    beside.replace(file)


def _read(file: Path) -> Any:
    with open(file, "rb") as stream:
        return pickle.load(stream)
