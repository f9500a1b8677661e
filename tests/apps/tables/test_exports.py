import json

import numpy as np

from gmpll.apps.tables.exports import flatten_export


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
