"""What a user can say about the data, and how labels are written: in cells, names, votes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmpll.apps.tables.cells import is_missing, parse_list
from gmpll.apps.tables.errors import InputError, listed
from gmpll.apps.tables.tables import Table, read_table, table_from_frame

#: Given for a column, it means that there is none, whatever a guess would say.
NONE = "none"
_ITEM_NAMES = ("item", "item_id", "id", "task", "task_id", "question", "document", "key")
_LABEL_NAMES = ("label", "vote", "answer", "tag", "class", "category", "response", "value")
_WHO_NAMES = ("annotator", "annotator_id", "worker", "worker_id", "user", "user_id", "who", "rater")
_MARKS = ("_", "=", ":", ".")


@dataclass(frozen=True)
class Options:
    """Overrides of the guesses; most are the parameters of :func:`gmpll.apps.tables.disambiguate`.

    ``min_share`` is the share of an item's votes that makes a label a candidate, ``labels`` are
    all that are allowed (any if empty), and ``image`` is the column of image file names. Whether a
    label may lie ``outside`` of the votes is "auto" or "never".
    """

    candidates: Sequence[str] = ()
    separator: str | None = None
    votes: object = None
    vote_columns: Sequence[str] = ()
    min_share: float = 0.0
    labels: Sequence[str] = ()
    empty: str = "error"
    text: Sequence[str] = ()
    features: Sequence[str | Path] = ()
    exclude: Sequence[str] = ()
    id: str | None = None
    gold: str | None = None
    image: str | None = None
    impossible: str | None = None
    trust: float | None = None
    outside: str = "auto"
    method: str = "gmpll"
    review_below: float | None = None
    seed: int = 0


def options_of(given: Mapping[str, Any], several: Callable[[Any], tuple[Any, ...]]) -> Options:
    """Return the options among what was given; ``several`` takes those apart that name several."""
    known = [(field.name, field.default == ()) for field in fields(Options) if field.name in given]
    chosen: dict[str, Any] = {n: several(given[n]) if is_list else given[n] for n, is_list in known}
    return Options(**chosen)


def parse_cells(
    table: Table, column: str, separator: str
) -> tuple[NDArray[np.intp], list[list[str] | None]]:
    """Return which of the different cells every row has, and their labels; None if unreadable."""
    import pandas as pd

    if separator == "list":
        keys = table.frame[column].map(lambda value: "\x1f".join(_names_in(value)))
    else:
        keys = table.text(column)
    codes, different = pd.factorize(keys)
    return codes, [_parsed(str(cell), separator) for cell in different]


def _parsed(cell: str, separator: str) -> list[str] | None:
    if separator != "json":
        parts = cell.split("\x1f" if separator == "list" else separator)
        return [part.strip() for part in parts if part.strip()]
    try:
        content = parse_list(cell) if cell.strip() else []
    except (ValueError, RecursionError):
        return None
    if any(isinstance(value, (list, tuple, set, dict)) for value in content):
        return None
    return _names_in(content)


def _names_in(value: Any) -> list[str]:
    """Return the labels of a list, or the one label that a value is."""
    if is_missing(value):
        return []
    if isinstance(value, (str, int, float)):
        value = [value]
    return [str(label).strip() for label in value if label is not None and str(label).strip()]


def split_prefix(name: str) -> tuple[str, str]:
    """Divide ``label_cat`` after its first mark; nothing comes first if it has none."""
    for mark in _MARKS:
        prefix, found, rest = name.partition(mark)
        if found and rest:
            return prefix + mark, rest
    return "", name


def without_prefix(names: Sequence[str]) -> list[str]:
    """Take off what all names begin with up to a mark: ``label_cat``, ``label_dog``."""
    for mark in _MARKS:
        prefixes = {name.partition(mark)[0] for name in names}
        if len(prefixes) == 1 and all(name.partition(mark)[2] for name in names):
            return [name.partition(mark)[2] for name in names]
    return list(names)


class Votes(NamedTuple):
    """A table of votes, and its columns; ``who`` is "" if nobody is named."""

    table: Table
    item: str
    label: str
    who: str


def read_votes(options: Options) -> Votes:
    """Return the votes, which may be a file or a DataFrame."""
    given: Any = options.votes
    table = table_from_frame(given) if hasattr(given, "columns") else read_table(Path(given))
    columns = list(table.frame.columns)
    said = options.vote_columns
    if said:
        if not (2 <= len(said) <= 3 and set(said) <= set(columns)):
            raise InputError(
                f"--vote-columns needs ITEM,LABEL or ITEM,LABEL,ANNOTATOR out of {listed(columns)}."
            )
        return Votes(table, said[0], said[1], said[2] if len(said) == 3 else "")
    lower = {name.lower(): name for name in columns}
    item, label, who = (
        next((lower[name] for name in wanted if name in lower), "")
        for wanted in (_ITEM_NAMES, _LABEL_NAMES, _WHO_NAMES)
    )
    if not item or not label:
        raise InputError(
            f"The columns of {table.name} ({listed(columns)}) do not say which is the item "
            "and which the label: name them with --vote-columns ITEM,LABEL,ANNOTATOR."
        )
    return Votes(table, item, label, who)
