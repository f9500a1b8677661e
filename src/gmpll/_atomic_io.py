"""What is being written lies beside its target, under a name that tells which process writes.

It gets the target's name when it is complete and on the disk. A process that is killed cannot tidy
up; the next one that writes the same target does, for whoever wrote is gone then.

A target that is no regular file (a pipe, a terminal, a device) is never replaced: what is complete
is written into it.
"""

import itertools
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

#: Characters of the target's name that are kept: together with the rest, a name has a limit.
_KEPT_CHARACTERS = 50
_WRITER = re.compile(
    r"(?P<beginning>\..*)-(?P<machine>[0-9a-f]{8})-(?P<process>\d+)-\d+\.tmp", re.ASCII | re.DOTALL
)
_numbers = itertools.count()
_STDOUT = 1


def unfinished_path(target: Path) -> Path:
    """Return a name beside ``target`` that nobody else uses."""
    beginning = _beginning(target.name)
    return target.with_name(f"{beginning}-{_machine()}-{os.getpid()}-{next(_numbers)}.tmp")


def abandoned(folder: Path, target: str = "") -> list[Path]:
    """Return what dead processes of this machine left unfinished of one target, or of any."""
    try:
        writers = [found for name in os.listdir(folder) if (found := _WRITER.fullmatch(name))]
    except OSError:
        return []
    return [
        folder / writer[0]
        for writer in writers
        if writer["beginning"] == _beginning(target) or not target
        if writer["machine"] == _machine() and not _lives(int(writer["process"]))
    ]


def remove_abandoned(folder: Path, target: str = "") -> None:
    """Remove what :func:`abandoned` returns."""
    for path in abandoned(folder, target):
        _remove(path)


@contextmanager
def atomic_write(target: Path) -> Iterator[Path]:
    """Give the name of a file that takes the place of ``target`` if the block ends well.

    Its folder is made where it is missing. Nobody ever sees half a file, also where two processes
    write the same one; whatever goes wrong in the block, nothing is left behind. Links are
    followed. A target that is there and is no regular file gets the content of the file and stays
    what it is.
    """
    if is_special(target):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / (target.name or "file")
            yield file
            with file.open("rb") as content, _opened(target) as sink:
                shutil.copyfileobj(content, sink)
        return
    target = Path(os.path.realpath(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(target.parent, target.name)
    beside = unfinished_path(target)
    try:
        yield beside
        commit(beside, target)
    except BaseException:
        _remove(beside)
        raise


def write_atomically(target: Path, content: bytes) -> None:
    """Write a file so that it is the old one or the new, never half."""
    with atomic_write(target) as beside:
        beside.write_bytes(content)


def is_special(path: Path) -> bool:
    """Whether there is something that must not be replaced: a pipe, a device, standard output."""
    try:
        kind = path.stat().st_mode
    except OSError:
        return False
    return is_stdout(path) or not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def is_stdout(path: Path) -> bool:
    """Whether a path leads to where standard output goes, as ``/dev/stdout`` does."""
    try:
        return os.path.samestat(path.stat(), os.fstat(_STDOUT))
    except OSError:
        return False


def _opened(target: Path) -> BinaryIO:
    if not is_stdout(target):
        return open(target, "wb")
    # Opened anew, a file that it goes to would be overwritten from its beginning.
    sys.stdout.flush()
    return os.fdopen(os.dup(_STDOUT), "wb")


def nearest_folder(path: Path) -> Path:
    """Return the folder, or whatever it is, in which the missing part of a path would begin."""
    path = Path(os.path.realpath(path))
    return next(place for place in (path, *path.parents) if place.exists())


def takes_files(folder: Path) -> bool:
    """Whether something can be made in a folder; it is tried, as rights alone do not tell."""
    remove_abandoned(folder, "probe")
    probe = unfinished_path(folder / "probe")
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    except BaseException:  # told to end: nothing may stay behind
        _remove(probe)
        raise
    return True


def commit(file: Path, target: Path) -> None:
    """Give a file its name once its content is on the disk, and see that the name lasts."""
    sync_file(file)
    os.replace(file, target)
    sync_folder(target.parent)


def sync_file(file: Path) -> None:
    """Wait until the content of a file is on the disk."""
    with open(file, "rb+") as content:
        os.fsync(content.fileno())


def sync_folder(folder: Path) -> None:
    """Make renames last through a power cut, where the system lets folders be flushed."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _beginning(name: str) -> str:
    return f".{name[:_KEPT_CHARACTERS]}"


@cache
def _machine() -> str:
    """Return a mark of where process numbers mean the same: the machine, and its container."""
    where = platform.node()
    with suppress(OSError):
        where += os.readlink("/proc/self/ns/pid")
    return f"{zlib.crc32(where.encode()):08x}"


def _lives(process: int) -> bool:
    if sys.platform == "win32":
        return True  # there, asking with the signal 0 would end the process
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)  # does nothing to files and links
    with suppress(OSError):
        path.unlink()
