"""From saved predictions to scores; the only place where predictions meet the truth."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from gmpll._atomic_io import write_atomically
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.jobs import Job, canonical_json
from gmpll.apps.experiments.protocol import Truth, load_problem, load_truth
from gmpll.apps.experiments.store import Result, RunFolder
from gmpll.apps.experiments.tuning import CRITERIA
from gmpll.metrics import mean_absolute_label_error

_OF_JOB = ("experiment", "dataset", "p", "r", "method", "parameter", "value", "seed", "fold")
_ERRORS = ("inductive_mae", "transductive_mae")
#: Of data sets without true labels only.
WITHOUT_TRUTH = "candidate_lift"
_MEASURES = ("inductive", "transductive", *_ERRORS, WITHOUT_TRUTH)
_SECONDS = ("fit_seconds", "predict_seconds")
SCORE_COLUMNS = (*_OF_JOB, *_MEASURES, *_SECONDS, "chosen", "status", "error")


def scores(run_dir: Path | str, *, data_home: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Score the saved predictions of a run.

    Parameters
    ----------
    run_dir : path-like
        The run folder.
    data_home : path-like, default=None
        Folder of the data sets, for the true labels.

    Returns
    -------
    DataFrame
        One row per finished job of the folder's declaration, failed ones included, with the
        columns :data:`SCORE_COLUMNS`. ``inductive`` is the accuracy on the unseen rows of the
        fold, ``transductive`` the share of training rows whose found label is the true one
        (NaN for a method that finds none). ``inductive_mae`` and ``transductive_mae`` are the mean
        absolute errors on the same rows, in the unit of the labels; NaN where these are not
        ordered. ``candidate_lift`` is the label-free stand-in for the accuracy on unseen rows, see
        :func:`gmpll.metrics.candidate_lift`, of data sets without any true label.
    """
    folder = RunFolder(run_dir)
    home = None if data_home is None else str(data_home)
    own = str(folder.data)
    truth = cache(lambda dataset: load_truth(dataset, home, own))
    rows = []
    for job in folder.jobs():
        result = folder.load(job)
        if result is None:
            continue
        facts, measures = result.facts, dict.fromkeys(_MEASURES, float("nan"))
        if not result.failed:
            measures |= _measures(job, result, truth(job.dataset))
            if (truth(job.dataset).target < 0).all():  # compared with candidates, as tuning does
                mask = load_problem(job, home, own).mask
                frequency = mask[result.train_rows].mean(axis=0)
                lift = CRITERIA["candidate lift"]
                measures[WITHOUT_TRUTH] = lift(mask[result.test_rows], result.predicted, frequency)
        of_job = {name: getattr(job, name) for name in _OF_JOB}
        rows.append(
            {name: float("nan") if value is None else value for name, value in of_job.items()}
            | measures
            | {name: facts.get(name, float("nan")) for name in _SECONDS}
            | {"chosen": canonical_json(facts["chosen"]) if facts.get("chosen") else ""}
            | {"status": facts["status"], "error": facts["error"]}
        )
    return pd.DataFrame(rows, columns=list(SCORE_COLUMNS))


def write_scores(
    run_dir: Path | str, *, data_home: str | os.PathLike[str] | None = None
) -> pd.DataFrame:
    """Score a run, write ``scores.csv`` into its folder and return the table."""
    table = scores(run_dir, data_home=data_home)
    text = table.to_csv(index=False, lineterminator="\n")
    write_atomically(Path(run_dir) / "scores.csv", text.encode("utf-8", errors="replace"))
    return table


def _measures(job: Job, result: Result, truth: Truth) -> dict[str, float]:
    """Compare predictions and found labels with the truth, if they belong to it."""
    _check(job, result, truth)
    measures = {}
    for name, labels, rows in (
        ("inductive", result.predicted, result.test_rows),
        ("transductive", result.labels, result.train_rows),
    ):
        known = truth.target[rows] >= 0 if labels.size else np.zeros(0, dtype=bool)
        if known.any():
            labels, rows = labels[known], rows[known]
            target, values = truth.target[rows], truth.label_values
            measures[name] = float(np.mean(labels == target))
            if values is not None:
                measures[f"{name}_mae"] = mean_absolute_label_error(values[target], values[labels])
    return measures


def _check(job: Job, result: Result, truth: Truth) -> None:
    if result.facts.get("fingerprint") != truth.fingerprint:
        raise ExperimentError(
            f"The data set {job.dataset} is not the one that the predictions were made on: "
            "restore it, or start again in a new folder."
        )
    rows = np.concatenate([result.test_rows, result.train_rows])
    named = {"rows": (rows, len(truth.target))}
    if truth.label_values is not None:
        labels = np.concatenate([result.predicted, result.labels])
        named["labels"] = (labels, len(truth.label_values))
    for what, (numbers, limit) in named.items():
        if numbers.size and (numbers.min() < 0 or numbers.max() >= limit):
            raise ExperimentError(
                f"The result of {job.title} names {what} that {job.dataset} does not have: remove "
                f"its file {job.id}.npz and run it again."
            )
