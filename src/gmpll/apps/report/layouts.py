"""From facts to laid-out tables, one function per table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gmpll.apps.pages.tables import MISSING, Cell, Row, Table, count, difference, figure, number
from gmpll.apps.report import paper
from gmpll.apps.report.frames import groups_of, rows_of
from gmpll.apps.report.names import (
    BASELINES,
    OURS,
    data_set_name,
    is_baseline,
    ordered_data_sets,
    ordered_methods,
    printed_method,
)

if TYPE_CHECKING:
    import pandas as pd

    from gmpll.apps.report.comparisons import RankFacts

__all__ = [
    "accuracy_table",
    "controlled_data_table",
    "curve_table",
    "error_by_setting_table",
    "error_table",
    "failure_table",
    "incomplete_table",
    "overview_table",
    "rank_table",
    "real_world_data_table",
    "sensitivity_table",
    "setting_name",
    "time_table",
    "times_of_methods_table",
    "win_tie_loss_table",
]

_MARKS = {"win": "•", "loss": "∘"}
_MARKS_EXPLAINED = (
    "• / ∘: GM-PLL is significantly better / worse (paired t-test over the folds, 0.05); in "
    "brackets where the corrected resampled t-test does not confirm it. Bold: best mean of the "
    "methods."
)
_PAPER_EXPLAINED = "The second line of a cell is the paper's figure and ours minus the paper's."
_SPREAD_EXPLAINED = "± is the standard deviation over the folds."


def overview_table(facts: pd.DataFrame) -> Table:
    """Lay out what was run."""
    header = [
        "Experiment",
        "Data sets",
        "Methods",
        "Baselines",
        "Seeds",
        "Folds",
        "Jobs",
        "Done",
        "Failed",
    ]
    rows = [
        Row([Cell(str(row.experiment)), *(Cell(count(float(value))) for value in row[2:])])
        for row in rows_of(facts)
    ]
    return Table("overview", "Jobs of each experiment", header, rows, facts)


def controlled_data_table(facts: pd.DataFrame) -> Table:
    """Lay out the paper's table 1 beside our data."""
    part = facts[facts["kind"] == "controlled"]
    rows = [_data_row(row, ("n_samples", "n_features", "n_classes")) for row in rows_of(part)]
    return Table(
        "data-controlled",
        "Controlled data sets: ours, and what Table 1 of the paper prints",
        ["Data set", "Rows", "Features", "Labels"],
        rows,
        part.drop(columns=["mean_candidates", "paper_mean_candidates", "task"]),
        ["The paper's figure is printed below ours where it differs."],
    )


def real_world_data_table(facts: pd.DataFrame) -> Table:
    """Lay out the paper's table 2 beside our data."""
    part = facts[facts["kind"] == "real-world"]
    statistics = ("n_samples", "n_features", "n_classes", "mean_candidates")
    rows = [_data_row(row, statistics) for row in rows_of(part)]
    return Table(
        "data-real-world",
        "Real-world data sets: ours, and what Table 2 of the paper prints",
        ["Data set", "Rows", "Features", "Labels", "Mean candidates"],
        rows,
        part,
        ["The paper's figure is printed below ours where it differs."],
    )


def _data_row(row: Any, statistics: Sequence[str]) -> Row:
    cells = [Cell(data_set_name(row.dataset), detail=row.task)]
    for statistic in statistics:
        ours, printed = getattr(row, statistic), getattr(row, f"paper_{statistic}")
        shown: Callable[[float], str] = (
            (lambda value: number(value, 2)) if statistic == "mean_candidates" else count
        )
        differs = not math.isnan(printed) and shown(ours) != shown(printed)
        cells.append(Cell(shown(ours), detail=f"paper {shown(printed)}" if differs else ""))
    return Row(cells)


def curve_table(facts: pd.DataFrame, r: int) -> Table:
    """Lay out the accuracies behind the figure of one r."""
    part = facts[facts["r"] == r]
    methods = ordered_methods(part["method"])
    cells = {(row.dataset, row.p, row.method): row for row in rows_of(part)}
    rows: list[Row] = []
    for data_set in ordered_data_sets(part["dataset"]):
        shares = sorted(part.loc[part["dataset"] == data_set, "p"].unique())
        for place, p in enumerate(shares):
            found = [_summary_cell(cells.get((data_set, p, method))) for method in methods]
            name = Cell(f"{data_set_name(data_set)}, p = {p:g}")
            rows.append(Row([name, *found], is_apart=place == 0 and bool(rows)))
    return Table(
        f"curves-r{r}",
        f"Inductive accuracy on the controlled sets, r = {r}",
        ["Data set", *methods],
        rows,
        part,
        [_SPREAD_EXPLAINED],
        is_long=True,
    )


def _summary_cell(row: Any, decimals: int = 3) -> Cell:
    if row is None:
        return Cell(MISSING)
    missing = "failed" if row.failed else MISSING
    text = figure(row.mean, row.std, decimals) if row.measured else missing
    return Cell(text, note=_fold_note(row.done, row.expected))


def _fold_note(done: int, expected: int) -> str:
    return "" if done >= expected else f"{done} of {expected} folds"


def win_tie_loss_table(facts: pd.DataFrame, *, corrected: bool) -> Table:
    """Lay out win/tie/loss counts by one of the two tests, with the paper's below."""
    prefix = "corrected_" if corrected else ""
    columns = [f"{prefix}{verdict}" for verdict in ("win", "tie", "loss")]
    methods = ordered_methods(facts["method"])
    rows = []
    for data_set in ordered_data_sets(facts["dataset"]):
        part = facts[facts["dataset"] == data_set]
        found = [_counts_cell(part[part["method"] == method], columns) for method in methods]
        rows.append(Row([Cell(data_set_name(data_set)), *found, _counts_cell(part, columns)]))
    sums = [_counts_cell(facts[facts["method"] == method], columns) for method in methods]
    rows.append(Row([Cell("sum"), *sums, _counts_cell(facts, columns)], is_apart=True))
    test = "corrected resampled t-test" if corrected else "paired t-test"
    notes = [
        "The first line is ours. The second is the paper's (Table 3), for the same data sets; its "
        "sums are those of the printed counts, not the printed sums."
    ]
    if corrected:
        notes.append("The paper used the plain paired t-test.")
    return Table(
        "win-tie-loss-corrected" if corrected else "win-tie-loss",
        f"Win/tie/loss of GM-PLL on the controlled sets, {test} at 0.05",
        ["Data set", *methods, "sum"],
        rows,
        facts,
        notes,
    )


def _counts_cell(part: pd.DataFrame, columns: Sequence[str]) -> Cell:
    if part.empty:
        return Cell(MISSING)
    win, tie, loss = (int(part[column].sum()) for column in columns)
    printed = part[["paper_win", "paper_tie", "paper_loss"]].dropna()
    compared, expected = int(part["configurations"].sum()), int(part["expected"].sum())
    return Cell(
        f"{win}/{tie}/{loss}",
        detail=str(paper.Counts(*(int(x) for x in printed.sum()))) if len(printed) else "",
        note="" if compared == expected else f"{compared} of {expected} sets",
    )


def accuracy_table(facts: pd.DataFrame, measure: str) -> Table:
    """Lay out the inductive or the transductive table of the real-world sets."""
    # Full supervision, for one, has no transductive accuracy: its row would be all dashes.
    facts = facts[(facts["measured"] > 0) | (facts["failed"] > 0)]
    methods, data_sets = ordered_methods(facts["method"]), ordered_data_sets(facts["dataset"])
    cells = {(row.dataset, row.method): row for row in rows_of(facts)}
    rows = []
    for place, method in enumerate(methods):
        found = [_accuracy_cell(cells.get((data_set, method))) for data_set in data_sets]
        is_apart = place > 0 and _kind(method) != _kind(methods[place - 1])
        rows.append(Row([Cell(method), *found], is_apart=is_apart))
    printed = paper.TABLES[measure]
    return Table(
        measure,
        f"{measure.capitalize()} accuracy on the real-world sets (Table {printed.number} of "
        "the paper)",
        ["Method", *map(data_set_name, data_sets)],
        rows,
        facts,
        [
            f"{_MARKS_EXPLAINED} {_PAPER_EXPLAINED}",
            _SPREAD_EXPLAINED,
            *_not_run(methods, data_sets, measure),
        ],
    )


def _kind(method: str) -> str:
    if is_baseline(method):
        return "baseline"
    return "own" if printed_method(method) == OURS else "compared"


def _accuracy_cell(row: Any) -> Cell:
    if row is None:
        return Cell(MISSING)
    laid = _summary_cell(row)
    detail = ""
    if not math.isnan(row.paper_mean):
        detail = f"paper {figure(row.paper_mean, row.paper_std)}"
        if row.measured:
            detail += f", {difference(row.paper_difference)}"
    return Cell(laid.text, _mark(row), detail, laid.note, strong=bool(row.best))


def _mark(row: Any) -> str:
    mark = _MARKS.get(row.verdict, "")
    return f"({mark})" if mark and row.corrected_verdict != row.verdict else mark


def error_table(facts: pd.DataFrame) -> Table:
    """Lay out the mean absolute errors of the real-world sets: a row per method."""
    methods = ordered_methods(facts["method"])
    columns = [
        (data_set, rows)
        for data_set in ordered_data_sets(facts["dataset"])
        for rows in facts["rows"].unique()
    ]
    cells = {(row.dataset, row.rows, row.method): row for row in rows_of(facts)}
    laid = []
    for place, method in enumerate(methods):
        found = [_error_cell(cells.get((*column, method))) for column in columns]
        is_apart = place > 0 and _kind(method) != _kind(methods[place - 1])
        laid.append(Row([Cell(method), *found], is_apart=is_apart))
    return Table(
        "absolute-error-real-world",
        "Mean absolute error on the real-world sets with ordered labels",
        ["Method", *(f"{data_set_name(data_set)}, {rows} rows" for data_set, rows in columns)],
        laid,
        facts,
        [_MARKS_EXPLAINED, _SPREAD_EXPLAINED],
    )


def error_by_setting_table(facts: pd.DataFrame) -> Table:
    """Lay out the mean absolute errors of the controlled sets: a row per configuration."""
    methods = ordered_methods(facts["method"])
    laid = []
    for data_set in ordered_data_sets(facts["dataset"]):
        part = facts[facts["dataset"] == data_set]
        for (rows, p, r), group in groups_of(part, ["rows", "p", "r"]):
            by_method = {row.method: row for row in rows_of(group)}
            cells = [_error_cell(by_method.get(method)) for method in methods]
            laid.append(Row([Cell(f"{setting_name(data_set, p, r)}, {rows} rows"), *cells]))
    return Table(
        "absolute-error-controlled",
        "Mean absolute error on the controlled sets with ordered labels",
        ["Data set", *methods],
        laid,
        facts,
        [_MARKS_EXPLAINED, _SPREAD_EXPLAINED],
        is_long=True,
    )


def _error_cell(row: Any) -> Cell:
    if row is None:
        return Cell(MISSING)
    laid = _summary_cell(row, decimals=2)
    return Cell(laid.text, _mark(row), note=laid.note, strong=bool(row.best))


def _not_run(methods: Sequence[str], data_sets: Sequence[str], measure: str) -> list[str]:
    """Say what the paper's table has and the scores have not."""
    printed = paper.INDUCTIVE if measure == "inductive" else paper.TRANSDUCTIVE
    absent_methods = [m for m in dict.fromkeys(m for m, _ in printed) if m not in methods]
    absent_sets = [d for d in dict.fromkeys(d for _, d in printed) if d not in data_sets]
    notes = []
    if absent_methods:
        notes.append(f"In the paper, but not in these scores: {', '.join(absent_methods)}.")
    if absent_sets:
        names = ", ".join(map(data_set_name, absent_sets))
        notes.append(f"Data sets of the paper that are not in these scores: {names}.")
    if measure == "transductive" and BASELINES[0] not in methods:
        notes.append(
            "The scores hold no “Random candidate” baseline, so the floor that guessing among "
            "the candidates reaches is not shown."
        )
    return notes


def rank_table(facts: RankFacts, name: str, title: str) -> Table:
    """Lay out the average ranks behind a critical-difference diagram."""
    import pandas as pd

    ranks = facts.average_ranks
    rows = [Row([Cell(str(method)), Cell(number(rank, 2))]) for method, rank in ranks.items()]
    frame = pd.DataFrame({"method": ranks.index, "average_rank": ranks.to_numpy()})
    frame["critical_difference"] = facts.critical_difference
    frame["friedman_p_value"] = facts.p_value
    frame["datasets"] = len(facts.data_sets)
    notes = [
        f"Friedman's test: p = {facts.p_value:.2g}. Critical difference (Nemenyi, 0.05): "
        f"{facts.critical_difference:.2f} over {len(facts.data_sets)} data sets."
    ]
    if facts.left_out_methods:
        notes.append(
            f"Left out, for lack of figures on some data set: {', '.join(facts.left_out_methods)}."
        )
    if facts.left_out_data_sets:
        names = ", ".join(map(data_set_name, facts.left_out_data_sets))
        notes.append(f"Data sets left out, for lack of figures of some method: {names}.")
    return Table(name, title, ["Method", "Average rank"], rows, frame, notes, is_long=True)


def sensitivity_table(facts: pd.DataFrame, parameter: str, symbol: str) -> Table:
    """Lay out accuracy by value of one parameter: a row per data set and method."""
    part = facts[facts["parameter"] == parameter]
    values = sorted(part["value"].dropna().unique())
    rows = []
    for (data_set, p, r, method), group in groups_of(part, ["dataset", "p", "r", "method"]):
        by_value = {row.value: row for row in rows_of(group)}
        best = group["mean"].max()
        cells = []
        for value in values:
            row = by_value.get(value)
            laid = _summary_cell(row)
            is_best = row is not None and bool(row.measured) and row.mean >= best
            cells.append(Cell(laid.text, note=laid.note, strong=is_best))
        name = setting_name(data_set, p, r, method)
        rows.append(Row([Cell(name), *cells, *_sensitivity_references(group, parameter)]))
    references = ["Formula", "Paper's best"] if parameter == "r" else ["Paper's best"]
    notes = [_SPREAD_EXPLAINED + " Bold: best mean of the row."]
    if parameter == "r":
        notes.append("Formula: r = round(1 + mean number of candidates / log10(number of labels)).")
    return Table(
        f"sensitivity-{parameter}",
        f"Inductive accuracy by {symbol}",
        ["Data set", *(f"{symbol} = {value:g}" for value in values), *references],
        rows,
        part,
        notes,
    )


def _sensitivity_references(group: pd.DataFrame, parameter: str) -> list[Cell]:
    columns = ["formula", "paper_best"] if parameter == "r" else ["paper_best"]
    references = [float(group[column].iloc[0]) for column in columns]
    return [Cell(MISSING if math.isnan(value) else f"{value:g}") for value in references]


def setting_name(data_set: str, p: float, r: float, method: str = OURS) -> str:
    """Name a setting, and a method other than GM-PLL, as briefly as it is unambiguous."""
    name = data_set_name(data_set)
    if not math.isnan(p):
        name += f" (p = {p:g}, r = {r:g})"
    return name if method == OURS else f"{name}, {method}"


def time_table(facts: pd.DataFrame) -> Table:
    """Lay out GM-PLL's times beside the paper's."""
    part = facts[facts["method"].map(printed_method) == OURS]
    rows = []
    for data_set in ordered_data_sets(part["dataset"]):
        for row in rows_of(part[part["dataset"] == data_set]):
            name = setting_name(row.dataset, row.p, row.r, row.method)
            rows.append(
                Row(
                    [
                        Cell(name, note=_fold_note(row.done, row.expected)),
                        Cell(_seconds(row.running_mean, row.running_std)),
                        Cell(_seconds(row.paper_running)),
                        Cell(_ratio(row.paper_running, row.running_mean)),
                        Cell(_seconds(row.testing_mean, row.testing_std)),
                        Cell(_seconds(row.paper_testing)),
                        Cell(_ratio(row.paper_testing, row.testing_mean)),
                    ]
                )
            )
    return Table(
        "times",
        "Seconds of GM-PLL beside the paper's (Table 8)",
        ["Data set", "Running", "paper", "ratio", "Testing", "paper", "ratio"],
        rows,
        part,
        [
            "Running is fit and predict together, testing is predict; means over the folds.",
            f"The paper's are of {paper.TIMING_MACHINE}, and it does not say of how many rows or "
            "folds: the ratio (paper / ours) compares two machines and two programs.",
        ],
    )


def times_of_methods_table(facts: pd.DataFrame) -> Table:
    """Lay out the running time of every method."""
    methods = ordered_methods(facts["method"])
    rows = []
    for data_set in ordered_data_sets(facts["dataset"]):
        part = facts[facts["dataset"] == data_set]
        for (p, r), group in groups_of(part, ["p", "r"]):
            by_method = {row.method: row for row in rows_of(group)}
            cells = [_time_cell(by_method.get(method)) for method in methods]
            rows.append(Row([Cell(setting_name(data_set, p, r)), *cells]))
    return Table(
        "times-of-methods",
        "Running seconds of every method (testing seconds below)",
        ["Data set", *methods],
        rows,
        facts,
        [_SPREAD_EXPLAINED],
    )


def _time_cell(row: Any) -> Cell:
    if row is None:
        return Cell(MISSING)
    if not row.measured:
        return Cell("failed" if row.failed else MISSING)
    return Cell(
        _seconds(row.running_mean, row.running_std),
        detail=f"testing {_seconds(row.testing_mean)}",
        note=_fold_note(row.done, row.expected),
    )


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
    rows = [
        Row(
            [
                Cell(_job_name(row)),
                Cell(row.method),
                Cell(count(row.done)),
                Cell(count(row.failed)),
                Cell(count(row.missing)),
                Cell(count(row.expected)),
            ]
        )
        for row in rows_of(facts)
    ]
    return Table(
        "incomplete",
        "Figures that rest on fewer folds than others of their setting",
        ["Setting", "Method", "Done", "Failed", "No result", "Folds"],
        rows,
        facts,
        is_long=True,
    )


def failure_table(facts: pd.DataFrame) -> Table:
    """Lay out the failed jobs."""
    rows = [
        Row(
            [
                Cell(_job_name(row)),
                Cell(row.method),
                Cell(f"{row.seed:g}"),
                Cell(f"{row.fold:g}"),
                Cell(row.error or "no error text was recorded"),
            ]
        )
        for row in rows_of(facts)
    ]
    return Table(
        "failures",
        "Failed jobs",
        ["Setting", "Method", "Seed", "Fold", "Error"],
        rows,
        facts,
        is_text=True,
    )


def _job_name(row: Any) -> str:
    name = f"{row.experiment}: {setting_name(row.dataset, row.p, row.r)}"
    return f"{name}, {row.parameter} = {row.value:g}" if row.parameter else name
