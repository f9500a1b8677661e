"""The columns of the input, from the table of results in a folder."""

from __future__ import annotations

import json
from pathlib import Path

from gmpll.apps.tables import InputError, SavedMatching
from gmpll.apps.tables.guesses import RESULT_COLUMNS
from gmpll.apps.tables.tables import Table, read_table

_PREFIX = "resolved_"


def input_columns(folder: Path, saved: SavedMatching) -> dict[str, list[str]]:
    """Return the columns of the input as text; none where the results cannot be read."""
    given = json.loads(saved.settings).get("input") or {}
    for path in sorted(folder.glob("resolved.*")):
        try:
            table = read_table(path, encoding=given["reading"]["encoding"] if given else None)
        except (InputError, OSError, KeyError, TypeError):
            continue
        if len(table.frame) == len(saved.ids):
            mark = "'" if given.get("escape", True) and table.format in ("csv", "tsv") else ""
            added = _added(table)
            return {
                name.removeprefix(mark): [cell.removeprefix(mark) for cell in table.text(name)]
                for name in table.frame.columns
                if name not in added
            }
    return {}


def _added(table: Table) -> list[str]:
    """Return the columns that the run has added: the last ones, each of them once."""
    added: list[str] = []
    for name in reversed(list(table.frame.columns)):
        if _plain(name) not in RESULT_COLUMNS or _plain(name) in map(_plain, added):
            break
        added.append(name)
    return added


def _plain(name: str) -> str:
    while name.startswith(_PREFIX):
        name = name.removeprefix(_PREFIX)
    return name
