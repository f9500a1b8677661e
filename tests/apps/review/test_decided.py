"""What was decided, by whom and how far it agrees; sure rows, suggestions, leases."""

from __future__ import annotations

import numpy as np
import pytest
import review_problem

from gmpll.apps.decisions.errors import RequestError
from gmpll.apps.decisions.store import Decision
from gmpll.apps.review.session import open_review


def _decide(session, row, code, reviewer="", tab="a"):
    seen = session.store.version(row)
    decision = Decision("label", code=code)
    session.decide(row, decision, seen_version=seen, tab=tab, reviewer=reviewer)


def test_a_decision_carries_the_name_and_what_the_model_said(session):
    found = int(session.saved.labels[5])
    _decide(session, 5, 3, "  Ben \n Miller ")
    entry = session.store.current(5)
    assert (entry.reviewer, entry.found) == ("Ben Miller", found)
    confidence = np.sort(session.saved.confidence[5])[::-1]
    assert entry.margin == pytest.approx(confidence[0] - confidence[1])
    assert session.item(5)["decision"]["by"] == "Ben Miller"
    near = next(n["row"] for n in session.item(5)["neighbors"])
    beside = [n for n in session.item(near)["neighbors"] if n["row"] == 5]
    assert all(n["by"] == "Ben Miller" for n in beside)
    assert next(r for r in session.results() if r.id == "r5").decided_by == "Ben Miller"


@pytest.mark.parametrize("name", ["x" * 61, "a\x00b", "a\u202eb"])
def test_a_senseless_name_is_refused(session, name):
    with pytest.raises(RequestError, match="name of a reviewer"):
        _decide(session, 5, 0, name)
    assert session.store.log() == []


def test_what_the_model_said_stays_what_it_said_first(session):
    found = int(session.saved.labels[25])
    _decide(session, 25, 2 if found != 2 else 3, "Ben")
    session.match_again()
    session.run.wait()
    _decide(session, 25, found, "Ana")  # the matching knows Ben's answer by now
    assert session.store.current(25).found == found
    assert session.summary()["agreed"] == 1


def test_the_list_can_be_filtered(session):
    saved = session.saved
    confidence = np.sort(saved.confidence, axis=1)
    margins = confidence[:, -1] - confidence[:, -2]
    for row, reviewer in ((4, "Ana"), (5, "Ben"), (6, "Ben"), (25, "")):
        _decide(session, row, 1, reviewer)
    _decide(session, 7, 0, "Ana")

    def rows(**filters):
        return [line["row"] for line in session.decided_rows(**filters)["rows"]]

    assert rows() == [7, 25, 6, 5, 4]
    assert rows(label="cat") == [7]
    assert rows(reviewer="Ben") == [6, 5]
    assert rows(reviewer="") == [25]
    assert rows(text="TEXT 5 about") == [5]
    assert rows(text="r25") == [25]
    doubtful = {row for row in (4, 5, 6, 7, 25) if margins[row] < 0.25}
    assert set(rows(doubt="doubtful")) == doubtful
    assert set(rows(doubt="sure")) == {4, 5, 6, 7, 25} - doubtful
    assert session.decided_rows()["labels"] == ["cat", "dog"]


def test_agreement_with_the_model_and_with_each_other(session):
    found = session.saved.labels
    for row in (4, 5, 6):
        _decide(session, row, int(found[row]), "Ben")
    _decide(session, 7, (int(found[7]) + 1) % 4, "Ben")
    for row in (4, 5):
        _decide(session, row, int(found[row]) if row == 4 else 3, "Ana", tab="b")
    told = session.decided_rows()
    assert told["reviewers"] == [
        {"name": "Ana", "decided": 2, "compared": 2, "agreed": 1},
        {"name": "Ben", "decided": 4, "compared": 4, "agreed": 3},
    ]
    assert told["pairs"] == [{"names": ("Ana", "Ben"), "rows": 2, "agreed": 1}]
    replaced = [line for line in told["rows"] if not line["holds"]]
    assert {(line["row"], line["decision"]["by"]) for line in replaced} == {(4, "Ben"), (5, "Ben")}
    session.undo("b")
    assert session.decided_rows()["pairs"][0]["rows"] == 1


def test_the_summary_counts_and_estimates_what_is_left(session):
    saved = session.saved
    assert session.summary()["decided"] == 0
    _decide(session, 5, int(saved.labels[5]))
    _decide(session, 6, (int(saved.labels[6]) + 1) % 4)
    session.decide(8, Decision("skip"), seen_version=0, tab="a")
    told = session.summary()
    assert (told["decided"], told["agreed"], told["changed"], told["left"]) == (2, 1, 1, 26)
    open_rows = [row for row in range(30) if row not in (0, 5, 6)]
    wrong = sum(1 - saved.confidence[row, saved.labels[row]] for row in open_rows)
    assert told["wrong_left"] == pytest.approx(wrong, abs=0.06)


def test_without_calibration_nothing_is_promised(folder, tmp_path):
    review_problem.write(tmp_path, settings=np.asarray('{"method": "plknn", "seed": 0}'))
    session = open_review(folder, rematch=review_problem.rematch)
    assert session.summary()["wrong_left"] is None
    assert session.progress()["calibrated"] is False
    assert {limit["wrong"] for limit in session.sure_rows()} == {None}
    session.store.close()


def _sure(tmp_path, folder):
    confidence = review_problem.arrays(tmp_path)["confidence"].copy()
    labels = confidence.argmax(axis=1)
    for row in (4, 5, 6):
        confidence[row] = 0.002
        confidence[row, labels[row]] = 0.994
    review_problem.write(tmp_path, confidence=confidence)
    return open_review(folder, rematch=review_problem.rematch), labels


def test_very_sure_rows_are_accepted_and_undone_together(folder, tmp_path):
    session, labels = _sure(tmp_path, folder)
    _decide(session, 4, 3, "Ana", tab="b")
    assert session.sure_rows()[0] == {"at_least": 0.99, "rows": 2, "wrong": 0.0}
    assert session.accept_sure(0.99, tab="a", reviewer="Ben") == 2
    held = session.store.decisions()
    assert {row: e.decision.code for row, e in held.items()} == {4: 3, 5: labels[5], 6: labels[6]}
    assert held[5].reviewer == "Ben"
    assert session.accept_sure(0.99, tab="a") == 0
    _decide(session, 7, 0)
    assert session.undo("a") == (7, 1)
    _decide(session, 6, 3, "Ana", tab="b")  # somebody looked after all
    assert session.undo("a") == (5, 1)
    assert set(session.store.decisions()) == {4, 6}
    with pytest.raises(RequestError, match="accepted from"):
        session.accept_sure(0.5, tab="a")
    session.store.close()


def test_where_the_truth_is_probably_missing_similar_rows_suggest_a_label(folder, tmp_path):
    outside, suggested = np.zeros(30), review_problem.arrays(tmp_path)["labels"].copy()
    outside[[1, 3, 9]] = 0.9, 0.95, 0.4
    suggested[[1, 9]] = 2
    review_problem.write(tmp_path, outside=outside, suggested=suggested)
    session = open_review(folder, rematch=review_problem.rematch)
    name = review_problem.CLASSES[2]
    suggestion = {"code": 2, "name": name, "outside": 0.9, "listed": False}
    assert session.item(1)["suggested"] == suggestion
    # The only candidate is not sure at all.
    assert [c["confidence"] for c in session.item(1)["candidates"]] == [0.1]
    wrong = 1 - session.saved.confidence.max(axis=1) * (1 - outside)
    assert session.summary()["wrong_left"] == pytest.approx(wrong[1:].sum(), abs=0.06)
    assert session.item(3)["suggested"] is None  # it is a candidate
    assert session.item(9)["suggested"] is None  # not probable enough
    asked = []
    while (item := session.next_item("a")) is not None:
        asked.append(item["row"])
        _decide(session, item["row"], item["candidates"][0]["code"])
    assert {1, 3} <= set(asked[:5])  # row 1 has a single candidate
    assert len(asked) == 29
    session.store.close()


def test_a_tab_that_is_closed_frees_its_row(session):
    first = session.next_item("a")["row"]
    assert session.next_item("b")["row"] != first
    session.store.release("a")
    assert session.next_item("c")["row"] == first
