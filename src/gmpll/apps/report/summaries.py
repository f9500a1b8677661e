"""Facts about the data sets, and facts over folds: means, spreads and how many folds there are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from gmpll.apps.report import paper
from gmpll.apps.report.names import BASELINES, OURS
from gmpll.apps.report.scores_table import METHOD_IN_SETTING, SETTING, of_experiment, rows_of
from gmpll.datasets import DatasetInfo
from gmpll.methods.gmpll import set_size_rule

_STATISTICS = ("n_samples", "n_features", "n_classes", "mean_candidates")
_JOB = [*METHOD_IN_SETTING, "parameter", "value"]


def data_facts(infos: Sequence[DatasetInfo]) -> pd.DataFrame:
    """Put the statistics of data sets beside the printed ones (prefix ``paper_``)."""
    rows = []
    for info in infos:
        row: dict[str, Any] = {"dataset": info.name, "kind": info.kind}
        for statistic in _STATISTICS:
            row[statistic] = getattr(info, statistic)
            row[f"paper_{statistic}"] = getattr(info.paper, statistic, None)
        rows.append(row | {"task": paper.TASKS.get(info.name, "")})
    numbers = [f"{prefix}{statistic}" for statistic in _STATISTICS for prefix in ("", "paper_")]
    return pd.DataFrame(rows, columns=["dataset", "kind", *numbers, "task"]).astype(
        dict.fromkeys(numbers, float)
    )


def fold_summary(scores: pd.DataFrame, keys: Sequence[str], measure: str) -> pd.DataFrame:
    """Summarise a measure over the folds of every group of one experiment.

    The keys contain the setting. A row per group has ``mean`` and ``std`` (n - 1) of the measure
    over the ``measured`` jobs, ``done`` jobs that ended well, ``failed`` jobs, and ``expected``,
    the number of folds that any method has in the same setting.
    """
    done = scores["status"] == "ok"
    marked = scores.assign(done=done, failed=~done, figure=scores[measure].where(done))
    summary = marked.groupby(list(keys), dropna=False).agg(
        done=("done", "sum"),
        failed=("failed", "sum"),
        mean=("figure", "mean"),
        std=("figure", "std"),
        measured=("figure", "count"),
    )
    folds = scores.drop_duplicates([*SETTING, "seed", "fold"])
    expected = folds.groupby(SETTING, dropna=False).size().rename("expected").reset_index()
    return summary.reset_index().merge(expected, on=SETTING, how="left")


def sensitivity_facts(scores: pd.DataFrame, infos: Sequence[DatasetInfo]) -> pd.DataFrame:
    """Inductive accuracy of every value of every varied parameter.

    Beside it stand ``formula`` (for r: what the paper's formula gives) and ``paper_best`` (the
    value that the paper found best); NaN where there is none.
    """
    known = {info.name: info for info in infos}
    best_in_paper: dict[str, Mapping[str, float]] = {"beta": paper.BETA, "r": paper.R_BEST}
    summary = fold_summary(of_experiment(scores, "sensitivity"), _JOB, "inductive")
    summary["formula"] = [_r_by_formula(row, known.get(row.dataset)) for row in rows_of(summary)]
    summary["paper_best"] = [
        best_in_paper.get(row.parameter, {}).get(row.dataset) for row in rows_of(summary)
    ]
    return summary.astype({"formula": float, "paper_best": float})


def _r_by_formula(row: Any, info: DatasetInfo | None) -> int | None:
    if row.parameter != "r" or info is None:
        return None
    is_controlled = not math.isnan(row.p) and not math.isnan(row.r)
    mean_size = 1 + row.p * row.r if is_controlled else info.mean_candidates
    return None if mean_size is None else set_size_rule(mean_size, info.n_classes)


def time_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """Running (fit and predict) and testing (predict) seconds of every method and data set."""
    timing = of_experiment(scores, "timing").copy()
    timing["running"] = timing["fit_seconds"] + timing["predict_seconds"]
    running = fold_summary(timing, METHOD_IN_SETTING, "running")
    testing = fold_summary(timing, METHOD_IN_SETTING, "predict_seconds")
    facts = running.rename(columns={"mean": "running_mean", "std": "running_std"})
    facts["testing_mean"], facts["testing_std"] = testing["mean"], testing["std"]
    ours = facts["method"] == OURS
    for name, printed in (("running", paper.RUNNING_SECONDS), ("testing", paper.TESTING_SECONDS)):
        facts[f"paper_{name}"] = facts["dataset"].map(printed).astype(float).where(ours)
    return facts


def overview_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """Count data sets, methods, jobs and failures of every experiment."""
    done = scores["status"] == "ok"
    by_experiment = scores.assign(done=done, failed=~done).groupby("experiment", sort=False)
    return by_experiment.agg(
        datasets=("dataset", "nunique"),
        methods=("method", lambda found: len(set(found) - set(BASELINES))),
        baselines=("method", lambda found: len(set(found) & set(BASELINES))),
        seeds=("seed", "nunique"),
        folds=("fold", "nunique"),
        jobs=("done", "size"),
        done=("done", "sum"),
        failed=("failed", "sum"),
    ).reset_index()


def incomplete_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """List the groups that lack folds, because jobs failed or have no result."""
    parts = [
        fold_summary(of_experiment(scores, name), _JOB, "inductive").assign(experiment=name)
        for name in scores["experiment"].unique()
    ]
    columns = ["experiment", *_JOB, "done", "failed", "expected"]
    facts = pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)
    facts["missing"] = facts["expected"] - facts["done"] - facts["failed"]
    return facts[facts["done"] < facts["expected"]]


def failure_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """List the failed jobs with their error."""
    columns = ["experiment", *_JOB, "seed", "fold", "error"]
    return scores.loc[scores["status"] != "ok", columns].reset_index(drop=True)
