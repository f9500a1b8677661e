"""Work on all cores: NumPy and SciPy let other threads run while they compute."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

from gmpll._progress import unheard

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_threads() -> int:
    """Return how many threads to use: one per core unless ``OMP_NUM_THREADS`` says fewer."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = joblib.cpu_count()
    return max(1, min(cores, int(limit))) if limit.isdecimal() else cores


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply a function to items, several at a time; results come in the order of the items.

    Threads are not nested: inside, linear algebra has one thread, and so has this function.
    """
    items = list(items)
    workers = 1 if getattr(_here, "is_worker", False) else min(n_threads(), len(items))
    if workers <= 1:
        with unheard():  # as in other threads
            return [function(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(workers, initializer=_become_worker) as pool:
        return list(pool.map(function, items))


def balanced_blocks(n_rows: int, largest: int) -> list[slice]:
    """Cut rows into blocks of at most ``largest`` that differ little in size."""
    if n_rows == 0:
        return []
    n_blocks = -(-n_rows // max(1, largest))
    size = -(-n_rows // n_blocks)
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


_here = threading.local()
_lock = threading.Lock()
_limit: Any = None
_n_users = 0


def _become_worker() -> None:
    _here.is_worker = True
    _libraries().limit(limits=1, user_api="openmp")  # of this thread, as long as it lives


@cache
def _libraries() -> ThreadpoolController:
    """Return the linear algebra that is loaded; looking for it takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit linear algebra in the whole process: for many threads, or small matrices.

    Threads of it that find no free core wait for each other many times longer than they work.
    """
    global _limit, _n_users
    with _lock:
        if _n_users == 0:
            _limit = _libraries().limit(limits=1, user_api="blas")
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                _limit.restore_original_limits()
