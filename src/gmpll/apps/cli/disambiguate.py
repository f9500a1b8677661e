"""``gmpll disambiguate``: a table of ambiguous labels becomes a table of resolved ones."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gmpll._seeds import LARGEST_SEED
from gmpll.apps.cli import options
from gmpll.apps.cli.options import plain_errors, special
from gmpll.apps.cli.outputs import table_stem

if TYPE_CHECKING:
    from rich.console import Console

    from gmpll.apps.tables.resolving import Resolution

#: Annotators with a line of their own.
_SHOWN = 10


def _data(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel="Data")


_Text = str | None
#: What --method takes, written down so that showing the help does not load the methods.
METHODS = (
    "gmpll, gm-pll, plknn, plsvm, clpl, lsbcmm, m3pl, plleaf, ipal, plecoc, "
    "lalo, sure, plaggd, plcl"
)


def disambiguate(
    input: Annotated[
        Path, typer.Argument(metavar="INPUT", help="CSV, TSV, Parquet, JSON or Excel file.")
    ],
    candidates: Annotated[
        _Text,
        _data(
            "COLUMN",
            "Column of candidate sets, or comma-separated columns of 0 and 1 (label_* works).",
        ),
    ] = None,
    votes: Annotated[
        Path | None, _data("FILE", "Long file of votes: item, label, annotator.")
    ] = None,
    annotators: Annotated[
        _Text, _data("COLUMNS", "Columns that hold the labels of one annotator each.")
    ] = None,
    text: Annotated[_Text, _data("COLUMNS", "Columns of text, or none.")] = None,
    features: Annotated[
        _Text,
        _data(
            "COLUMNS|FILE",
            "Columns and embedding files (.npy, .npz, .parquet) to use, and no others.",
        ),
    ] = None,
    id: Annotated[_Text, _data("COLUMN", "Column of ids, or none.")] = None,
    gold: Annotated[_Text, _data("COLUMN", "Column of labels known for sure, or none.")] = None,
    impossible: Annotated[
        _Text, _data("COLUMN", "Column of labels that a row cannot have.")
    ] = None,
    exclude: Annotated[_Text, _data("COLUMNS", "Columns not to use.")] = None,
    merge_labels: Annotated[
        bool,
        typer.Option(
            "--merge-labels",
            help="Make one label of those that differ in case, spaces or Unicode form.",
            rich_help_panel="Data",
        ),
    ] = False,
    rename: Annotated[
        list[str] | None,
        _data("OLD=NEW|FILE", "New name of a label, or a file of them (old, new); repeatable."),
    ] = None,
    image: Annotated[_Text, _data("COLUMN", "Column of image files, shown in the review.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Results; INPUT-resolved by default.")
    ] = None,
    method: Annotated[str, typer.Option(help=f"One of {METHODS}.")] = "gmpll",
    review_below: Annotated[
        float | None,
        typer.Option(
            help="Flag rows whose margin is smaller; by default 0.5, or 0.25 where confidences "
            "are not calibrated (other methods than gmpll)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Breaks ties.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Describe the data and their problems, write nothing.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace results in DIR.")] = False,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    separator: Annotated[_Text, special("Between the labels of a cell, or json.")] = None,
    vote_columns: Annotated[_Text, special("Columns of the votes.", "ITEM,LABEL,WHO")] = None,
    min_share: Annotated[float, special("Drop labels with a smaller share of the votes.")] = 0.0,
    trust: Annotated[
        float | None,
        special(
            "Count votes, and how much: 0 not at all, 1 as probabilities. By default it is "
            "estimated, for every annotator who is named."
        ),
    ] = None,
    outside: Annotated[
        str, special("Labels that nobody voted for: auto (possible where annotators named), never.")
    ] = "auto",
    labels: Annotated[_Text, special("All labels that are allowed, with commas.")] = None,
    empty: Annotated[str, special("Rows without candidates: error, or all (any label).")] = "error",
    escape_formulas: options.EscapeFormulas = True,
) -> None:
    """Resolve ambiguous labels: which of its candidates is right for every row?

    Without options the columns are guessed; the guesses are shown before work starts. DIR gets
    the resolved rows, a report, a model for gmpll predict and what gmpll review needs.
    """
    given = locals()
    options.check_not_empty(given)
    from rich.console import Console

    console = Console(highlight=False)
    folder = out or input.with_name(f"{table_stem(input)}-resolved")
    with plain_errors(folder):
        from gmpll._progress import begin, plan
        from gmpll.apps.decisions.archive import check_not_under_review
        from gmpll.apps.progress import shown
        from gmpll.apps.tables import steps
        from gmpll.apps.tables.errors import counted
        from gmpll.apps.tables.guesses import guess_roles
        from gmpll.apps.tables.labels import options_of
        from gmpll.apps.tables.output import OWN_FILES, check_target, decisions_in, write_folder
        from gmpll.apps.tables.resolving import prepare, resolve_decided
        from gmpll.apps.tables.tables import read_table

        chosen = options_of(given, options.split)
        if not dry_run:
            check_target(folder, force=force, own_files=OWN_FILES)
            check_not_under_review(folder)
        with shown(), plan(steps.reading_steps(input)):
            begin(steps.READING)
            table = read_table(input, format=format, delimiter=delimiter, encoding=encoding)
            roles = guess_roles(table, chosen)
        notes = f" ({'; '.join(table.notes)})" if table.notes else ""
        size = f"{len(table.frame)} rows, {table.frame.shape[1]} columns"
        console.print(f"{table.name}: {size}{notes}", markup=False)
        titles = {"used as": "", "what": "", "change it with": "dim"}
        _print_grid(console, titles, roles.described())
        with shown(), plan(steps.candidate_steps(*table.frame.shape)):
            begin(steps.CANDIDATES)
            prepared = prepare(table, roles, chosen)
        sizes = prepared.sets.mask.sum(axis=1)
        console.print(
            f"{prepared.sets.mask.shape[1]} labels, {sizes.mean():.2f} candidates a row on "
            f"average, {counted(int((sizes > 1).sum()), 'row')} ambiguous."
        )
        for problem in prepared.problems:
            console.print(f"Note: {problem}.", markup=False)
        if dry_run:
            console.print("Dry run: nothing was written.")
            return
        held = decisions_in(folder, prepared)
        if held:
            taken = counted(len(held), "decision", "is")
            typer.echo(f"Note: {taken} taken along from the review in {folder}.")
        command = shlex.join(["gmpll", *sys.argv[1:]])
        with shown(), plan(steps.disambiguation_steps(*table.frame.shape)):
            resolution = resolve_decided(prepared, held)
            files, archived = write_folder(
                resolution, folder, escape=escape_formulas, held=held, command=command
            )
        _print_results(console, resolution)
        for file in files:
            typer.echo(f"  {file}")
        if archived is not None:
            typer.echo(
                "Note: the rows, labels or candidates are others than those reviewed in this "
                f"folder. {archived.carried_over} of {archived.rows} reviewed rows were recognised "
                "by their ids and keep their decision. The earlier review is in "
                f"{archived.folder}; to have its labels:"
            )
            typer.echo(f"  gmpll review {archived.folder} --export FILE")
        typer.echo("Next: open the report, or go through the doubtful rows with")
        typer.echo(f"  gmpll review {folder}")


def _print_grid(console: Console, columns: dict[str, str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under the titles of the columns, which are given with their styles."""
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for title, style in columns.items():
        grid.add_column(title, justify="right" if style == "right" else "left")
    for row in rows:
        styles = [style.replace("right", "") for style in columns.values()]
        grid.add_row(*map(Text, row, styles))
    console.print(grid)


def _print_results(console: Console, resolution: Resolution) -> None:
    from gmpll.apps.pages.tables import number
    from gmpll.apps.tables.errors import counted
    from gmpll.apps.tables.summary import annotator_table, sentences, wrong_probability

    found = resolution.verdicts
    sure = found.confidence[resolution.is_open]
    mean = sure.mean() if sure.size else 1.0
    what = counted(len(sure), "ambiguous row")
    if resolution.prepared.sets.annotated:
        what = f"{counted(len(sure), 'row')} with more than one possible label"
    flagged = int(found.review.sum())
    console.print(
        f"Resolved {what}, mean confidence {mean:.2f}; "
        f"{flagged} {'is' if flagged == 1 else 'are'} worth a look."
    )
    if resolution.prepared.calibrated:
        wrong = wrong_probability(resolution)
        more = "; more if annotators are often wrong together, which votes hardly show"
        console.print(
            f"About {wrong.sum():.0f} of {len(wrong)} labels are expected to be wrong, "
            f"{wrong[found.review].sum():.0f} of them among the rows worth a look"
            f"{more if resolution.prepared.sets.annotated else ''}."
        )
    for sentence in sentences(resolution):
        console.print(sentence, markup=False)
    annotators = annotator_table(resolution)
    if annotators is None:
        return
    marks = {True: "careless", False: ""}
    rows = [
        (str(name), str(n), number(right, 2), number(agree, 2), marks[careless], confuses)
        for name, n, right, agree, careless, confuses in annotators[:_SHOWN].itertuples()
    ]
    figures = dict.fromkeys(("votes", "estimated accuracy", "agreement"), "right")
    _print_grid(console, {"annotator": "", **figures, "": "", "confuses": ""}, rows)
    if len(annotators) > _SHOWN:
        console.print(f"... and {len(annotators) - _SHOWN} more in annotators.csv")
