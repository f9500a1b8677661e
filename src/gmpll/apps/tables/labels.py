"""What a user can say about the data, and how labels are written: in cells, names, votes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gmpll._typing import Places
from gmpll.apps.tables.cells import parse_list
from gmpll.apps.tables.errors import InputError, counted, listed, quoted
from gmpll.apps.tables.tables import Table, read_table, table_from_frame
from gmpll.candidates import is_missing

#: Given for a column, it means that there is none, whatever a guess would say.
NONE = "none"
_ITEM_NAMES = ("item", "item_id", "id", "task", "task_id", "question", "document", "key")
_LABEL_NAMES = ("label", "vote", "answer", "tag", "class", "category", "response", "value")
_WHO_NAMES = (
    *("annotator", "annotator_id", "worker", "worker_id", "user", "user_id", "who", "rater"),
    *("username", "user_name", "coder", "expert", "judge", "reviewer", "labeler", "labeller"),
    *("agent", "email", "annotated_by", "labeled_by", "labelled_by", "created_by"),
)
#: Names of columns that may number the votes as well as the items.
_VAGUE_NAMES = ("id", "key")
#: A column holds the items if so many of its cells are ids of rows.
_MIN_KNOWN = 0.5
_MARKS = ("_", "=", ":", ".")


@dataclass(frozen=True)
class Options:
    """Overrides of the guesses; most are the parameters of :func:`gmpll.apps.tables.disambiguate`.

    ``min_share`` is the share of an item's votes that makes a label a candidate, ``labels`` are
    all that are allowed (any if empty), and ``image`` is the column of image file names. Whether a
    label may lie ``outside`` of the votes is "auto" or "never". ``rename`` is a mapping, or texts
    that are OLD=NEW or name a file.
    """

    candidates: Sequence[str] = ()
    separator: str | None = None
    votes: object = None
    vote_columns: Sequence[str] = ()
    annotators: Sequence[str] = ()
    min_share: float = 0.0
    labels: Sequence[str] = ()
    merge_labels: bool = False
    rename: Mapping[str, str] | Sequence[str] | None = None
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


def several(value: Any) -> tuple[Any, ...]:
    """Return what was given where several can be: nothing, one or a sequence."""
    if value is None:
        return ()
    return (value,) if isinstance(value, (str, Path)) else tuple(value)


def options_of(
    given: Mapping[str, Any], several: Callable[[Any], tuple[Any, ...]] = several
) -> Options:
    """Return the options among what was given; ``several`` takes those apart that name several."""
    known = [(field.name, field.default == ()) for field in fields(Options) if field.name in given]
    chosen: dict[str, Any] = {n: several(given[n]) if is_list else given[n] for n, is_list in known}
    return Options(**chosen)


def parse_cells(table: Table, column: str, separator: str) -> tuple[Places, list[list[str] | None]]:
    """Return which of the different cells every row has, and their labels; None if unreadable."""
    if separator == "list":
        keys = table.frame[column].map(lambda value: "\x1f".join(_names_in(value)))
    else:
        keys = table.text(column)
    codes, different = pd.factorize(keys)
    parsed = []
    for cell in map(str, different):
        content: Any = cell.split("\x1f" if separator == "list" else separator)
        if separator == "json":
            content = parse_list(cell) if cell.strip() else []
            if content and any(isinstance(value, (list, tuple, set, dict)) for value in content):
                content = None
        parsed.append(None if content is None else _names_in(content))
    return codes, parsed


def read_cells(table: Table, column: str, separator: str) -> tuple[Places, list[list[str]]]:
    """Return which of the different cells every row has, and their labels."""
    codes, parsed = parse_cells(table, column, separator)
    if None in parsed:
        row = int(np.flatnonzero(codes == parsed.index(None))[0])
        raise InputError(
            f'{table.place(row, column)}, which is no list of labels like ["cat", "dog"]: fix it, '
            "or name another --separator."
        )
    return codes, [labels or [] for labels in parsed]


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


def repeated_ids(cells: Iterable[str]) -> tuple[str, str]:
    """Say how many ids stand more than once, and which, with their rows; "" if none does."""
    rows: dict[str, list[int]] = {}
    for row, cell in enumerate(cells, start=1):
        rows.setdefault(cell, []).append(row)
    shown = [f"{quoted(n)} in rows {listed(at, 3)}" for n, at in rows.items() if len(at) > 1]
    if not shown:
        return "", ""
    often = "twice" if max(map(len, rows.values())) == 2 else "more than once"
    return f"{counted(len(shown), 'id', 'stands')} {often}", listed(shown, 5)


class VoteTable(NamedTuple):
    """A table of votes, and its columns; ``who`` is "" if nobody is named."""

    table: Table
    item: str
    label: str
    who: str

    def described(self) -> str:
        """Say where the votes come from."""
        source = "the table of votes" if self.table.path is None else self.table.name
        who = f", annotator {self.who}" if self.who else ""
        return f"{source} (item {self.item}, label {self.label}{who})"


def _come_back(table: Table, column: str) -> bool:
    """Whether a column holds names of which every one stands in some rows."""
    cells = table.text(column)
    is_text = table.frame[column].dtype.kind not in "fiubM" and bool((cells != "").all())
    return is_text and 1 < cells.nunique() <= len(cells) // 2


def open_votes(given: Any) -> Table:
    """Return the table of votes, which may be a file or a DataFrame."""
    return table_from_frame(given) if hasattr(given, "columns") else read_table(Path(given))


def vote_table(table: Table, said: Sequence[str], ids: Sequence[str], id_column: str) -> VoteTable:
    """Find out which column of a table of votes is which.

    The items are in the column that has the name of the id column, or a usual one, and otherwise
    in a column whose cells are ids of rows. Of two columns without a usual name, the annotators
    are in the one that has nothing twice for an item.
    """
    columns = list(table.frame.columns)
    if said:
        if not (2 <= len(said) <= 3 and set(said) <= set(columns)):
            raise InputError(
                f"--vote-columns needs ITEM,LABEL or ITEM,LABEL,ANNOTATOR out of {listed(columns)}."
            )
        return VoteTable(table, said[0], said[1], said[2] if len(said) == 3 else "")
    lower = {name.lower(): name for name in columns}
    items = [lower[name] for name in _ITEM_NAMES if name in lower]
    if id_column in columns:
        place = 0 if id_column.lower() not in _VAGUE_NAMES else len(items)
        items.insert(place, id_column)
    label, who = (
        next((lower[n] for n in wanted if n in lower and lower[n] not in items[:1]), "")
        for wanted in (_LABEL_NAMES, _WHO_NAMES)
    )
    known = set(ids)
    others = [name for name in columns if name not in (*items, label, who)]
    matching = (n for n in (*items, *others) if table.text(n).isin(known).mean() >= _MIN_KNOWN)
    item = next(matching, items[0] if items else "")
    rest = [name for name in columns if name not in (item, label, who)]
    if item and not label and len(rest) == 1:
        label = rest.pop()
    if item and not label and not who and len(rest) == 2:
        once = [name for name in rest if not table.frame.duplicated([item, name]).any()]
        if len(once) == 1 and _come_back(table, once[0]):
            (label,) = set(rest) - set(once)
            rest = once
    if label and not who and len(rest) == 1 and _come_back(table, rest[0]):
        who = rest[0]
    if not item or not label:
        what = "which is the label" if item else "which is the item and which the label"
        none = "" if item else f", and none holds ids of rows like {quoted(ids[0])}"
        raise InputError(
            f"The columns of {table.name} ({listed(columns)}) do not say {what}{none}: name them "
            "with --vote-columns ITEM,LABEL,ANNOTATOR."
        )
    return VoteTable(table, item, label, who if who != item else "")
