"""Columns that must not become features unasked: the answer, and results of an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from gmpll.apps.tables.cells import MISSING, is_number, parse_list
from gmpll.apps.tables.label_cells import (
    label_names_in,
    label_parser,
    vote_columns,
    votes_table,
    without_prefix,
)

if TYPE_CHECKING:
    from gmpll.apps.tables.options import Options
    from gmpll.apps.tables.tables import Table

__all__ = ["RESULT_COLUMNS", "reasons_not_to_use"]

#: Columns that are added to the input.
RESULT_COLUMNS = ("label", "confidence", "runner_up", "margin", "review")
_PREFIX = "resolved_"
#: So many of them together come from an earlier run.
_FEWEST_OF_A_RUN = 3
_SAMPLE = 1000
#: A column holds labels if so many of its cells do.
_NEARLY_ALL = 0.95
_EVERYDAY = {"true", "false", "yes", "no"}


def reasons_not_to_use(
    table: Table,
    columns: Sequence[str],
    candidates: Sequence[str],
    separator: str,
    options: Options,
) -> dict[str, str]:
    """Return which columns hold labels or results of an earlier run, and how to use them.

    Labels that are numbers or everyday words are no sign by themselves: such a column must agree
    with the candidates of its rows, too.

    Parameters
    ----------
    table : Table
    columns : sequence of str
        Columns that could become features.
    candidates, separator
        Where the candidates are.
    options : Options
        Where the votes are.

    Returns
    -------
    dict of str to str
        Column -> reason.
    """
    earlier = _of_an_earlier_run(columns)
    reasons = dict.fromkeys(earlier, "from an earlier run (--features uses it)")
    rows = np.arange(0, len(table.frame), max(1, len(table.frame) // _SAMPLE))
    names, sets = _labels(table, candidates, separator, options)
    for name in columns:
        if name in earlier or not _could_hold(table, name, names):
            continue
        cells = table.text(name).iloc[rows].tolist()
        if _hold_labels(cells, names, sets and [sets[row] for row in rows]):
            reasons[name] = "holds labels, perhaps the answer (--gold or --features uses it)"
    return reasons


def _of_an_earlier_run(columns: Iterable[str]) -> list[str]:
    runs: dict[str, list[str]] = {}
    for name in columns:
        plain = name
        while plain.startswith(_PREFIX):
            plain = plain.removeprefix(_PREFIX)
        if plain in RESULT_COLUMNS:
            runs.setdefault(name.removesuffix(plain), []).append(name)
    return [name for run in runs.values() if len(run) >= _FEWEST_OF_A_RUN for name in run]


def _labels(
    table: Table, candidates: Sequence[str], separator: str, options: Options
) -> tuple[frozenset[str], list[frozenset[str]]]:
    """Return the labels in small letters, and those of every row where they are in the table."""
    if options.votes is not None:
        votes = votes_table(options.votes)
        column = vote_columns(votes, options.vote_columns)[1]
        return frozenset(_plain(label) for label in votes.text(column).unique()) - {""}, []
    if len(candidates) > 1:
        names = [_plain(name) for name in without_prefix(list(candidates))]
        flags = np.column_stack([table.text(name).isin(["1", "1.0"]) for name in candidates])
        return frozenset(names), [
            frozenset(n for n, flag in zip(names, row, strict=True) if flag) for row in flags
        ]
    cells = _parsed(table, candidates[0], separator)
    return frozenset().union(*set(cells)), cells


def _parsed(table: Table, column: str, separator: str) -> list[frozenset[str]]:
    if separator == "list":
        return [frozenset(map(_plain, label_names_in(v))) for v in table.frame[column]]
    parse = label_parser(separator)
    known: dict[str, frozenset[str]] = {}
    for cell in table.text(column).unique():
        try:
            known[cell] = frozenset(map(_plain, parse(cell)))
        except (ValueError, RecursionError):  # refused later, where the row can be named
            known[cell] = frozenset()
    return [known[cell] for cell in table.text(column)]


def _plain(label: str) -> str:
    return label.strip().casefold()


def _could_hold(table: Table, name: str, names: frozenset[str]) -> bool:
    is_typed = table.frame[name].dtype.kind in "fiub"
    return not is_typed or any(is_number(label) or label in _EVERYDAY for label in names)


def _hold_labels(cells: list[str], names: frozenset[str], sets: Sequence[frozenset[str]]) -> bool:
    present = [row for row, cell in enumerate(cells) if cell.strip().lower() not in MISSING]
    found = {row: labels for row in present if (labels := _divided(cells[row], names))}
    used = frozenset().union(*found.values())
    if len(used) < 2 or len(found) < _NEARLY_ALL * len(present):
        return False
    if any(len(labels) > 1 for labels in found.values()):
        return True
    if not all(is_number(label) or label in _EVERYDAY for label in used):
        return True
    # Rows that may have any label agree with everything.
    telling = [row for row in found if sets and len(sets[row]) < len(names)]
    agreeing = sum(found[row] <= sets[row] for row in telling)
    return bool(telling) and agreeing >= _NEARLY_ALL * len(telling)


def _divided(cell: str, names: frozenset[str]) -> frozenset[str]:
    """Return the labels that a cell consists of; none if there is anything else in it."""
    ways = [[cell], *(cell.split(mark) for mark in "|;,/")]
    if cell.strip()[:1] in ("[", "(", "{"):
        with suppress(ValueError, RecursionError):
            ways.append([str(entry) for entry in parse_list(cell)])
    for parts in ways:
        labels = frozenset(_plain(part) for part in parts if part.strip())
        if labels and labels <= names:
            return labels
    return frozenset()
