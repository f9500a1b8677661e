"""From facts to laid-out tables, one function per table."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from gmpll.apps.pages.tables import MISSING, Cell, Row, Table, count, difference, figure, number
from gmpll.apps.report import paper
from gmpll.apps.report.comparisons import RankFacts
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


def _row(*texts: str) -> Row:
    return Row([*map(Cell, texts)])


def overview_table(facts: pd.DataFrame) -> Table:
    """Lay out what was run."""
    header = ["Experiment", "Data sets", *(name.capitalize() for name in facts.columns[2:])]
    rows = [_row(row.experiment, *map(count, row[2:])) for row in rows_of(facts)]
    return Table("overview", "Jobs of each experiment", header, rows, facts)


def counted(number: float, thing: str) -> str:
    """Say how many there are, in the singular where there is one."""
    return f"{count(number)} {thing}{'' if number == 1 else 's'}"


def ranking_table(facts: pd.DataFrame) -> Table:
    """Lay out the headline: methods by average rank, with their means over data sets."""
    names = {
        "inductive": "Inductive accuracy",
        "transductive": "Transductive accuracy",
        "candidate_lift": "Candidate lift",
    }
    shown = {name: title for name, title in names.items() if facts[name].notna().any()}
    best = {name: facts.loc[facts["average_rank"].notna(), name].max() for name in shown}
    rows: list[Row] = []
    for row in rows_of(facts):
        is_ranked = not math.isnan(row.average_rank)
        cells = [Cell(row.method), Cell(number(row.average_rank, 2))]
        for name in shown:
            value = getattr(row, name)
            cells.append(Cell(number(value), strong=is_ranked and value >= best[name]))
        is_first_unranked = not is_ranked and bool(rows) and rows[-1].cells[1].text != MISSING
        rows.append(Row(cells, is_apart=is_first_unranked))
    n_sets = facts["data_sets"].iloc[0]
    return Table(
        "ranking",
        f"Methods by average rank over {counted(n_sets, 'data set')}",
        ["Method", "Average rank", *shown.values()],
        rows,
        facts,
        [_NOTES["ranking"]],
    )


def data_table(facts: pd.DataFrame) -> Table:
    """Lay out the data sets that ran, with what the paper prints where it differs."""
    columns = {"n_samples": "Rows", "n_features": "Features", "n_classes": "Labels"}
    if facts["mean_candidates"].notna().any():
        columns["mean_candidates"] = "Mean candidates"
    ordered = facts.set_index("dataset").loc[ordered_data_sets(facts["dataset"])].reset_index()
    rows = [_data_row(row, list(columns)) for row in rows_of(ordered)]
    differs = any(cell.detail for row in rows for cell in row.cells[1:])
    notes = [_NOTES["paper_below"]] if differs else []
    if facts["mean_candidates"].isna().any():
        notes.append(_NOTES["plain_labels"])
    header = ["Data set", *columns.values()]
    return Table("data", "Data sets of this run", header, rows, ordered, notes)


def _data_row(row: Any, statistics: Sequence[str]) -> Row:
    cells = [Cell(data_set_name(row.dataset), detail=getattr(row, "task", ""))]
    for statistic in statistics:
        ours, printed = (
            number(value, 2) if statistic == "mean_candidates" else count(value)
            for value in (getattr(row, statistic), getattr(row, f"paper_{statistic}"))
        )
        differs = printed not in (MISSING, ours)
        cells.append(Cell(ours, detail=f"paper {printed}" if differs else ""))
    return Row(cells)


def curve_table(facts: pd.DataFrame, r: int) -> Table:
    """Lay out the accuracies behind the figure of one r."""
    return _table_by_setting(
        f"curves-r{r}",
        f"Inductive accuracy on the controlled sets, r = {r}",
        facts[facts["r"] == r],
        ["p"],
        lambda data_set, p: f"{data_set_name(data_set)}, p = {p:g}",
        _summary_cell,
        [_NOTES["spread"]],
        sets_apart=True,
    )


def _table_by_setting(
    name: str,
    title: str,
    facts: pd.DataFrame,
    keys: Sequence[str],
    name_of: Callable[..., str],
    cell_of: Callable[[Any], Cell],
    notes: list[str],
    *,
    sets_apart: bool = False,
    is_long: bool = True,
) -> Table:
    """Lay out a row per data set and keys, and a cell per method; what is not there has a dash."""
    methods = ordered_methods(facts["method"])
    rows: list[Row] = []
    for data_set in ordered_data_sets(facts["dataset"]):
        part = facts[facts["dataset"] == data_set]
        for place, (key, group) in enumerate(groups_of(part, keys)):
            by_method = {row.method: cell_of(row) for row in rows_of(group)}
            cells = [by_method.get(method, Cell(MISSING)) for method in methods]
            is_apart = sets_apart and place == 0 and bool(rows)
            rows.append(Row([Cell(name_of(data_set, *key)), *cells], is_apart))
    return Table(name, title, ["Data set", *methods], rows, facts, notes, is_long=is_long)


def _summary_cell(
    row: Any, decimals: int = 3, *, is_best: bool = False, unit: str = "folds"
) -> Cell:
    missing = "failed" if row.failed else MISSING
    text = figure(row.mean, row.std, decimals) if row.measured else missing
    return Cell(text, note=_fold_note(row, unit), strong=is_best)


def _fold_note(row: Any, unit: str = "folds") -> str:
    return "" if row.done >= row.expected else f"{row.done} of {row.expected} {unit}"


def _compared_cell(row: Any, decimals: int = 3) -> Cell:
    mark = _MARKS.get(row.verdict, "")
    if mark and row.corrected_verdict != row.verdict:
        mark = f"({mark})"
    return replace(_summary_cell(row, decimals, is_best=bool(row.best)), mark=mark)


def win_tie_loss_table(facts: pd.DataFrame, *, corrected: bool) -> Table:
    """Lay out win/tie/loss counts by one of the two tests, with the paper's below."""
    prefix = "corrected_" if corrected else ""
    columns = [f"{prefix}{verdict}" for verdict in ("win", "tie", "loss")]
    methods = ordered_methods(facts["method"])

    def row(name: str, part: pd.DataFrame, *, is_apart: bool = False) -> Row:
        parts = [*(part[part["method"] == method] for method in methods), part]
        return Row([Cell(name), *(_counts_cell(p, columns) for p in parts)], is_apart)

    rows = [
        row(data_set_name(data_set), facts[facts["dataset"] == data_set])
        for data_set in ordered_data_sets(facts["dataset"])
    ]
    rows.append(row("sum", facts, is_apart=True))
    test = "corrected resampled t-test" if corrected else "paired t-test"
    notes = [_NOTES["paper_counts"]] if facts["paper_win"].notna().any() else []
    notes += [_NOTES["plain_test"]] if corrected else []
    return Table(
        "win-tie-loss-corrected" if corrected else "win-tie-loss",
        f"Win/tie/loss of gmpll (else GM-PLL) on the controlled sets, {test} at 0.05",
        ["Data set", *methods, "sum"],
        rows,
        facts,
        notes,
    )


def _counts_cell(part: pd.DataFrame, columns: Sequence[str]) -> Cell:
    if part.empty:
        return Cell(MISSING)
    printed = part[["paper_win", "paper_tie", "paper_loss"]].dropna()
    compared, expected = int(part["configurations"].sum()), int(part["expected"].sum())
    return Cell(
        str(paper.Counts(*(int(part[column].sum()) for column in columns))),
        detail=str(paper.Counts(*(int(x) for x in printed.sum()))) if len(printed) else "",
        note="" if compared == expected else f"{compared} of {expected} sets",
    )


def accuracy_table(facts: pd.DataFrame, measure: str) -> Table:
    """Lay out the inductive or the transductive table of the real-world sets."""
    # Full supervision, for one, has no transductive accuracy: its row would be all dashes.
    has_figure = facts.groupby("dataset")["measured"].transform("sum") > 0
    facts = facts[has_figure & ((facts["measured"] > 0) | (facts["failed"] > 0))]
    data_sets = ordered_data_sets(facts["dataset"])
    title = measure.replace("_", " ").capitalize()
    notes = [_marks_explained(facts)]
    if measure in paper.TABLE_NUMBERS:
        title += " accuracy"
    if facts["paper_mean"].notna().any():
        title += f" on the real-world sets (Table {paper.TABLE_NUMBERS[measure]} of the paper)"
        notes[0] += _NOTES["second_line"]
        notes += _not_run(ordered_methods(facts["method"]), data_sets, measure)
    notes.insert(1, _NOTES["spread"])
    return _table_by_method(
        measure,
        title,
        facts,
        {(name,): data_set_name(name) for name in data_sets},
        ["dataset"],
        _accuracy_cell,
        notes,
    )


def _table_by_method(
    name: str,
    title: str,
    facts: pd.DataFrame,
    columns: Mapping[tuple[str, ...], str],
    keys: Sequence[str],
    cell_of: Callable[[Any], Cell],
    notes: list[str],
) -> Table:
    """Lay out a row per method and a cell per column, named by the values of its keys.

    Our methods, the compared ones and the baselines stand apart.
    """
    cells = {(row.method, *(getattr(row, k) for k in keys)): cell_of(row) for row in rows_of(facts)}
    rows: list[Row] = []
    kind_above = ""
    for method in ordered_methods(facts["method"]):
        found = [cells.get((method, *column), Cell(MISSING)) for column in columns]
        own = method in (DEFAULT, OURS)
        kind = "baseline" if method in BASELINES else "own" if own else "compared"
        rows.append(Row([Cell(method), *found], is_apart=kind_above not in ("", kind)))
        kind_above = kind
    return Table(name, title, ["Method", *columns.values()], rows, facts, notes)


def _accuracy_cell(row: Any) -> Cell:
    if math.isnan(row.paper_mean):
        return _compared_cell(row)
    ours = f", {difference(row.paper_difference)}" if row.measured else ""
    detail = f"paper {figure(row.paper_mean, row.paper_std)}{ours}"
    return replace(_compared_cell(row), detail=detail)


def error_table(facts: pd.DataFrame) -> Table:
    """Lay out the mean absolute errors of the real-world sets: a row per method."""
    return _table_by_method(
        "absolute-error-real-world",
        "Mean absolute error on the real-world sets with ordered labels",
        facts,
        _parts_of_sets(facts, " rows"),
        ["dataset", "rows"],
        lambda row: _compared_cell(row, decimals=2),
        [_marks_explained(facts), _NOTES["spread"]],
    )


def crowd_table(facts: pd.DataFrame) -> Table:
    """Lay out the accuracy on items with votes and on the test parts: a row per method."""
    notes = [_NOTES["random_states"], _NOTES["test_part"]]
    return _table_by_method(
        "crowd",
        "Share of right labels found from votes",
        facts,
        _parts_of_sets(facts),
        ["dataset", "rows"],
        lambda row: _summary_cell(row, is_best=row.best, unit="random states"),
        [*notes, _NOTES["unnamed"]] if "cifar10n" in set(facts["dataset"]) else notes,
    )


def _parts_of_sets(facts: pd.DataFrame, suffix: str = "") -> dict[tuple[str, ...], str]:
    """Name the columns of a table that has one for every part of every data set."""
    parts = [
        (data_set, rows)
        for data_set in ordered_data_sets(facts["dataset"])
        for rows in facts.loc[facts["dataset"] == data_set, "rows"].unique()
    ]
    return {(name, rows): f"{data_set_name(name)}, {rows}{suffix}" for name, rows in parts}


def error_by_setting_table(facts: pd.DataFrame) -> Table:
    """Lay out the mean absolute errors of the controlled sets: a row per configuration."""
    return _table_by_setting(
        "absolute-error-controlled",
        "Mean absolute error on the controlled sets with ordered labels",
        facts,
        ["rows", "p", "r"],
        lambda data_set, rows, p, r: f"{setting_name(data_set, p, r)}, {rows} rows",
        lambda row: _compared_cell(row, decimals=2),
        [_marks_explained(facts), _NOTES["spread"]],
    )


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


def rank_table(facts: RankFacts, name: str, title: str) -> Table:
    """Lay out the average ranks behind a critical-difference diagram."""
    ranks = facts.average_ranks
    rows = [_row(str(method), number(rank, 2)) for method, rank in ranks.items()]
    frame = pd.DataFrame({"method": ranks.index, "average_rank": ranks.to_numpy()})
    frame["critical_difference"] = facts.critical_difference
    frame["friedman_p_value"] = facts.p_value
    frame["datasets"] = len(facts.data_sets)
    n_sets, width = len(facts.data_sets), facts.critical_difference
    notes = [_NOTES["ranks"].format(p_value=facts.p_value, difference=width, number=n_sets)]
    notes += _listed("Left out, for lack of figures on some data set", facts.left_out_methods)
    sets = [data_set_name(data_set) for data_set in facts.left_out_data_sets]
    notes += _listed("Data sets left out, for lack of figures of some method", sets)
    return Table(name, title, ["Method", "Average rank"], rows, frame, notes, is_long=True)


def sensitivity_table(part: pd.DataFrame, parameter: str, symbol: str) -> Table:
    """Lay out accuracy by value of one parameter: a row per data set and method."""
    values = sorted(part["value"].dropna().unique())
    references = {"formula": "Formula"} if parameter == "r" else {}
    references |= {"paper_best": "Paper's best"}
    rows = []
    for (data_set, p, r, method), group in groups_of(part, ["dataset", "p", "r", "method"]):
        best = group["mean"].max()
        cells = {row.value: _summary_cell(row, is_best=row.mean >= best) for row in rows_of(group)}
        laid = [Cell(setting_name(data_set, p, r, method))]
        laid += [cells.get(value, Cell(MISSING)) for value in values]
        for reference in group[list(references)].iloc[0]:
            laid.append(Cell(MISSING if math.isnan(reference) else f"{reference:g}"))
        rows.append(Row(laid))
    notes = [_NOTES["best_of_row"], *([_NOTES["formula"]] if parameter == "r" else [])]
    return Table(
        f"sensitivity-{parameter}",
        f"Inductive accuracy by {symbol}",
        ["Data set", *(f"{symbol} = {value:g}" for value in values), *references.values()],
        rows,
        part,
        notes,
    )


def time_table(part: pd.DataFrame) -> Table:
    """Lay out GM-PLL's times beside the paper's."""
    rows = []
    for data_set in ordered_data_sets(part["dataset"]):
        for row in rows_of(part[part["dataset"] == data_set]):
            name = setting_name(row.dataset, row.p, row.r, row.method)
            cells = [Cell(name, note=_fold_note(row))]
            for ours, std, printed in (
                (row.running_mean, row.running_std, row.paper_running),
                (row.testing_mean, row.testing_std, row.paper_testing),
            ):
                texts = (_seconds(ours, std), _seconds(printed), _ratio(printed, ours))
                cells += map(Cell, texts)
            rows.append(Row(cells))
    return Table(
        "times",
        "Seconds of GM-PLL beside the paper's (Table 8)",
        ["Data set", "Running", "paper", "ratio", "Testing", "paper", "ratio"],
        rows,
        part,
        [_NOTES["times"], _NOTES["ratio"].format(machine=paper.TIMING_MACHINE)],
    )


def times_of_methods_table(facts: pd.DataFrame) -> Table:
    """Lay out the running time of every method."""
    return _table_by_setting(
        "times-of-methods",
        "Running seconds of every method (testing seconds below)",
        facts,
        ["p", "r"],
        setting_name,
        _time_cell,
        [_NOTES["spread"]],
        is_long=False,
    )


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
    counts = facts[["done", "failed", "missing", "expected"]].map(count)
    named = zip(map(_job_name, rows_of(facts)), facts["method"], counts.to_numpy(), strict=True)
    rows = [_row(name, method, *found) for name, method, found in named]
    title = "Figures that rest on fewer folds than others of their setting"
    return Table("incomplete", title, header, rows, facts, is_long=True)


def failure_table(facts: pd.DataFrame) -> Table:
    """Lay out the failed jobs."""
    header = ["Setting", "Method", "Seed", "Fold", "Error"]
    nothing = "no error text was recorded"
    rows = [
        _row(_job_name(row), row.method, f"{row.seed:g}", f"{row.fold:g}", row.error or nothing)
        for row in rows_of(facts)
    ]
    return Table("failures", "Failed jobs", header, rows, facts, is_text=True)


def _job_name(row: Any) -> str:
    name = f"{row.experiment}: {setting_name(row.dataset, row.p, row.r)}"
    return f"{name}, {row.parameter} = {row.value:g}" if row.parameter else name
