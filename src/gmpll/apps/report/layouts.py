"""From facts to laid-out tables, one function per table."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from gmpll.apps.experiments.statistics import RankComparison
from gmpll.apps.pages.tables import MISSING, Cell, Row, Table, count, difference, figure, number
from gmpll.apps.report import paper
from gmpll.apps.report.facts import RANKED_MEASURES
from gmpll.apps.report.names import (
    BASELINES,
    DEFAULT,
    OURS,
    TEXTS,
    data_set_name,
    ordered_data_sets,
    ordered_methods,
)
from gmpll.apps.report.scores_table import groups_of, rows_of

_MARKS = {"win": "•", "loss": "∘"}
_NOTES = TEXTS["notes"]


def _marks_explained(facts: pd.DataFrame) -> str:
    """Explain the marks where there are any."""
    return _NOTES["marks" if facts["verdict"].isin(list(_MARKS)).any() else "best"]


def setting_name(data_set: str, p: float, r: float, method: str = OURS) -> str:
    """Name a setting, and a method other than GM-PLL, as briefly as it is unambiguous."""
    name = data_set_name(data_set)
    if not math.isnan(p):
        name += f" (p = {p:g}, r = {r:g})"
    return name if method == OURS else f"{name}, {method}"


def in_order(facts: pd.DataFrame) -> pd.DataFrame:
    """Sort facts by data set, and leave those of a data set in their order."""
    place = ordered_data_sets(facts["dataset"]).index
    return facts.sort_values("dataset", key=lambda names: names.map(place), kind="stable")


def _table(
    name: str,
    header: list[str],
    rows: Iterable[Row | Iterable[str]],
    facts: pd.DataFrame,
    notes: Sequence[str] = (),
    *,
    kind: str = "",
    is_text: bool = False,
    is_long: bool = False,
    **words: object,
) -> Table:
    """Give a table its title, that of its name or of its kind, with the words filled in."""
    title = TEXTS["titles"][kind or name].format(**words)
    laid = [row if isinstance(row, Row) else Row([*map(Cell, row)]) for row in rows]
    return Table(name, title, header, laid, facts, list(notes), is_text, is_long)


def overview_table(facts: pd.DataFrame) -> Table:
    """Lay out what was run."""
    header = ["Experiment", "Data sets", *(name.capitalize() for name in facts.columns[2:])]
    rows = [(row.experiment, *map(count, row[2:])) for row in rows_of(facts)]
    return _table("overview", header, rows, facts)


def counted(number: float, thing: str) -> str:
    """Say how many there are, in the singular where there is one."""
    return f"{count(number)} {thing}{'' if number == 1 else 's'}"


def ranking_table(facts: pd.DataFrame) -> Table:
    """Lay out the headline: methods by average rank, with their means over data sets."""
    titles = {name: TEXTS["titles"][name].format(where="") for name in RANKED_MEASURES}
    shown = {name: titles[name] for name in titles if facts[name].notna().any()}
    best = {name: facts.loc[facts["average_rank"].notna(), name].max() for name in shown}
    rows, was_ranked = list[Row](), False
    for row in rows_of(facts):
        is_ranked = not math.isnan(row.average_rank)
        cells = [Cell(row.method), Cell(number(row.average_rank, 2))]
        for name in shown:
            value = getattr(row, name)
            cells.append(Cell(number(value), strong=is_ranked and value >= best[name]))
        rows.append(Row(cells, is_apart=was_ranked and not is_ranked))
        was_ranked = is_ranked
    sets = counted(facts["data_sets"].iloc[0], "data set")
    header = ["Method", "Average rank", *shown.values()]
    return _table("ranking", header, rows, facts, [_NOTES["ranking"]], sets=sets)


def data_table(facts: pd.DataFrame) -> Table:
    """Lay out the data sets that ran, with what the paper prints where it differs."""
    columns = {"n_samples": "Rows", "n_features": "Features", "n_classes": "Labels"}
    if facts["mean_candidates"].notna().any():
        columns["mean_candidates"] = "Mean candidates"
    ordered, rows = in_order(facts), list[Row]()
    for row in rows_of(ordered):
        cells = [Cell(data_set_name(row.dataset), detail=row.task)]
        for statistic in columns:
            shown = partial(number, decimals=2) if statistic == "mean_candidates" else count
            ours, printed = (
                shown(getattr(row, statistic)),
                shown(getattr(row, f"paper_{statistic}")),
            )
            cells.append(Cell(ours, detail=f"paper {printed}" * (printed not in (MISSING, ours))))
        rows.append(Row(cells))
    differs = any(cell.detail for row in rows for cell in row.cells[1:])
    notes = [_NOTES["paper_below"]] if differs else []
    if facts["mean_candidates"].isna().any():
        notes.append(_NOTES["plain_labels"])
    header = ["Data set", *columns.values()]
    return _table("data", header, rows, ordered, notes)


def curve_table(facts: pd.DataFrame, r: int) -> Table:
    """Lay out the accuracies behind the figure of one r."""
    part, name_of = facts[facts["r"] == r], "{0}, p = {1:g}".format
    words: dict[str, Any] = {"apart": True, "kind": "curves", "r": r}
    return _table_by_setting(f"curves-r{r}", part, ["p"], name_of, _summary_cell, **words)


def _table_by_setting(
    name: str,
    facts: pd.DataFrame,
    keys: Sequence[str],
    name_of: Callable[..., str],
    cell_of: Callable[[Any], Cell],
    notes: Sequence[str] = (),
    *,
    apart: bool = False,
    is_long: bool = True,
    **words: Any,
) -> Table:
    """Lay out a row per data set and keys, and a cell per method; what is not there has a dash."""
    methods, rows, above = ordered_methods(facts["method"]), list[Row](), None
    for (data_set, *key), group in groups_of(in_order(facts), ["dataset", *keys]):
        cells = {row.method: cell_of(row) for row in rows_of(group)}
        found = [cells.get(method, Cell(MISSING)) for method in methods]
        is_apart = apart and above not in (None, data_set)
        rows.append(Row([Cell(name_of(data_set_name(data_set), *key)), *found], is_apart))
        above = data_set
    notes = [*notes, _NOTES["spread"]]
    return _table(name, ["Data set", *methods], rows, facts, notes, is_long=is_long, **words)


def _summary_cell(row: Any, decimals: int = 3, *, unit: str = "folds", **more: Any) -> Cell:
    missing = "failed" if row.failed else MISSING
    text = figure(row.mean, row.std, decimals) if row.measured else missing
    return Cell(text, note=_fold_note(row, unit), **more)


def _fold_note(row: Any, unit: str = "folds") -> str:
    return "" if row.done >= row.expected else f"{row.done} of {row.expected} {unit}"


def _compared_cell(row: Any, decimals: int = 3) -> Cell:
    mark = _MARKS.get(row.verdict, "")
    if mark and row.corrected_verdict != row.verdict:
        mark = f"({mark})"
    return _summary_cell(row, decimals, strong=bool(row.best), mark=mark)


_error_cell = partial(_compared_cell, decimals=2)


def win_tie_loss_table(facts: pd.DataFrame, *, corrected: bool) -> Table:
    """Lay out win/tie/loss counts by one of the two tests, with the paper's below."""
    methods, prefix = ordered_methods(facts["method"]), "corrected_" if corrected else ""
    ours, theirs = (
        [f"{by}{verdict}" for verdict in paper.Counts._fields] for by in (prefix, "paper_")
    )

    def cell(part: pd.DataFrame) -> Cell:
        if part.empty:
            return Cell(MISSING)
        printed = part[theirs].dropna()
        compared, expected = int(part["configurations"].sum()), int(part["expected"].sum())
        return Cell(
            str(paper.Counts(*part[ours].sum().astype(int))),
            detail=str(paper.Counts(*printed.sum().astype(int))) if len(printed) else "",
            note="" if compared == expected else f"{compared} of {expected} sets",
        )

    def row(name: str, part: pd.DataFrame, *, is_apart: bool = False) -> Row:
        parts = [*(part[part["method"] == method] for method in methods), part]
        return Row([Cell(name), *map(cell, parts)], is_apart)

    by_set = groups_of(in_order(facts), ["dataset"])
    rows = [row(data_set_name(data_set), part) for (data_set,), part in by_set]
    rows.append(row("sum", facts, is_apart=True))
    notes = [_NOTES["paper_counts"]] if facts["paper_win"].notna().any() else []
    notes += [_NOTES["plain_test"]] if corrected else []
    name = "win-tie-loss-corrected" if corrected else "win-tie-loss"
    return _table(name, ["Data set", *methods, "sum"], rows, facts, notes)


def accuracy_table(facts: pd.DataFrame, measure: str) -> Table:
    """Lay out the inductive or the transductive table of the real-world sets."""
    # Full supervision, for one, has no transductive accuracy: its row would be all dashes.
    has_figure = facts.groupby("dataset")["measured"].transform("sum") > 0
    facts = facts[has_figure & ((facts["measured"] > 0) | (facts["failed"] > 0))]
    data_sets = ordered_data_sets(facts["dataset"])
    where, notes = "", [_marks_explained(facts)]
    if facts["paper_mean"].notna().any():
        where = f" on the real-world sets (Table {paper.TABLE_NUMBERS[measure]} of the paper)"
        notes[0] += _NOTES["second_line"]
        notes += _not_run(ordered_methods(facts["method"]), data_sets, measure)
    notes.insert(1, _NOTES["spread"])
    return _table_by_method(measure, facts, _accuracy_cell, notes, where=where)


def _table_by_method(
    name: str,
    facts: pd.DataFrame,
    cell_of: Callable[[Any], Cell],
    notes: list[str],
    of_rows: str = "{}",
    **words: Any,
) -> Table:
    """Lay out a row per method and a cell per data set and, where there are any, rows of it.

    Our methods, the compared ones and the baselines stand apart.
    """
    keys = ["dataset", *(["rows"] if "rows" in facts else [])]
    columns = list(in_order(facts)[keys].drop_duplicates().itertuples(index=False, name=None))
    cells = {
        (row.method, *(getattr(row, key) for key in keys)): cell_of(row) for row in rows_of(facts)
    }
    rows, kind_above = list[Row](), ""
    for method in ordered_methods(facts["method"]):
        found = [cells.get((method, *column), Cell(MISSING)) for column in columns]
        own = method in (DEFAULT, OURS)
        kind = "baseline" if method in BASELINES else "own" if own else "compared"
        rows.append(Row([Cell(method), *found], is_apart=kind_above not in ("", kind)))
        kind_above = kind
    titles = (", ".join((data_set_name(of), *map(of_rows.format, part))) for of, *part in columns)
    return _table(name, ["Method", *titles], rows, facts, notes, **words)


def _accuracy_cell(row: Any) -> Cell:
    if math.isnan(row.paper_mean):
        return _compared_cell(row)
    ours = f", {difference(row.paper_difference)}" if row.measured else ""
    detail = f"paper {figure(row.paper_mean, row.paper_std)}{ours}"
    return replace(_compared_cell(row), detail=detail)


def error_table(facts: pd.DataFrame) -> Table:
    """Lay out the mean absolute errors of the real-world sets: a row per method."""
    name, notes = "absolute-error-real-world", [_marks_explained(facts), _NOTES["spread"]]
    return _table_by_method(name, facts, _error_cell, notes, of_rows="{} rows")


def crowd_table(facts: pd.DataFrame) -> Table:
    """Lay out the accuracy on items with votes and on the test parts: a row per method."""
    notes = [_NOTES["random_states"], _NOTES["test_part"]]
    notes += [_NOTES["unnamed"]] if "cifar10n" in set(facts["dataset"]) else []

    def cell(row: Any) -> Cell:
        return _summary_cell(row, strong=row.best, unit="random states")

    return _table_by_method("crowd", facts, cell, notes)


def error_by_setting_table(facts: pd.DataFrame) -> Table:
    """Lay out the mean absolute errors of the controlled sets: a row per configuration."""
    name_of = "{0} (p = {2:g}, r = {3:g}), {1} rows".format
    keys, notes = ["rows", "p", "r"], [_marks_explained(facts)]
    return _table_by_setting("absolute-error-controlled", facts, keys, name_of, _error_cell, notes)


def _not_run(methods: Sequence[str], data_sets: Sequence[str], measure: str) -> list[str]:
    """Say what the paper's table has and the scores have not."""
    printed = paper.ACCURACY[measure]
    absent_methods = dict.fromkeys(m for m, _ in printed if m not in methods)
    absent_sets = dict.fromkeys(data_set_name(d) for _, d in printed if d not in data_sets)
    notes = _listed("In the paper, but not in these scores", absent_methods)
    notes += _listed("Data sets of the paper that are not in these scores", absent_sets)
    if measure == "transductive" and BASELINES[0] not in methods:
        notes.append(_NOTES["no_floor"])
    return notes


def _listed(what: str, names: Collection[str]) -> list[str]:
    return [f"{what}: {', '.join(names)}."] if names else []


def rank_table(facts: RankComparison, name: str, sets: str) -> Table:
    """Lay out the average ranks behind a critical-difference diagram."""
    ranks = facts.average_ranks
    rows = [(str(method), number(rank, 2)) for method, rank in ranks.items()]
    n_sets, width = len(facts.data_sets), facts.critical_difference
    frame = pd.DataFrame({"method": ranks.index, "average_rank": ranks.to_numpy()}).assign(
        critical_difference=width, friedman_p_value=facts.p_value, datasets=n_sets
    )
    notes = [_NOTES["ranks"].format(p_value=facts.p_value, difference=width, number=n_sets)]
    notes += _listed("Left out, for lack of figures on some data set", facts.left_out_methods)
    lacking = [data_set_name(data_set) for data_set in facts.left_out_data_sets]
    notes += _listed("Data sets left out, for lack of figures of some method", lacking)
    header = ["Method", "Average rank"]
    return _table(name, header, rows, frame, notes, kind="ranks", is_long=True, sets=sets)


def sensitivity_table(part: pd.DataFrame, parameter: str, symbol: str) -> Table:
    """Lay out accuracy by value of one parameter: a row per data set and method."""
    values = sorted(part["value"].dropna().unique())
    references = {"formula": "Formula"} if parameter == "r" else {}
    references |= {"paper_best": "Paper's best"}
    rows = []
    for (data_set, p, r, method), group in groups_of(part, ["dataset", "p", "r", "method"]):
        best = group["mean"].max()
        cells = {row.value: _summary_cell(row, strong=row.mean >= best) for row in rows_of(group)}
        printed = (MISSING if math.isnan(x) else f"{x:g}" for x in group[list(references)].iloc[0])
        laid = [cells.get(value, Cell(MISSING)) for value in values]
        rows.append(Row([Cell(setting_name(data_set, p, r, method)), *laid, *map(Cell, printed)]))
    notes = [_NOTES["best_of_row"], *([_NOTES["formula"]] if parameter == "r" else [])]
    header = ["Data set", *(f"{symbol} = {v:g}" for v in values), *references.values()]
    name = f"sensitivity-{parameter}"
    return _table(name, header, rows, part, notes, kind="sensitivity", symbol=symbol)


def time_table(part: pd.DataFrame) -> Table:
    """Lay out GM-PLL's times beside the paper's."""
    rows = []
    for row in rows_of(in_order(part)):
        name = setting_name(row.dataset, row.p, row.r, row.method)
        cells = [Cell(name, note=_fold_note(row))]
        for ours, std, printed in (
            (row.running_mean, row.running_std, row.paper_running),
            (row.testing_mean, row.testing_std, row.paper_testing),
        ):
            cells += map(Cell, (_seconds(ours, std), _seconds(printed), _ratio(printed, ours)))
        rows.append(Row(cells))
    header = ["Data set", "Running", "paper", "ratio", "Testing", "paper", "ratio"]
    notes = [_NOTES["times"], _NOTES["ratio"].format(machine=paper.TIMING_MACHINE)]
    return _table("times", header, rows, part, notes)


def times_of_methods_table(facts: pd.DataFrame) -> Table:
    """Lay out the running time of every method."""
    name, keys = "times-of-methods", ["p", "r"]
    return _table_by_setting(name, facts, keys, setting_name, _time_cell, is_long=False)


def _time_cell(row: Any) -> Cell:
    if not row.measured:
        return Cell("failed" if row.failed else MISSING)
    text, testing = _seconds(row.running_mean, row.running_std), _seconds(row.testing_mean)
    return Cell(text, detail=f"testing {testing}", note=_fold_note(row))


def _seconds(mean: float, std: float = math.nan) -> str:
    """Three significant digits are more than a clock gives."""
    if math.isnan(mean):
        return MISSING
    decimals = max(0, 2 - math.floor(math.log10(mean))) if mean > 0 else 0
    return figure(mean, std, min(decimals, 4))


def _ratio(theirs: float, ours: float) -> str:
    if math.isnan(theirs) or math.isnan(ours) or ours <= 0:
        return MISSING
    ratio = theirs / ours
    return (f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}") + "\N{MULTIPLICATION SIGN}"


def incomplete_table(facts: pd.DataFrame) -> Table:
    """Lay out the groups that lack folds."""
    header = ["Setting", "Method", "Done", "Failed", "No result", "Folds"]
    rows = [
        (_job_name(row), row.method, *map(count, (row.done, row.failed, row.missing, row.expected)))
        for row in rows_of(facts)
    ]
    return _table("incomplete", header, rows, facts, is_long=True)


def failure_table(facts: pd.DataFrame) -> Table:
    """Lay out the failed jobs."""
    header = ["Setting", "Method", "Seed", "Fold", "Error"]
    nothing = "no error text was recorded"
    rows = [
        (_job_name(row), row.method, f"{row.seed:g}", f"{row.fold:g}", row.error or nothing)
        for row in rows_of(facts)
    ]
    return _table("failures", header, rows, facts, is_text=True)


def _job_name(row: Any) -> str:
    name = f"{row.experiment}: {setting_name(row.dataset, row.p, row.r)}"
    return f"{name}, {row.parameter} = {row.value:g}" if row.parameter else name
