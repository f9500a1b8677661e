"""Columns that must not become features unasked: the answer, and results of an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from gmpll.apps.tables.cells import MISSING, is_number, parse_list, sampled
from gmpll.apps.tables.labels import parse_cells, read_votes, without_prefix

if TYPE_CHECKING:
    from gmpll.apps.tables.options import Options
    from gmpll.apps.tables.tables import Table

__all__ = ["RESULT_COLUMNS", "reasons_not_to_use"]

#: Columns that are added to the input.
RESULT_COLUMNS = ("label", "confidence", "runner_up", "margin", "review", "votes")
_PREFIX = "resolved_"
#: So many of them together come from an earlier run.
_MIN_OF_A_RUN = 3
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
    """
    earlier = _of_an_earlier_run(columns)
    reasons = dict.fromkeys(earlier, "from an earlier run (--features uses it)")
    names, sets = _labels(table, candidates, separator, options)
    could_be_numbers = any(map(_is_everyday, names))
    for name in columns:
        is_typed = table.frame[name].dtype.kind in "fiub"
        if name in earlier or (is_typed and not could_be_numbers):
            continue
        cells = sampled(table.text(name), _SAMPLE)
        if _hold_labels(dict(zip(cells.index, cells, strict=True)), names, sets):
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
    return [name for run in runs.values() if len(run) >= _MIN_OF_A_RUN for name in run]


def _labels(
    table: Table, candidates: Sequence[str], separator: str, options: Options
) -> tuple[frozenset[str], list[frozenset[str]]]:
    """Return the labels in small letters, and those of every row where they are in the table."""
    if options.votes is not None:
        votes = read_votes(options)
        return _plain(votes.table.text(votes.label).unique()), []
    if len(candidates) > 1:
        names = np.array(without_prefix(candidates))
        flags = np.column_stack([table.text(name).isin(["1", "1.0"]) for name in candidates])
        return _plain(names), [_plain(names[row]) for row in flags]
    codes, parsed = parse_cells(table, candidates[0], separator)
    different = [_plain(labels or ()) for labels in parsed]  # unreadable ones are refused later
    return frozenset().union(*different), [different[code] for code in codes]


def _plain(labels: Iterable[str]) -> frozenset[str]:
    return frozenset(str(label).strip().casefold() for label in labels) - {""}


def _is_everyday(label: str) -> bool:
    return is_number(label) or label in _EVERYDAY


def _hold_labels(
    cells: dict[int, str], names: frozenset[str], sets: Sequence[frozenset[str]]
) -> bool:
    present = {row: cell for row, cell in cells.items() if cell.strip().lower() not in MISSING}
    found = {row: labels for row, cell in present.items() if (labels := _divided(cell, names))}
    used = frozenset().union(*found.values())
    if len(used) < 2 or len(found) < _NEARLY_ALL * len(present):
        return False
    if any(len(labels) > 1 for labels in found.values()) or not all(map(_is_everyday, used)):
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
        labels = _plain(parts)
        if labels and labels <= names:
            return labels
    return frozenset()
