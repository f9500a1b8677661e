"""Which column is what: guesses from names and contents, every one of which can be overridden."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmpll.apps.tables.cells import (
    POINT,
    divides_thousands,
    number_style,
    parse_list,
    read_numbers,
)
from gmpll.apps.tables.errors import InputError, quoted
from gmpll.apps.tables.leaks import reasons_not_to_use
from gmpll.apps.tables.options import NONE, Options

if TYPE_CHECKING:
    import pandas as pd

    from gmpll.apps.tables.tables import Table

__all__ = ["EMBEDDING_FILES", "SEPARATORS", "Roles", "guess_roles", "guess_separator"]

#: Separators of the labels in a cell, the likeliest first; "json" and "list" are read as such.
SEPARATORS = ("|", ";", ",", "/")
EMBEDDING_FILES = (".npy", ".npz", ".parquet", ".pq")

_ID_NAMES = ("id", "item", "item_id", "itemid", "uid", "uuid", "key", "row_id", "task_id", "index")
#: What a first column without a name is called, here and by pandas.
_INDEX_NAMES = ("column_1", "Unnamed: 0")
_SET_NAMES = (
    "candidates",
    "candidate_labels",
    "labels",
    "tags",
    "annotations",
    "classes",
    "categories",
    "names",
)
_GOLD_NAMES = ("gold", "gold_label")
#: A column of such a name holds the answer: it must not become a feature unless somebody says so.
_TRUTH_NAMES = ("truth", "true_label", "ground_truth", "groundtruth", "target", "y_true", "label")
_IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg")
_SAMPLE = 2000
#: More values than this make a column of names no category.
_MOST_CATEGORIES = 50
_LONGEST_LABEL = 40


@dataclass(frozen=True)
class Roles:
    """What every column is used for.

    Attributes
    ----------
    candidates : tuple of str
        The column of sets, or the columns of 0 and 1; empty with votes.
    separator : str
        How a cell is divided; "" for columns of 0 and 1 and with votes.
    votes : str
        Where the votes come from, if they are the candidates.
    id, gold, impossible, image : str
        "" where there is none.
    text, numeric, categorical, vectors : tuple of str
        Columns that the features are made of.
    files : tuple of Path
        Embedding files.
    left_out : dict
        Column -> why it is not used.
    styles : dict
        Column of numbers -> how they are written, unless with a point.
    """

    candidates: tuple[str, ...] = ()
    separator: str = ""
    votes: str = ""
    id: str = ""
    gold: str = ""
    impossible: str = ""
    image: str = ""
    text: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    styles: dict[str, str] = field(default_factory=dict)

    def described(self) -> list[tuple[str, str, str]]:
        """Say what is used for what: role, columns, and the option that overrides it."""
        sets = _listed(self.candidates) or f"from {self.votes}"
        if self.separator:
            words = {"json": "written as lists", "list": "lists"}
            sets += f" ({words.get(self.separator, f'separated by {self.separator!r}')})"
        elif self.candidates:
            sets += " (columns of 0 and 1)"
        lines = [
            ("candidates", sets, "--candidates, --separator, --votes"),
            ("id", self.id or "the row number", "--id"),
            ("known labels", self.gold or "none", "--gold"),
            ("text", _listed(self.text) or "none", "--text"),
            ("numbers", _listed(self.numeric) or "none", "--features, --exclude"),
            ("categories", _listed(self.categorical) or "none", "--features, --exclude"),
        ]
        vectors = _listed([*self.vectors, *(str(path) for path in self.files)])
        if vectors:
            lines.append(("embeddings", vectors, "--features"))
        if self.impossible:
            lines.append(("impossible labels", self.impossible, "--impossible"))
        if self.image:
            lines.append(("image", self.image, "--image"))
        if self.left_out:
            names: dict[str, list[str]] = {}
            for name, why in self.left_out.items():
                names.setdefault(why, []).append(name)
            reasons = [f"{_listed(who)}: {why}" for why, who in list(names.items())[:12]]
            more = [f"and {len(names) - 12} reasons more"] * (len(names) > 12)
            lines.append(("left out", "; ".join([*reasons, *more]), "--features"))
        return lines


def guess_roles(table: Table, options: Options) -> Roles:
    """Decide what every column is used for.

    Parameters
    ----------
    table : Table
    options : Options
        What the user said; it always wins.

    Returns
    -------
    Roles

    Raises
    ------
    InputError
        If a column that was named does not exist, or there are no candidates or no features.

    Examples
    --------
    >>> import pandas as pd
    >>> from gmpll.apps.tables.guesses import guess_roles
    >>> from gmpll.apps.tables.options import Options
    >>> from gmpll.apps.tables.tables import table_from_frame
    >>> frame = pd.DataFrame({"id": [1, 2, 3], "size": [1.0, 2, 9], "tags": ["a|b", "a", "b|a"]})
    >>> roles = guess_roles(table_from_frame(frame), Options())
    >>> roles.candidates, roles.separator, roles.numeric, roles.id
    (('tags',), '|', ('size',), 'id')
    """
    frame = table.frame
    if len(frame) < 2:
        raise InputError(
            f"{table.name} has one row only: similar rows are needed to resolve a set."
        )
    excluded = set(_named(options.exclude, table, "--exclude"))
    identity = _id_column(table, options, excluded)
    gold = _gold_column(table, options, excluded)
    impossible = _impossible_column(table, options)
    taken = excluded | {identity, gold, impossible}
    candidates, separator = _candidate_columns(table, options, taken)
    used = {identity, gold, impossible, *candidates}
    image = _image_column(table, options, used | excluded)

    left_out: dict[str, str] = dict.fromkeys(sorted(excluded), "excluded")
    columns, files = _feature_names(table, options)
    free = [n for n in frame.columns if n not in used | excluded | {image, *options.text}]
    if not options.features:
        left_out |= reasons_not_to_use(table, free, candidates, separator, options)
    text = _text_columns(table, options, used | {image} | set(left_out))
    explicit = bool(columns or files)
    kinds: dict[str, list[str]] = {"numeric": [], "categorical": [], "vectors": []}
    for name in columns or ([] if files else list(frame.columns)):
        if name in used or name in text or name in left_out or name == image:
            continue
        kind, reason = _kind(table, name, explicit)
        if kind == "text":
            text = (*text, name)
        elif kind:
            kinds[kind].append(name)
        else:
            left_out[name] = reason
    if explicit:
        said = {*columns, *text, *used, *excluded, image}
        left_out |= {name: "not named" for name in frame.columns if name not in said}
    roles = Roles(
        candidates=candidates,
        separator=separator,
        votes=_source_of(options.votes),
        id=identity,
        gold=gold,
        impossible=impossible,
        image=image,
        text=text,
        numeric=tuple(kinds["numeric"]),
        categorical=tuple(kinds["categorical"]),
        vectors=tuple(kinds["vectors"]),
        files=files,
        left_out=left_out,
        styles=_styles(table, kinds["numeric"]),
    )
    if not (roles.text or roles.numeric or roles.categorical or roles.vectors or roles.files):
        why = "; ".join(f"{name}: {reason}" for name, reason in list(left_out.items())[:5])
        raise InputError(
            f"{table.name} has no column that can tell the rows apart{f' ({why})' if why else ''}: "
            "name features with --features or a text column with --text."
        )
    return roles


def _source_of(votes: object) -> str:
    if votes is None:
        return ""
    return str(votes) if isinstance(votes, (str, Path)) else "the table of votes"


def guess_separator(cells: pd.Series) -> str | None:
    """Return how the cells of a column are divided into labels; None if they are not.

    Examples
    --------
    >>> import pandas as pd
    >>> from gmpll.apps.tables.guesses import guess_separator
    >>> guess_separator(pd.Series(["cat|dog", "dog", "cat"]))
    '|'
    >>> guess_separator(pd.Series(["['cat']", "['dog', 'cat']"]))
    'json'
    """
    sample = cells.iloc[:: max(1, len(cells) // _SAMPLE)]
    values = [value for value in sample if not _is_absent(value)]
    if not values:
        return None
    if all(isinstance(v, (list, tuple, set, frozenset, np.ndarray)) for v in values):
        return None if all(_is_vector(v) for v in values) else "list"
    texts = [str(value).strip() for value in values]
    if 2 * sum(text[:1] in "[({" and _lists_labels(text) for text in texts) >= len(texts):
        return "json"
    for separator in SEPARATORS:
        if _divides(texts, separator):
            return separator
    return None


def _divides(texts: list[str], separator: str) -> bool:
    """Whether cells look like sets: short names that come back again and again."""
    parts = [part.strip() for text in texts for part in text.split(separator)]
    divided = sum(separator in text for text in texts)
    if divided < max(1, 0.02 * len(texts)) or any(len(part) > _LONGEST_LABEL for part in parts):
        return False
    return len(set(parts)) <= max(0.5 * len(parts), 3)


def _id_column(table: Table, options: Options, excluded: set[str]) -> str:
    if options.id:
        return "" if options.id == NONE else _existing(options.id, table, "--id")
    for name in table.frame.columns:
        if name.lower() in _ID_NAMES and name not in excluded and _all_different(table.text(name)):
            return name
    return ""


def _gold_column(table: Table, options: Options, excluded: set[str]) -> str:
    if options.gold:
        return "" if options.gold == NONE else _existing(options.gold, table, "--gold")
    names = [n for n in table.frame.columns if n.lower() in _GOLD_NAMES and n not in excluded]
    return names[0] if names else ""


def _impossible_column(table: Table, options: Options) -> str:
    if not options.impossible or options.impossible == NONE:
        return ""
    return _existing(options.impossible, table, "--impossible")


def _candidate_columns(
    table: Table, options: Options, taken: set[str]
) -> tuple[tuple[str, ...], str]:
    frame = table.frame
    if options.votes is not None:
        if options.candidates:
            raise InputError("Candidates come from a column or from votes: leave out one of them.")
        return (), ""
    if options.candidates:
        names = tuple(_named(options.candidates, table, "--candidates"))
        if len(names) > 1:
            return names, ""
        return names, options.separator or guess_separator(_cells(table, names[0])) or "|"
    free = [name for name in frame.columns if name not in taken]
    named = [n for wanted in _SET_NAMES for n in free if n.lower() == wanted]
    others = [n for n in free if n not in named and _might_be_sets(frame[n])]
    for name in (*named, *others):
        separator = guess_separator(_cells(table, name))
        if separator and (name in named or separator not in (",", "/")):
            return (name,), options.separator or separator
    flags = _flag_columns(frame, free)
    if flags:
        return flags, ""
    if named:
        return (named[0],), options.separator or "|"
    raise InputError(
        f"No column of {table.name} looks like sets of candidate labels (columns: "
        f"{_listed(list(frame.columns))}): name it with --candidates, or give --votes FILE."
    )


def _cells(table: Table, name: str) -> pd.Series:
    return table.frame[name] if table.frame[name].dtype == object else table.text(name)


def _might_be_sets(column: pd.Series) -> bool:
    return column.dtype.kind not in "fiubM"


def _flag_columns(frame: pd.DataFrame, names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of 0 and 1 that share a prefix, such as ``label_cat``, ``label_dog``."""
    groups: dict[str, list[str]] = {}
    for name in names:
        for mark in ("_", "=", ":", "."):
            prefix, found, rest = name.partition(mark)
            if found and rest and frame[name].dtype.kind in "fiub" and _is_flag(frame[name]):
                groups.setdefault(prefix + mark, []).append(name)
                break
    groups = {prefix: columns for prefix, columns in groups.items() if len(columns) > 1}
    best = max(groups.values(), key=len, default=[])
    covered = bool(best) and bool((frame[best].to_numpy(dtype=float) > 0).any(axis=1).mean() > 0.9)
    return tuple(best) if covered else ()


def _is_flag(column: pd.Series) -> bool:
    return bool(column.isin([0, 1]).all())


def _image_column(table: Table, options: Options, taken: set[str]) -> str:
    if options.image:
        return "" if options.image == NONE else _existing(options.image, table, "--image")
    for name in table.frame.columns:
        if name in taken or not _might_be_sets(table.frame[name]):
            continue
        sample = table.frame[name].iloc[:50]
        if all(isinstance(v, str) and v.lower().endswith(_IMAGE_ENDINGS) for v in sample):
            return name
    return ""


def _text_columns(table: Table, options: Options, taken: set[str]) -> tuple[str, ...]:
    if options.text:
        if list(options.text) == [NONE]:
            return ()
        return tuple(_named(options.text, table, "--text"))
    if options.features:  # said exactly what to use
        return ()
    return tuple(n for n in table.frame.columns if n not in taken and _is_text(table.frame[n]))


def _is_text(column: pd.Series) -> bool:
    """Whether most cells are different and have several words."""
    if not _might_be_sets(column):
        return False
    sample = [v for v in column.iloc[:: max(1, len(column) // _SAMPLE)] if isinstance(v, str)]
    if len(sample) < max(1, 0.3 * min(len(column), _SAMPLE)):
        return False
    words = np.mean([len(text.split()) for text in sample])
    return bool(words >= 2.5 and len(set(sample)) > 0.3 * len(sample))


def _feature_names(table: Table, options: Options) -> tuple[list[str], tuple[Path, ...]]:
    columns: list[str] = []
    files: list[Path] = []
    for entry in options.features:
        matches = _matching(str(entry), list(table.frame.columns))
        if matches:
            columns += matches
        elif Path(entry).suffix.lower() in EMBEDDING_FILES:
            files.append(Path(entry))
        else:
            raise InputError(
                f"--features names {quoted(entry)}, which is neither a column of {table.name} nor "
                f"an embeddings file ({', '.join(EMBEDDING_FILES)}); the columns are "
                f"{_listed(list(table.frame.columns))}."
            )
    return list(dict.fromkeys(columns)), tuple(files)


def _kind(table: Table, name: str, explicit: bool) -> tuple[str, str]:
    """Return what a column is good for, or "" and why it is not."""
    column = table.frame[name]
    style = number_style(table, name)
    if style:
        if not explicit and _is_row_number(table, name):
            return "", "the number of the row"
        if not explicit and name.lower() in (*_TRUTH_NAMES, *_GOLD_NAMES):
            return "", "its name says that it holds the answer; --gold would use it"
        if not explicit and name.lower() in _ID_NAMES:
            return "", "its name says that it is an id"
        values = read_numbers(table, name, style).values
        return (
            ("", "constant") if len(np.unique(values[~np.isnan(values)])) < 2 else ("numeric", "")
        )
    first = next((value for value in column if not _is_absent(value)), None)
    if first is None:
        return "", "empty"
    if _is_vector(first):
        return "vectors", ""
    if column.dtype.kind == "M":
        return "", "a date"
    if not isinstance(first, (str, bool, int, float, np.generic)):
        return "", f"holds {type(first).__name__} values"
    if not explicit and name.lower() in _TRUTH_NAMES:
        return "", "its name says that it holds the answer; --gold would use it"
    n_values = column.astype(str).nunique()
    if n_values < 2:
        return "", "constant"
    if explicit and _is_text(column):
        return "text", ""
    most = min(_MOST_CATEGORIES, max(2, len(column) // 2))
    if n_values > most and not explicit:
        commas = "; its commas may divide thousands" * divides_thousands(str(first))
        return "", f"{n_values} different values{commas}"
    return "categorical", ""


def _is_row_number(table: Table, name: str) -> bool:
    """Whether a column without a name, as pandas writes the index, counts the rows."""
    column = table.frame[name]
    if name not in _INDEX_NAMES or name != table.frame.columns[0] or column.dtype.kind not in "fiu":
        return False
    return bool((np.diff(column.to_numpy(dtype=float)) == 1).all())


def _styles(table: Table, names: Iterable[str]) -> dict[str, str]:
    found = {name: number_style(table, name) for name in names}
    return {name: style for name, style in found.items() if style and style != POINT}


def _named(names: Sequence[str], table: Table, option: str) -> list[str]:
    found: list[str] = []
    for name in names:
        if name == NONE and name not in table.frame.columns:
            continue
        matches = _matching(name, list(table.frame.columns))
        found += matches or [_existing(name, table, option)]
    return list(dict.fromkeys(found))


def _matching(pattern: str, columns: list[str]) -> list[str]:
    if pattern in columns:
        return [pattern]
    return [name for name in columns if fnmatchcase(name, pattern)] if "*" in pattern else []


def _existing(name: str, table: Table, option: str) -> str:
    columns = list(table.frame.columns)
    if name not in columns:
        raise InputError(
            f"{table.name} has no column {quoted(name)}, which {option} names; it has "
            f"{_listed(columns)}."
        )
    return name


def _listed(names: Sequence[str], most: int = 8) -> str:
    names = [str(name)[:_LONGEST_LABEL] for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _all_different(cells: pd.Series) -> bool:
    return bool(cells.is_unique) and not bool((cells == "").any())


def _is_absent(value: Any) -> bool:
    if isinstance(value, (str, float)):
        return value == "" or value != value
    return value is None


def _is_vector(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" or (value.dtype.kind in "iu" and value.size > 8)
    return (
        isinstance(value, (list, tuple))
        and len(value) > 0
        and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value)
        and any(isinstance(v, float) for v in value)
    )


def _lists_labels(text: str) -> bool:
    try:
        return not _is_vector(parse_list(text))
    except (ValueError, RecursionError):
        return False
