"""Dask in one thread unless a test starts a small cluster, which is always closed."""

import logging
from contextlib import ExitStack, contextmanager

import pytest

from gmpll.datasets import make_partial_label_problem


@contextmanager
def small_cluster(memory_limit=0):
    """Two workers with one thread each, closed whatever happens."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit=memory_limit,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def make_cluster():
    """Start clusters that end with the test."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(small_cluster(**settings))


@pytest.fixture(autouse=True)
def one_task_at_a_time(request):
    """Compute in this process, one task at a time, where there is no cluster."""
    try:
        import dask
    except ImportError:
        yield
        return
    if "make_cluster" in request.fixturenames:
        yield
    else:
        with dask.config.set(scheduler="synchronous"):
            yield


@pytest.fixture(scope="session")
def problem():
    return make_partial_label_problem(400, 20, 7, 2.5, random_state=3)
