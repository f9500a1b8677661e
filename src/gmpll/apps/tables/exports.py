"""Exports of annotation tools: Label Studio, Argilla, Prodigy, doccano and CVAT, as plain rows.

Where an export says who gave which label, and several people labelled the same item, it is read as
named votes; otherwise all labels of an item are its candidates.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from gmpll.apps.tables.errors import InputError, counted, quoted

#: The column that the answers of an export are put in.
ANSWERS = "candidates"
_ANSWERED = {"annotations", "completions"}
_PRODIGY_ANSWERS = ("accept", "reject", "ignore")
#: What Prodigy and doccano keep beside the fields of an item.
_PRODIGY_OWN = {"answer", "accept", "options", "label", "spans", "tokens", "config", "meta"}
_DOCCANO_LABELS = ("label", "labels", "annotations")
_DOCCANO_MARKS = {"Comments", "annotation_approver", "username"}
_DOCCANO_OWN = {*_DOCCANO_LABELS, *_DOCCANO_MARKS, "annotator", "user", "meta", "doc_id"}
_CVAT_PARTS = ("tags", "shapes", "tracks")
_CVAT_KEYS = ("name", "image", "file_name", "path", "frame", "id")
_CVAT_OWN = {*_CVAT_PARTS, "version", "assignee", "annotator"}
#: Who predicts and suggests where that is not said.
_MODEL = "model"
#: Under which of these a person is named.
_PERSON = ("username", "name", "email", "id")

Record = dict[str, Any]
#: What an item is known by, its fields, and labels with who gave them ("" if that is not said).
_Answered = tuple[Any, Record, list[tuple[str, str]]]


class Votes(NamedTuple):
    """Who gave which row which label; ``who`` is None if nobody is named."""

    rows: list[int]
    labels: list[str]
    who: list[str] | None


class Export(NamedTuple):
    """One row for every item; ``regrouped`` tells that they are not the records as they were."""

    rows: list[Record]
    notes: tuple[str, ...] = ()
    votes: Votes | None = None
    regrouped: bool = False


def records_in(content: Any) -> list[Record] | None:
    """Return the records of a JSON document; None if it holds none."""
    if isinstance(content, dict) and isinstance(content.get("items"), list):
        content = _of_datumaro(content)
    if isinstance(content, dict) and any(part in content for part in _CVAT_PARTS):
        content = [content]
    is_table = isinstance(content, list) and all(isinstance(entry, dict) for entry in content)
    return content if is_table else None


def flatten_export(records: list[Record]) -> Export:
    """Turn what a tool exported into plain rows, and say which it was; others stay."""
    for reader in (_label_studio, _argilla, _prodigy, _doccano, _cvat):
        export = reader(records)
        if export is not None:
            return export
    return Export(records)


def _grouped(tool: str, entries: Iterable[_Answered], *, regrouped: bool = True) -> Export:
    """Make one row of all that was said about an item."""
    rows: dict[str, Record] = {}
    answers: dict[str, list[tuple[str, str]]] = {}
    for key, fields, given in entries:
        rows.setdefault(str(key), fields)
        answers.setdefault(str(key), []).extend((label, who) for label, who in given if label)
    told = [(row, *answer) for row, given in enumerate(answers.values()) for answer in given]
    people = {who for _, _, who in told}
    together = any(len({who for _, who in given}) > 1 for given in answers.values())
    if together and "" not in people:
        votes = Votes(*(list(part) for part in zip(*told, strict=True)))
        note = f"{tool} export with votes of {counted(len(people), 'annotator')}"
        return Export(list(rows.values()), (note,), votes, regrouped)
    flat = [
        {**fields, ANSWERS: list(dict.fromkeys(label for label, _ in answers[key]))}
        for key, fields in rows.items()
    ]
    return Export(flat, (f"{tool} export",), regrouped=regrouped)


def _label_studio(records: list[Record]) -> Export | None:
    is_whole = ["data" in r and bool(_ANSWERED & r.keys()) for r in records]
    answers = [_list(r.get("annotations", r.get("completions"))) for r in records]
    if not all(is_whole):
        # Answers that can be nothing but those of Label Studio.
        given = (a for r, told in zip(records, answers, strict=True) if "data" in r for a in told)
        if not any("result" in _mapping(answer) for answer in given):
            return None
        place = is_whole.index(False)
        lacks = "annotations" if "data" in records[place] else "data"
        raise InputError(
            f"Task {place + 1} (id {quoted(records[place].get('id'))}) of the Label Studio export "
            f"has no {lacks!r}: fix or remove it."
        )
    entries: list[_Answered] = []
    for task, own in zip(records, answers, strict=True):
        told = [(answer, "completed_by", "") for answer in own]
        told += [(answer, "model_version", _MODEL) for answer in _list(task.get("predictions"))]
        named = [
            (_text(label), _text(answer.get(key)) or who)
            for answer, key, who in told
            if isinstance(answer, dict) and not answer.get("was_cancelled")
            for part in _list(answer.get("result"))
            if isinstance(part, dict) and isinstance(value := part.get("value"), dict)
            # Under choices, labels, rectanglelabels, ...
            for label in _list(value.get(str(part.get("type", "choices")), value.get("choices")))
        ]
        entries.append((len(entries), {"id": task.get("id"), **_mapping(task["data"])}, named))
    return _grouped("a Label Studio", entries, regrouped=False)


def _argilla(records: list[Record]) -> Export | None:
    if not all("fields" in r and "responses" in r for r in records):
        return None
    sources = (("responses", "user_id", ""), ("suggestions", "agent", _MODEL))
    questions = sorted({name for r in records for s, *_ in sources for name in _mapping(r.get(s))})
    if not questions:
        raise InputError("The Argilla export holds no response and no suggestion to any question.")
    if len(questions) > 1:
        raise InputError(
            f"The Argilla export has several questions ({', '.join(questions)}): export the "
            "records of one only."
        )
    entries: list[_Answered] = []
    for record in records:
        given: list[tuple[str, str]] = []
        for source, key, who in sources:
            for entry in _list(_mapping(record.get(source)).get(questions[0])):
                answer = entry if isinstance(entry, dict) else {"value": entry}
                if answer.get("status") != "discarded":
                    named = _text(answer.get(key)) or who
                    given += [(_text(label), named) for label in _list(answer.get("value"))]
        row = {"id": record.get("id")}
        for part in ("fields", "metadata", "vectors"):
            row |= _mapping(record.get(part))
        entries.append((len(entries), row, given))
    return _grouped(f"question {quoted(questions[0])} of an Argilla", entries, regrouped=False)


def _prodigy(records: list[Record]) -> Export | None:
    """Read answers to tasks: the options that were accepted, or the label of an accepted task."""
    marks = {"_input_hash", "_task_hash", "accept", "label", "spans"}
    if not all(r.get("answer") in _PRODIGY_ANSWERS and marks & r.keys() for r in records):
        return None
    entries: list[_Answered] = []
    for number, record in enumerate(records):
        spans = [_mapping(span).get("label") for span in _list(record.get("spans"))]
        labels = _list(record.get("accept", record.get("label", spans)))
        accepted = labels if record["answer"] == "accept" else []
        who = _text(record.get("_annotator_id", record.get("_session_id")))
        key = record.get("_input_hash", record.get("text", record.get("image", number)))
        fields = _fields(key, record, {*_PRODIGY_OWN, *(n for n in record if n[:1] == "_")})
        entries.append((key, fields, [(_text(label), who) for label in accepted]))
    return _grouped("a Prodigy", entries)


def _doccano(records: list[Record]) -> Export | None:
    """Read documents with labels, spans of [start, end, label], or annotations by user."""
    given = [next((r[n] for n in _DOCCANO_LABELS if n in r), None) for r in records]
    has_text = all("text" in r or "data" in r for r in records)
    if not has_text or not all(isinstance(labels, list) for labels in given):
        return None
    told = [entry for labels in given for entry in labels or ()]
    by_user = told and all(isinstance(e, dict) and {"label", "user"} <= e.keys() for e in told)
    spans = told and all(isinstance(e, list) and len(e) == 3 for e in told)
    if not (by_user or spans or any(_DOCCANO_MARKS & r.keys() for r in records)):
        return None
    entries: list[_Answered] = []
    for number, (record, labels) in enumerate(zip(records, given, strict=True)):
        who = _text(record.get("username", record.get("annotator", record.get("user"))))
        key = record.get("doc_id", record.get("id", f"line {number}"))
        named = [
            (_text(e.get("label")), _text(e.get("user")) or who)
            if isinstance(e, dict)
            else (_text(e[-1] if isinstance(e, list) and e else e), who)
            for e in labels or ()
        ]
        entries.append((key, _fields(key, record, _DOCCANO_OWN), named))
    return _grouped("a doccano", entries)


def _cvat(records: list[Record]) -> Export | None:
    """Read tags, shapes and tracks: of a picture in each record, or of frames in all of them."""
    filled = [r for r in records if any(part in r for part in _CVAT_PARTS)]
    parts = [[e for part in _CVAT_PARTS for e in _list(r.get(part))] for r in filled]
    labelled = [bool({"label", "label_id"} & _mapping(e).keys()) for own in parts for e in own]
    heads = [r for r in records if r not in filled]  # the first lines of a manifest
    if not labelled or not all(labelled) or any(r.keys() - {"version", "type"} for r in heads):
        return None
    entries: list[_Answered] = []
    for record, own_parts in zip(filled, parts, strict=True):
        name, ending = record.get("name"), record.get("extension")
        if isinstance(name, str) and isinstance(ending, str) and ending.startswith("."):
            # Manifests keep the ending of a picture's name apart.
            record = {n: v for n, v in record.items() if n != "extension"} | {"name": name + ending}
        key = next((record[n] for n in _CVAT_KEYS if n in record), None)
        if key is not None:
            fields = {n: v for n, v in record.items() if n not in _CVAT_OWN}
            entries.append((key, {"id": key, **fields}, []))
        for entry in own_parts:
            who = _text(record.get("assignee", record.get("annotator", entry.get("annotator"))))
            label = _text(entry.get("label", entry.get("label_id")))
            place = entry.get("frame", 0) if key is None else key
            entries.append((place, {"id": place}, [(label, who)]))
    return _grouped("a CVAT", entries)


def _of_datumaro(content: Record) -> Any:
    """Return a Datumaro document, which CVAT exports as well, as pictures with tags."""
    labels = _mapping(_mapping(content.get("categories")).get("label")).get("labels")
    names: dict[Any, str] = {code: _text(entry) for code, entry in enumerate(_list(labels))}
    pictures = []
    for item in map(_mapping, content["items"]):
        codes = [
            _mapping(annotation).get("label_id") for annotation in _list(item.get("annotations"))
        ]
        tags = [
            {"label": names[c] if isinstance(c, int) and c in names else _text(c)} for c in codes
        ]
        pictures.append({"name": item.get("id"), **_mapping(item.get("attr")), "tags": tags})
    return pictures


def _fields(key: Any, record: Record, own: set[str]) -> Record:
    """Return the fields of an item, without what the tool keeps beside them."""
    fields = {name: value for name, value in record.items() if name not in own}
    return {"id": key, **_mapping(record.get("meta")), **fields}


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _mapping(value: Any) -> Record:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """Return the name of a label or a person; "" if there is none."""
    if isinstance(value, dict):
        value = next((value[name] for name in _PERSON if value.get(name) is not None), None)
    return "" if value is None else str(value).strip()
