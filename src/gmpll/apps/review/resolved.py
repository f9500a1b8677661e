"""The columns of the input, from the table of results in a folder."""

from __future__ import annotations

import json
from pathlib import Path

from gmpll.apps.tables import InputError, SavedMatching
from gmpll.apps.tables.tables import read_table


def input_columns(folder: Path, saved: SavedMatching) -> dict[str, list[str]]:
    """Return the columns of the input as text; none where the results cannot be read."""
    settings = json.loads(saved.settings)
    given = settings.get("input") or {}
    for path in sorted(folder.glob("resolved.*")):
        try:
            table = read_table(path, encoding=given["reading"]["encoding"] if given else None)
            names = table.frame.columns[: -settings["added_columns"]]
        except (InputError, OSError, KeyError, TypeError):
            continue
        if len(table.frame) == len(saved.ids):
            mark = "'" if given.get("escape", True) and table.format in ("csv", "tsv") else ""
            return {
                name.removeprefix(mark): [cell.removeprefix(mark) for cell in table.text(name)]
                for name in names
            }
    return {}
