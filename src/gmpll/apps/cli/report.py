"""``gmpll report``: a run folder becomes a page with tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gmpll.apps.cli import options
from gmpll.apps.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The run folder, or one with a scores.csv.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to write; by default DIR/report.")
    ] = None,
    data_home: options.DataHome = None,
) -> None:
    """Render a run as a self-contained page, with its tables as CSV, Markdown and LaTeX.

    The saved predictions are scored anew where the data sets are at hand; without --out, the
    scores.csv of the run is brought up to date too.
    """
    if not directory.is_dir():
        raise UserError(f"{directory} is no folder: name the folder of a run.")
    target = out or directory / "report"
    with options.plain_errors(target, extra="experiments"):
        from gmpll.apps.progress import working
        from gmpll.apps.report import write_report

        with working("scoring"):
            scores = _scores(directory, data_home, keep=out is None)
        provenance = _provenance(directory)
        with working("drawing the report"):
            page = write_report(scores, target, provenance=provenance, own=directory / "data")
    typer.echo(str(page))


def _scores(directory: Path, data_home: Path | None, *, keep: bool) -> pd.DataFrame:
    """Score the saved predictions; where that cannot be done, take the scores saved before."""
    from gmpll.apps.experiments import ExperimentError, scores, write_scores
    from gmpll.apps.report.scores_table import checked_scores, read_scores
    from gmpll.datasets import DatasetUnavailableError

    saved = directory / "scores.csv"
    if (directory / "declaration.json").exists():
        try:
            return (write_scores if keep else scores)(directory, data_home=data_home)
        except (ExperimentError, DatasetUnavailableError) as error:
            if not saved.exists():
                raise UserError(str(error)) from error
            typer.echo(f"The run could not be scored anew, {saved} is used: {error}", err=True)
    if not saved.is_file():
        raise UserError(
            f"{directory} holds neither a run (declaration.json) nor a scores.csv: "
            "name the folder that gmpll reproduce wrote to."
        )
    try:
        return checked_scores(read_scores(saved))
    except ValueError as error:  # not CSV, not UTF-8, or not the agreed columns
        raise UserError(f"{saved} cannot be read: {error}") from error


def _provenance(directory: Path) -> dict[str, Any]:
    """Describe the run, as it was recorded, and the making of the report."""
    from gmpll.apps.experiments.provenance import collect_provenance, provenance_of_run
    from gmpll.apps.experiments.store import RunFolder

    facts: dict[str, Any] = {}
    if (directory / "declaration.json").exists():
        try:
            facts["Run"] = provenance_of_run(RunFolder(directory))
        except (OSError, ValueError, KeyError):
            facts["Run"] = {"provenance": "the records of the run cannot be read"}
    now = collect_provenance()
    now["rendered"] = now.pop("started", "")
    return {**facts, "Report": now}
