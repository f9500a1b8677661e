import pytest


@pytest.fixture(autouse=True)
def one_task_at_a_time():
    """Let Dask compute in this process, one task at a time."""
    try:
        import dask
    except ImportError:
        yield
        return
    with dask.config.set(scheduler="synchronous"):
        yield
