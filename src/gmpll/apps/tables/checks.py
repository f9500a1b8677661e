"""What is asked of a file that a run left, before it is used."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gmpll.apps.tables.errors import InputError

__all__ = ["check_format", "check_unpacked_size"]

#: Where the system does not tell how much memory there is.
_ASSUMED_BYTES = 2**35


def check_format(path: Path, found: Any, known: int) -> None:
    """Refuse a file of another format; damaged and foreign files may give anything as theirs."""
    number = np.asarray(found)
    if number.ndim != 0 or number.dtype.kind not in "iu" or int(number) != known:
        raise InputError(
            f"{path} is not in format {known}, the one that this version of gmpll reads: run gmpll "
            "disambiguate again, or use the version that wrote it."
        )


def check_unpacked_size(path: Path) -> None:
    """Refuse a zip file that unpacks to more bytes than the machine has memory.

    Archives that lie about it do no harm: no more is read of a member than it declares.
    """
    with zipfile.ZipFile(path) as file:
        unpacked = sum(member.file_size for member in file.infolist())
    if unpacked > _memory_bytes():
        raise InputError(
            f"{path} unpacks to {unpacked >> 20} MiB, more than this machine has memory: "
            "it is not loaded."
        )


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return _ASSUMED_BYTES
