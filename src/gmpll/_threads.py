"""Work on all cores: NumPy and SciPy let other threads run while they compute."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import joblib

from gmpll._progress import unheard

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_threads() -> int:
    """Return how many threads to use: one per core unless ``OMP_NUM_THREADS`` says fewer."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = joblib.cpu_count()
    return max(1, min(cores, int(limit))) if limit.isdecimal() else cores


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply a function to items, several at a time; results come in the order of the items."""
    items = list(items)
    workers = min(n_threads(), len(items))
    if workers <= 1:
        with unheard():  # as in other threads
            return [function(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


def balanced_blocks(n_rows: int, largest: int) -> list[slice]:
    """Cut rows into blocks of at most ``largest`` that differ little in size."""
    if n_rows == 0:
        return []
    n_blocks = -(-n_rows // max(1, largest))
    size = -(-n_rows // n_blocks)
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
