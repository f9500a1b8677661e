"""Files of every version of every format are read; those of newer versions are refused."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gmpll.apps.decisions import store as review_store
from gmpll.apps.decisions.errors import ReviewError
from gmpll.apps.decisions.store import Decision, Store, rows_key
from gmpll.apps.experiments import ExperimentError, scores
from gmpll.apps.experiments import store as run_store
from gmpll.apps.experiments.store import RunFolder
from gmpll.apps.tables import InputError, model_file, read_matching, rematch, saved
from gmpll.apps.tables.model_file import load_model
from gmpll.apps.tables.predicting import predict_table
from gmpll.apps.tables.tables import read_table
from gmpll.datasets import load_uci

HERE = Path(__file__).resolve().parent
RESOLVED = sorted(HERE.glob("resolved-?"))
REVIEWS = sorted(HERE.glob("review-*.sqlite"))
RUNS = sorted(HERE.glob("run-*"))


def _named(path):
    return path.name


def test_the_newest_formats_are_archived():
    """Whoever raises a number has to add a sample: run tests/archived/make.py."""
    names = {path.name for path in HERE.iterdir()}
    assert f"resolved-{saved.FORMAT}" in names
    assert f"resolved-{model_file.FORMAT}" in names
    assert f"review-{review_store.FORMAT}.sqlite" in names
    assert f"run-{run_store.FORMAT_VERSION}" in names


@pytest.mark.parametrize("folder", RESOLVED, ids=_named)
def test_matchings_are_read(folder):
    matching = read_matching(folder)
    assert matching.ids.tolist() == [f"r{i}" for i in range(40)]
    assert matching.classes.tolist() == ["cat", "dog"]
    assert (matching.labels == np.arange(40) % 2).all()


@pytest.mark.parametrize("folder", RESOLVED, ids=_named)
def test_matchings_are_matched_again(folder):
    """Their settings must still mean something to the method."""
    matching = read_matching(folder)
    assert rematch(matching, {0: 1}).labels[0] == 1


@pytest.mark.parametrize("folder", RESOLVED, ids=_named)
def test_models_predict(folder):
    model = load_model(folder)
    table = read_table(folder / "resolved.csv")
    found = predict_table(model, table, [], "")
    truth = pd.read_csv(folder / "resolved.csv")["truth"]
    predicted = np.asarray(model.model.classes_)[found.labels]
    assert (predicted == truth.to_numpy()).all()


@pytest.mark.parametrize("sample", REVIEWS, ids=_named)
def test_reviews_go_on(sample, tmp_path):
    matching = read_matching(HERE / "resolved-1")
    shutil.copy(sample, tmp_path)
    store = Store(tmp_path / sample.name, rows_key(matching))
    decisions = {row: entry.decision for row, entry in store.decisions().items()}
    labels = {row: Decision("label", code) for row, code in {0: 1, 3: 0, 4: 1}.items()}
    assert decisions == {**labels, 7: Decision("other", name="mole")}
    assert len(store.log()) == 6
    np.testing.assert_array_equal(store.load_rematched("base").labels, matching.labels)
    store.decide(12, Decision("none"), seen_version=0, tab="a")
    store.close()
    raw = sqlite3.connect(tmp_path / sample.name)
    assert raw.execute("PRAGMA user_version").fetchone() == (review_store.FORMAT,)
    raw.close()


def test_a_review_of_a_newer_version_is_refused_and_not_touched(tmp_path):
    path = tmp_path / "review.sqlite"
    Store(path, "key").close()
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA journal_mode = DELETE")
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(ReviewError, match=r"newer version of gmpll \(its format is 99"):
        Store(path, "key")
    assert path.read_bytes() == before


@pytest.mark.parametrize("sample", RUNS, ids=_named)
def test_runs_are_scored(sample, tmp_path):
    folder = shutil.copytree(sample, tmp_path / "run")
    run = RunFolder(folder)
    results = run.load_all(run.jobs())
    assert len(results) == 3
    assert len(run.starts()) == 1
    assert scores(folder)["status"].tolist() == ["ok"] * 3


def test_a_run_of_a_newer_version_is_refused(tmp_path):
    folder = shutil.copytree(RUNS[-1], tmp_path / "run")
    content = json.loads((folder / "declaration.json").read_text())
    (folder / "declaration.json").write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(ExperimentError, match="its format is 99, update gmpll or use a new folder"):
        RunFolder(folder).jobs()


def test_a_matching_of_a_newer_version_is_refused(tmp_path):
    with np.load(RESOLVED[-1] / saved.FILE_NAME, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(tmp_path / saved.FILE_NAME, **{**arrays, "format": np.asarray(99)})
    with pytest.raises(InputError, match="is not in format"):
        read_matching(tmp_path)


def test_a_model_of_a_newer_version_is_refused(tmp_path):
    from skops.io import dump

    dump({"format": 99}, tmp_path / model_file.FILE_NAME)
    with pytest.raises(InputError, match="is not in format"):
        load_model(tmp_path)
    dump({"format": "one"}, tmp_path / model_file.FILE_NAME)
    with pytest.raises(InputError, match="is not in format"):
        load_model(tmp_path)


def test_tables_kept_from_openml_are_read():
    kept = load_uci("glass", HERE / "data-1", download_if_missing=False)
    assert kept.data.shape == (20, 9)
    assert kept.target_names.tolist() == [1, 2, 3]
