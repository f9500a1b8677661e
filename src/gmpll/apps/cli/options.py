"""Options that commands share, and how lists are written in them."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from gmpll._seeds import LARGEST_SEED
from gmpll.apps.errors import UserError

#: What a shell expects of a program that Ctrl-C stopped.
INTERRUPTED = 130
SOME_JOBS_FAILED = 1
_EXTRAS = (
    *("pandas", "pyarrow", "skops", "jinja2", "markupsafe"),
    *("starlette", "uvicorn", "h11", "markdown_it", "matplotlib", "scikit_posthocs"),
)


#: Options of which a blank or a comma is a value.
_MARKS = ("separator", "delimiter")


def special(help: str, metavar: str | None = None) -> Any:
    """Make an option that few need."""
    return typer.Option(metavar=metavar, help=help, rich_help_panel="Special cases")


Format = Annotated[str | None, special("csv, tsv, parquet, jsonl, json or excel.")]
Delimiter = Annotated[str | None, special("Between cells; 'tab' for tabs.")]
Encoding = Annotated[str | None, special("Of text; UTF-8 by default.")]
EscapeFormulas = Annotated[bool, special("Put ' before CSV cells that look like formulas.")]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="model.skops, or the folder it lies in.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free one.")]
Host = Annotated[
    str, typer.Option(help="Address to listen on; anything but loopback lets others in.")
]
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


def split(value: str | None) -> tuple[str, ...]:
    """Split an option at its commas."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if value else ()


def check_not_empty(given: Mapping[str, object]) -> None:
    """Refuse options that name nothing, as those made from a shell variable that is not set."""
    for name, value in given.items():
        if isinstance(value, str) and not (split(value) or (name in _MARKS and value)):
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option} is empty: name something, or leave it out.")


def names_in(text: str | None) -> tuple[str, ...] | None:
    """Return names that are separated by commas, None if there is no text."""
    if text is not None and not split(text):
        raise UserError("A list of names is empty: separate names by commas.")
    return None if text is None else split(text)


@contextmanager
def interruption_told() -> Iterator[None]:
    """Say that a command was interrupted, and end with the exit code for that."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("gmpll: interrupted.", err=True)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def plain_errors(target: Path, extra: str = "tables") -> Iterator[None]:
    """Turn what a user can put right, and an interruption, into one sentence."""
    try:
        with interruption_told():
            yield
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRAS:
            raise
        what = {"tables": "Tables", "review": "The review page and the service"}
        raise UserError(
            f"{what.get(extra, 'Reports')} need {error.name}: install it with pip install "
            f"'gmpll[{extra}]'."
        ) from error
    except MemoryError as error:
        raise UserError("The data do not fit into memory: resolve a part of the rows.") from error
    except UnicodeEncodeError as error:
        raise UserError(f"The results cannot be written as {error.encoding}: use UTF-8.") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"The disk of {target} is full: free some space, or name another place with --out; "
                "nothing was written."
            ) from error
        where = error.filename or target
        raise UserError(f"{where} cannot be read or written: {error.strerror}.") from error


@contextmanager
def run_errors(out: Path) -> Iterator[None]:
    """Turn what a user can put right, and an interruption of a run, into one sentence."""
    try:
        yield
    except ImportError as error:
        raise UserError(
            f"This needs {error.name}: pip install 'gmpll[experiments,tables]' and give the same "
            "command again."
        ) from error
    except OSError as error:
        raise UserError(str(error)) from error
    except KeyboardInterrupt:
        typer.echo(f"Stopped; give the same command (--out {out}) again to go on.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def end_with(failed: int) -> None:
    """Say how many jobs failed, if any did, and end with the exit code for that."""
    if failed:
        typer.echo(f"{failed} jobs failed; --retry-failed runs them again.", err=True)
        raise typer.Exit(SOME_JOBS_FAILED)
