import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from gmpll.apps.experiments import (
    Declaration,
    Experiment,
    ExperimentError,
    run,
    scores,
    write_scores,
)
from gmpll.apps.experiments import scoring as scoring_module
from gmpll.apps.experiments.methods import Method
from gmpll.apps.experiments.protocol import Truth
from gmpll.apps.experiments.scoring import SCORE_COLUMNS
from gmpll.apps.experiments.store import RunFolder

METHODS = ("Any candidate", "Full supervision", "Broken")
DECLARATION = Declaration(
    (Experiment("controlled", ("iris",), METHODS, p=(0.5,), r=(1,), folds=3, seeds=(4,)),),
    {"Broken": Method("Broken", "sklearn.dummy:NoSuchThing")},
)


@pytest.fixture
def finished(tmp_path, silent):
    run(DECLARATION, tmp_path / "run", progress=silent)
    return tmp_path / "run"


def test_scores_are_accuracies_of_the_saved_predictions(finished):
    table = scores(finished)
    assert tuple(table.columns) == SCORE_COLUMNS
    assert len(table) == 9
    truth, folder = load_iris().target, RunFolder(finished)
    for (_, row), job in zip(table.iterrows(), folder.jobs(), strict=True):
        assert (row.method, row.fold, row.seed) == (job.method, job.fold, 4)
        result = folder.load(job)
        if row.method == "Any candidate":
            hits = [
                truth[i] == label
                for i, label in zip(result.test_rows, result.predicted, strict=True)
            ]
            assert row.inductive == pytest.approx(sum(hits) / 50)
            hits = [
                truth[i] == label for i, label in zip(result.train_rows, result.labels, strict=True)
            ]
            assert row.transductive == pytest.approx(sum(hits) / 100)
            assert row.fit_seconds > 0


def test_what_has_no_figure_is_nan(finished):
    table = scores(finished).set_index("method")
    assert table.loc["Full supervision", "transductive"].isna().all()
    assert (table.loc["Full supervision", "inductive"] > 0.8).all()
    broken = table.loc["Broken"]
    assert (broken["status"] == "failed").all()
    assert broken["error"].str.contains("cannot be imported").all()
    assert broken[["inductive", "transductive", "fit_seconds"]].isna().all(axis=None)


def test_scores_csv_is_the_same_table(finished):
    table = write_scores(finished)
    again = pd.read_csv(finished / "scores.csv", dtype=str, keep_default_na=False)
    for column in SCORE_COLUMNS:
        if pd.api.types.is_numeric_dtype(table[column]):
            numbers = [float(text) if text else np.nan for text in again[column]]
            np.testing.assert_array_equal(numbers, table[column])
        else:
            assert again[column].tolist() == table[column].tolist()


def test_predictions_are_not_scored_against_other_data(finished, monkeypatch):
    other = Truth(np.zeros(150, dtype=int), "another")
    monkeypatch.setattr(scoring_module, "load_truth", lambda dataset, home, own: other)
    with pytest.raises(ExperimentError, match="iris is not the one that the predictions"):
        scores(finished)


def test_ordered_labels_have_an_absolute_error(finished, monkeypatch):
    assert scores(finished)[["inductive_mae", "transductive_mae"]].isna().all(axis=None)
    years = np.array([10.0, 11.0, 20.0])
    known = scoring_module.load_truth
    monkeypatch.setattr(
        scoring_module, "load_truth", lambda *names: replace(known(*names), label_values=years)
    )
    ages, folder = years[load_iris().target], RunFolder(finished)
    for (_, row), job in zip(scores(finished).iterrows(), folder.jobs(), strict=True):
        result = folder.load(job)
        if row.method == "Broken":
            assert np.isnan(row.inductive_mae)
            continue
        off = [
            abs(ages[i] - years[label])
            for i, label in zip(result.test_rows, result.predicted, strict=True)
        ]
        assert row.inductive_mae == pytest.approx(sum(off) / 50)
        off = [
            abs(ages[i] - years[label])
            for i, label in zip(result.train_rows, result.labels, strict=result.labels.size > 0)
        ]
        expected = sum(off) / 100 if off else float("nan")
        assert row.transductive_mae == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("label", [2, -1])
def test_labels_that_the_data_set_has_not_are_no_ages(finished, monkeypatch, label):
    folder = RunFolder(finished)
    job = folder.jobs()[0]
    result = folder.load(job)
    folder.save(job, replace(result, predicted=np.full_like(result.predicted, label)))
    known = scoring_module.load_truth
    two = np.array([10.0, 11.0])
    monkeypatch.setattr(
        scoring_module, "load_truth", lambda *names: replace(known(*names), label_values=two)
    )
    with pytest.raises(ExperimentError, match=rf"names labels that iris .* {job.id}\.npz"):
        scores(finished)


def test_an_unfinished_run_can_be_scored(finished):
    folder = RunFolder(finished)
    folder.file_of(folder.jobs()[0]).unlink()
    assert len(scores(finished)) == 8


def test_what_was_chosen_is_told(tmp_path, silent):
    experiment = Experiment(
        "controlled", ("iris",), ("Mine",), p=(0.5,), r=(1,), folds=2, tune="covering rate"
    )
    mine = Method("Mine", "Any candidate", {}, {"estimator": (None,)})
    run(Declaration((experiment,), {"Mine": mine}), tmp_path, progress=silent)
    assert [json.loads(text) for text in scores(tmp_path)["chosen"]] == [{"estimator": None}] * 2
