from __future__ import annotations

import json
import sqlite3

import numpy as np
import pytest
import review_problem

from gmpll.apps.decisions.archive import archiving, carry_over, check_not_under_review
from gmpll.apps.decisions.errors import ReviewError
from gmpll.apps.decisions.store import Decision
from gmpll.apps.review.session import open_review
from gmpll.apps.tables import read_matching

IDS = np.array([f"r{i}" for i in range(30)])
DISPLAY = np.array([json.dumps({"key": identity}) for identity in IDS])


@pytest.fixture
def reviewed(tmp_path):
    """A folder with a decision of every kind."""
    folder = review_problem.write(tmp_path, display=DISPLAY)
    session = open_review(folder, rematch=review_problem.rematch)
    for row, decision in (
        (2, Decision("label", code=1)),
        (5, Decision("label", code=0)),
        (7, Decision("other", name="mole")),
        (8, Decision("none")),
        (9, Decision("skip")),
    ):
        session.decide(row, decision, seen_version=0, tab="a")
    session.store.close()
    return folder


def _names(folder):
    """The decisions in a folder, by id."""
    session = open_review(folder, rematch=review_problem.rematch)
    found = {r.id: (r.decision, r.label) for r in session.results() if r.decision}
    session.store.close()
    return found


def _replace(folder, tmp_path, **changed):
    """What a run does: make room, then put its own matching into the folder."""
    changed = {"display": DISPLAY, **changed}
    new = review_problem.write(tmp_path / "new", **changed)
    matching = read_matching(new).rows
    with archiving(folder, "matching.npz") as make_room:
        archived = make_room(matching)
    (new / "matching.npz").replace(folder / "matching.npz")
    return archived, matching


def _carry_over(archived, folder, matching, id_column):
    return carry_over(archived, read_matching(archived.folder).rows, folder, matching, id_column)


@pytest.fixture(autouse=True)
def _new(tmp_path):
    (tmp_path / "new").mkdir()


def test_decisions_about_the_same_rows_stay_where_they_are(reviewed, tmp_path):
    before = _names(reviewed)
    archived, _ = _replace(reviewed, tmp_path, features=np.ones((30, 3), dtype=np.float32))
    assert archived is None
    assert _names(reviewed) == before


def test_decisions_about_other_rows_can_be_read_in_a_folder_of_their_own(reviewed, tmp_path):
    before = _names(reviewed)
    other = np.array([f"other{i}" for i in range(30)])
    archived, matching = _replace(reviewed, tmp_path, ids=other)
    assert (archived.folder, archived.rows) == (reviewed / "earlier-review-1", 5)
    assert _names(archived.folder) == before
    assert _carry_over(archived, reviewed, matching, "key").carried_over == 0
    assert _names(reviewed) == {}


def test_the_rows_are_recognised_by_their_ids(reviewed, tmp_path):
    order = np.r_[29:-1:-1]
    old = review_problem.arrays(tmp_path)
    changed = {name: old[name][order] for name in ("mask", "gold", "labels", "confidence")}
    changed["classes"] = np.array(["cat", "hound", "<img src=x onerror=alert(1)>", "mole"])
    archived, matching = _replace(
        reviewed, tmp_path, ids=IDS[order], display=DISPLAY[order], **changed
    )
    assert _carry_over(archived, reviewed, matching, "key").carried_over == 3
    assert _names(reviewed) == {
        "r2": ("other", "dog"),  # no label of the new run
        "r5": ("label", "cat"),
        "r7": ("label", "mole"),  # now it is one
    }
    before, after = (open_review(f).store.decisions() for f in (archived.folder, reviewed))
    assert after[24].at == before[5].at


def test_row_numbers_are_no_ids(reviewed, tmp_path):
    mask = review_problem.arrays(tmp_path)["mask"].copy()
    mask[3] = True
    archived, matching = _replace(reviewed, tmp_path, mask=mask)
    assert _carry_over(archived, reviewed, matching, "").carried_over == 0
    assert _carry_over(archived, reviewed, matching, "another column").carried_over == 0
    assert len(_names(archived.folder)) == 5


def test_that_no_candidate_is_right_holds_for_the_same_candidates(reviewed, tmp_path):
    mask = review_problem.arrays(tmp_path)["mask"].copy()
    mask[3] = True
    archived, matching = _replace(reviewed, tmp_path, mask=mask)
    assert _carry_over(archived, reviewed, matching, "key").carried_over == 4
    assert _names(reviewed)["r8"] == ("none", None)
    mask[8] = True
    archived, matching = _replace(reviewed, tmp_path, mask=mask)
    assert archived.folder.name == "earlier-review-2"
    assert _carry_over(archived, reviewed, matching, "key").carried_over == 3
    assert "r8" not in _names(reviewed)


def test_a_run_that_fails_leaves_the_decisions_in_place(reviewed, tmp_path):
    before = _names(reviewed)
    other = np.array([f"other{i}" for i in range(30)])
    matching = read_matching(review_problem.write(tmp_path / "new", ids=other)).rows

    def fail():
        with archiving(reviewed, "matching.npz") as make_room:
            make_room(matching)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert _names(reviewed) == before
    assert not list(reviewed.glob("earlier-review*"))


def test_a_review_that_decided_nothing_leaves_nothing(tmp_path):
    folder = review_problem.write(tmp_path)
    open_review(folder).store.close()
    archived, _ = _replace(folder, tmp_path, ids=np.array([f"other{i}" for i in range(30)]))
    assert archived is None
    assert _names(folder) == {}


def test_a_damaged_file_is_kept_as_it_is(tmp_path):
    folder = review_problem.write(tmp_path)
    (folder / "review.sqlite").write_bytes(b"no database" * 100)
    archived, matching = _replace(folder, tmp_path)
    assert (archived.folder / "review.sqlite").read_bytes() == b"no database" * 100
    assert _carry_over(archived, folder, matching, "key").carried_over == 0


def test_a_folder_under_review_is_not_touched(reviewed):
    content = (reviewed / "review.sqlite").read_bytes()
    check_not_under_review(reviewed)
    assert (reviewed / "review.sqlite").read_bytes() == content
    session = open_review(reviewed)
    with pytest.raises(ReviewError, match="is under review"):
        check_not_under_review(reviewed)
    session.store.close()
    check_not_under_review(reviewed)
    assert [file.name for file in reviewed.glob("review*")] == ["review.sqlite"]


def test_a_disk_that_fails_is_no_reason_to_put_decisions_away(reviewed, tmp_path, monkeypatch):
    """Opening the file in its usual way fails; nothing says that it is damaged."""
    from gmpll.apps.decisions import archive

    class Failing(sqlite3.Connection):
        def execute(self, *arguments):
            if "facts" in arguments[0]:
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR
                raise error
            return super().execute(*arguments)

    connect = sqlite3.connect
    monkeypatch.setattr(
        archive.sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "factory": Failing})
    )
    with pytest.raises(ReviewError, match=r"cannot be read \(disk I/O error\)"):
        _replace(reviewed, tmp_path)
    monkeypatch.undo()
    assert len(_names(reviewed)) == 5
    assert not list(reviewed.glob("earlier-review*"))
