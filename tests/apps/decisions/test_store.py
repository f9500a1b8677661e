from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

from gmpll.apps.decisions.errors import ConflictError, RequestError, ReviewError
from gmpll.apps.decisions.store import Decision, Rematched, Store

CAT, DOG = Decision("label", code=0), Decision("label", code=1)


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path / "review.sqlite", "key")
    yield opened
    opened.close()


def _codes(store):
    return {row: entry.decision.code for row, entry in store.decisions().items()}


def test_decisions_are_there_after_reopening(store):
    store.decide(4, CAT, seen_version=0, tab="a")
    store.decide(2, Decision("other", name="mole"), seen_version=0, tab="a")
    again = Store(store.path, "key")
    assert {row: entry.decision for row, entry in again.decisions().items()} == {
        4: CAT,
        2: Decision("other", name="mole"),
    }
    again.close()


def test_every_kind_of_decision_is_kept_and_others_are_refused(store):
    for row, action in enumerate(("label", "other", "none", "skip")):
        store.decide(row, Decision(action), seen_version=0, tab="a")
    assert [e.decision.action for e in store.log()] == ["label", "other", "none", "skip"]
    with pytest.raises(RequestError, match="is no decision"):
        store.decide(9, Decision("undo"), seen_version=0, tab="a")


def test_undo_goes_back_step_by_step_and_is_an_entry_itself(store):
    store.decide(1, CAT, seen_version=0, tab="a")
    store.decide(2, CAT, seen_version=0, tab="a")
    store.decide(1, DOG, seen_version=1, tab="a")
    assert _codes(store) == {1: 1, 2: 0}
    assert store.undo("a")[0].row == 1
    assert _codes(store) == {1: 0, 2: 0}
    assert store.undo("a")[0].row == 2
    assert store.undo("a")[0].row == 1
    assert _codes(store) == {}
    assert store.undo("a") == []
    assert len(store.log()) == 6
    assert store.version(1) == 4


def test_undo_leaves_other_tabs_alone(store):
    store.decide(1, CAT, seen_version=0, tab="a")
    store.decide(2, CAT, seen_version=0, tab="b")
    assert store.undo("a")[0].row == 1
    assert _codes(store) == {2: 0}
    assert store.undo("a") == []


def test_undo_of_a_decision_that_another_tab_replaced_is_a_conflict(store):
    store.decide(1, CAT, seen_version=0, tab="a")
    store.decide(1, DOG, seen_version=1, tab="b")
    with pytest.raises(ConflictError, match="replaced elsewhere"):
        store.undo("a")
    assert _codes(store) == {1: 1}


def test_of_two_who_saw_the_same_version_the_second_is_told(store):
    other = Store(store.path, "key")
    store.decide(1, CAT, seen_version=0, tab="a")
    with pytest.raises(ConflictError):
        other.decide(1, DOG, seen_version=0, tab="b")
    assert _codes(store) == _codes(other) == {1: 0}
    other.decide(1, DOG, seen_version=1, tab="b")
    assert _codes(store) == {1: 1}
    other.close()


def test_many_writers_lose_nothing(store):
    """Four connections write at the same time; each tries again when told of a conflict."""

    def write(name):
        mine = Store(store.path, "key")
        for i in range(15):
            mine.decide(100 * name + i, CAT, seen_version=0, tab=str(name))
            while True:
                try:
                    mine.decide(7777, CAT, seen_version=mine.version(7777), tab=str(name))
                    break
                except ConflictError:
                    continue
        mine.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.decisions()) == 4 * 15 + 1
    assert store.version(7777) == 4 * 15


def test_the_log_cannot_be_changed_or_shortened(store):
    store.decide(1, CAT, seen_version=0, tab="a")
    raw = sqlite3.connect(store.path)
    for statement in ("UPDATE log SET code = 1", "DELETE FROM log"):
        with pytest.raises(sqlite3.Error, match="append-only"):
            raw.execute(statement)
    raw.close()


def test_a_refused_write_leaves_nothing_behind(store):
    raw = sqlite3.connect(store.path)
    raw.execute(
        "CREATE TRIGGER full BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    raw.commit()
    with pytest.raises(ReviewError, match="disk full"):
        store.decide(1, CAT, seen_version=0, tab="a")
    assert store.decisions() == {}
    raw.execute("DROP TRIGGER full")
    raw.commit()
    raw.close()
    store.decide(1, CAT, seen_version=0, tab="a")
    assert _codes(store) == {1: 0}


def test_decisions_survive_the_death_of_the_process(tmp_path):
    """The process is gone without a goodbye right after ``decide`` returned."""
    path = tmp_path / "review.sqlite"
    code = (
        "import os, sys\n"
        "from gmpll.apps.decisions.store import Decision, Store\n"
        "store = Store(sys.argv[1], 'key')\n"
        "for row in range(5):\n"
        "    store.decide(row, Decision('label', code=row), seen_version=0, tab='a')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert ended.returncode == -9
    store = Store(path, "key")
    assert _codes(store) == {row: row for row in range(5)}
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store.close()


def test_it_writes_ahead_and_waits_for_the_disk(store):
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_decisions_about_other_rows_are_refused(store):
    with pytest.raises(ReviewError, match="other rows or labels: move it away"):
        Store(store.path, "another key")


def test_a_damaged_file_is_one_sentence(tmp_path):
    (tmp_path / "review.sqlite").write_bytes(b"this is no database" * 100)
    with pytest.raises(ReviewError, match=r"cannot be kept in .*move the file away"):
        Store(tmp_path / "review.sqlite", "key")


def test_the_latest_matching_is_kept_with_the_one_it_came_from(store):
    def made(code):
        labels = np.full(3, code)
        confidence = np.full((3, 2), 0.5, dtype=np.float32)
        return Rematched("now", labels, confidence, np.array([1]))

    assert store.load_rematched("base") is None
    store.save_rematched("base", made(0))
    store.save_rematched("base", made(1))
    loaded = store.load_rematched("base")
    np.testing.assert_array_equal(loaded.labels, 1)
    assert loaded.confidence.dtype == np.float32
    assert loaded.at == "now"
    assert store.load_rematched("another run") is None
