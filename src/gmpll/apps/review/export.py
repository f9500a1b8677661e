"""The labels as they stand: as CSV, and for Label Studio and Argilla."""

import csv
import io
import json
import uuid
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from gmpll.apps.review.session import ReviewSession
from gmpll.apps.tables.cells import escape_formula
from gmpll.apps.tables.tables import read_json_records

#: Larger sources are not searched for what they can add to an export.
MAX_SOURCE_BYTES = 256 * 2**20
#: Characters in which a list of JSON begins.
_BEGINNING = 100
#: Names of a labelling interface of Label Studio where the input has none.
_CHOICE = {"from_name": "label", "to_name": "item"}

COLUMNS = (
    *("id", "label", "origin", "confidence", "matched"),
    *("decision", "decided_at", "decided_by"),
)

#: Argilla wants an identity behind every response; this one stands for the review page.
REVIEWER = str(uuid.uuid5(uuid.NAMESPACE_URL, "gmpll review"))


def to_csv(session: ReviewSession) -> str:
    """Write every row: the label, who gave it, what the matching says, and the input's columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    inputs = session.input_columns()
    inputs = {name: cells for name, cells in inputs.items() if cells != session.saved.ids.tolist()}
    names = [f"input_{name}" if name in COLUMNS else name for name in inputs]
    writer.writerow([*COLUMNS, *map(escape_formula, names)])
    for row, result in enumerate(session.results()):
        cells: dict[str, Any] = {**result._asdict(), "label": result.label or ""}
        cells["confidence"] = f"{result.confidence:.4f}"
        line = [cells[name] for name in COLUMNS] + [column[row] for column in inputs.values()]
        writer.writerow(map(escape_formula, line))
    return text.getvalue()


def to_label_studio(session: ReviewSession) -> str:
    """Write tasks: decisions are annotations, labels of the matching are predictions.

    Where the input was an export of Label Studio, its tasks keep their number and data, and the
    names of its labelling interface are used.
    """
    tasks = _source_records(session, "data")
    annotations = [part for task in tasks for part in _dicts(task.get("annotations"))]
    parts = [part for annotation in annotations for part in _dicts(annotation.get("result"))]
    first = next((part for part in parts if part.get("type") == "choices"), _CHOICE)
    choice = {"type": "choices", **{name: str(first.get(name)) for name in _CHOICE}}
    exported: list[dict[str, Any]] = []
    for result, task in zip_longest(session.results(), tasks):
        chosen = [] if result.label is None else [{**choice, "value": {"choices": [result.label]}}]
        told: dict[str, Any] = {"data": {**result.fields, "gmpll_id": result.id}}
        if task is not None:
            told = {"id": task.get("id"), "data": task["data"]}
        if result.origin == "matching":
            score = round(result.confidence, 4)
            told["predictions"] = [{"model_version": "gmpll", "score": score, "result": chosen}]
        else:
            told["annotations"] = [{"result": chosen, "ground_truth": False}]
        exported.append(told)
    return _as_json(exported)


def to_argilla(session: ReviewSession) -> str:
    """Write records: decisions are responses, labels of the matching are suggestions."""
    records = _source_records(session, "fields")
    given = [record.get(key) for record in records for key in ("responses", "suggestions")]
    questions = (str(name) for part in given if isinstance(part, dict) for name in part)
    question = next(questions, "label")
    exported: list[dict[str, Any]] = []
    for result, found in zip_longest(session.results(), records):
        record = found or {"fields": result.fields}
        told: dict[str, Any] = {
            "id": result.id,
            "fields": record["fields"],
            "metadata": record.get("metadata") or {},
            "suggestions": {},
            "responses": {},
        }
        if result.origin == "matching":
            score = round(result.confidence, 4)
            suggestion = {"value": result.label, "score": score, "agent": "gmpll"}
            told["suggestions"] = {question: suggestion}
        elif result.label is not None:
            told["responses"] = {question: [{"value": result.label, "user_id": REVIEWER}]}
        if result.decision == "none":
            # A question cannot be answered by nothing; discarding the record is Argilla's way.
            told["status"] = "discarded"
        exported.append(told)
    return _as_json(exported)


def _source_records(session: ReviewSession, key: str) -> list[dict[str, Any]]:
    """Read the records of the input again; none if it is no export of the tool asked for."""
    source = Path(session.saved.source)
    try:
        if source.stat().st_size > MAX_SOURCE_BYTES:
            return []
        with source.open(encoding="utf-8") as file:
            kind = "json" if file.read(_BEGINNING).lstrip().startswith("[") else "jsonl"
        records = read_json_records(source, kind, "utf-8")
    except (OSError, ValueError):
        return []
    fits = [str(record.get("id")) for record in records] == session.saved.ids.tolist()
    return records if fits and all(isinstance(r.get(key), dict) for r in records) else []


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _as_json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1)


class ExportFormat(NamedTuple):
    """How an export is made, and what its file is called."""

    write: Callable[[ReviewSession], str]
    file_name: str
    media_type: str


FORMATS = {
    "csv": ExportFormat(to_csv, "reviewed.csv", "text/csv; charset=utf-8"),
    "label-studio": ExportFormat(to_label_studio, "label-studio.json", "application/json"),
    "argilla": ExportFormat(to_argilla, "argilla.json", "application/json"),
}
