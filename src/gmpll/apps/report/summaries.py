"""Facts over folds: means, spreads and how many of the folds there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmpll.apps.report import paper
from gmpll.apps.report.frames import rows_of
from gmpll.apps.report.names import OURS, is_baseline, printed_method
from gmpll.apps.report.rules import candidates_by_formula
from gmpll.apps.report.scores_table import SETTING, of_experiment, succeeded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

__all__ = [
    "curve_facts",
    "failure_facts",
    "fold_summary",
    "incomplete_facts",
    "overview_facts",
    "sensitivity_facts",
    "time_facts",
]


def fold_summary(scores: pd.DataFrame, keys: Sequence[str], measure: str) -> pd.DataFrame:
    """Summarise a measure over the folds of every group.

    Parameters
    ----------
    scores : DataFrame
        Checked scores of one experiment.
    keys : sequence of str
        Columns that name a group. They contain the setting (data set, p, r).
    measure : str
        The column to be summarised.

    Returns
    -------
    DataFrame
        A row per group: the keys, ``mean`` and ``std`` (n - 1) of the measure over the
        ``measured`` jobs, ``done`` jobs that ended well, ``failed`` jobs, and ``expected``, the
        number of folds that any method has in the same setting.
    """
    keys = list(keys)
    if scores.empty:  # grouping nothing would lose the keys
        figures = ("done", "failed", "mean", "std", "measured", "expected")
        return scores[keys].assign(**dict.fromkeys(figures, 0.0))
    good = succeeded(scores)
    values = good.groupby(keys, dropna=False)[measure].agg(["mean", "std", "count"])
    groups = scores.groupby(keys, dropna=False)["status"]
    counts = groups.agg(
        done=lambda status: int((status == "ok").sum()),
        failed=lambda status: int((status != "ok").sum()),
    )
    summary = counts.join(values).reset_index().rename(columns={"count": "measured"})
    summary["measured"] = summary["measured"].fillna(0).astype(int)
    folds = scores.drop_duplicates([*SETTING, "seed", "fold"])
    expected = folds.groupby(SETTING, dropna=False).size().rename("expected").reset_index()
    return summary.merge(expected, on=SETTING, how="left")


def curve_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """Inductive accuracy on the controlled sets over p, for every r and method."""
    controlled = of_experiment(scores, "controlled")
    return fold_summary(controlled, [*SETTING, "method"], "inductive")


def sensitivity_facts(
    scores: pd.DataFrame, shapes: Mapping[str, tuple[int, float | None]]
) -> pd.DataFrame:
    """Inductive accuracy of every value of every varied parameter.

    Parameters
    ----------
    scores : DataFrame
        Checked scores.
    shapes : mapping of str to (int, float or None)
        Number of labels and mean number of candidates of every known data set.

    Returns
    -------
    DataFrame
        The fold summary with ``formula`` (for r: what the paper's formula gives) and
        ``paper_best`` (the value that the paper found best); NaN where there is none.
    """
    keys = [*SETTING, "method", "parameter", "value"]
    summary = fold_summary(of_experiment(scores, "sensitivity"), keys, "inductive")
    best_in_paper: dict[str, Mapping[str, float]] = {"beta": paper.BETA, "r": paper.R_BEST}
    summary["formula"] = [
        _r_by_formula(row.dataset, row.p, row.r, shapes) if row.parameter == "r" else None
        for row in rows_of(summary)
    ]
    summary["paper_best"] = [
        best_in_paper.get(row.parameter, {}).get(row.dataset) for row in rows_of(summary)
    ]
    return summary.astype({"formula": float, "paper_best": float})


def _r_by_formula(
    data_set: str, p: float, r: float, shapes: Mapping[str, tuple[int, float | None]]
) -> int | None:
    n_classes, mean_candidates = shapes.get(data_set, (0, None))
    is_controlled = p == p and r == r  # NaN is not equal to itself
    if is_controlled:
        mean_candidates = 1 + p * r
    if mean_candidates is None or n_classes < 2:
        return None
    return candidates_by_formula(mean_candidates, n_classes)


def time_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """Running (fit and predict) and testing (predict) seconds of every method and data set."""
    timing = of_experiment(scores, "timing").copy()
    timing["running"] = timing["fit_seconds"] + timing["predict_seconds"]
    keys = [*SETTING, "method"]
    running = fold_summary(timing, keys, "running")
    testing = fold_summary(timing, keys, "predict_seconds")
    facts = running.rename(columns={"mean": "running_mean", "std": "running_std"})
    facts["testing_mean"], facts["testing_std"] = testing["mean"], testing["std"]
    ours = facts["method"].map(printed_method) == OURS
    for name, printed in (("running", paper.RUNNING_SECONDS), ("testing", paper.TESTING_SECONDS)):
        facts[f"paper_{name}"] = facts["dataset"].map(printed).astype(float).where(ours)
    return facts


def overview_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """Count data sets, methods, jobs and failures of every experiment."""
    import pandas as pd

    rows = []
    for experiment, part in scores.groupby("experiment", sort=False):
        methods = [method for method in part["method"].unique() if not is_baseline(method)]
        rows.append(
            {
                "experiment": experiment,
                "datasets": part["dataset"].nunique(),
                "methods": len(methods),
                "baselines": part["method"].nunique() - len(methods),
                "seeds": part["seed"].nunique(),
                "folds": part["fold"].nunique(),
                "jobs": len(part),
                "done": int((part["status"] == "ok").sum()),
                "failed": int((part["status"] != "ok").sum()),
            }
        )
    return pd.DataFrame(rows)


def incomplete_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """List the groups that lack folds, because jobs failed or have no result."""
    import pandas as pd

    keys = [*SETTING, "method", "parameter", "value"]
    parts = []
    for experiment, part in scores.groupby("experiment", sort=False):
        summary = fold_summary(part, keys, "inductive")
        summary.insert(0, "experiment", experiment)
        parts.append(summary[summary["done"] < summary["expected"]])
    columns = ["experiment", *keys, "done", "failed", "expected"]
    if not parts:
        return pd.DataFrame(columns=columns)
    facts = pd.concat(parts, ignore_index=True)[columns]
    facts["missing"] = facts["expected"] - facts["done"] - facts["failed"]
    return facts


def failure_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """List the failed jobs with their error."""
    columns = ["experiment", *SETTING, "method", "parameter", "value", "seed", "fold", "error"]
    return scores.loc[scores["status"] != "ok", columns].reset_index(drop=True)
