"""From the body of a request to rows, and from what was found to the answer."""

import csv
import io
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd

from gmpll.apps.tables.cells import escape_formula
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.loaded import LoadedModel
from gmpll.apps.tables.resolving import result_columns

JSON, CSV = "application/json", "text/csv"
#: More rows in one request are refused; this many take about a second.
MAX_ROWS = 10_000


class Asked(NamedTuple):
    """The columns that the model needs, as far as the rows have them, and what is wanted."""

    columns: dict[str, list[Any]]
    n_rows: int
    with_probabilities: bool = False


def read_request(model: LoadedModel, body: bytes, content_type: str) -> Asked:
    """Read rows in JSON or CSV; what is wrong with them is said in an InputError."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"The request is not UTF-8: see byte {error.start}.") from error
    if content_type == CSV:
        return _from_csv(model, text)
    try:
        content = json.loads(text)
        if "\\ud" in text.lower():  # only an escape can smuggle half of a pair into text
            json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError("The request holds a character that is half of a pair.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"The request is not valid JSON ({error}).") from error
    wanted = isinstance(content, dict) and content.get("probabilities") is True
    rows = content.get("rows") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError('The request must be a list of objects, or {"rows": [...]} with one.')
    _check_number(len(rows))
    columns = {
        name: [row.get(name) for row in rows]
        for name in model.input_columns_
        if any(name in row for row in rows)
    }
    return Asked(columns, len(rows), wanted)


def _from_csv(model: LoadedModel, text: str) -> Asked:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise InputError(f"Line {reader.line_num} of the request is no CSV ({error}).") from error
    header, rows = rows[0] if rows else [], rows[1:]
    _check_number(len(rows))
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(
                f"Row {number} of the request has {len(row)} cells but the header {len(header)}."
            )
    if len(set(header)) < len(header):
        raise InputError("The request has two columns of the same name: rename one of them.")
    cells = dict(zip(header, zip(*rows, strict=True), strict=True))
    columns = {name: list(cells[name]) for name in model.input_columns_ if name in cells}
    return Asked(columns, len(rows))


def _check_number(n_rows: int) -> None:
    if not 0 < n_rows <= MAX_ROWS:
        raise InputError(f"The request has {n_rows} rows: send between 1 and {MAX_ROWS:,}.")


def answered(model: LoadedModel, asked: Asked) -> dict[str, Any]:
    """Predict the rows; the answer is fit for JSON."""
    missing = [name for name in model.input_columns_ if name not in asked.columns]
    if missing:
        raise InputError(f"The request has no column {missing[0]!r}, which the model needs.")
    try:
        found, shares = model.answer(asked.columns)
    except InputError as error:
        raise InputError(str(error).replace("the DataFrame", "the request")) from error
    columns = result_columns(found, model.classes_, ())
    predictions = [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]
    answer: dict[str, Any] = {"predictions": predictions, "notes": list(found.notes)}
    if asked.with_probabilities and shares is not None:
        answer["classes"] = model.classes_.tolist()
        answer["probabilities"] = shares.round(6).tolist()
    return answer


def as_csv(predictions: Iterable[dict[str, Any]]) -> str:
    """Write predictions as CSV, safe for spreadsheets."""
    cells = pd.DataFrame(predictions, dtype=object)
    cells = cells.map(lambda value: "" if value is None else escape_formula(str(value)))
    return cells.to_csv(index=False, lineterminator="\r\n")
