from __future__ import annotations

import json
import time

import numpy as np
import pytest
import review_problem

from gmpll.apps.decisions.errors import ConflictError, RequestError, ReviewError
from gmpll.apps.decisions.store import Decision
from gmpll.apps.review.ordering import doubt, propose_order
from gmpll.apps.review.session import LEASE_SECONDS, REVIEW_BELOW, open_review


def _decide(session, row, code, tab="a"):
    version = session.store.version(row)
    session.decide(row, Decision("label", code=code), seen_version=version, tab=tab)


def test_rows_come_in_the_proposed_order_without_the_known_ones(session):
    saved = session.saved
    open_rows = saved.mask.sum(axis=1) > 1
    open_rows[0] = False  # its label is given
    doubts = doubt(saved.confidence, saved.labels)
    expected = propose_order(doubts, open_rows, session._similarity)
    # Rows of which the label is sure enough wait, however much they tell about others.
    doubtful = 1 - 2 * doubts[expected] < REVIEW_BELOW
    assert not doubtful[: doubtful.sum()].all()
    expected = np.concatenate([expected[doubtful], expected[~doubtful]])
    seen = []
    while (item := session.next_item("a")) is not None:
        seen.append(item["row"])
        _decide(session, item["row"], item["candidates"][0]["code"])
    assert seen == expected.tolist()
    assert {0, 1}.isdisjoint(seen)
    progress = session.progress()
    assert (progress["decided"], progress["doubtful"]) == (28, 0)
    assert progress["ambiguous"] == 28


def test_an_item_shows_what_there_is(session):
    item = session.item(25)
    assert item["id"] == "r25"
    assert item["text"] == "text 25 about <img src=x onerror=alert(1)>"
    assert item["image"] == "p25.png"
    assert item["fields"] == [{"name": "page", "value": "25"}]
    assert item["decision"] is None
    shares = [candidate["confidence"] for candidate in item["candidates"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1, abs=1e-3)
    assert [c["code"] for c in item["candidates"] if c["found"]] == [session.saved.labels[25]]


def test_neighbours_are_shown_with_their_labels_as_they_stand(session):
    before = session.item(25)["neighbors"]
    assert len(before) == 8
    weights = [neighbor["weight"] for neighbor in before]
    assert weights == sorted(weights, reverse=True)
    nearest = before[0]
    assert nearest["label"] == str(session.saved.classes[session.saved.labels[nearest["row"]]])
    _decide(session, nearest["row"], 3)
    after = session.item(25)["neighbors"][0]
    assert (after["row"], after["label"], after["origin"]) == (
        nearest["row"],
        "=HYPERLINK(1)",
        "reviewer",
    )


def test_two_tabs_get_different_rows_until_one_is_long_gone(session, monkeypatch):
    first = session.next_item("a")["row"]
    assert session.next_item("a")["row"] == first
    assert session.next_item("b")["row"] != first
    now = [time.time()]
    monkeypatch.setattr("gmpll.apps.decisions.store.time.time", lambda: now[0])
    session.next_item("a")
    now[0] += LEASE_SECONDS + 1
    assert session.next_item("c")["row"] == first


def test_two_servers_on_a_folder_hand_out_different_rows(session, folder):
    other = open_review(folder, rematch=review_problem.rematch)
    rows = {s.next_item(tab)["row"] for s, tab in ((session, "a"), (other, "b"), (session, "c"))}
    assert len(rows) == 3
    lying = other.next_item("b")["row"]
    other.store.close()
    assert session.next_item("d")["row"] == lying  # nobody looks at it any more


def test_rows_passed_over_come_again_after_all_others(session):
    first = session.next_item("a")["row"]
    seen = [first]
    while (row := session.next_item("a", passed=seen[-1])["row"]) != first:
        seen.append(row)
    assert len(seen) == len(set(seen)) == 28
    assert session.store.log() == []
    assert session.next_item("b")["row"] != first  # it is leased to the other


def test_skipped_rows_come_back_at_the_end_oldest_first(session):
    skipped = []
    for _ in range(2):
        row = session.next_item("a")["row"]
        session.decide(row, Decision("skip"), seen_version=0, tab="a")
        skipped.append(row)
    while (item := session.next_item("a"))["decision"] is None:
        _decide(session, item["row"], 0)
    assert item["row"] == skipped[0]
    assert session.progress()["skipped"] == 2
    _decide(session, skipped[0], 0)
    assert session.next_item("a")["row"] == skipped[1]


def test_an_undone_row_is_asked_about_again(session):
    row = session.next_item("a")["row"]
    _decide(session, row, 0)
    assert session.next_item("a")["row"] != row
    assert session.undo("a") == (row, 1)
    assert session.next_item("a")["row"] == row
    assert session.undo("a") == (None, 0)


def test_a_new_label_is_kept_and_a_known_name_becomes_its_code(session):
    session.decide(5, Decision("other", name="  mole \n rat "), seen_version=0, tab="a")
    session.decide(6, Decision("other", name="dog"), seen_version=0, tab="a")
    held = session.store.decisions()
    assert held[5].decision == Decision("other", name="mole rat")
    assert held[6].decision == Decision("label", code=1)
    assert session.gold() == {0: 0, 6: 1}


@pytest.mark.parametrize(
    ("row", "decision"),
    [
        (30, Decision("label", code=0)),
        (-1, Decision("label", code=0)),
        (2, Decision("label", code=4)),
        (2, Decision("label", code=-1)),
        (2, Decision("label")),
        (2, Decision("other", name="  ")),
        (2, Decision("other", name="x" * 201)),
        (2, Decision("other", name="a\x00b")),
        (2, Decision("undo")),
        (2, Decision("drop table")),
    ],
)
def test_senseless_decisions_are_refused_and_not_written(session, row, decision):
    with pytest.raises(RequestError):
        session.decide(row, decision, seen_version=0, tab="a")
    assert session.store.log() == []


def test_labels_are_found_by_a_part_of_their_name(session):
    found = session.labels_like("=")
    assert [label["name"] for label in found] == ["=HYPERLINK(1)", "<img src=x onerror=alert(1)>"]
    assert session.labels_like("DO") == [{"code": 1, "name": "dog"}]
    assert session.labels_like("nothing") == []
    assert len(session.labels_like("")) == 4


def test_of_labels_that_fit_alike_the_most_frequent_comes_first(session):
    def first():
        return session.labels_like("")[0]["name"]

    for code, rows in ((2, range(2, 14)), (1, range(14, 29))):
        for row in rows:
            session.decide(row, Decision("label", code=code), seen_version=0, tab="a")
        assert first() == review_problem.CLASSES[code]


def test_labels_that_the_reviewer_brought_are_found_again(session):
    session.decide(5, Decision("other", name="Dormouse"), seen_version=0, tab="a")
    session.decide(6, Decision("other", name="Dormouse"), seen_version=0, tab="a")
    assert session.labels_like("do") == [
        {"code": 1, "name": "dog"},
        {"code": None, "name": "Dormouse"},
    ]
    session.undo("a")
    session.undo("a")
    assert session.labels_like("do") == [{"code": 1, "name": "dog"}]


def test_matching_again_uses_the_decisions_and_tells_what_changed(session):
    with pytest.raises(ConflictError, match="Decide a row first"):
        session.match_again()
    assert session.changes()["at"] is None
    saved = session.saved
    wrong = [row for row in range(20, 30) if saved.labels[row] != 2]
    assert len(wrong) > 1
    _decide(session, wrong[0], 2)
    expected = review_problem.rematch(saved, {0: 0, wrong[0]: 2})
    session.match_again()
    session.run.wait()
    assert session.run.status()["state"] == "done"

    changed = set(np.flatnonzero(expected.labels != saved.labels)) - {wrong[0]}
    changes = session.changes()
    assert {line["row"] for line in changes["rows"]} == changed
    assert changes["count"] == len(changed) > 0
    assert changes["decided_and_changed"] == 1
    line = changes["rows"][0]
    assert line["before"] == str(saved.classes[saved.labels[line["row"]]])
    assert line["after"] == str(saved.classes[expected.labels[line["row"]]])
    assert line["after_confidence"] == 1.0
    # The order follows the new matching: what became sure is asked about later.
    assert session.next_item("a")["row"] not in changed


def test_the_new_matching_is_there_after_a_restart(session, folder):
    _decide(session, 25, 2)
    session.match_again()
    session.run.wait()
    again = open_review(folder, rematch=review_problem.rematch)
    assert again.changes() == session.changes()
    assert list(again.results()) == list(session.results())
    again.store.close()


def test_a_failed_run_is_told_and_changes_nothing(session):
    def fail(saved, gold):
        raise ValueError("no memory left")

    session._rematch = fail
    _decide(session, 25, 2)
    session.match_again()
    session.run.wait()
    assert session.run.status()["state"] == "failed"
    assert session.run.status()["message"] == "ValueError: no memory left"
    assert session.changes()["at"] is None


def test_decisions_made_while_matching_are_not_lost(session):
    def meanwhile(saved, gold):
        _decide(session, 7, 1, tab="b")
        with pytest.raises(ConflictError, match="already"):
            session.match_again()
        return review_problem.rematch(saved, gold)

    session._rematch = meanwhile
    _decide(session, 25, 2)
    session.match_again()
    session.run.wait()
    assert session.run.status()["state"] == "done"
    assert session.gold() == {0: 0, 7: 1, 25: 2}
    results = dict(enumerate(session.results()))
    assert (results[7].label, results[7].origin) == ("dog", "reviewer")


def test_decisions_about_an_other_matching_are_refused(session, folder, tmp_path):
    _decide(session, 5, 0)
    ids = np.array([f"other{i}" for i in range(30)])
    review_problem.write(tmp_path, ids=ids)
    with pytest.raises(ReviewError, match="other rows"):
        open_review(folder)


def test_a_table_from_memory_has_no_pictures(folder, tmp_path):
    review_problem.write(tmp_path, source=np.asarray(""))
    session = open_review(folder, rematch=review_problem.rematch)
    with pytest.raises(RequestError, match="--images"):
        session.image(3)
    session.store.close()
    session = open_review(folder, images=tmp_path / "input", rematch=review_problem.rematch)
    assert session.image(3).media_type == "image/png"
    session.store.close()


def test_cells_that_are_no_text_are_shown_as_json(folder, tmp_path):
    display = np.array([json.dumps({"tags": ["ü", 1], "none": None})] * 30)
    review_problem.write(tmp_path, display=display)
    session = open_review(folder, rematch=review_problem.rematch)
    item = session.item(3)
    assert item["fields"] == [{"name": "tags", "value": '["ü", 1]'}]
    assert item["text"] is None
    assert item["image"] is None
    session.store.close()


def test_the_real_matching_can_be_run_again(folder):
    """Without a stand-in: GM-PLL itself with a decision as known label."""
    session = open_review(folder)
    _decide(session, 25, 2)
    session.match_again()
    session.run.wait()
    assert session.run.status() == {**session.run.status(), "state": "done", "message": ""}
    assert session.rematched.labels[25] == 2
    assert session.rematched.labels[0] == 0
    session.store.close()


def test_neighbours_show_what_they_are_judged_by(folder, tmp_path, session):
    shown = session.item(25)["neighbors"][0]
    row = shown["row"]
    assert shown["excerpt"] == f"{json.loads(session.saved.display[row])['text']}, page: {row}"
    cells = [json.dumps({"id": f"r{i}", "tags": "a|b", "x": str(i), "none": ""}) for i in range(30)]
    review_problem.write(tmp_path, display=np.array(cells), text_column=np.asarray(""))
    without_text = open_review(folder, rematch=review_problem.rematch)
    shown = without_text.item(25)["neighbors"][0]
    assert shown["excerpt"] == f"tags: a|b, x: {shown['row']}"
    without_text.store.close()
