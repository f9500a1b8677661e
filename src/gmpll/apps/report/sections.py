"""The sections of the page: which facts become which tables and figures, in which order.

A section whose experiment is not in the scores consists of one sentence that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from gmpll.apps.pages.tables import Table
from gmpll.apps.report import comparisons, figures, layouts, summaries
from gmpll.apps.report.crowd import crowd_table
from gmpll.apps.report.figures import Drawing
from gmpll.apps.report.names import OURS, data_set_name
from gmpll.apps.report.paper_checks import paper_contradictions
from gmpll.apps.report.scores_table import METHOD_IN_SETTING, of_experiment
from gmpll.datasets import PAPER_DIFFERENCES, DatasetInfo

_SYMBOLS = {"beta": "β", "r": "r"}
_NO_COMPARISON = "The scores hold no folds that gmpll or GM-PLL and another method both have."


@dataclass(frozen=True)
class Section:
    """A section of the page; ``remarks`` say where the paper's own figures disagree."""

    anchor: str  # its place in the page's address
    title: str
    text: list[str] = field(default_factory=list)
    absent: str = ""  # why it is empty
    drawings: list[Drawing] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def make_sections(scores: pd.DataFrame, infos: Sequence[DatasetInfo]) -> list[Section]:
    """Make all sections from checked scores and the catalogue of data sets."""
    remarks = paper_contradictions()
    return [
        _overview(scores),
        _data(infos, remarks["real-world data"]),
        _curves(scores),
        _win_tie_loss(scores, remarks["win/tie/loss"]),
        _accuracy(scores, "inductive", remarks["inductive"]),
        _accuracy(scores, "transductive", remarks["transductive"]),
        _errors(scores),
        _ranks(scores),
        _sensitivity(scores, infos, "beta", remarks["beta"]),
        _sensitivity(scores, infos, "r", remarks["r"]),
        _times(scores),
        *_crowd(scores),
        _incomplete(scores),
        _failures(scores),
    ]


def _overview(scores: pd.DataFrame) -> Section:
    if scores.empty:
        return Section("overview", "Overview", absent="The table of scores is empty.")
    facts = summaries.overview_facts(scores)
    text = [
        f"{facts['jobs'].sum()} jobs, {facts['failed'].sum()} of them failed. Every figure is "
        "computed from predictions that were saved before they were scored; a figure that rests on "
        "fewer folds than the others of its setting says so."
    ]
    return Section("overview", "Overview", text, tables=[layouts.overview_table(facts)])


def _data(infos: Sequence[DatasetInfo], remarks: list[str]) -> Section:
    reasons = [
        f"{data_set_name(data_set)}: {reason}"
        for data_set, by_statistic in PAPER_DIFFERENCES.items()
        for reason in by_statistic.values()
    ]
    tables = layouts.data_tables(summaries.data_facts(infos))
    return Section("data", "Data sets", tables=tables, remarks=[*reasons, *remarks])


def _curves(scores: pd.DataFrame) -> Section:
    title = "Controlled sets: accuracy over p"
    controlled = of_experiment(scores, "controlled")
    facts = summaries.fold_summary(controlled, METHOD_IN_SETTING, "inductive")
    numbers = sorted(int(r) for r in facts.loc[facts["measured"] > 0, "r"].dropna().unique())
    if not numbers:
        return Section("controlled", title, absent=_absent(scores, "controlled"))
    return Section(
        "controlled",
        title,
        ["The counterparts of the paper's three figures over p, one for each r."],
        drawings=[figures.curve_figure(facts, r) for r in numbers],
        tables=[layouts.curve_table(facts, r) for r in numbers],
    )


def _win_tie_loss(scores: pd.DataFrame, remarks: list[str]) -> Section:
    title = "Controlled sets: win/tie/loss"
    facts = comparisons.win_tie_loss_facts(scores)
    if facts.empty:
        absent = _absent(scores, "controlled", otherwise=_NO_COMPARISON)
        return Section("win-tie-loss", title, absent=absent)
    text = [
        "Each configuration of p and r is one comparison over the folds that both methods have; "
        "one with fewer than two common folds is not counted.",
        "Folds share most of their training rows, so the paired t-test that the paper uses finds "
        "too many differences; the corrected resampled t-test allows for that. It takes the number "
        "of folds from the scores.",
    ]
    tables = [layouts.win_tie_loss_table(facts, corrected=flag) for flag in (False, True)]
    return Section("win-tie-loss", title, text, tables=tables, remarks=remarks)


def _accuracy(scores: pd.DataFrame, measure: str, remarks: list[str]) -> Section:
    title = f"Real-world sets: {measure} accuracy"
    facts = comparisons.accuracy_facts(scores, measure)
    if not facts["measured"].any():
        otherwise = f"No job of the real-world experiment has {measure} accuracy."
        absent = _absent(scores, "real-world", otherwise=otherwise)
        return Section(measure, title, absent=absent)
    text = {
        "inductive": "The share of unseen rows whose label was predicted.",
        "transductive": "The share of training rows whose label was found among their candidates; "
        "guessing among the candidates (“Random candidate”) is the floor.",
    }
    table = layouts.accuracy_table(facts, measure)
    return Section(measure, title, [text[measure]], tables=[table], remarks=remarks)


def _errors(scores: pd.DataFrame) -> Section:
    anchor, title = "absolute-error", "Ordered labels: mean absolute error"
    tables = []
    if len(facts := comparisons.error_facts(scores, "real-world")):
        tables.append(layouts.error_table(facts))
    if len(facts := comparisons.error_facts(scores, "controlled")):
        tables.append(layouts.error_by_setting_table(facts))
    if not tables:
        absent = "The scores hold no mean absolute error: no data set in them has ordered labels."
        return Section(anchor, title, absent=absent)
    text = [
        "How far the label is from the true one on average, in the unit of the labels: years in "
        "FG-NET, rings in Abalone. Smaller is better.",
        "Every method gives the label that it finds most likely and is tuned for the share of "
        "right labels; none of them aims at a small distance.",
    ]
    return Section(anchor, title, text, tables=tables)


def _ranks(scores: pd.DataFrame) -> Section:
    title = "Critical differences"
    drawings, tables, missing = [], [], []
    for experiment, measure in (
        ("controlled", "inductive"),
        ("real-world", "inductive"),
        ("real-world", "transductive"),
    ):
        words, name = f"{experiment} sets, {measure} accuracy", f"ranks-{experiment}-{measure}"
        facts = comparisons.rank_facts(scores, experiment, measure)
        if facts is None:
            missing.append(words)
            continue
        drawings.append(figures.rank_figure(facts, name, words.capitalize()))
        tables.append(layouts.rank_table(facts, name, f"Average ranks: {words}"))
    too_few = "Ranks need three methods with figures on the same two data sets at least"
    if not drawings:
        return Section("ranks", title, absent=f"{too_few}; the scores hold fewer.")
    text = [
        "Methods are ranked on every data set; a controlled set counts once, with its mean over "
        "all configurations. With few data sets the critical difference is wide: a missing "
        "difference is no proof of equality."
    ]
    if missing:
        text.append(f"{too_few}; left out for that: {'; '.join(missing)}.")
    return Section("ranks", title, text, drawings=drawings, tables=tables)


def _sensitivity(
    scores: pd.DataFrame, infos: Sequence[DatasetInfo], parameter: str, remarks: list[str]
) -> Section:
    symbol = _SYMBOLS[parameter]
    anchor, title = f"sensitivity-{parameter}", f"Sensitivity to {symbol}"
    facts = summaries.sensitivity_facts(scores, infos)
    if not facts.loc[facts["parameter"] == parameter, "measured"].any():
        otherwise = f"The sensitivity experiment did not vary {symbol}."
        return Section(anchor, title, absent=_absent(scores, "sensitivity", otherwise=otherwise))
    return Section(
        anchor,
        title,
        drawings=[figures.sensitivity_figure(facts, parameter, symbol)],
        tables=[layouts.sensitivity_table(facts, parameter, symbol)],
        remarks=remarks,
    )


def _times(scores: pd.DataFrame) -> Section:
    title = "Running and testing times"
    facts = summaries.time_facts(scores)
    if not facts["measured"].any():
        return Section("times", title, absent=_absent(scores, "timing"))
    ours = [layouts.time_table(facts)] if (facts["method"] == OURS).any() else []
    return Section("times", title, tables=[*ours, layouts.times_of_methods_table(facts)])


def _crowd(scores: pd.DataFrame) -> list[Section]:
    """The paper has no such experiment: a report without it does not mention it."""
    table = crowd_table(scores)
    text = ["Every method is given the same items and votes; only CROWDLAB and gmpll use features."]
    return [Section("crowd", "Votes of annotators", text, tables=[table])] if table else []


def _incomplete(scores: pd.DataFrame) -> Section:
    facts = summaries.incomplete_facts(scores)
    if facts.empty:
        absent = "Every method has all the folds that others have in the same setting."
        return Section("incomplete", "Partial results", absent=absent)
    text = [
        f"{len(facts)} figures rest on fewer folds than their setting has, because jobs failed or "
        "left no result. Their means are taken over the folds that are there, and tests use the "
        "folds that both methods have."
    ]
    return Section("incomplete", "Partial results", text, tables=[layouts.incomplete_table(facts)])


def _failures(scores: pd.DataFrame) -> Section:
    facts = summaries.failure_facts(scores)
    if facts.empty:
        return Section("failures", "Failed jobs", absent="No job failed.")
    return Section("failures", "Failed jobs", tables=[layouts.failure_table(facts)])


def _absent(scores: pd.DataFrame, experiment: str, *, otherwise: str = "") -> str:
    if of_experiment(scores, experiment).empty:
        return f"The scores hold no {experiment} experiment, so this section is left out."
    return otherwise or f"No job of the {experiment} experiment gave a figure."
