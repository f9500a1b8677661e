"""The sections of the page: which facts become which tables and figures, in which order.

What the scores say nothing about has no section. Titles and paragraphs stand in ``texts.toml``.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from gmpll.apps.pages.tables import Table
from gmpll.apps.report import facts as found
from gmpll.apps.report import figures, layouts, paper
from gmpll.apps.report.figures import Drawing
from gmpll.apps.report.names import OURS, TEXTS, data_set_name
from gmpll.apps.report.scores_table import METHOD_IN_SETTING, of_experiment
from gmpll.datasets import PAPER_DIFFERENCES, DatasetInfo

_SYMBOLS = {"beta": "β", "r": "r"}
_RANKED = (
    *(("controlled", "inductive"), ("real-world", "inductive"), ("real-world", "transductive")),
    *(("crowd", "transductive"), ("crowd", "inductive")),
)


@dataclass(frozen=True)
class Section:
    """A section of the page; ``remarks`` say where the paper's own figures disagree."""

    anchor: str  # its place in the page's address
    title: str
    text: Sequence[str] = ()
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()
    remarks: Sequence[str] = ()


def make_sections(scores: pd.DataFrame, infos: Sequence[DatasetInfo]) -> list[Section]:
    """Make the sections that checked scores have something for, with the catalogue's data sets."""
    if scores.empty:
        return [Section("overview", "Overview", ["The table of scores is empty."])]
    measures = [*paper.TABLE_NUMBERS, "candidate_lift"]
    ranking, incomplete = found.ranking(scores), found.incomplete_facts(scores)
    real_world, controlled = (found.error_facts(scores, e) for e in ("real-world", "controlled"))
    errors = layouts.error_table(real_world), layouts.error_by_setting_table(controlled)
    made = (
        _overview(scores, ranking),
        _data(scores, infos),
        _section("ranking", [layouts.ranking_table(ranking)] if _headline(ranking) else []),
        _curves(scores),
        _win_tie_loss(scores),
        *(_accuracy(scores, measure) for measure in measures),
        _section("absolute-error", errors),
        _ranks(scores),
        *(_sensitivity(scores, infos, parameter) for parameter in _SYMBOLS),
        _times(scores),
        _section("crowd", [layouts.crowd_table(found.crowd_facts(scores))]),
        _section("incomplete", [layouts.incomplete_table(incomplete)], number=len(incomplete)),
        _section("failures", [layouts.failure_table(found.failure_facts(scores))]),
    )
    return [section for section in made if section.tables]


def _section(
    anchor: str,
    tables: Iterable[Table],
    drawings: Sequence[Drawing] = (),
    remarks: Iterable[str] = (),
    *,
    words: str = "",
    **facts: object,
) -> Section:
    """Make a section with its title and text, those of ``words`` or of the anchor."""
    said = TEXTS["sections"][words or anchor]
    text = [paragraph.format(**facts) for paragraph in said.get("text", ())]
    filled = [table for table in tables if table.rows]
    return Section(anchor, said["title"], text, drawings, filled, list(remarks))


def _overview(scores: pd.DataFrame, ranking: pd.DataFrame) -> Section:
    facts = found.overview_facts(scores)
    jobs, failed = facts["jobs"].sum(), facts["failed"].sum()
    made = _section("overview", [layouts.overview_table(facts)], jobs=jobs, failed=failed)
    return replace(made, text=[*_headline(ranking), *made.text])


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
    remarks += _remarks("data", ran)
    facts = found.data_facts([info for info in infos if info.name in ran])
    return _section("data", [layouts.data_table(facts)], remarks=remarks)


def _remarks(section: str, data_sets: Collection[str]) -> list[str]:
    """Return the remarks that are about one of the data sets, or about none at all."""
    remarks = []
    for sentence in paper.REMARKS.get(section, []):
        named = {name for name, printed in paper.PRINTED_NAMES.items() if printed in sentence}
        if not named or not named.isdisjoint(data_sets):
            remarks.append(sentence)
    return remarks


def _curves(scores: pd.DataFrame) -> Section:
    controlled = of_experiment(scores, "controlled")
    facts = found.fold_summary(controlled, METHOD_IN_SETTING, "inductive")
    numbers = sorted(facts.loc[facts["measured"] > 0, "r"].dropna().astype(int).unique())
    tables = [layouts.curve_table(facts, r) for r in numbers]
    drawings = [figures.curve_figure(facts, r) for r in numbers]
    words = "curves" if facts["p"].nunique() > 1 else ""
    return _section("controlled", tables, drawings, words=words)


def _win_tie_loss(scores: pd.DataFrame) -> Section:
    facts = found.win_tie_loss_facts(scores)
    tests = () if facts.empty else (False, True)
    tables = [layouts.win_tie_loss_table(facts, corrected=corrected) for corrected in tests]
    remarks = paper.REMARKS["win-tie-loss"] if facts["paper_win"].notna().any() else []
    return _section("win-tie-loss", tables, remarks=remarks)


def _accuracy(scores: pd.DataFrame, measure: str) -> Section:
    facts = found.accuracy_facts(scores, measure)
    tables = [layouts.accuracy_table(facts, measure)] if facts["measured"].any() else []
    made = _section(measure, tables, remarks=_remarks(measure, set(facts["dataset"])))
    if facts["paper_mean"].notna().any():
        return made
    return replace(made, title=made.title.removeprefix("Real-world sets: ").capitalize())


def _ranks(scores: pd.DataFrame) -> Section:
    drawings, tables = [], []
    for experiment, measure in _RANKED:
        words, name = f"{experiment} sets, {measure} accuracy", f"ranks-{experiment}-{measure}"
        facts = found.rank_facts(scores, experiment, measure)
        if facts is not None:
            drawings.append(figures.rank_figure(facts, name, words.capitalize()))
            tables.append(layouts.rank_table(facts, name, words))
    return _section("ranks", tables, drawings)


def _sensitivity(scores: pd.DataFrame, infos: Sequence[DatasetInfo], parameter: str) -> Section:
    symbol, anchor = _SYMBOLS[parameter], f"sensitivity-{parameter}"
    facts = found.sensitivity_facts(scores, infos)
    part = facts[facts["parameter"] == parameter]
    if not part["measured"].any():
        return _section(anchor, [])
    is_varied = part["value"].nunique() > 1
    drawings = [figures.sensitivity_figure(facts, parameter, symbol)] if is_varied else []
    tables = [layouts.sensitivity_table(part, parameter, symbol)]
    return _section(anchor, tables, drawings, _remarks(parameter, set(facts["dataset"])))


def _times(scores: pd.DataFrame) -> Section:
    facts = found.time_facts(scores)
    ours = layouts.time_table(facts[facts["method"] == OURS])
    tables = [ours, layouts.times_of_methods_table(facts)]
    return _section("times", tables if facts["measured"].any() else [])
