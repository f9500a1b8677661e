import json

import numpy as np
import pytest

from gmpll.apps.tables import InputError
from gmpll.apps.tables.candidate_sets import label_sets, row_ids
from gmpll.apps.tables.exports import flatten_export
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.output import write_table
from gmpll.apps.tables.tables import read_table


def choice(label, kind="choices"):
    return {"result": [{"type": kind, "value": {kind: [label]}}]}


def test_label_studio():
    task = {
        "id": 7,
        "data": {"text": "mew", "size": 2},
        "annotations": [choice("cat"), choice("dog"), {**choice("cow"), "was_cancelled": True}],
        "predictions": [choice("cat"), choice("fox", "rectanglelabels")],
    }
    rows, notes, *_ = flatten_export([task])
    assert rows == [{"id": 7, "text": "mew", "size": 2, "candidates": ["cat", "dog", "fox"]}]
    assert notes == ("a Label Studio export",)


def test_argilla():
    record = {
        "id": "r1",
        "fields": {"text": "mew"},
        "metadata": {"size": 2},
        "vectors": {"sentence": [0.5, 1.0]},
        "responses": {"animal": [{"value": "cat"}, {"value": ["dog", "cat"]}]},
        "suggestions": {"animal": {"value": "cow", "score": 0.3}},
    }
    rows, notes, *_ = flatten_export([record])
    assert rows == [
        {
            "id": "r1",
            "text": "mew",
            "size": 2,
            "sentence": [0.5, 1.0],
            "candidates": ["cat", "dog", "cow"],
        }
    ]
    assert "'animal'" in notes[0]


def test_label_studio_names_of_annotators_make_votes(tmp_path):
    ada, ben = {"completed_by": {"id": 1, "email": "ada@x"}}, {"completed_by": 2}
    tasks = [
        {
            "id": 10 + number,
            "data": {"size": number},
            "annotations": [choice(first) | ada, choice(second) | ben],
            "predictions": [choice("dog")],
        }
        for number, (first, second) in enumerate([("cat", "dog"), ("cat", "cat"), ("dog", "dog")])
    ]
    table = read(tmp_path, tasks, "tasks.json")
    assert table.notes == ("a Label Studio export with votes of 3 annotators",)
    assert table.records() == tasks
    sets = sets_of(table)
    assert sets.votes.annotators.tolist() == ["ada@x", "2", "model"]
    assert sets.weights.tolist() == [[1, 2], [2, 1], [0, 3]]


def test_argilla_names_of_users_make_votes(tmp_path):
    def record(number, *answers):
        return {
            "id": f"r{number}",
            "fields": {"size": number},
            "responses": {"animal": [dict(a) for a in answers]},
            "suggestions": {"animal": {"value": "cat", "agent": "net"}},
        }

    ada, ben = {"user_id": "ada"}, {"user_id": "ben"}
    records = [
        record(0, {"value": "cat"} | ada, {"value": "dog"} | ben),
        record(1, {"value": "dog"} | ada, {"value": "cat", "status": "discarded"} | ben),
        record(2, {"value": "dog"} | ada, {"value": "dog"} | ben),
    ]
    table = read(tmp_path, records)
    assert "'animal' of an Argilla export with votes of 3 annotators" in table.notes[0]
    sets = sets_of(table)
    assert sets.votes.annotators.tolist() == ["ada", "ben", "net"]
    assert sets.weights.tolist() == [[2, 1], [1, 1], [1, 2]]


def test_other_records_stay():
    records = [{"id": 1, "data": 3}]
    assert flatten_export(records) == (records, (), None, False)


def test_a_label_studio_export_is_resolved(tmp_path, command, pets):
    frame, truth = pets
    tasks = [
        {
            "id": row.id,
            "data": {"size": row.size, "weight": row.weight, "age": row.age},
            "annotations": [choice(tag) for tag in row.tags.split("|")],
        }
        for row in frame.itertuples()
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    code, out, error = command("disambiguate", tmp_path / "tasks.json", "--out", tmp_path / "o")
    assert code == 0, error
    assert "a Label Studio export" in out
    resolved = [json.loads(line) for line in (tmp_path / "o" / "resolved.jsonl").open()]
    assert [{k: r[k] for k in t} for r, t in zip(resolved, tasks, strict=True)] == tasks
    assert np.mean([r["label"] == t for r, t in zip(resolved, truth, strict=True)]) == 1


def read(tmp_path, content, name="export.jsonl"):
    """Write records as JSON Lines, or a document as JSON, and read it as a table."""
    lines = "\n".join(map(json.dumps, content)) if name.endswith("l") else json.dumps(content)
    (tmp_path / name).write_text(lines, encoding="utf-8")
    return read_table(tmp_path / name)


def sets_of(table, **options):
    options = Options(**options)
    roles = guess_roles(table, options)
    return label_sets(table, roles, options, row_ids(table, roles))


def choice_task(number, label, who=None, answer="accept"):
    return {
        "text": f"message number {number} is here",
        "meta": {"size": number},
        "options": [{"id": "spam", "text": "Spam"}, {"id": "news", "text": "News"}],
        "accept": [label] if answer == "accept" else [],
        "answer": answer,
        "_input_hash": 100 + number,
        "_task_hash": 200 + number,
        "_view_id": "choice",
        **({} if who is None else {"_session_id": f"mail-{who}", "_annotator_id": f"mail-{who}"}),
    }


def test_prodigy_answers_of_several_people_are_votes(tmp_path):
    tasks = [
        *(choice_task(1, label, who) for label, who in (("spam", "ada"), ("news", "ben"))),
        *(choice_task(2, "news", who) for who in ("ada", "ben")),
        choice_task(3, "spam", "ada"),
        choice_task(3, "news", "ben", answer="ignore"),
    ]
    table = read(tmp_path, tasks)
    assert table.notes == ("a Prodigy export with votes of 2 annotators",)
    assert table.frame["id"].tolist() == [101, 102, 103]
    assert table.frame["size"].tolist() == [1, 2, 3]
    sets = sets_of(table)
    assert sets.votes.annotators.tolist() == ["mail-ada", "mail-ben"]
    assert sets.classes.tolist() == ["news", "spam"]
    assert sets.weights.tolist() == [[1, 1], [2, 0], [0, 1]]


def test_prodigy_answers_without_names_are_candidates(tmp_path):
    tasks = [choice_task(1, "spam"), choice_task(1, "news"), choice_task(2, "news")]
    table = read(tmp_path, tasks)
    assert table.frame["candidates"].tolist() == [["spam", "news"], ["news"]]
    binary = [
        {"text": "a", "label": "spam", "answer": "accept"},
        {"text": "a", "label": "news", "answer": "reject"},
        {"text": "b", "label": "news", "answer": "accept"},
    ]
    assert read(tmp_path, binary).frame["candidates"].tolist() == [["spam"], ["news"]]


def test_doccano_labels_and_spans_are_candidates(tmp_path):
    documents = [
        {"id": 4, "text": "one of them", "label": ["spam", "news"], "Comments": []},
        {"id": 5, "text": "another one", "label": ["news"], "Comments": ["sure"], "size": 2},
    ]
    table = read(tmp_path, documents)
    assert table.notes == ("a doccano export",)
    assert list(table.frame.columns) == ["id", "text", "candidates", "size"]
    assert table.frame["candidates"].tolist() == [["spam", "news"], ["news"]]
    spans = [{"id": 1, "text": "Rome fell", "label": [[0, 4, "PLACE"], [0, 4, "EVENT"]]}]
    assert flatten_export(spans).rows[0]["candidates"] == ["PLACE", "EVENT"]


def test_doccano_names_of_users_make_votes(tmp_path):
    lines = [
        {"doc_id": 4, "text": "one", "labels": ["spam"], "username": "ada"},
        {"doc_id": 4, "text": "one", "labels": ["news"], "username": "ben"},
        {"doc_id": 5, "text": "two", "labels": ["news"], "username": "ben"},
    ]
    rows, _, votes, _ = flatten_export(lines)
    assert rows == [{"id": 4, "text": "one"}, {"id": 5, "text": "two"}]
    assert votes == ([0, 0, 1], ["spam", "news", "news"], ["ada", "ben", "ben"])
    by_user = [
        {"id": 1, "text": "one", "annotations": [{"label": 2, "user": 1}, {"label": 3, "user": 7}]}
    ]
    assert flatten_export(by_user).votes == ([0, 0], ["2", "3"], ["1", "7"])


def test_plain_lists_of_labels_are_no_doccano_export():
    records = [{"id": 1, "text": "a text", "labels": ["cat", "dog"]}]
    assert flatten_export(records).rows is records


def test_cvat_pictures_with_tags(tmp_path):
    lines = [
        {"version": "1.1"},
        {"type": "images"},
        {"name": "a.jpg", "width": 640, "tags": [{"label": "cat"}, {"label": "dog"}]},
        {"name": "b.jpg", "width": 320, "tags": [], "shapes": [{"label": "dog", "type": "mask"}]},
    ]
    table = read(tmp_path, lines)
    assert table.notes == ("a CVAT export",)
    assert table.frame["candidates"].tolist() == [["cat", "dog"], ["dog"]]
    assert table.frame["id"].tolist() == ["a.jpg", "b.jpg"]
    assert table.frame["width"].tolist() == [640, 320]
    apart = [{**line, "name": line["name"][0], "extension": ".jpg"} for line in lines[2:]]
    rows = flatten_export(apart).rows
    assert [(row["id"], row["name"]) for row in rows] == [("a.jpg", "a.jpg"), ("b.jpg", "b.jpg")]
    assert "extension" not in rows[0]
    people = [
        {"image": "a.jpg", "assignee": {"username": who}, "tags": [{"label": label}]}
        for who, label in (("ada", "cat"), ("ben", "dog"))
    ]
    assert flatten_export(people).votes == ([0, 0], ["cat", "dog"], ["ada", "ben"])


def test_cvat_annotations_by_frame_and_datumaro(tmp_path):
    document = {
        "version": 0,
        "tags": [{"frame": 0, "label_id": 3}, {"frame": 1, "label_id": 4}],
        "shapes": [{"type": "rectangle", "frame": 0, "label_id": 4}],
        "tracks": [],
    }
    table = read(tmp_path, document, "annotations.json")
    assert table.frame["candidates"].tolist() == [["3", "4"], ["4"]]
    datumaro = {
        "categories": {"label": {"labels": [{"name": "cat"}, {"name": "dog"}]}},
        "items": [
            {"id": "a", "annotations": [{"type": "label", "label_id": 1}, {"label_id": 0}]},
            {"id": "b", "annotations": [{"type": "label", "label_id": 0}]},
        ],
    }
    table = read(tmp_path, datumaro, "default.json")
    assert table.frame["candidates"].tolist() == [["dog", "cat"], ["cat"]]


def test_other_documents_are_refused(tmp_path):
    with pytest.raises(InputError, match="must hold a list of JSON objects"):
        read(tmp_path, {"rows": []}, "document.json")


def test_a_regrouped_export_is_written_as_its_rows(tmp_path):
    rng = np.random.default_rng(0)
    tasks = [
        {**choice_task(n, label, who), "weight": float(rng.random() + 5 * (n % 2))}
        for n in range(12)
        for who, label in (("ada", ("spam", "news")[n % 2]), ("ben", "news"))
    ]
    table = read(tmp_path, tasks)
    write_table(table, {"label": ["x"] * 12}, tmp_path / "out.jsonl")
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in written] == [100 + n for n in range(12)]
    assert {row["label"] for row in written} == {"x"}
