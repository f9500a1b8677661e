"""How far a piece of work is: whoever works says so, and whoever waits may listen.

A piece of work is a :func:`plan`: its stages in their order, and what each of them costs. Costs are
the seconds that a stage takes on the machine where it was measured (``benchmarks/progress.py``);
how much faster or slower the machine at hand is shows in the stages that are over. A plan inside a
stage of another one replaces the cost that the stage was given.

Who works calls :func:`begin` where a stage begins and, within long stages, :func:`reach` or
:func:`counted`. Who waits gives a function to :func:`listening`. Where nobody listens, a call costs
the look at a variable. Threads that a piece of work starts are not heard: the thread that waits for
them tells what is done. Pieces of work in different threads have different listeners.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

__all__ = [
    "UNKNOWN",
    "Outlook",
    "Standing",
    "begin",
    "counted",
    "duration",
    "listening",
    "plan",
    "printing",
    "reach",
    "revise",
    "unheard",
]

Item = TypeVar("Item")

#: So many seconds of work count as if they had been done at the speed of the measured machine.
PRIOR_SECONDS = 1.0
#: The cost of a stage of which nothing is known.
UNKNOWN = math.nan
#: Less time than this is not worth a word.
LEAST_SECONDS = 0.05
#: A listener is not told of changes within a stage that are smaller than this share of it.
LEAST_CHANGE = 0.002


class Standing(NamedTuple):
    """Where a piece of work stands; costs are seconds of the machine they were measured on."""

    #: What runs, the whole before its parts; empty before the first stage and after the last one.
    stages: tuple[str, ...]
    done: float  #: what is over
    running: float  #: what is left of the innermost stage that runs; NaN if that is not known
    left: float  #: what is left of the whole; NaN if that is not known


Listener = Callable[[Standing], object]


@dataclass(eq=False)
class _Work:
    """The stages of a piece of work; ``outer`` is that of which it is a stage."""

    outer: _Work | None = None
    waiting: dict[str, float] = field(default_factory=dict)
    listener: Listener | None = None
    stage: str = ""
    cost: float = 0.0  # of the stage that runs
    share: float = 0.0  # of it that is over
    past: float = 0.0

    def begin(self, stage: str) -> None:
        """Go on to a stage; those before it that were left out cost nothing."""
        self.past += _known(self.cost)
        self.stage, self.cost, self.share = stage, 0.0, 0.0
        for name in list(self.waiting):
            self.cost = self.waiting.pop(name)
            if name == stage:
                break
        self.tell()

    def standing(self, within: Standing | None) -> Standing:
        """Return where it stands, with a plan within its stage or without."""
        if within is None:
            running = self.cost * (1.0 - self.share)
            within = Standing((), _known(self.cost) * self.share, running, running)
            rest = 0.0
        else:
            rest = max(_known(self.cost - within.done - within.left), 0.0)  # of the stage, after it
        stages = (self.stage, *within.stages) if self.stage else within.stages
        left = within.left + rest + sum(self.waiting.values())
        return Standing(stages, self.past + within.done, within.running, left)

    def tell(self) -> None:
        """Let everyone know who listens to this work or to that around it."""
        work: _Work | None = self
        standing: Standing | None = None
        while work is not None:
            standing = work.standing(standing)
            if work.listener is not None:
                work.listener(standing)
            work = work.outer


def _known(cost: float) -> float:
    return 0.0 if math.isnan(cost) else cost


_current: ContextVar[_Work | None] = ContextVar("gmpll_work", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call a function with the standing of the work in the block whenever it changes."""
    with _inside(_Work(_current.get(), listener=listener)):
        yield


@contextmanager
def plan(costs: Mapping[str, float]) -> Iterator[None]:
    """Do a piece of work in stages, given in their order with their costs."""
    outer = _current.get()
    if outer is None:
        yield
        return
    with _inside(_Work(outer, dict(costs))):
        yield


@contextmanager
def unheard() -> Iterator[None]:
    """Let nobody listen to the block: it is a part of a stage that tells nothing of its own."""
    before = _current.set(None)
    try:
        yield
    finally:
        _current.reset(before)


@contextmanager
def _inside(work: _Work) -> Iterator[None]:
    outer, before = work.outer, _current.set(work)
    try:
        yield
        work.waiting = {}  # what has run was all there was
        work.begin("")
    finally:
        _current.reset(before)
        if outer is not None:  # of its stage this was a part or all
            outer.past += work.past
            outer.cost = max(_known(outer.cost) - work.past, 0.0)


def begin(stage: str) -> None:
    """Say that a stage of the plan begins, and that the one before it is over."""
    work = _current.get()
    if work is not None and stage in work.waiting:
        work.begin(stage)


def reach(stage: str, share: float) -> None:
    """Say which share of a stage is over; that of another stage than the running one is ignored."""
    work = _current.get()
    if work is not None and work.stage == stage and share >= work.share + LEAST_CHANGE:
        work.share = min(share, 1.0)
        work.tell()


def revise(costs: Mapping[str, float]) -> None:
    """Say what the stages that are still to come cost, now that more is known."""
    work = _current.get()
    if work is not None:
        work.waiting |= {stage: costs[stage] for stage in work.waiting if stage in costs}


def counted(stage: str, items: Iterable[Item], number: int) -> Iterator[Item]:
    """Give items, of which a stage consists, and say how many of the number are over."""
    for done, item in enumerate(items):
        reach(stage, done / number)
        yield item


class Outlook:
    """What the standing of a piece of work says of now: the share that is over, the time left.

    Between two messages the work is taken to go on as fast as so far, but not beyond the stage that
    runs: where that takes longer than was planned, everything is slower than was thought.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._standing: tuple[Standing, float] | None = None
        self._unplanned = 0.0  # seconds in stages of which nothing was known
        self.start = clock()

    def __call__(self, standing: Standing) -> None:
        """Take a message."""
        now = self._clock()
        if self._standing is not None and math.isnan(self._standing[0].running):
            self._unplanned += now - self._standing[1]
        self._standing = standing, now

    @property
    def stages(self) -> tuple[str, ...]:
        """What runs."""
        return self._standing[0].stages if self._standing else ()

    @property
    def seconds(self) -> float:
        """For how long it has been running."""
        return self._clock() - self.start

    def look(self) -> tuple[float, float] | None:
        """Return the share that is over and the seconds left; None if that cannot be known."""
        if self._standing is None:
            return None
        (_, done, running, left), at = self._standing
        if math.isnan(left) or done + left == 0:
            return None
        spent = PRIOR_SECONDS + max(at - self.start - self._unplanned, 0.0)
        since, gained = self._clock() - at, PRIOR_SECONDS + done
        pace = max(spent / gained, (spent + since) / (gained + running))
        over = min(since / pace, running)
        return (done + over) / (done + left), (left - over) * pace


def duration(seconds: float) -> str:
    """Write seconds for people.

    Examples
    --------
    >>> from gmpll._progress import duration
    >>> duration(0.04), duration(61), duration(600), duration(10_000)
    ('0.0 s', '61 s', '10 min', '2.8 h')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@contextmanager
def printing(name: str, depth: int) -> Iterator[None]:
    """Print a line for every stage of the work in the block, and of its parts down to a depth."""
    if depth <= 0:
        yield
        return
    printer = _Printer(name, depth)
    try:
        with listening(printer):
            yield
        printer.end()
    finally:
        printer.close()


class _Printer:
    """Prints what runs, and behind it how long it took and how far that is."""

    _unfinished: _Printer | None = None  # whose line is being written

    def __init__(self, name: str, depth: int) -> None:
        self._name, self._depth = name, depth
        self._stages: tuple[str, ...] = ()
        self._outlook = Outlook()
        self._since = self._outlook.start

    def __call__(self, standing: Standing) -> None:
        """Begin a new line where another stage runs."""
        self._outlook(standing)
        stages = standing.stages[: self._depth]
        if stages != self._stages:
            self._finish()
            self._stages, self._since = stages, time.perf_counter()
            self._write()

    def _write(self) -> None:
        if not self._stages:
            return
        self._leave_line()
        print(f"[{self._name}] {', '.join(self._stages)}: ", end="", flush=True)
        _Printer._unfinished = self

    def _leave_line(self) -> None:
        """End the line that is being written, also by the printer of work around this."""
        if _Printer._unfinished is not None:
            print(flush=True)
            _Printer._unfinished = None

    def _finish(self) -> None:
        if not self._stages:
            return
        if _Printer._unfinished is not self:
            self._write()
        said = duration(time.perf_counter() - self._since)
        if known := self._outlook.look():
            share, left = known
            said += f", {share:.0%} done"
            said += f", about {duration(left)} left" if left >= LEAST_SECONDS else ""
        print(said, flush=True)
        _Printer._unfinished = None

    def end(self) -> None:
        """Say how long all of it took, if it had stages."""
        if self._outlook.stages or self._since != self._outlook.start:
            self._leave_line()
            print(f"[{self._name}] {duration(self._outlook.seconds)} in all", flush=True)

    def close(self) -> None:
        """End the line of a stage that was broken off."""
        if _Printer._unfinished is self:
            self._leave_line()
