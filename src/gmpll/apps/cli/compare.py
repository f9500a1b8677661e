"""``gmpll compare``: methods on data of your own."""

from typing import Annotated, Any

import typer

from gmpll.apps.cli import options
from gmpll.apps.cli.outputs import check_folder
from gmpll.apps.errors import UserError


def _of_table(help: str, metavar: str = "COLUMN[,COLUMN]") -> Any:
    return typer.Option(help=help, metavar=metavar, rich_help_panel="Columns of a table")


def compare(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="Archives (.npz with X, S, y, names), tables, or data sets by name.",
            show_default=False,
        ),
    ],
    out: options.RunFolder,
    methods: options.Names = "all",
    truth: Annotated[str | None, _of_table("The true labels.", "COLUMN")] = None,
    candidates: Annotated[str | None, _of_table("The candidates.")] = None,
    annotators: Annotated[str | None, _of_table("The labels of one annotator each.")] = None,
    separator: Annotated[str | None, _of_table("Between the labels of a cell.", "TEXT")] = None,
    text: Annotated[str | None, _of_table("Text.")] = None,
    features: Annotated[str | None, _of_table("Features, and no others.")] = None,
    exclude: Annotated[str | None, _of_table("Not to be used.")] = None,
    p: Annotated[
        str | None,
        typer.Option(help="Draw candidates: shares of rows with wrong ones.", metavar="P[,P]"),
    ] = None,
    r: Annotated[
        str | None, typer.Option(help="Draw candidates: how many wrong ones.", metavar="R[,R]")
    ] = None,
    folds: options.Folds = 10,
    seed: options.Seed = 0,
    tune: options.Tune = True,
    jobs: options.Jobs = None,
    retry_failed: options.RetryFailed = False,
    data_home: options.DataHome = None,
) -> None:
    """Compare methods on your own data: folds, tuning, tests and report of the experiments.

    With true labels methods are compared by accuracy, without them by the candidate lift on
    held-out rows. A run that is stopped, or killed, goes on where it was when the same command is
    given again.
    """
    options.check_not_empty(locals())
    check_folder(out)
    with options.run_errors(out):
        import joblib

        from gmpll.apps.compare import compare as compared

        found = compared(
            data,
            options.names_in(candidates),
            truth,
            methods=options.names_in(methods) or (),
            p=_numbers(p, float, "--p"),
            r=_numbers(r, int, "--r"),
            folds=folds or 10,
            seeds=(seed or 0,),
            tune=bool(tune),
            out=out,
            n_jobs=jobs or joblib.cpu_count(),
            retry_failed=retry_failed,
            data_home=data_home,
            separator=separator,
            text=options.names_in(text) or (),
            features=options.names_in(features) or (),
            exclude=options.names_in(exclude) or (),
            annotators=options.names_in(annotators) or (),
        )
    shown = found.ranking.dropna(axis=1, how="all")
    typer.echo(shown.to_string(index=False, float_format="{:.3f}".format, na_rep=""))
    typer.echo(f"Report: {found.report}", err=True)
    options.end_with(int((found.scores["status"] != "ok").sum()))


def _numbers(text: str | None, kind: type, option: str) -> list[Any]:
    try:
        return [kind(name) for name in options.names_in(text) or ()]
    except ValueError as error:
        what = "whole numbers" if kind is int else "numbers"
        raise UserError(f"{option} is {text!r}: give {what}, separated by commas.") from error
