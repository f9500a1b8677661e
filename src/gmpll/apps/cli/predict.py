"""``gmpll predict``: labels of new rows by the model of an earlier run."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from gmpll._atomic_io import atomic_write, is_stdout
from gmpll.apps.cli import options
from gmpll.apps.cli.outputs import check_file, table_stem

STANDARD = Path("-")
STDOUT = Path("/dev/stdout")


def predict(
    model: options.Model,
    input: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="CSV, TSV, Parquet or JSON Lines file; - reads CSV, or --format, from standard "
            "input and writes to standard output.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="In the format of INPUT; INPUT-predicted beside INPUT by default."
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Embedding files, where the model was made with some."),
    ] = None,
    id: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Ids that embedding files refer to.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing FILE.")] = False,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    escape_formulas: options.EscapeFormulas = True,
) -> None:
    """Predict the labels of unseen rows with the model that gmpll disambiguate wrote."""
    options.check_not_empty(locals())
    target = out or (STDOUT if input == STANDARD else None)
    with options.plain_errors(target or input), _as_file(input, format) as file:
        import numpy as np

        from gmpll._progress import begin, plan, revise
        from gmpll.apps.progress import shown
        from gmpll.apps.tables.output import SUFFIX, check_suffix, write_table
        from gmpll.apps.tables.resolving import result_columns
        from gmpll.apps.tables.saved import load_model, model_file, predictions
        from gmpll.apps.tables.steps import READING, WRITING, prediction_steps, steps_of_rows
        from gmpll.apps.tables.tables import read_table

        with shown(), plan(prediction_steps(model_file(model), file)):
            saved = load_model(model)
            begin(READING)
            table = read_table(file, format=format, delimiter=delimiter, encoding=encoding)
            predicted = f"{table_stem(input)}-predicted{SUFFIX[table.format]}"
            target = target or input.with_name(predicted)
            if target != STDOUT:
                check_suffix(target, table)
                check_file(target, force=force)
            files = [Path(name) for name in options.split(features)]
            revise(steps_of_rows(*table.frame.shape))
            found, _ = predictions(saved, table, files, id or "")
            columns = result_columns(found, saved.model.classes_, set(table.frame.columns))
            begin(WRITING)
            with atomic_write(target) as temporary:
                write_table(table, columns, temporary, escape=escape_formulas)
        aside = is_stdout(target)  # the rows alone
        for note in found.notes:
            typer.echo(f"Note: {note}.", err=aside)
        n = len(found.labels)
        doubt = "" if np.isnan(found.confidence).any() else f", {found.review.sum()} worth a look"
        typer.echo(f"Predicted {n} row{'s' * (n != 1)}{doubt}.", err=aside)
        if target != STDOUT:
            typer.echo(str(target), err=aside)


@contextmanager
def _as_file(input: Path, format: str | None) -> Iterator[Path]:
    """Give a file with what comes through standard input, where that is asked for."""
    from gmpll.apps.tables.errors import InputError

    if input != STANDARD:
        yield input
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"input.{format or 'csv'}"
        with file.open("wb") as content:
            shutil.copyfileobj(sys.stdin.buffer, content)
        try:
            yield file
        except InputError as error:
            raise InputError(str(error).replace(str(file), "standard input")) from error
