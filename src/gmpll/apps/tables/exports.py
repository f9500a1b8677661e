"""Exports of annotation tools: Label Studio and Argilla.

Both hold, for every task, what was shown and what every annotator answered. They become plain
rows: the fields as columns, and the answers as a list in the column ``candidates``.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from gmpll.apps.tables.errors import InputError, quoted

__all__ = ["ANSWERS", "flatten_export"]

#: The column that the answers of an export are put in.
ANSWERS = "candidates"
_ANSWERED = {"annotations", "completions"}


def flatten_export(records: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Turn the tasks of an export into plain rows, and say which it was; others stay."""
    if all("data" in r and ("annotations" in r or "completions" in r) for r in records):
        return [_label_studio_row(r) for r in records], ("a Label Studio export",)
    if any(_is_task(r) for r in records):
        place = next(i for i, r in enumerate(records) if not ("data" in r and _ANSWERED & r.keys()))
        lacks = "annotations" if "data" in records[place] else "data"
        raise InputError(
            f"Task {place + 1} (id {quoted(records[place].get('id'))}) of the Label Studio export "
            f"has no {lacks!r}: fix or remove it."
        )
    if all("fields" in r and "responses" in r for r in records):
        question = _argilla_question(records)
        rows = [_argilla_row(r, question) for r in records]
        return rows, (f"an Argilla export, question {quoted(question)}",)
    return records, ()


def _is_task(record: dict[str, Any]) -> bool:
    """Whether a record can be nothing but a task of Label Studio with an answer."""
    answers = record.get("annotations", record.get("completions"))
    return "data" in record and any(isinstance(a, dict) and "result" in a for a in _list(answers))


def _label_studio_row(task: dict[str, Any]) -> dict[str, Any]:
    data = _mapping(task["data"])
    given = [
        *_list(task.get("annotations", task.get("completions"))),
        *_list(task.get("predictions")),
    ]
    answers = (
        label
        for annotation in given
        if isinstance(annotation, dict) and not annotation.get("was_cancelled")
        for part in _list(annotation.get("result"))
        for label in _label_studio_labels(part)
    )
    return {"id": task.get("id"), **data, ANSWERS: list(dict.fromkeys(answers))}


def _label_studio_labels(part: Any) -> list[str]:
    """Return the names in ``value``: under ``choices``, ``labels``, ``rectanglelabels``, ..."""
    if not isinstance(part, dict) or not isinstance(part.get("value"), dict):
        return []
    value = part["value"]
    kind = str(part.get("type", "choices"))
    return [str(label) for label in _list(value.get(kind, value.get("choices")))]


def _argilla_question(records: list[dict[str, Any]]) -> str:
    questions = Counter(
        name
        for r in records
        for source in ("responses", "suggestions")
        for name in _mapping(r.get(source))
    )
    if not questions:
        raise InputError("The Argilla export holds no response and no suggestion to any question.")
    if len(questions) > 1:
        names = ", ".join(sorted(questions))
        raise InputError(
            f"The Argilla export has several questions ({names}): export the records of one only."
        )
    return next(iter(questions))


def _argilla_row(record: dict[str, Any], question: str) -> dict[str, Any]:
    answers = [
        label
        for answer in [
            *_list(_mapping(record.get("responses")).get(question)),
            *_list(_mapping(record.get("suggestions")).get(question)),
        ]
        for label in _list(answer.get("value") if isinstance(answer, dict) else answer)
    ]
    return {
        "id": record.get("id"),
        **_mapping(record.get("fields")),
        **_mapping(record.get("metadata")),
        **_mapping(record.get("vectors")),
        ANSWERS: list(dict.fromkeys(map(str, answers))),
    }


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
