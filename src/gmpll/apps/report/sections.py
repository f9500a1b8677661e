"""The sections of the page: which facts become which tables and figures, in which order.

What the scores say nothing about has no section.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from gmpll.apps.pages.tables import Table
from gmpll.apps.report import comparisons, figures, layouts, paper, summaries
from gmpll.apps.report.crowd import crowd_table
from gmpll.apps.report.figures import Drawing
from gmpll.apps.report.names import OURS, data_set_name
from gmpll.apps.report.scores_table import METHOD_IN_SETTING, of_experiment
from gmpll.datasets import PAPER_DIFFERENCES, DatasetInfo

_SYMBOLS = {"beta": "β", "r": "r"}


@dataclass(frozen=True)
class Section:
    """A section of the page; ``remarks`` say where the paper's own figures disagree."""

    anchor: str  # its place in the page's address
    title: str
    text: list[str] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def make_sections(scores: pd.DataFrame, infos: Sequence[DatasetInfo]) -> list[Section]:
    """Make the sections that checked scores have something for, with the catalogue's data sets."""
    if scores.empty:
        return [Section("overview", "Overview", ["The table of scores is empty."])]
    made = (
        _overview(scores),
        _data(infos),
        _curves(scores),
        _win_tie_loss(scores),
        _accuracy(scores, "inductive"),
        _accuracy(scores, "transductive"),
        _errors(scores),
        _ranks(scores),
        *(_sensitivity(scores, infos, parameter) for parameter in _SYMBOLS),
        _times(scores),
        _crowd(scores),
        _incomplete(scores),
        _failures(scores),
    )
    return [section for section in made if section.tables]


def _overview(scores: pd.DataFrame) -> Section:
    facts = summaries.overview_facts(scores)
    text = [
        f"{facts['jobs'].sum()} jobs, {facts['failed'].sum()} of them failed. Every figure is "
        "computed from predictions that were saved before they were scored; a figure that rests on "
        "fewer folds than the others of its setting says so."
    ]
    return Section("overview", "Overview", text, tables=[layouts.overview_table(facts)])


def _data(infos: Sequence[DatasetInfo]) -> Section:
    reasons = [
        f"{data_set_name(data_set)}: {reason}"
        for data_set, by_statistic in PAPER_DIFFERENCES.items()
        for reason in by_statistic.values()
    ]
    tables = layouts.data_tables(summaries.data_facts(infos))
    remarks = [*reasons, *paper.REMARKS["data"]]
    return Section("data", "Data sets", tables=tables, remarks=remarks)


def _curves(scores: pd.DataFrame) -> Section:
    controlled = of_experiment(scores, "controlled")
    facts = summaries.fold_summary(controlled, METHOD_IN_SETTING, "inductive")
    numbers = sorted(int(r) for r in facts.loc[facts["measured"] > 0, "r"].dropna().unique())
    return Section(
        "controlled",
        "Controlled sets: accuracy over p",
        ["The counterparts of the paper's three figures over p, one for each r."],
        drawings=[figures.curve_figure(facts, r) for r in numbers],
        tables=[layouts.curve_table(facts, r) for r in numbers],
    )


def _win_tie_loss(scores: pd.DataFrame) -> Section:
    facts = comparisons.win_tie_loss_facts(scores)
    text = [
        "Each configuration of p and r is one comparison over the folds that both methods have; "
        "one with fewer than two common folds is not counted.",
        "Folds share most of their training rows, so the paired t-test that the paper uses finds "
        "too many differences; the corrected resampled t-test allows for that. It takes the number "
        "of folds from the scores.",
    ]
    tests = () if facts.empty else (False, True)
    tables = [layouts.win_tie_loss_table(facts, corrected=corrected) for corrected in tests]
    title, remarks = "Controlled sets: win/tie/loss", paper.REMARKS["win-tie-loss"]
    return Section("win-tie-loss", title, text, tables=tables, remarks=remarks)


def _accuracy(scores: pd.DataFrame, measure: str) -> Section:
    facts = comparisons.accuracy_facts(scores, measure)
    text = {
        "inductive": "The share of unseen rows whose label was predicted.",
        "transductive": "The share of training rows whose label was found among their candidates; "
        "guessing among the candidates (“Random candidate”) is the floor.",
    }[measure]
    return Section(
        measure,
        f"Real-world sets: {measure} accuracy",
        [text],
        tables=[layouts.accuracy_table(facts, measure)] if facts["measured"].any() else [],
        remarks=paper.REMARKS[measure],
    )


def _errors(scores: pd.DataFrame) -> Section:
    tables = []
    if len(facts := comparisons.error_facts(scores, "real-world")):
        tables.append(layouts.error_table(facts))
    if len(facts := comparisons.error_facts(scores, "controlled")):
        tables.append(layouts.error_by_setting_table(facts))
    text = [
        "How far the label is from the true one on average, in the unit of the labels: years in "
        "FG-NET, rings in Abalone. Smaller is better.",
        "Every method gives the label that it finds most likely and is tuned for the share of "
        "right labels; none of them aims at a small distance.",
    ]
    return Section("absolute-error", "Ordered labels: mean absolute error", text, tables=tables)


def _ranks(scores: pd.DataFrame) -> Section:
    text = [
        "Methods are ranked on every data set; a controlled set counts once, with its mean over "
        "all configurations. With few data sets the critical difference is wide: a missing "
        "difference is no proof of equality."
    ]
    section = Section("ranks", "Critical differences", text)
    for experiment, measure in (
        ("controlled", "inductive"),
        ("real-world", "inductive"),
        ("real-world", "transductive"),
    ):
        words, name = f"{experiment} sets, {measure} accuracy", f"ranks-{experiment}-{measure}"
        facts = comparisons.rank_facts(scores, experiment, measure)
        if facts is not None:
            section.drawings.append(figures.rank_figure(facts, name, words.capitalize()))
            section.tables.append(layouts.rank_table(facts, name, f"Average ranks: {words}"))
    return section


def _sensitivity(scores: pd.DataFrame, infos: Sequence[DatasetInfo], parameter: str) -> Section:
    symbol = _SYMBOLS[parameter]
    section = Section(
        f"sensitivity-{parameter}",
        f"Sensitivity to {symbol}",
        remarks=paper.REMARKS[parameter],
    )
    facts = summaries.sensitivity_facts(scores, infos)
    if facts.loc[facts["parameter"] == parameter, "measured"].any():
        section.drawings.append(figures.sensitivity_figure(facts, parameter, symbol))
        section.tables.append(layouts.sensitivity_table(facts, parameter, symbol))
    return section


def _times(scores: pd.DataFrame) -> Section:
    facts = summaries.time_facts(scores)
    section = Section("times", "Running and testing times")
    if facts["measured"].any():
        if (facts["method"] == OURS).any():
            section.tables.append(layouts.time_table(facts))
        section.tables.append(layouts.times_of_methods_table(facts))
    return section


def _crowd(scores: pd.DataFrame) -> Section:
    text = ["Every method is given the same items and votes; only CROWDLAB and gmpll use features."]
    table = crowd_table(scores)
    return Section("crowd", "Votes of annotators", text, tables=[table] if table else [])


def _incomplete(scores: pd.DataFrame) -> Section:
    facts = summaries.incomplete_facts(scores)
    text = [
        f"{len(facts)} figures rest on fewer folds than their setting has, because jobs failed or "
        "left no result. Their means are taken over the folds that are there, and tests use the "
        "folds that both methods have."
    ]
    tables = [] if facts.empty else [layouts.incomplete_table(facts)]
    return Section("incomplete", "Partial results", text, tables=tables)


def _failures(scores: pd.DataFrame) -> Section:
    facts = summaries.failure_facts(scores)
    tables = [] if facts.empty else [layouts.failure_table(facts)]
    return Section("failures", "Failed jobs", tables=tables)
