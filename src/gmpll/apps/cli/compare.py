"""``gmpll compare``: methods on data of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gmpll._seeds import LARGEST_SEED
from gmpll.apps.cli.errors import UserError
from gmpll.apps.cli.outputs import check_folder
from gmpll.apps.cli.reproduce import INTERRUPTED, SOME_JOBS_FAILED, names_in

__all__ = ["compare"]


def compare(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="Archives (.npz with X, S, y, names), tables, or data sets by name.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run; name it again to resume.")],
    methods: Annotated[
        str, typer.Option(help="Methods, separated by commas.", metavar="X,Y")
    ] = "all",
    truth: Annotated[
        str | None, typer.Option(help="Column of the true labels, of a table.", metavar="COLUMN")
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(help="Column(s) of the candidates, of a table.", metavar="COLUMN[,COLUMN]"),
    ] = None,
    annotators: Annotated[
        str | None,
        typer.Option(
            help="Columns with the labels of one annotator each, of a table.",
            metavar="COLUMN,COLUMN",
        ),
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="Between the labels of a cell of a table.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Columns of text, of a table.", metavar="COLUMN[,COLUMN]")
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(help="Columns to use as features, of a table.", metavar="COLUMN[,COLUMN]"),
    ] = None,
    exclude: Annotated[
        str | None,
        typer.Option(help="Columns not to use, of a table.", metavar="COLUMN[,COLUMN]"),
    ] = None,
    p: Annotated[
        str | None,
        typer.Option(help="Draw candidates: shares of rows with wrong ones.", metavar="P[,P]"),
    ] = None,
    r: Annotated[
        str | None, typer.Option(help="Draw candidates: how many wrong ones.", metavar="R[,R]")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 10,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the shuffling.")] = 0,
    tune: Annotated[
        bool,
        typer.Option("--tune/--no-tune", help="Choose hyper-parameters on the training folds."),
    ] = True,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one per processor.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run jobs again that failed earlier.")
    ] = False,
    data_home: Annotated[
        Path | None, typer.Option(help="Folder of data sets by name; by default $GMPLL_DATA.")
    ] = None,
) -> None:
    """Compare methods on your own data: folds, tuning, tests and report of the experiments.

    With true labels methods are compared by accuracy, without them by the candidate lift on
    held-out rows. A run that is stopped, or killed, goes on where it was when the same command is
    given again.
    """
    check_folder(out)
    try:
        import joblib

        from gmpll.apps.compare import compare as compared
        from gmpll.datasets import DatasetUnavailableError
    except ImportError as error:
        raise UserError(
            f"Comparisons need {error.name}: install it with pip install 'gmpll[experiments]'."
        ) from error
    try:
        found = compared(
            data,
            names_in(candidates),
            truth,
            methods=names_in(methods) or (),
            p=_numbers(p, float, "--p"),
            r=_numbers(r, int, "--r"),
            folds=folds,
            seeds=(seed,),
            tune=tune,
            out=out,
            n_jobs=jobs or joblib.cpu_count(),
            retry_failed=retry_failed,
            data_home=data_home,
            separator=separator,
            text=names_in(text) or (),
            features=names_in(features) or (),
            exclude=names_in(exclude) or (),
            annotators=names_in(annotators) or (),
        )
    except ImportError as error:
        raise UserError(
            f"This needs {error.name}: pip install 'gmpll[experiments,tables]' and give the same "
            "command again."
        ) from error
    except (ValueError, OSError, DatasetUnavailableError) as error:
        raise UserError(str(error)) from error
    except KeyboardInterrupt:
        typer.echo(f"Stopped; give the same command (--out {out}) again to go on.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    shown = found.ranking.dropna(axis=1, how="all")
    typer.echo(shown.to_string(index=False, float_format="{:.3f}".format, na_rep=""))
    typer.echo(f"Report: {found.report}", err=True)
    failed = int((found.scores["status"] != "ok").sum())
    if failed:
        typer.echo(f"{failed} jobs failed; --retry-failed runs them again.", err=True)
        raise typer.Exit(SOME_JOBS_FAILED)


def _numbers(text: str | None, kind: type, option: str) -> list[Any]:
    try:
        return [kind(name) for name in names_in(text) or ()]
    except ValueError as error:
        what = "whole numbers" if kind is int else "numbers"
        raise UserError(f"{option} is {text!r}: give {what}, separated by commas.") from error
