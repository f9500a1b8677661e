"""From scores to facts: the data sets, means over folds, tests and ranks between methods."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from gmpll.apps.experiments.statistics import (
    RankComparison,
    friedman_nemenyi,
    outcome,
    paired_t_test,
)
from gmpll.apps.report import paper
from gmpll.apps.report.names import BASELINES, DEFAULT, OURS, ordered_data_sets, ordered_methods
from gmpll.apps.report.scores_table import (
    METHOD_IN_SETTING,
    SETTING,
    checked_scores,
    groups_of,
    of_experiment,
    rows_of,
)
from gmpll.datasets import DatasetInfo
from gmpll.methods.gmpll import set_size_rule

#: Level of significance, the paper's.
ALPHA = 0.05
#: Means that differ by less are the same.
_ROUNDING = 1e-12
#: What the ranking shows of every method; it ranks by the first, else by the last.
RANKED_MEASURES = ("inductive", "transductive", "candidate_lift")
_TEST_FACTS = ["pairs", "lead", "p_value", "verdict", "corrected_p_value", "corrected_verdict"]
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
    sizes = {info.name: (info.mean_candidates, info.n_classes) for info in infos}
    in_paper: dict[str, Mapping[str, float]] = {"beta": paper.BETA, "r": paper.R_BEST}
    summary = fold_summary(of_experiment(scores, "sensitivity"), _JOB, "inductive")
    formula, best = list[float](), list[float]()
    for row in rows_of(summary):
        own, n_classes = sizes.get(row.dataset, (None, 0))
        drawn = 1 + row.p * row.r
        size = own if math.isnan(drawn) else drawn
        is_known = row.parameter == "r" and n_classes > 0
        formula.append(set_size_rule(size, n_classes) if is_known and size else math.nan)
        best.append(in_paper.get(row.parameter, {}).get(row.dataset, math.nan))
    return summary.assign(formula=formula, paper_best=best)


def time_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """Running (fit and predict) and testing (predict) seconds of every method and data set."""
    timing = of_experiment(scores, "timing").copy()
    timing["running"] = timing["fit_seconds"] + timing["predict_seconds"]
    running = fold_summary(timing, METHOD_IN_SETTING, "running")
    testing = fold_summary(timing, METHOD_IN_SETTING, "predict_seconds")
    facts = running.rename(columns={"mean": "running_mean", "std": "running_std"})
    facts["testing_mean"], facts["testing_std"] = testing["mean"], testing["std"]
    ours = facts["dataset"].where(facts["method"] == OURS)
    for name, printed in (("running", paper.RUNNING_SECONDS), ("testing", paper.TESTING_SECONDS)):
        facts[f"paper_{name}"] = ours.map(printed).astype(float)
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


def accuracy_facts(scores: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Accuracy on the real-world sets beside the paper's, with tests against GM-PLL.

    A row per data set and method: the compared summary, the paper's figure (``paper_mean``,
    ``paper_std``, ``paper_mark``) and ours minus it (``paper_difference``).
    """
    facts = _compared_summary(of_experiment(scores, "real-world"), measure)
    nothing = paper.PrintedAccuracy(math.nan, math.nan)
    printed = [
        paper.ACCURACY.get(measure, {}).get((row.method, row.dataset), nothing)
        for row in rows_of(facts)
    ]
    for name in ("mean", "std", "mark"):
        facts[f"paper_{name}"] = [getattr(figure, name) for figure in printed]
    facts["paper_difference"] = facts["mean"] - facts["paper_mean"]
    return facts


def error_facts(scores: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Mean absolute errors on the data sets with ordered labels, with tests against GM-PLL.

    A row per setting, method and ``rows`` ("unseen" or "training") that the error is taken over:
    the compared summary, where smaller is better. Empty if no data set has such errors.
    """
    part, parts = of_experiment(scores, experiment), list[pd.DataFrame]()
    for rows, measure in (("unseen", "inductive_mae"), ("training", "transductive_mae")):
        ordered = part.loc[part[measure].notna(), "dataset"]
        facts = _compared_summary(part[part["dataset"].isin(ordered)], measure, sign=-1.0)
        # Full supervision, for one, finds no labels of training rows: it has nothing to show there.
        parts.append(facts[(facts["measured"] > 0) | (facts["failed"] > 0)].assign(rows=rows))
    return _joined(parts)


def crowd_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """Share of right labels found from votes, over the random states.

    A row per data set, method and ``rows`` ("items" with votes or "test part"): the summary, and
    whether the mean is the ``best``.
    """
    part, parts = of_experiment(scores, "crowd"), list[pd.DataFrame]()
    for rows, measure in (("items", "transductive"), ("test part", "inductive")):
        facts = _with_best(fold_summary(part, METHOD_IN_SETTING, measure))
        parts.append(facts[facts["measured"] > 0].assign(rows=rows))
    return _joined(parts)


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    # An empty part has columns of no particular type, which older versions of pandas warn of.
    return pd.concat([p for p in parts if len(p)] or parts[:1], ignore_index=True)


def _compared_summary(scores: pd.DataFrame, measure: str, *, sign: float = 1.0) -> pd.DataFrame:
    """Summarise the folds, find the ``best`` mean of a setting and test GM-PLL against each.

    With the sign -1 smaller is better. GM-PLL against a method: ``pairs`` of folds, mean ``lead``
    of GM-PLL, p-values and verdicts of both tests.
    """
    facts = _with_best(fold_summary(scores, METHOD_IN_SETTING, measure), sign)
    tests = _tests_against_ours(scores, measure, sign=sign)
    return facts.merge(tests, on=METHOD_IN_SETTING, how="left").fillna(
        {"verdict": "", "corrected_verdict": ""}
    )


def _with_best(facts: pd.DataFrame, sign: float = 1.0) -> pd.DataFrame:
    competing = (sign * facts["mean"]).where(~facts["method"].isin(BASELINES))
    largest = competing.groupby([facts[key] for key in SETTING], dropna=False).transform("max")
    return facts.assign(best=competing.notna() & (competing >= largest - _ROUNDING))


def win_tie_loss_facts(scores: pd.DataFrame) -> pd.DataFrame:
    """Count GM-PLL's wins, ties and losses over the controlled configurations.

    A row per data set and compared method: ``win``, ``tie``, ``loss`` by the paired t-test, the
    same with the prefix ``corrected_`` by the corrected resampled t-test, ``configurations``
    compared and ``expected``, and the paper's counts (``paper_win``, ...).
    """
    controlled = of_experiment(scores, "controlled")
    tests = _tests_against_ours(controlled, "inductive")
    counted = [
        f"{prefix}{verdict}" for prefix in ("", "corrected_") for verdict in paper.Counts._fields
    ]
    for name in counted:
        prefix, _, verdict = name.rpartition("_")
        tests[name] = tests[f"{prefix}_verdict" if prefix else "verdict"] == verdict
    facts = tests.groupby(["dataset", "method"], sort=False)[counted].sum().reset_index()
    facts["configurations"] = facts[list(paper.Counts._fields)].sum(axis=1)
    configurations = controlled.drop_duplicates(SETTING).groupby("dataset").size()
    facts["expected"] = facts["dataset"].map(configurations)
    printed = [paper.WIN_TIE_LOSS.get((row.dataset, row.method)) for row in rows_of(facts)]
    for verdict in paper.Counts._fields:
        facts[f"paper_{verdict}"] = [getattr(counts, verdict, math.nan) for counts in printed]
    return facts


def _tests_against_ours(scores: pd.DataFrame, measure: str, *, sign: float = 1.0) -> pd.DataFrame:
    """Test gmpll, else GM-PLL, against every method over the folds that both have."""
    # Folds are numbered from zero, so a run that stopped early still tells how many there are.
    n_folds = 0 if scores.empty else max(scores["fold"].nunique(), int(scores["fold"].max()) + 1)
    rows = []
    for setting, part in groups_of(scores, SETTING):
        done = part[part["status"] == "ok"]
        by_fold = done.pivot_table(index=["seed", "fold"], columns="method", values=measure)
        ours = next((name for name in (DEFAULT, OURS) if name in by_fold), None)
        if ours is None:
            continue
        for method in by_fold.columns.difference([ours, *BASELINES], sort=False):
            pair = sign * by_fold[[ours, method]].dropna()
            row = dict(zip(METHOD_IN_SETTING, (*setting, method), strict=True))
            row |= {"pairs": len(pair), "lead": float((pair[ours] - pair[method]).mean())}
            for prefix, test_share in (("", 0.0), ("corrected_", 1 / max(2, n_folds))):
                test = paired_t_test(pair[ours], pair[method], test_share=test_share)
                # One pair is no comparison, not even a tie.
                verdict = outcome(test, level=ALPHA) if len(pair) > 1 else ""
                row |= {f"{prefix}p_value": test.p_value, f"{prefix}verdict": verdict}
            rows.append(row)
    tests = pd.DataFrame(rows, columns=[*METHOD_IN_SETTING, *_TEST_FACTS])
    # Without a single test the columns have no type, and could not be joined to any.
    return tests.astype({"p": float, "r": float, "lead": float, "p_value": float})


def rank_facts(scores: pd.DataFrame, experiment: str, measure: str) -> RankComparison | None:
    """Rank the methods over the data sets of an experiment.

    A data set of the controlled experiment counts once, with the mean over its configurations:
    they share their rows, so they are no independent blocks. None with fewer than three methods
    or two data sets to rank on.
    """
    matrix = _mean_accuracy(of_experiment(scores, experiment), measure)
    block = _without_gaps(matrix)
    if block.shape[0] < 2 or block.shape[1] < 3:
        return None
    found = friedman_nemenyi(block, level=ALPHA)
    return replace(
        found,
        average_ranks=found.average_ranks.sort_values(kind="stable"),
        left_out_methods=[m for m in matrix.columns if m not in block.columns],
        left_out_data_sets=[d for d in matrix.index if d not in block.index],
    )


def ranking(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank the methods over all data sets, real-world and controlled ones, by unseen rows.

    A row per method, best first: its ``average_rank`` by accuracy (by candidate lift where there
    are no true labels) over so many ``data_sets``, and the mean of every measure over data sets. A
    method that lacks figures on some data set, and the baselines, have no rank.
    """
    scores = checked_scores(scores)
    parts = [of_experiment(scores, experiment) for experiment in ("real-world", "controlled")]
    methods = ordered_methods(pd.concat(parts)["method"])
    by_measure = {
        measure: pd.concat([_mean_accuracy(part, measure, baselines=True) for part in parts])
        for measure in RANKED_MEASURES
    }
    unseen = pd.concat([by_measure["inductive"], by_measure["candidate_lift"]])
    block = _without_gaps(unseen[[name for name in unseen.columns if name not in BASELINES]])
    facts = pd.DataFrame(index=pd.Index(methods, name="method"))
    facts["average_rank"] = block.rank(axis=1, ascending=False).mean().astype(float)
    facts["data_sets"] = len(block)
    for measure, matrix in by_measure.items():
        facts[measure] = matrix.mean().astype(float)
    return facts.sort_values("average_rank", kind="stable").reset_index()


def _without_gaps(matrix: pd.DataFrame) -> pd.DataFrame:
    """Leave out the gappy data sets, or the gappy methods, whichever keeps more figures."""
    return max(matrix.dropna(axis=0), matrix.dropna(axis=1), key=lambda kept: kept.size)


def _mean_accuracy(scores: pd.DataFrame, measure: str, *, baselines: bool = False) -> pd.DataFrame:
    """Data sets by methods; NaN where a method lacks a configuration that others have."""
    summary = fold_summary(scores, METHOD_IN_SETTING, measure).fillna({"p": -1.0, "r": -1.0})
    if not baselines:
        summary = summary[~summary["method"].isin(BASELINES)]
    by_setting = summary.set_index(METHOD_IN_SETTING)["mean"].unstack("method").dropna(how="all")
    if by_setting.empty:
        return by_setting
    gaps = by_setting.isna().groupby(level="dataset").any()
    matrix = by_setting.groupby(level="dataset").mean().mask(gaps).dropna(axis=1, how="all")
    return matrix.loc[ordered_data_sets(matrix.index), ordered_methods(matrix.columns)]
