"""``gmpll reproduce``: run the paper's experiments and write the report."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from gmpll.apps.cli import options
from gmpll.apps.errors import UserError

if TYPE_CHECKING:
    from gmpll.apps.experiments import Declaration, Experiment

_say = partial(typer.echo, err=True)
#: The experiments of the paper, and one with votes of annotators, which has to be named.
Kind = Literal["real-world", "controlled", "sensitivity", "timing", "crowd"]


def reproduce(
    out: options.RunFolder,
    only: Annotated[Kind | None, typer.Option(help="Run one kind of experiment.")] = None,
    datasets: options.Names = None,
    methods: options.Names = None,
    jobs: options.Jobs = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small table in some minutes.")] = False,
    folds: options.Folds = None,
    items: Annotated[
        int | None, typer.Option(min=1, help="Items of a crowd experiment; by default 3000.")
    ] = None,
    seed: options.Seed = None,
    tune: options.Tune = None,
    retry_failed: options.RetryFailed = False,
    data_home: options.DataHome = None,
    declaration: Annotated[
        Path | None, typer.Option(help="A TOML file that declares a run of your own.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Dask scheduler whose workers do the jobs.", metavar="ADDRESS"),
    ] = None,
) -> None:
    """Run the paper's experiments, score them and write the report.

    Every result is saved at once: a run that is stopped, or killed, goes on where it was when the
    same command is given again.
    """

    def changed(experiment: Experiment) -> Experiment:
        if seed is not None:
            experiment = replace(experiment, seeds=(seed,))
        if experiment.kind == "crowd":
            return replace(experiment, max_rows=items or experiment.max_rows)
        if folds is not None:
            run_folds = experiment.run_folds and min(experiment.run_folds, folds)
            experiment = replace(experiment, folds=folds, run_folds=run_folds)
        if tune is not None:
            experiment = replace(experiment, tune="candidate lift" if tune else "")
        return experiment

    with options.run_errors(out):
        import joblib

        from gmpll.apps.experiments import run, write_scores
        from gmpll.apps.experiments.selection import restricted
        from gmpll.apps.progress import working
        from gmpll.apps.report import write_run_report

        kept = restricted(
            _declared(declaration, only, quick),
            datasets=options.names_in(datasets),
            methods=options.names_in(methods),
        )
        summary = run(
            _at_hand(kept.change(changed), data_home),
            out,
            n_jobs=jobs or (joblib.cpu_count() if scheduler is None else None),
            retry_failed=retry_failed,
            data_home=data_home,
            scheduler=scheduler,
        )
        with working("scoring"):
            scores = write_scores(out, data_home=data_home)
        _say(f"{summary.done} of {summary.total} jobs are done; scores: {out / 'scores.csv'}")
        with working("drawing the report"):
            page = write_run_report(out, scores)
        _say(f"Report: {page}")
    options.end_with(summary.failed)


def _declared(file: Path | None, only: Kind | None, quick: bool) -> Declaration:
    from gmpll.apps.experiments import Declaration, built_in_declaration, read_declaration

    if file is not None and quick:
        raise UserError("Give either --declaration or --quick.")
    if file is not None:
        whole = read_declaration(file)
    else:
        kinds = [only] if only else [kind for kind in get_args(Kind) if kind != "crowd"]
        parts = map(built_in_declaration, ["quick"] if quick else kinds)
        whole = Declaration(tuple(item for part in parts for item in part.experiments))
    kept = tuple(item for item in whole.experiments if only in (None, item.kind))
    if not kept:
        raise UserError(f"This run has no {only} experiment; leave --only out or name another.")
    return replace(whole, experiments=kept)


def _at_hand(declaration: Declaration, data_home: Path | None) -> Declaration:
    from gmpll.apps.experiments.selection import available_part
    from gmpll.datasets import get_data_home

    present, missing = available_part(declaration, data_home)
    for name in missing:
        _say(f"Skipped {name}: not found in {get_data_home(data_home)}.")
    if not present.experiments:
        raise UserError(
            "None of the data sets is at hand: name their folder with --data-home or GMPLL_DATA, "
            "see `gmpll datasets`, or try --quick, which can do without."
        )
    return present
