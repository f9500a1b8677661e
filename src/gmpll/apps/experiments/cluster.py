"""Doing the jobs of a run on the workers of a Dask cluster."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from gmpll.apps.experiments.errors import ExperimentError

Task = TypeVar("Task")
Report = TypeVar("Report")


def connected(address: str) -> Any:
    """Connect to a running cluster, which is left running when the connection is closed."""
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ExperimentError(
            "Running over a Dask cluster needs dask: pip install 'gmpll[dask]'."
        ) from error
    try:
        return Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ExperimentError(
            f"No Dask scheduler answers at {address}: start one with `dask scheduler` and "
            "workers with `dask worker ADDRESS --nthreads 1`, or correct the address."
        ) from error


def n_workers(client: Any) -> int:
    """Count the workers; 1 if there is none, because some clusters grow with their load."""
    return max(len(client.ncores()), 1)


def results(
    client: Any, do: Callable[[Task], Report], tasks: Sequence[Task], at_once: int
) -> Generator[tuple[Task, Report | None, list[Task]]]:
    """Do tasks on the workers; give each as it ends, its report and the tasks now running.

    No more than ``at_once`` are handed out at a time, and no more than there are workers, so that
    what is handed out and not back is running. The report is None if the task killed its worker,
    again and again.
    """
    from dask.distributed import as_completed

    waiting = iter(tasks)
    handed_out: dict[Any, Task] = {}
    completed = as_completed(loop=client.loop)

    def hand_out() -> None:
        while len(handed_out) < min(at_once, n_workers(client)):
            task = next(waiting, None)
            if task is None:
                return
            future = client.submit(do, task, pure=False)
            handed_out[future] = task
            completed.add(future)

    try:
        hand_out()
        while handed_out:
            future = next(completed)
            report = _report_of(future)
            task = handed_out.pop(future)
            hand_out()
            yield task, report, list(handed_out.values())
    finally:
        # What a worker has begun it ends, and saves; what waits is not begun.
        if client.status == "running":
            client.cancel(list(handed_out))


def _report_of(future: Any) -> Any:
    from dask.distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker:
        return None
    except CancelledError as error:
        raise ExperimentError(
            "The connection to the Dask scheduler was lost: give the same command again to go on."
        ) from error
    except FileNotFoundError as error:
        raise ExperimentError(
            f"A worker of the cluster does not find {error.filename}: the run folder must be "
            "on a file system that all workers share, under the same path."
        ) from error
    except ModuleNotFoundError as error:
        raise ExperimentError(
            f"A worker of the cluster cannot import {error.name}: its environment must be "
            "that of the runner."
        ) from error
