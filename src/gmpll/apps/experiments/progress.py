"""What runs, what is left, when it will be done."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from rich.console import Console

from gmpll._progress import duration
from gmpll.apps.experiments.jobs import Job
from gmpll.apps.progress import Bar, Sight

#: Plain lines come no faster than this, but for failures and the end.
_SECONDS_BETWEEN_LINES = 2.0


class TimeEstimate:
    """Guess how long the remaining jobs take, from the finished ones most like them."""

    def __init__(self, jobs: Sequence[Job], n_workers: int) -> None:
        self._left = Counter((job.dataset, job.method) for job in jobs)
        self._n_workers = max(n_workers, 1)
        # Of finished jobs, alike in data set and method, in method only, and all of them.
        self._seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)

    def finished(self, job: Job, seconds: float | None) -> None:
        """Take a finished job into account."""
        self._left[job.dataset, job.method] -= 1
        if seconds is not None:
            for key in ((job.dataset, job.method), ("", job.method), ("", "")):
                self._seconds[key].append(seconds)

    def seconds_left(self) -> float | None:
        """Return the guess, or None before any job has finished."""
        means = {key: fmean(seconds) for key, seconds in self._seconds.items()}
        if not means:
            return None
        total = sum(
            number * means.get((dataset, method), means.get(("", method), means["", ""]))
            for (dataset, method), number in self._left.items()
        )
        return total / min(self._n_workers, max(self._left.total(), 1))


class RunProgress:
    """What a runner tells while it works: a bar on a terminal, lines in log files and pipes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bar: Bar | None = None
        self._running = ""
        self._last_line = self._last_finished = float("-inf")

    def begin(self, jobs: Sequence[Job], done: int, n_workers: int) -> None:
        """``jobs`` are to be run, ``done`` more have been run earlier."""
        self._total, self._done, self._failed = done + len(jobs), done, 0
        self._estimate = TimeEstimate(jobs, n_workers)
        self._left: float | None = None  # seconds, when the last job had finished
        if self.console.is_terminal:
            self._bar = Bar(self.console, self.look)
            self._bar.start()
        else:
            earlier = f", {done} were done before" if done else ""
            self.note(f"{len(jobs)} jobs to run{earlier}.")

    def running(self, jobs: Iterable[Job]) -> None:
        """These jobs are being worked on."""
        self._running = "; ".join(job.title for job in jobs)

    def finished(self, job: Job, seconds: float | None, error: str) -> None:
        """A job is done; ``seconds`` is None if another runner did it."""
        self._done += 1
        self._failed += bool(error)
        self._estimate.finished(job, seconds)
        self._left = self._estimate.seconds_left()
        if error:
            self.note(f"Failed: {job.title}: {error}")
        now = self._last_finished = time.monotonic()
        is_due = now - self._last_line >= _SECONDS_BETWEEN_LINES or self._done == self._total
        if is_due and not self.console.is_terminal:
            self._last_line = now
            took = "by another runner" if seconds is None else f"in {duration(seconds)}"
            line = f"{self._done}/{self._total}: {job.title}, {took}"
            line += f", {self._failed} failed" if self._failed else ""
            if self._left is not None and self._done < self._total:
                ends_at = time.strftime("%H:%M", time.localtime(time.time() + self._left))
                line += f", about {duration(self._left)} left (until {ends_at})"
            self.note(line)

    def end(self) -> None:
        """There is no more to tell."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def note(self, text: str) -> None:
        """Print a line, above the bar where there is one."""
        wrap = not self.console.is_terminal
        self.console.print(text, markup=False, highlight=False, soft_wrap=wrap)

    def look(self) -> Sight:
        """Return what there is to see now."""
        failed = f", {self._failed} failed" if self._failed else ""
        text = f"{self._done}/{self._total}{failed}  {self._running}"
        left = self._left
        if left is not None:
            left = max(left - (time.monotonic() - self._last_finished), 0.0)
        return Sight(text, self._done / max(self._total, 1), left)
