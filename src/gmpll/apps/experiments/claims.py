"""Claims: who does which job, when several processes work on one folder.

A claim is a lock on one byte of one file; the byte's place follows from the job's id. The
operating system drops the lock when the process ends, however it ends, so there are no stale
claims to find and clear away. (The locks belong to a process: two *threads* of one process do not
exclude each other.)
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Hexadecimal digits of an id that give the byte; 60 bits stay inside a signed file offset.
_DIGITS = 15

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int, offset: int, wait: bool) -> None:
        os.lseek(descriptor, offset, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int, offset: int, wait: bool) -> None:
        how = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.lockf(descriptor, how, 1, offset, os.SEEK_SET)


@contextmanager
def claimed(lock_file: Path, job_id: str, *, wait: bool = False) -> Iterator[bool]:
    """Try to claim a job, or wait for it; give True if it is ours until the end of the block.

    The lock file stays empty and is never removed: removing it would let two processes lock two
    different files of the same name.
    """
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            _lock(descriptor, int(job_id[:_DIGITS], 16), wait)
        except (BlockingIOError, PermissionError):
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)  # drops the lock
