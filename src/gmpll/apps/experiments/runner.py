"""Carrying out a run: in parallel, beside other runners, resumable at any moment."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console

from gmpll.apps.experiments import cluster
from gmpll.apps.experiments.claims import claimed
from gmpll.apps.experiments.declaration import Declaration, expand, methods_of
from gmpll.apps.experiments.jobs import Job
from gmpll.apps.experiments.methods import check_packages
from gmpll.apps.experiments.progress import RunProgress
from gmpll.apps.experiments.protocol import run_job
from gmpll.apps.experiments.provenance import collect_provenance
from gmpll.apps.experiments.selection import named_in_full
from gmpll.apps.experiments.store import Result, RunFolder
from gmpll.datasets.storage import get_data_home

#: How often a runner looks whether another one has finished what it waits for.
_POLL_SECONDS = 0.2
#: Held while this process does a job.
_at_work = Lock()
_DIED = "The worker process died; it may have run out of memory."


@dataclass(frozen=True)
class RunSummary:
    """How a run ended: its jobs, those that have a result, and those of them that failed."""

    total: int
    done: int
    failed: int


@dataclass(frozen=True)
class _Task:
    """A job and all that a worker has to know to do it."""

    job: Job
    folder: RunFolder
    data_home: str | None
    failed_attempts: int  # that this task wants to replace; results beyond them stand
    runner: int


@dataclass(frozen=True)
class _Report:
    """What came of a task; ``seconds`` is None if somebody else did it or does it."""

    job: Job
    done: bool
    seconds: float | None = None
    error: str = ""


def run(
    declaration: Declaration,
    run_dir: Path | str,
    *,
    n_jobs: int | None = None,
    retry_failed: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    progress: RunProgress | None = None,
    scheduler: str | None = None,
) -> RunSummary:
    """Run what has not been run yet.

    Every job's predictions are saved as soon as it is done, so the run can be stopped in any way
    at any time, and started again with the same call. Several runners may work on one folder;
    they share the jobs. A job that raises an error is recorded as failed and the others go on.

    Parameters
    ----------
    declaration : Declaration
        What to run.
    run_dir : path-like
        Where results are kept.
    n_jobs : int, default=None
        Number of worker processes; by default 1, or with a ``scheduler`` all that it has. Jobs of
        the kind "timing" are run after all others and one at a time, whatever the number. An
        enclosing ``joblib.parallel_config`` chooses another backend.
    retry_failed : bool, default=False
        Run the jobs again that failed earlier.
    data_home : path-like, default=None
        Folder of the data sets.
    progress : RunProgress, default=None
        Told what happens; by default lines or a bar on the standard error output.
    scheduler : str, default=None
        Address of a Dask scheduler, for instance ``"tcp://10.0.0.1:8786"``. Its workers then do
        the jobs and save them: all of them must reach the run folder and the data sets under the
        same path.

    Returns
    -------
    RunSummary

    Examples
    --------
    >>> import io, tempfile
    >>> from rich.console import Console
    >>> from gmpll.apps.experiments import Declaration, Experiment, run, scores
    >>> from gmpll.apps.experiments.progress import RunProgress
    >>> iris = Experiment("controlled", ("iris",), ("Any candidate",), p=(0.5,), r=(1,), folds=3)
    >>> silent = RunProgress(Console(file=io.StringIO()))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(Declaration((iris,)), folder, progress=silent)
    ...     scores(folder)["status"].tolist()
    RunSummary(total=3, done=3, failed=0)
    ['ok', 'ok', 'ok']
    """
    if scheduler is not None:  # its workers have working directories of their own
        run_dir = Path(run_dir).resolve()
        data_home = get_data_home(data_home).resolve()
    folder = RunFolder(run_dir)
    declaration = named_in_full(declaration, folder.data)
    progress = progress or RunProgress(Console(stderr=True))
    for experiment in declaration.experiments:
        check_packages(methods_of(experiment, declaration.variants))
    declaration = folder.take_in(declaration)
    jobs = expand(declaration)
    home = None if data_home is None else str(data_home)
    with nullcontext() if scheduler is None else cluster.connected(scheduler) as client:
        folder.declare(declaration)
        folder.remove_leftovers()
        provenance, earlier = collect_provenance(), folder.starts()
        if earlier and earlier[-1]["commit"] != provenance["commit"]:
            progress.note(
                "Note: the folder holds results of another state of the code; use a new folder if "
                "they must not be mixed."
            )
        folder.note_start(provenance)
        timed, others = list[_Task](), list[_Task]()
        results = folder.load_all(jobs)
        for job in jobs:
            result = results.get(job.id)
            if result is None or (retry_failed and result.failed):
                attempts = 0 if result is None else result.facts["attempt"]
                task = _Task(job, folder, home, attempts, os.getpid())
                (timed if job.experiment == "timing" else others).append(task)
        at_once = n_jobs or (1 if client is None else sys.maxsize)
        n_workers = at_once if client is None else min(at_once, cluster.n_workers(client))
        to_do = [task.job for task in others + timed]
        progress.begin(to_do, len(jobs) - len(to_do), n_workers)
        try:
            for stage, limit in ((others, at_once), (timed, 1)):
                for report in _work_off(stage, limit, progress, client):
                    progress.finished(report.job, report.seconds, report.error)
        finally:
            progress.end()
            folder.remove_leftovers()  # of workers that were ended while they wrote
    results = folder.load_all(jobs)
    failed = sum(result.failed for result in results.values())
    return RunSummary(total=len(jobs), done=len(results), failed=failed)


def _work_off(
    tasks: Sequence[_Task], n_workers: int, progress: RunProgress, client: Any = None
) -> Iterator[_Report]:
    """Do all tasks; wait for those that another runner is doing."""
    while tasks:
        by_id = {task.job.id: task for task in tasks}
        one_pass = _one_pass if client is None else partial(_one_pass_over, client)
        for report in one_pass(tasks, n_workers, progress):
            if report.done:
                del by_id[report.job.id]
                yield report
        if len(by_id) == len(tasks):
            time.sleep(_POLL_SECONDS)
        tasks = list(by_id.values())


def _one_pass(tasks: Sequence[_Task], n_workers: int, progress: RunProgress) -> Iterator[_Report]:
    """Try every task once, in parallel; go on if a worker process dies."""
    running: dict[str, _Task] = {}
    waiting = iter(tasks)

    def dispatch() -> Iterator[object]:
        for task in waiting:
            running[task.job.id] = task
            yield delayed(_attempt_in_process)(task)

    # One job per worker is handed out at a time, so what is handed out and not back is running.
    parallel = Parallel(
        n_jobs=n_workers, batch_size=1, pre_dispatch=n_workers, return_as="generator_unordered"
    )
    reports = parallel(dispatch())
    try:
        for report in reports:
            del running[report.job.id]
            progress.running([task.job for task in list(running.values())])
            yield report
    except BrokenExecutor:
        # Each again in a process of its own, to find out which one kills its process: with two
        # workers joblib uses processes even for a single task.
        for task in list(running.values()):
            try:
                yield from Parallel(n_jobs=2)([delayed(_attempt_in_process)(task)])
            except BrokenExecutor:
                yield _died(task)
        yield from _one_pass(list(waiting), n_workers, progress)
    finally:
        reports.close()


def _one_pass_over(
    client: Any, tasks: Sequence[_Task], n_workers: int, progress: RunProgress
) -> Iterator[_Report]:
    """Try every task once, on the workers of a cluster; go on if one of them dies."""
    with closing(cluster.results(client, _attempt, tasks, n_workers)) as results:
        for task, report, running in results:
            progress.running([other.job for other in running])
            yield report or _died(task)


def _died(task: _Task) -> _Report:
    """Note down that a task kills its process."""
    with claimed(task.folder.lock_file, task.job.id) as ours:
        if not ours:
            return _Report(task.job, done=False)
        task.folder.save(task.job, Result.failure(_DIED, attempt=task.failed_attempts + 1))
    return _Report(task.job, done=True, seconds=0.0, error=_DIED)


def _attempt_in_process(task: _Task) -> _Report:
    """Do a task in a process that this runner has started, or in the runner itself."""
    if os.getpid() != task.runner:
        _behave_as_worker(task.runner)
    return _attempt(task)


def _attempt(task: _Task) -> _Report:
    """Do a task, unless it is done or being done elsewhere."""
    job, folder, attempt = task.job, task.folder, task.failed_attempts + 1
    with _at_work, claimed(folder.lock_file, job.id) as ours:
        if not ours:
            return _Report(job, done=False)
        standing = folder.load(job)
        if standing and not (standing.failed and standing.facts["attempt"] < attempt):
            return _Report(job, done=True)
        start = time.perf_counter()
        try:
            settled = None
            if job.tune_fold not in (None, job.fold):  # another job has made the choice, or will
                first = folder.load(replace(job, fold=job.tune_fold))
                settled = None if first is None or first.failed else first.facts
            result = run_job(job, task.data_home, settled, str(folder.data))
            result.facts["attempt"] = attempt
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            result = Result.failure(text, traceback.format_exc(), attempt)
        folder.save(job, result)
    seconds = time.perf_counter() - start
    return _Report(job, done=True, seconds=seconds, error=result.facts["error"])


@cache
def _behave_as_worker(runner: int) -> None:
    """Make this process depend on its runner, once."""
    # Ctrl-C in a terminal reaches all processes; only the runner decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def leave_after_the_runner() -> None:
        # A parent that is process 1, and not the runner, adopted this process before it got here.
        while os.getppid() == parent and (parent > 1 or parent == runner):
            time.sleep(_POLL_SECONDS)
        with _at_work:  # the runner was killed: finish and save the job, then end
            os._exit(0)

    Thread(target=leave_after_the_runner, daemon=True).start()
