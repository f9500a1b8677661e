"""Options that commands share, and how lists are written in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from gmpll._seeds import LARGEST_SEED
from gmpll.apps.cli.errors import UserError

#: What a shell expects of a program that Ctrl-C stopped.
INTERRUPTED = 130
SOME_JOBS_FAILED = 1

RunFolder = Annotated[Path, typer.Option(help="Folder of the run; name it again to resume.")]
Names = Annotated[str | None, typer.Option(help="Names, separated by commas.", metavar="X,Y")]
Folds = Annotated[
    int | None, typer.Option(min=2, help="Folds of the cross-validation; by default 10.")
]
Seed = Annotated[int | None, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the shuffling.")]
Tune = Annotated[
    bool | None,
    typer.Option("--tune/--no-tune", help="Choose hyper-parameters on the training folds."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1, help="Processes; by default one per processor, or per worker of a cluster."
    ),
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Run jobs again that failed earlier.")
]
DataHome = Annotated[
    Path | None, typer.Option(help="The data folder; by default $GMPLL_DATA, else ~/.cache/gmpll.")
]


def names_in(text: str | None) -> list[str] | None:
    """Return names that are separated by commas, None if there is no text."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UserError("A list of names is empty: separate names by commas.")
    return names


@contextmanager
def run_errors(out: Path) -> Iterator[None]:
    """Turn what a user can put right, and an interruption of a run, into one sentence."""
    from gmpll.apps.experiments import ExperimentError

    try:
        yield
    except (ExperimentError, OSError) as error:
        raise UserError(str(error)) from error
    except KeyboardInterrupt:
        typer.echo(f"Stopped; give the same command (--out {out}) again to go on.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def end_with(failed: int) -> None:
    """Say how many jobs failed, if any did, and end with the exit code for that."""
    if failed:
        typer.echo(f"{failed} jobs failed; --retry-failed runs them again.", err=True)
        raise typer.Exit(SOME_JOBS_FAILED)
