"""How labels are written: in cells, in the names of columns of 0 and 1, in votes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gmpll.apps.tables.cells import parse_list
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.tables import Table, read_table, table_from_frame

__all__ = [
    "label_names_in",
    "label_parser",
    "vote_columns",
    "votes_table",
    "without_prefix",
]

_ITEM_NAMES = ("item", "item_id", "id", "task", "task_id", "question", "document", "key")
_LABEL_NAMES = ("label", "vote", "answer", "tag", "class", "category", "response", "value")
_WHO_NAMES = ("annotator", "annotator_id", "worker", "worker_id", "user", "user_id", "who", "rater")


def label_parser(separator: str) -> Callable[[str], list[str]]:
    """Return how a cell becomes its labels."""
    if separator == "json":
        return _parse_json
    divider = "\x1f" if separator == "list" else separator
    return lambda cell: [part.strip() for part in cell.split(divider) if part.strip()]


def _parse_json(cell: str) -> list[str]:
    if not cell.strip():
        return []
    content = parse_list(cell)
    if any(isinstance(value, (list, tuple, set, dict)) for value in content):
        raise ValueError("not a list of labels")
    return label_names_in(content)


def label_names_in(value: Any) -> list[str]:
    """Return the labels of a list, or the one label that a value is."""
    if value is None or (isinstance(value, float) and value != value):
        return []
    if isinstance(value, (str, int, float)):
        value = [value]
    return [str(label).strip() for label in value if label is not None and str(label).strip()]


def without_prefix(names: list[str]) -> list[str]:
    """Take off what all names begin with up to a mark: ``label_cat``, ``label_dog``."""
    for mark in ("_", "=", ":", "."):
        prefixes = {name.partition(mark)[0] for name in names}
        if len(prefixes) == 1 and all(name.partition(mark)[2] for name in names):
            return [name.partition(mark)[2] for name in names]
    return names


def votes_table(votes: Any) -> Table:
    """Return the votes, which may be a file or a DataFrame."""
    return table_from_frame(votes) if hasattr(votes, "columns") else read_table(Path(votes))


def vote_columns(votes: Table, said: Sequence[str]) -> tuple[str, str, str]:
    """Return the columns of item, label and annotator; "" for the last if there is none."""
    columns = list(votes.frame.columns)
    if said:
        missing = [name for name in said if name not in columns]
        if missing or not 2 <= len(said) <= 3:
            raise InputError(
                f"--vote-columns needs ITEM,LABEL or ITEM,LABEL,ANNOTATOR out of "
                f"{', '.join(columns[:8])}."
            )
        return said[0], said[1], said[2] if len(said) == 3 else ""
    found = [_first_of(names, columns) for names in (_ITEM_NAMES, _LABEL_NAMES, _WHO_NAMES)]
    if not found[0] or not found[1]:
        raise InputError(
            f"The columns of {votes.name} ({', '.join(columns[:8])}) do not say which is the item "
            "and which the label: name them with --vote-columns ITEM,LABEL,ANNOTATOR."
        )
    return found[0], found[1], found[2]


def _first_of(wanted: Sequence[str], columns: Sequence[str]) -> str:
    lower = {name.lower(): name for name in columns}
    return next((lower[name] for name in wanted if name in lower), "")
