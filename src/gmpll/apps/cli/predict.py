"""``gmpll predict``: labels of new rows by the model of an earlier run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gmpll._atomic_io import atomic_write, is_stdout
from gmpll.apps.cli.disambiguate import plain_errors, split
from gmpll.apps.cli.outputs import check_file, table_stem

__all__ = ["predict"]


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="model.skops, or the folder it lies in.")
    ],
    input: Annotated[
        Path, typer.Argument(metavar="INPUT", help="CSV, TSV, Parquet or JSON Lines file.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="In the format of INPUT; INPUT-predicted beside INPUT by default.",
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
    format: Annotated[str | None, typer.Option(help="csv, tsv, parquet, jsonl or json.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Between cells.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of text; UTF-8 by default.")] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(help="Put ' before CSV cells that look like formulas."),
    ] = True,
) -> None:
    """Predict the labels of unseen rows with the model that gmpll disambiguate wrote."""
    with plain_errors(out or input):
        import numpy as np

        from gmpll.apps.tables.output import check_suffix, table_suffix, write_table
        from gmpll.apps.tables.resolving import result_columns
        from gmpll.apps.tables.saved import load_model, predict_table
        from gmpll.apps.tables.tables import read_table

        saved = load_model(model)
        table = read_table(input, format=format, delimiter=delimiter, encoding=encoding)
        target = out or input.with_name(f"{table_stem(input)}-predicted{table_suffix(table)}")
        check_suffix(target, table)
        check_file(target, force=force)
        files = [Path(name) for name in split(features)]
        found = predict_table(saved, table, files, id or "")
        columns = result_columns(found, saved.model.classes_, set(table.frame.columns))
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(target) as temporary:
            write_table(table, columns, temporary, escape=escape_formulas)
        aside = is_stdout(target)  # the rows alone
        for note in found.notes:
            typer.echo(f"Note: {note}.", err=aside)
        n = len(found.labels)
        judged = "" if np.isnan(found.confidence).any() else f", {found.review.sum()} worth a look"
        typer.echo(f"Predicted {n} row{'s' * (n != 1)}{judged}.", err=aside)
        typer.echo(str(target), err=aside)
