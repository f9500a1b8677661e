"""Threads are not nested: one for each core, whatever the functions do."""

import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from gmpll import _threads
from gmpll._threads import in_threads, one_blas_thread


def blas_threads():
    return {
        library["num_threads"]
        for library in ThreadpoolController().info()
        if library["user_api"] == "blas"
    }


@pytest.fixture
def three_cores(monkeypatch):
    monkeypatch.setattr(_threads, "n_threads", lambda: 3)


def test_results_come_in_the_order_of_the_items(three_cores):
    assert in_threads(lambda item: item**2, range(20)) == [item**2 for item in range(20)]


def test_threads_have_no_threads_of_their_own(three_cores):
    barrier = threading.Barrier(3)

    def names(_):
        barrier.wait(timeout=60)  # all three are at work
        return threading.current_thread().name, set(
            in_threads(lambda _: threading.current_thread().name, range(4))
        )

    found = in_threads(names, range(3))
    assert len({name for name, _ in found}) == 3
    assert all(inner == {name} for name, inner in found)


def test_linear_algebra_has_one_thread_until_all_are_done(three_cores):
    before = blas_threads()
    assert in_threads(lambda _: blas_threads(), range(3)) == [{1}] * 3
    with one_blas_thread():
        in_threads(np.sqrt, range(3))
        assert blas_threads() == {1}
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda item: 1 // item, range(3))
    assert blas_threads() == before
