"""The labels as they stand: as CSV, and for Label Studio and Argilla."""

from __future__ import annotations

import csv
import io
import json
import uuid
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from gmpll.apps.review.session import Result, ReviewSession
from gmpll.apps.tables.cells import escape_formula

#: Larger sources are not searched for what they can add to an export.
MAX_SOURCE_BYTES = 256 * 2**20

COLUMNS = ("id", "label", "origin", "confidence", "matched", "decision", "decided_at")

#: Argilla wants an identity behind every response; this one stands for the review page.
REVIEWER = str(uuid.uuid5(uuid.NAMESPACE_URL, "gmpll review"))


def to_csv(session: ReviewSession) -> str:
    """Write every row: the label, who gave it (``origin``), and what the matching says."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for result in session.results():
        cells = {**result._asdict(), "label": result.label or ""}
        cells["confidence"] = f"{result.confidence:.4f}"
        writer.writerow([escape_formula(cells[column]) for column in COLUMNS])
    return text.getvalue()


def to_label_studio(session: ReviewSession) -> str:
    """Write tasks: decisions are annotations, labels of the matching are predictions.

    Where the input was an export of Label Studio, its tasks keep their number and data, and the
    names of its labelling interface are used.
    """
    tasks = _source_records(session, "data")
    choice = {**_label_studio_names(tasks), "type": "choices"}
    pairs = zip_longest(session.results(), tasks)
    return _as_json([_label_studio_task(result, task, choice) for result, task in pairs])


def _label_studio_names(tasks: list[dict[str, Any]]) -> dict[str, str]:
    """Take the names of the first choice that anybody made; else those of no template."""
    for task in tasks:
        for annotation in _dicts(task.get("annotations")):
            for part in _dicts(annotation.get("result")):
                if part.get("type") == "choices":
                    return {name: str(part.get(name)) for name in ("from_name", "to_name")}
    return {"from_name": "label", "to_name": "item"}


def _label_studio_task(
    result: Result, task: dict[str, Any] | None, choice: dict[str, str]
) -> dict[str, Any]:
    chosen = [] if result.label is None else [{**choice, "value": {"choices": [result.label]}}]
    exported: dict[str, Any] = (
        {"data": {**result.fields, "gmpll_id": result.id}}
        if task is None
        else {"id": task.get("id"), "data": task["data"]}
    )
    if result.origin == "matching":
        score = round(result.confidence, 4)
        exported["predictions"] = [{"model_version": "gmpll", "score": score, "result": chosen}]
    else:
        exported["annotations"] = [{"result": chosen, "ground_truth": False}]
    return exported


def to_argilla(session: ReviewSession) -> str:
    """Write records: decisions are responses, labels of the matching are suggestions."""
    records = _source_records(session, "fields")
    question = _argilla_question(records)
    pairs = zip_longest(session.results(), records)
    return _as_json([_argilla_record(result, record, question) for result, record in pairs])


def _argilla_question(records: list[dict[str, Any]]) -> str:
    """Take the name of the first question that has an answer."""
    for record in records:
        for key in ("responses", "suggestions"):
            for name in record[key] if isinstance(record.get(key), dict) else ():
                return str(name)
    return "label"


def _argilla_record(result: Result, record: dict[str, Any] | None, question: str) -> dict[str, Any]:
    exported: dict[str, Any] = {
        "id": result.id,
        "fields": result.fields if record is None else record["fields"],
        "metadata": {} if record is None else record.get("metadata") or {},
        "suggestions": {},
        "responses": {},
    }
    if result.origin == "matching":
        score = round(result.confidence, 4)
        suggestion = {"value": result.label, "score": score, "agent": "gmpll"}
        exported["suggestions"] = {question: suggestion}
    elif result.label is not None:
        exported["responses"] = {question: [{"value": result.label, "user_id": REVIEWER}]}
    if result.decision == "none":
        # A question cannot be answered by nothing; discarding the record is Argilla's way.
        exported["status"] = "discarded"
    return exported


def _source_records(session: ReviewSession, key: str) -> list[dict[str, Any]]:
    """Read the records of the input again; none if it is no export of the tool asked for."""
    source = Path(session.saved.source)
    try:
        if source.stat().st_size > MAX_SOURCE_BYTES:
            return []
        records = _json_records(source.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    if len(_dicts(records)) < len(records) or not all(
        isinstance(record.get(key), dict) for record in records
    ):
        return []
    fits = [str(record.get("id")) for record in records] == session.saved.ids.tolist()
    return records if fits else []


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _json_records(text: str) -> list[Any]:
    """Parse a JSON list, or JSON Lines."""
    if text.lstrip().startswith("["):
        return list(json.loads(text))
    return [json.loads(line) for line in text.splitlines() if line.strip()]


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
