"""The command line: ``gmpll COMMAND``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gmpll.cli.datasets import datasets
from gmpll.cli.demo import demo
from gmpll.cli.disambiguate import disambiguate
from gmpll.cli.errors import UserError
from gmpll.cli.predict import predict
from gmpll.cli.report import report
from gmpll.cli.reproduce import reproduce
from gmpll.cli.review import review

__all__ = ["app", "main"]

#: What the shell gets: the user's error, and an interruption by Ctrl-C.
EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="gmpll",
    help="Partial label learning: find the right label in every set of candidates.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(disambiguate)
app.command()(predict)
app.command()(review)
app.command()(datasets)
app.command()(reproduce)
app.command()(report)


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


def main() -> None:
    """Run the command line; an error of the user's is one sentence, not a traceback."""
    try:
        app()
    except UserError as error:
        typer.echo(f"gmpll: {error}", err=True)
        sys.exit(EXIT_USER_ERROR)
    except KeyboardInterrupt:
        typer.echo("gmpll: interrupted.", err=True)
        sys.exit(EXIT_INTERRUPTED)
