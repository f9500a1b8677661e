"""What runs, what is left, when it will be done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from gmpll.apps.experiments.jobs import Job

__all__ = ["PlainProgress", "RichProgress", "RunProgress", "TimeEstimate", "progress_on"]

#: Plain lines come no faster than this, but for failures and the end.
_SECONDS_BETWEEN_LINES = 2.0


class RunProgress(Protocol):
    """What a runner tells while it works."""

    def begin(self, jobs: Sequence[Job], done: int, n_workers: int) -> None:
        """``jobs`` are to be run, ``done`` more have been run earlier."""

    def running(self, jobs: Iterable[Job]) -> None:
        """These jobs are being worked on."""

    def finished(self, job: Job, seconds: float | None, error: str) -> None:
        """A job is done; ``seconds`` is None if another runner did it."""

    def end(self) -> None:
        """There is no more to tell."""

    def note(self, text: str) -> None:
        """Something else worth knowing."""


class TimeEstimate:
    """Guess how long the remaining jobs take, from the finished ones most like them.

    Examples
    --------
    >>> from gmpll.apps.experiments.jobs import Job
    >>> from gmpll.apps.experiments.progress import TimeEstimate
    >>> def job(fold): return Job("timing", "lost", "A", "A", fold=fold, n_folds=3, seed=0)
    >>> estimate = TimeEstimate([job(0), job(1), job(2)], n_workers=2)
    >>> estimate.finished(job(0), 4.0)
    >>> estimate.seconds_left()
    4.0
    """

    def __init__(self, jobs: Sequence[Job], n_workers: int) -> None:
        self._left = Counter((job.dataset, job.method) for job in jobs)
        self._n_workers = max(n_workers, 1)
        # Number and sum of the seconds of finished jobs, alike in data set and method, in method
        # only, and all of them.
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}

    def finished(self, job: Job, seconds: float | None) -> None:
        """Take a finished job into account."""
        self._left[job.dataset, job.method] -= 1
        if seconds is not None:
            for key in ((job.dataset, job.method), ("", job.method), ("", "")):
                number, total = self._seen.get(key, (0, 0.0))
                self._seen[key] = (number + 1, total + seconds)

    def seconds_left(self) -> float | None:
        """Return the guess, or None before any job has finished."""
        means = {key: total / number for key, (number, total) in self._seen.items()}
        if not means:
            return None
        total = sum(
            number * means.get((dataset, method), means.get(("", method), means["", ""]))
            for (dataset, method), number in self._left.items()
        )
        return total / min(self._n_workers, max(self._left.total(), 1))


class _Counting:
    """The state that both kinds of progress show."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._total = self._done = self._failed = 0
        self._estimate = TimeEstimate([], 1)

    def _begin(self, jobs: Sequence[Job], done: int, n_workers: int) -> None:
        self._total, self._done, self._failed = done + len(jobs), done, 0
        self._estimate = TimeEstimate(jobs, n_workers)

    def _count(self, job: Job, seconds: float | None, error: str) -> None:
        self._done += 1
        self._failed += bool(error)
        self._estimate.finished(job, seconds)

    def _outlook(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        left = self._estimate.seconds_left()
        ends_at = "" if left is None else time.strftime("%H:%M", time.localtime(time.time() + left))
        outlook = "" if left is None else f", about {_duration(left)} left (until {ends_at})"
        return failed + (outlook if self._done < self._total else "")


class PlainProgress(_Counting):
    """Lines for log files and pipes."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._last_line = float("-inf")

    def begin(self, jobs: Sequence[Job], done: int, n_workers: int) -> None:
        """Say how much there is to do."""
        self._begin(jobs, done, n_workers)
        earlier = f", {done} were done before" if done else ""
        self._print(f"{len(jobs)} jobs to run{earlier}.")

    def running(self, jobs: Iterable[Job]) -> None:
        """Lines tell what is finished; what runs follows from the next one."""

    def finished(self, job: Job, seconds: float | None, error: str) -> None:
        """Print a line, unless the last one is fresh."""
        self._count(job, seconds, error)
        now = time.monotonic()
        if error:
            self._print(f"Failed: {job.title}: {error}")
        if self._done < self._total and now - self._last_line < _SECONDS_BETWEEN_LINES:
            return
        self._last_line = now
        took = "by another runner" if seconds is None else f"in {_duration(seconds)}"
        self._print(f"{self._done}/{self._total}: {job.title}, {took}{self._outlook()}")

    def end(self) -> None:
        """Nothing is left open by lines."""

    def note(self, text: str) -> None:
        """Print a line."""
        self._print(text)

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


class RichProgress(_Counting):
    """A bar that stays in place, for terminals."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None)
        self._running = ""

    def begin(self, jobs: Sequence[Job], done: int, n_workers: int) -> None:
        """Show the bar."""
        self._begin(jobs, done, n_workers)
        self._bar.start()
        self._show()

    def running(self, jobs: Iterable[Job]) -> None:
        """Show what runs."""
        self._running = "; ".join(job.title for job in jobs)
        self._show()

    def finished(self, job: Job, seconds: float | None, error: str) -> None:
        """Move the bar; print failures above it."""
        self._count(job, seconds, error)
        if error:
            self.note(f"Failed: {job.title}: {error}")
        self._show()

    def end(self) -> None:
        """Remove the bar."""
        self._bar.stop()

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, markup=False, highlight=False)

    def _show(self) -> None:
        text = f"{self._outlook().removeprefix(', ')}  {self._running}".strip()
        self._bar.update(self._task, completed=self._done, total=self._total, description=text)


def progress_on(console: Console) -> PlainProgress | RichProgress:
    """Return a bar on a terminal and plain lines elsewhere."""
    return RichProgress(console) if console.is_terminal else PlainProgress(console)


def _duration(seconds: float) -> str:
    """Write seconds for people.

    Examples
    --------
    >>> from gmpll.apps.experiments.progress import _duration
    >>> _duration(0.31), _duration(42), _duration(600), _duration(9000)
    ('0.3 s', '42 s', '10 min', '2.5 h')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
