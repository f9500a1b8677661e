"""The sections of the page: which facts become which tables and figures, in which order.

What the scores say nothing about has no section.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
#: What real-world sets are measured by -> title and explanation.
_MEASURES = {
    "inductive": (
        "Real-world sets: inductive accuracy",
        "The share of unseen rows whose label was predicted.",
    ),
    "transductive": (
        "Real-world sets: transductive accuracy",
        "The share of training rows whose label was found among their candidates; guessing among "
        "the candidates (“Random candidate”) is the floor.",
    ),
    "candidate_lift": (
        "Sets without true labels: candidate lift",
        "How much oftener than by chance the predicted label lies in the candidate set of an "
        "unseen row: 1 is always, 0 is chance. It ranks methods without true labels; it is no "
        "accuracy.",
    ),
}


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
        _data(scores, infos),
        _ranking(scores),
        _curves(scores),
        _win_tie_loss(scores),
        *(_accuracy(scores, measure) for measure in _MEASURES),
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
        *_headline(comparisons.ranking(scores)),
        f"{facts['jobs'].sum()} jobs, {facts['failed'].sum()} of them failed. Every figure is "
        "computed from predictions that were saved before they were scored; a figure that rests on "
        "fewer folds than the others of its setting says so.",
    ]
    return Section("overview", "Overview", text, tables=[layouts.overview_table(facts)])


def _ranking(scores: pd.DataFrame) -> Section:
    facts = comparisons.ranking(scores)
    tables = [layouts.ranking_table(facts)] if _headline(facts) else []
    return Section("ranking", "Ranking", tables=tables)


def _headline(ranking: pd.DataFrame) -> list[str]:
    """Say who is best, if there is anything to compare."""
    ranked = ranking[ranking["average_rank"].notna()]
    if len(ranked) < 2:
        return []
    smallest = ranked["average_rank"].min()
    best = ranked.loc[ranked["average_rank"] <= smallest + 1e-9, "method"]
    verb = "has" if len(best) == 1 else "share"
    data_sets = layouts.counted(ranked["data_sets"].iloc[0], "data set")
    return [
        f"{' and '.join(best)} {verb} the best average rank of {len(ranked)} methods on unseen "
        f"rows: {smallest:.2f} over {data_sets}."
    ]


def _data(scores: pd.DataFrame, infos: Sequence[DatasetInfo]) -> Section:
    ran = set(scores["dataset"])
    remarks = [
        f"{data_set_name(data_set)}: {reason}"
        for data_set, by_statistic in PAPER_DIFFERENCES.items()
        for reason in by_statistic.values()
        if data_set in ran
    ]
    remarks += [text for text in paper.REMARKS["data"] if _speaks_of(text, ran)]
    facts = summaries.data_facts([info for info in infos if info.name in ran])
    tables = [] if facts.empty else [layouts.data_table(facts)]
    return Section("data", "Data sets", tables=tables, remarks=remarks)


def _speaks_of(sentence: str, data_sets: Collection[str]) -> bool:
    """Whether a remark is about one of the data sets, or about none at all."""
    named = {name for name, printed in paper.PRINTED_NAMES.items() if printed in sentence}
    return not named or not named.isdisjoint(data_sets)


def _curves(scores: pd.DataFrame) -> Section:
    controlled = of_experiment(scores, "controlled")
    facts = summaries.fold_summary(controlled, METHOD_IN_SETTING, "inductive")
    numbers = sorted(int(r) for r in facts.loc[facts["measured"] > 0, "r"].dropna().unique())
    return Section(
        "controlled",
        "Controlled sets: accuracy over p" if facts["p"].nunique() > 1 else "Controlled sets",
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
    title = "Controlled sets: win/tie/loss"
    remarks = paper.REMARKS["win-tie-loss"] if facts["paper_win"].notna().any() else []
    return Section("win-tie-loss", title, text, tables=tables, remarks=remarks)


def _accuracy(scores: pd.DataFrame, measure: str) -> Section:
    facts = comparisons.accuracy_facts(scores, measure)
    title, text = _MEASURES[measure]
    if facts["paper_mean"].isna().all():
        title = title.removeprefix("Real-world sets: ").capitalize()
    ran = set(facts["dataset"])
    return Section(
        measure,
        title,
        [text],
        tables=[layouts.accuracy_table(facts, measure)] if facts["measured"].any() else [],
        remarks=[remark for remark in paper.REMARKS.get(measure, []) if _speaks_of(remark, ran)],
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
        ("crowd", "transductive"),
        ("crowd", "inductive"),
    ):
        words, name = f"{experiment} sets, {measure} accuracy", f"ranks-{experiment}-{measure}"
        facts = comparisons.rank_facts(scores, experiment, measure)
        if facts is not None:
            section.drawings.append(figures.rank_figure(facts, name, words.capitalize()))
            section.tables.append(layouts.rank_table(facts, name, f"Average ranks: {words}"))
    return section


def _sensitivity(scores: pd.DataFrame, infos: Sequence[DatasetInfo], parameter: str) -> Section:
    symbol = _SYMBOLS[parameter]
    section = Section(f"sensitivity-{parameter}", f"Sensitivity to {symbol}")
    facts = summaries.sensitivity_facts(scores, infos)
    if facts.loc[facts["parameter"] == parameter, "measured"].any():
        ran = set(facts["dataset"])
        section.remarks.extend(r for r in paper.REMARKS[parameter] if _speaks_of(r, ran))
        if facts.loc[facts["parameter"] == parameter, "value"].nunique() > 1:
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
    text = [
        "Every method is given the same items and votes; CROWDLAB and the methods that learn from "
        "candidate sets use features."
    ]
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
