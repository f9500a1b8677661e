"""What the command line shows of work that takes longer than two seconds.

On a terminal that is a bar with the share that is over and the time left; elsewhere, in log files
and pipes, a line now and then. Both go to the standard error output, where no data are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import NamedTuple

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from gmpll._progress import UNKNOWN, Outlook, begin, duration, listening, plan

__all__ = ["Bar", "Sight", "shown", "working"]

#: Nothing is shown of work that takes less time than this.
PATIENCE_SECONDS = 2.0
#: How often the bar is drawn, and how often a line is written where there is no terminal.
SECONDS_BETWEEN_DRAWINGS = 0.1
SECONDS_BETWEEN_LINES = 30.0
BAR_WIDTH = 24


class Sight(NamedTuple):
    """What there is to see: what runs, the share that is over and the seconds left, if known."""

    text: str
    share: float | None = None
    left: float | None = None


class Bar:
    """Draws what a function returns, from two seconds after its start until it is stopped.

    Where the console is no terminal it writes a line now and then.
    """

    def __init__(self, console: Console, look: Callable[[], Sight]) -> None:
        self._console, self._look = console, look
        self._ended = Event()
        self._thread = Thread(target=self._show, daemon=True)
        self._spinner = Spinner("dots")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Take the bar away."""
        self._ended.set()
        self._thread.join()

    def _show(self) -> None:
        if self._ended.wait(PATIENCE_SECONDS):
            return
        if not self._console.is_terminal:
            while not self._ended.wait(SECONDS_BETWEEN_LINES):
                sight = self._look()
                line = sight.text if sight.share is None else f"{sight.text}: {_numbers(sight)}"
                if sight.text:
                    self._console.print(line, markup=False, highlight=False, soft_wrap=True)
            return
        with Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False
        ) as live:
            live.update(self._drawn(self._look()), refresh=True)
            while not self._ended.wait(SECONDS_BETWEEN_DRAWINGS):
                live.update(self._drawn(self._look()), refresh=True)

    def _drawn(self, sight: Sight) -> Table:
        line = Table.grid(padding=(0, 1))
        if not sight.text:  # nothing has been said yet
            return line
        text = Text(sight.text, no_wrap=True, overflow="ellipsis")
        if sight.share is None:
            line.add_row(self._spinner, text)
        else:
            bar = ProgressBar(1.0, sight.share, width=BAR_WIDTH)
            line.add_row(text, bar, Text(_numbers(sight), no_wrap=True))
        return line


def _numbers(sight: Sight) -> str:
    left = "" if sight.left is None else f", about {duration(sight.left)} left"
    return f"{sight.share or 0.0:3.0%}{left}"


@contextmanager
def shown(console: Console | None = None) -> Iterator[None]:
    """Show how far the work of a block is, as it says itself (:mod:`gmpll._progress`)."""
    outlook = Outlook()

    def look() -> Sight:
        text = ": ".join(outlook.stages)
        return Sight(text[:1].upper() + text[1:], *(outlook.look() or ()))

    bar = Bar(console or Console(stderr=True), look)
    bar.start()
    try:
        with listening(outlook):
            yield
    finally:
        bar.stop()


@contextmanager
def working(what: str, console: Console | None = None) -> Iterator[None]:
    """Show what is done in a block of which it is not known how long it takes."""
    with shown(console), plan({what: UNKNOWN}):
        begin(what)
        yield
