"""Decisions reach the results, from the command to the table."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from gmpll.apps.cli import main
from gmpll.apps.decisions.errors import ConflictError, ReviewError
from gmpll.apps.decisions.store import Decision
from gmpll.apps.review.applying import apply_decisions
from gmpll.apps.review.export import to_csv, to_label_studio
from gmpll.apps.review.session import open_review
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.saved import input_settings, load_model, read_matching
from gmpll.apps.tables.tables import Table


def _gmpll(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["gmpll", *map(str, arguments)])
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0


@pytest.fixture(scope="module")
def resolved(tmp_path_factory):
    """Two groups of rows whose sets tell little; the results of a quick method."""
    folder = tmp_path_factory.mktemp("applying")
    rng = np.random.RandomState(0)
    with (folder / "in.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["key", "size", "note", "tags"])
        for i in range(40):
            kind = i % 2
            tags = "cat|dog" if i % 4 else ["cat", "dog"][kind]
            writer.writerow([f"k{i}", round(3 * kind + rng.normal(), 3), f"=note {i}", tags])
    with pytest.MonkeyPatch.context() as patch:
        out = folder / "out"
        options = ("--method", "plknn", "--id", "key", "--exclude", "note")
        assert _gmpll(patch, "disambiguate", folder / "in.csv", "--out", out, *options) == 0
    return folder


@pytest.fixture
def folder(resolved, tmp_path):
    """A copy of the results, with the input where it was."""
    return shutil.copytree(resolved / "out", tmp_path / "out")


def _decide(folder, decisions, reviewer="Ben"):
    session = open_review(folder)
    with closing(session.store):
        for row, decision in decisions.items():
            session.decide(row, decision, seen_version=0, tab="a", reviewer=reviewer)


def _table(folder):
    with (folder / "resolved.csv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


def test_results_are_made_again_with_the_decisions_and_the_old_ones_kept(folder, monkeypatch):
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    old = _table(folder)
    found = {row: old[row]["label"] for row in (1, 2, 3)}
    other = {"cat": 1, "dog": 0}
    _decide(
        folder,
        {
            1: Decision("label", code=other[found[1]]),
            2: Decision("other", name="=mole"),
            3: Decision("none"),
        },
    )
    assert _gmpll(monkeypatch, "review", folder, "--apply") == 0
    new = _table(folder)
    assert new[1]["label"] == ["cat", "dog"][other[found[1]]]
    assert (new[1]["confidence"], new[1]["review"]) == ("1.0", "false")
    assert (new[2]["label"], new[2]["confidence"]) == ("'=mole", "1.0")
    assert (new[3]["label"], new[3]["review"]) == ("", "false")
    assert [row["decided_by"] for row in new[:5]] == ["", "Ben", "Ben", "Ben", ""]
    assert [row["key"] for row in new] == [row["key"] for row in old]
    kept = folder / "earlier-results-1"
    names = {"resolved.csv", "report.html", "model.skops", "matching.npz"}
    assert {p.name: p.read_bytes() for p in kept.iterdir()} == {n: before[n] for n in names}
    assert all((folder / name).read_bytes() != before[name] for name in names - {"report.html"})
    assert load_model(folder).model.classes_.tolist() == ["cat", "dog", "=mole"]
    # The review goes on: the same candidates, the same decisions.
    after = read_matching(folder)
    assert after.rows.key() == read_matching(kept).rows.key()
    assert len(open_review(folder).store.decisions()) == 3


def test_a_new_label_becomes_one_of_the_model_and_goes_when_it_is_undone(folder):
    _decide(folder, {row: Decision("other", name="mole") for row in (1, 3, 5)})
    _decide(folder, {2: Decision("other", name="ape")})
    apply_decisions(folder)
    model = load_model(folder).model
    assert model.classes_.tolist() == ["cat", "dog", "ape", "mole"]
    assert model.predict_proba(read_matching(folder).features).shape == (40, 4)
    session = open_review(folder)
    with closing(session.store):
        session.decide(7, Decision("label", code=3), seen_version=0, tab="b")  # mole, by its code
        assert session.gold()[7] == 3
        assert {"code": 3, "name": "mole"} in session.labels_like("mole")
        session.undo("a")  # the ape
    applied = apply_decisions(folder)
    assert applied.decisions == 4
    assert load_model(folder).model.classes_.tolist() == ["cat", "dog", "mole"]
    labels = [row["label"] for row in _table(folder)]
    assert [row for row, label in enumerate(labels) if label == "mole"] == [1, 3, 5, 7]
    with closing(open_review(folder).store) as store:
        assert len(store.decisions()) == 4


def test_a_new_label_joins_the_votes_of_annotators(tmp_path, monkeypatch):
    rng = np.random.RandomState(0)
    with (tmp_path / "in.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "rater_1", "rater_2", "rater_3"])
        for i in range(60):
            kind = i % 3
            vote = ["cat", "dog", "dog"][kind]
            wrong = ["dog", "cat", "cat"][kind]
            writer.writerow([round(4 * kind + rng.normal(), 3), vote, vote, wrong])
    out = tmp_path / "out"
    assert _gmpll(monkeypatch, "disambiguate", tmp_path / "in.csv", "--out", out) == 0
    _decide(out, {row: Decision("other", name="mole") for row in range(2, 60, 6)})
    apply_decisions(out)
    model = load_model(out).model
    assert model.classes_.tolist() == ["cat", "dog", "mole"]
    assert (model.predict(np.array([[8.0], [0.0]])) == ["mole", "cat"]).all()


def test_a_second_time_is_kept_apart_and_undone_decisions_are_gone(folder):
    _decide(folder, {1: Decision("label", code=0), 5: Decision("label", code=0)})
    apply_decisions(folder)
    session = open_review(folder)
    with closing(session.store):
        session.undo("a")
    applied = apply_decisions(folder)
    assert (applied.decisions, applied.kept.name) == (1, "earlier-results-2")
    assert [row["decided_by"] for row in _table(folder)].count("Ben") == 1
    assert "1 decision is in the results now" in str(applied)


def test_running_again_takes_decisions_along_and_says_so(resolved, folder, monkeypatch, capsys):
    _decide(folder, {1: Decision("label", code=0), 5: Decision("label", code=0)})
    run = ("disambiguate", resolved / "in.csv", "--out", folder, "--method", "plknn", "--force")
    assert _gmpll(monkeypatch, *run, "--id", "key", "--exclude", "note") == 0
    assert "2 decisions are taken along from the review" in capsys.readouterr().out
    assert [_table(folder)[row]["label"] for row in (1, 5)] == ["cat", "cat"]
    # Other rows: those that are still there, by their ids.
    lines = (resolved / "in.csv").read_text().splitlines()
    fewer = folder.parent / "fewer.csv"
    fewer.write_text("\n".join([lines[0], *lines[4:]]) + "\n")
    again = ("disambiguate", fewer, "--out", folder, "--method", "plknn", "--force")
    assert _gmpll(monkeypatch, *again, "--id", "key", "--exclude", "note") == 0
    assert "1 decision is taken along" in capsys.readouterr().out
    named = {row["key"]: row for row in _table(folder)}
    assert (named["k5"]["label"], named["k5"]["decided_by"]) == ("cat", "Ben")


def test_the_button_applies_and_the_review_goes_on(folder):
    session = open_review(folder)
    with closing(session.store):
        with pytest.raises(ConflictError, match="Decide a row first"):
            session.apply()
        session.decide(1, Decision("label", code=0), seen_version=0, tab="a", reviewer="Ben")
        session.apply()
        session.run.wait()
        status = session.run.status()
        assert (status["state"], status["what"]) == ("done", "apply")
        assert "earlier-results-1" in status["message"]
        assert session.saved.labels[1] == 0
        assert session.item(1)["decision"]["by"] == "Ben"
        assert session.next_item("a") is not None
        assert session.summary()["decided"] == 1
    assert _table(folder)[1]["decided_by"] == "Ben"


def test_an_input_that_changed_or_is_gone_is_one_sentence_and_nothing_is_written(
    resolved, folder, tmp_path
):
    _decide(folder, {1: Decision("label", code=0)})
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    source = tmp_path / "in.csv"
    with np.load(folder / "matching.npz") as file:
        arrays = dict(file)
    np.savez_compressed(folder / "matching.npz", **{**arrays, "source": np.asarray(str(source))})
    with pytest.raises(ReviewError, match=r"in\.csv.*--force instead, which takes decisions along"):
        apply_decisions(folder)
    source.write_text((resolved / "in.csv").read_text().replace("k7;", "x7;"))
    with pytest.raises(ReviewError, match="has changed since it was resolved"):
        apply_decisions(folder)
    settings = {n: v for n, v in json.loads(str(arrays["settings"])).items() if n != "input"}
    arrays["settings"] = np.asarray(json.dumps(settings))
    np.savez_compressed(folder / "matching.npz", **arrays)
    with pytest.raises(ReviewError, match="does not say how its input was read"):
        apply_decisions(folder)
    after = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert {n for n in after if after[n] != before.get(n)} == {"matching.npz"}


def test_without_decisions_or_beside_an_open_page_it_is_refused(folder, monkeypatch, capsys):
    assert _gmpll(monkeypatch, "review", folder, "--apply") == 2
    assert "gmpll: Decide a row first" in capsys.readouterr().err
    _decide(folder, {1: Decision("label", code=0)})
    session = open_review(folder)
    with closing(session.store):
        assert _gmpll(monkeypatch, "review", folder, "--apply") == 2
        assert "is under review" in capsys.readouterr().err
    out = folder / "x.csv"
    assert _gmpll(monkeypatch, "review", folder, "--apply", "--export", out) == 2
    assert "two steps" in capsys.readouterr().err


def test_exports_carry_the_columns_of_the_input(folder):
    _decide(folder, {1: Decision("label", code=0)})
    session = open_review(folder)
    with closing(session.store):
        rows = list(csv.DictReader(to_csv(session).splitlines()))
        tasks = json.loads(to_label_studio(session))
    assert list(rows[0])[-3:] == ["size", "note", "tags"]
    assert rows[1]["note"] == "'=note 1"
    assert rows[1]["decided_by"] == "Ben"
    assert "key" not in rows[0]  # it is the id
    assert set(tasks[1]["data"]) == {"key", "size", "note", "tags", "gmpll_id"}
    # Columns of the input that are called like ours are told apart.
    session = open_review(folder)
    with closing(session.store):
        session.input_columns = lambda: {"label": ["x"] * 40}
        header = to_csv(session).splitlines()[0]
    assert header.endswith("decided_by,input_label")


def test_files_that_options_name_are_found_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("new.csv", "vectors.npy", "votes.csv"):
        (tmp_path / name).touch()
    options = Options(
        rename=("Katze=cat", "new.csv"), features=("size", "vectors.npy"), votes=Path("votes.csv")
    )
    table = Table(None, path=tmp_path / "in.tsv", format="tsv", delimiter="\t")
    kept = json.loads(json.dumps(input_settings(table, options, escape=False)))
    assert kept["options"]["rename"] == ["Katze=cat", str(tmp_path / "new.csv")]
    assert kept["options"]["features"] == ["size", str(tmp_path / "vectors.npy")]
    assert kept["options"]["votes"] == str(tmp_path / "votes.csv")
    assert kept["reading"]["delimiter"] == "\t"
    assert kept["escape"] is False
    assert input_settings(Table(None), options, escape=True) is None  # data in memory
