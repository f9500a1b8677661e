from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
import review_problem

from gmpll.apps.decisions.store import Decision
from gmpll.apps.review.export import to_argilla, to_csv, to_label_studio
from gmpll.apps.review.session import open_review


@pytest.fixture
def decided(session):
    for row, decision in {
        3: Decision("label", code=1),
        4: Decision("none"),
        5: Decision("other", name="@mole"),
        6: Decision("skip"),
        24: Decision("label", code=3),
    }.items():
        session.decide(row, decision, seen_version=0, tab="a")
    return session


def test_csv_has_every_row_in_order_and_says_who_gave_the_label(decided):
    rows = list(csv.DictReader(io.StringIO(to_csv(decided), newline="")))
    assert [row["id"] for row in rows] == [f"r{i}" for i in range(30)]
    assert [rows[i]["origin"] for i in (0, 3, 4, 5, 6)] == [
        "input",
        "reviewer",
        "reviewer",
        "reviewer",
        "matching",
    ]
    assert [rows[i]["label"] for i in (3, 4)] == ["dog", ""]
    assert [rows[i]["decision"] for i in (2, 3, 4, 5, 6)] == ["", "label", "none", "other", "skip"]
    matched = str(decided.saved.classes[decided.saved.labels[6]])
    assert rows[6]["label"] == rows[6]["matched"] == matched


def test_cells_that_look_like_formulas_are_escaped(decided):
    rows = list(csv.DictReader(io.StringIO(to_csv(decided), newline="")))
    assert rows[5]["label"] == "'@mole"
    assert rows[24]["label"] == "'=HYPERLINK(1)"


def test_label_studio_has_annotations_and_predictions(decided):
    tasks = json.loads(to_label_studio(decided))
    assert len(tasks) == 30
    assert tasks[3] == {
        "data": {"text": "text 3 about cat", "image": "p3.png", "page": "3", "gmpll_id": "r3"},
        "annotations": [
            {
                "result": [
                    {
                        "from_name": "label",
                        "to_name": "item",
                        "type": "choices",
                        "value": {"choices": ["dog"]},
                    }
                ],
                "ground_truth": False,
            }
        ],
    }
    assert tasks[4]["annotations"][0]["result"] == []
    assert tasks[6]["predictions"][0]["model_version"] == "gmpll"
    assert "annotations" not in tasks[6]


def test_argilla_has_responses_and_suggestions(decided):
    records = json.loads(to_argilla(decided))
    assert records[3]["responses"]["label"][0]["value"] == "dog"
    assert records[3]["suggestions"] == {}
    assert records[4]["status"] == "discarded"
    assert records[4]["responses"] == {}
    suggestion = records[6]["suggestions"]["label"]
    assert suggestion["agent"] == "gmpll"
    assert 0 < suggestion["score"] <= 1


def _with_source(tmp_path, folder, records):
    source = tmp_path / "input" / "export.json"
    source.write_text(json.dumps(records), encoding="utf-8")
    ids = np.array([str(100 + i) for i in range(30)])
    review_problem.write(tmp_path, source=np.asarray(str(source)), ids=ids)
    return open_review(folder, rematch=review_problem.rematch)


def test_tasks_of_a_label_studio_export_go_back_with_number_data_and_names(tmp_path, folder):
    choice = {"type": "choices", "from_name": "animal", "to_name": "photo"}
    tasks = [
        {
            "id": 100 + i,
            "data": {"photo": "x" * 5000},
            "annotations": [{"result": [{**choice, "value": {"choices": ["cat"]}}]}],
        }
        for i in range(30)
    ]
    session = _with_source(tmp_path, folder, tasks)
    session.decide(3, Decision("label", code=1), seen_version=0, tab="a")
    back = json.loads(to_label_studio(session))
    assert [task["id"] for task in back] == list(range(100, 130))
    assert back[3]["data"] == {"photo": "x" * 5000}
    assert back[3]["annotations"][0]["result"] == [{**choice, "value": {"choices": ["dog"]}}]
    session.store.close()


def test_records_of_an_argilla_export_go_back_with_fields_and_question(tmp_path, folder):
    records = [
        {
            "id": str(100 + i),
            "fields": {"body": f"b{i}"},
            "metadata": {"k": i},
            "responses": {"animal": [{"value": "cat"}]},
        }
        for i in range(30)
    ]
    session = _with_source(tmp_path, folder, records)
    session.decide(3, Decision("label", code=1), seen_version=0, tab="a")
    back = json.loads(to_argilla(session))
    assert back[3]["fields"] == {"body": "b3"}
    assert back[3]["metadata"] == {"k": 3}
    assert back[3]["responses"]["animal"][0]["value"] == "dog"
    assert list(back[5]["suggestions"]) == ["animal"]
    session.store.close()


def test_a_source_that_changed_since_is_not_mixed_in(tmp_path, folder):
    session = _with_source(tmp_path, folder, [{"id": 1, "data": {"a": "b"}, "annotations": []}])
    back = json.loads(to_label_studio(session))
    assert len(back) == 30
    assert back[3]["data"]["text"] == "text 3 about cat"
    session.store.close()


def test_what_goes_back_is_understood_by_disambiguate(decided):
    """The exports hold the answers where the readers of exports look for them."""
    from gmpll.apps.tables.exports import flatten_export

    reviewed = [task for task in json.loads(to_label_studio(decided)) if "annotations" in task]
    rows, *_ = flatten_export(reviewed)
    answers = [row["candidates"] for row in rows]
    assert answers == [["cat"], ["dog"], [], ["@mole"], ["=HYPERLINK(1)"]]
    rows, *_ = flatten_export(json.loads(to_argilla(decided)))
    assert rows[3]["candidates"] == ["dog"]
