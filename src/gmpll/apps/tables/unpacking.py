"""A few bytes of an archive can become many: what does not fit into memory is not unpacked."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from gmpll.apps.tables.errors import InputError

__all__ = ["check_unpacked_size"]

#: Where the system does not tell how much memory there is.
_ASSUMED_BYTES = 2**35


def check_unpacked_size(path: Path) -> None:
    """Refuse a zip file that unpacks to more bytes than the machine has memory.

    Archives that lie about it do no harm: no more is read of a member than it declares.

    Parameters
    ----------
    path : Path
        A ``.npz`` or ``.skops`` file.

    Raises
    ------
    InputError
        If it is too large.
    zipfile.BadZipFile
        If it is no zip file.
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
