"""The command line: ``gmpll COMMAND``."""

import inspect
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gmpll.apps.cli.compare import compare
from gmpll.apps.cli.datasets import datasets
from gmpll.apps.cli.demo import demo
from gmpll.apps.cli.disambiguate import disambiguate
from gmpll.apps.cli.options import INTERRUPTED, interruption_told
from gmpll.apps.cli.predict import predict
from gmpll.apps.cli.report import report
from gmpll.apps.cli.reproduce import reproduce
from gmpll.apps.cli.review import review
from gmpll.apps.cli.serve import serve
from gmpll.apps.errors import UserError

#: What the shell gets for an error of the user's.
EXIT_USER_ERROR = 2


class _Commands(TyperGroup):
    """Says that it was interrupted; typer would end without a word."""

    make_context = interruption_told()(TyperGroup.make_context)
    invoke = interruption_told()(TyperGroup.invoke)


app = typer.Typer(
    name="gmpll",
    cls=_Commands,
    help="Partial label learning: find the right label in every set of candidates.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _command in (demo, disambiguate, predict, serve, review, datasets, compare, reproduce, report):
    # A line for each paragraph, which is wrapped once.
    _paragraphs = (inspect.getdoc(_command) or "").split("\n\n")
    app.command(help="\n\n".join(" ".join(part.split()) for part in _paragraphs))(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        from gmpll import __version__

        typer.echo(f"gmpll {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGTERM into a :class:`KeyboardInterrupt` inside of the block."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread, where signals do not arrive anyway
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main() -> None:
    """Run the command line; an error of the user's is one sentence, not a traceback."""
    try:
        with stoppable():
            app()
    except UserError as error:
        typer.echo(f"gmpll: {' '.join(str(error).split())}", err=True)
        sys.exit(EXIT_USER_ERROR)
    except OSError as error:  # a file or a disk, where a command has nothing better to say
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"gmpll: {where}{error.strerror or error}.", err=True)
        sys.exit(EXIT_USER_ERROR)
    except KeyboardInterrupt:  # outside of any command
        typer.echo("gmpll: interrupted.", err=True)
        sys.exit(INTERRUPTED)
