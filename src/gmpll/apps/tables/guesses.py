"""Which column is what: guesses from names and contents, every one of which can be overridden.

Columns that hold the answer, or results of an earlier run, do not become features unasked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gmpll.apps.tables.annotator_columns import guess_annotators, votes_in_columns
from gmpll.apps.tables.cells import (
    MISSING,
    POINT,
    divides_thousands,
    is_absent,
    is_everyday,
    is_number,
    is_vector,
    number_style,
    parse_list,
    read_numbers,
    sampled,
)
from gmpll.apps.tables.errors import InputError, listed, quoted
from gmpll.apps.tables.labels import (
    NONE,
    Options,
    VoteTable,
    open_votes,
    parse_cells,
    repeated_ids,
    split_prefix,
    vote_table,
    without_prefix,
)
from gmpll.apps.tables.tables import Table

#: Columns that are added to the input.
RESULT_COLUMNS = (
    *("label", "confidence", "runner_up", "margin", "review"),
    *("votes", "suggested", "outside", "decided_by"),
)
_PREFIX = re.compile("(resolved_)*")
#: So many of them together come from an earlier run.
_MIN_OF_A_RUN = 3
_SAMPLE = 1000
#: A column holds labels if so many of its cells do.
_NEARLY_ALL = 0.95
#: Separators of the labels in a cell, the likeliest first; "json" and "list" are read as such.
SEPARATORS = ("|", ";", ",", "/")
EMBEDDING_FILES = (".npy", ".npz", ".parquet", ".pq")
_ID_NAMES = ("id", "item", "item_id", "itemid", "uid", "uuid", "key", "row_id", "task_id", "index")
#: Names like ticket_id, id_ticket and ticketId.
_ID_LIKE = re.compile(r"(?i:(.*[\W_])?(id|uid|uuid|guid|key)|id[\W_].*)|.*[a-z0-9]I[Dd]")
_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ].*)?")
_MAX_ID_LENGTH = 100
#: What a first column without a name is called, here and by pandas.
_INDEX_NAMES = ("column_1", "Unnamed: 0")
_SET_NAMES = (
    *("candidates", "candidate_labels", "labels", "tags"),
    *("annotations", "classes", "categories", "names"),
)
_GOLD_NAMES = ("gold", "gold_label")
#: A column of such a name holds the answer: it must not become a feature unless somebody says so.
_TRUTH_NAMES = ("truth", "true_label", "ground_truth", "groundtruth", "target", "y_true", "label")
_IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg")
_IMAGE_SAMPLE = 50
#: More values than this make a column of names no category.
_MAX_CATEGORIES = 50
_MAX_LABEL_LENGTH = 40
#: In so few rows all words may differ by chance.
_MIN_NAMED_ROWS = 5
_MAX_REASONS = 12


def _reasons_not_to_use(table: Table, columns: Sequence[str], source: Roles) -> dict[str, str]:
    """Return which columns hold labels or results of an earlier run, and how to use them."""
    earlier = _of_an_earlier_run(columns)
    reasons = dict.fromkeys(earlier, "from an earlier run (--features uses it)")
    names, sets = _labels(table, source)
    could_be_numbers = any(map(is_everyday, names))
    for name in columns:
        is_typed = table.frame[name].dtype.kind in "fiub"
        if name in earlier or (is_typed and not could_be_numbers):
            continue
        if _hold_labels(sampled(table.text(name), _SAMPLE), names, sets):
            reasons[name] = "holds labels, perhaps the answer (--gold or --features uses it)"
    return reasons


def _of_an_earlier_run(columns: Iterable[str]) -> list[str]:
    runs: dict[str, list[str]] = {}
    for name in columns:
        plain = _PREFIX.sub("", name, count=1)
        if plain in RESULT_COLUMNS:
            runs.setdefault(name.removesuffix(plain), []).append(name)
    return [name for run in runs.values() if len(run) >= _MIN_OF_A_RUN for name in run]


def _labels(table: Table, source: Roles) -> tuple[frozenset[str], list[frozenset[str]]]:
    """Return the labels in small letters, and those of every row where they are in the table."""
    candidates, separator = source.candidates, source.separator
    if source.vote_table is not None:
        return _plain(source.vote_table.table.text(source.vote_table.label).unique()), []
    if source.annotators or not candidates:
        votes = table.votes or votes_in_columns(table, source.annotators, separator)
        found: list[list[str]] = [[] for _ in range(len(table.frame))]
        for row, label in zip(votes.rows, votes.labels, strict=True):
            found[row].append(label)
        return _plain(votes.labels), list(map(_plain, found))
    if len(candidates) > 1:
        names = np.array(without_prefix(candidates))
        flags = np.column_stack([table.text(name).isin(["1", "1.0"]) for name in candidates])
        return _plain(names), [_plain(names[row]) for row in flags]
    codes, parsed = parse_cells(table, candidates[0], separator)
    different = [_plain(labels or ()) for labels in parsed]  # unreadable ones are refused later
    return frozenset().union(*different), [different[code] for code in codes]


def _plain(labels: Iterable[str]) -> frozenset[str]:
    return frozenset(str(label).strip().casefold() for label in labels) - {""}


def _hold_labels(cells: pd.Series, names: frozenset[str], sets: Sequence[frozenset[str]]) -> bool:
    present = cells[~cells.str.strip().str.lower().isin(MISSING)]
    found: dict[Any, frozenset[str]] = {
        row: labels for row, cell in present.items() if (labels := _divided(cell, names))
    }
    used = frozenset().union(*found.values())
    if len(used) < 2 or len(found) < _NEARLY_ALL * len(present):
        return False
    if any(len(labels) > 1 for labels in found.values()) or not all(map(is_everyday, used)):
        return True
    # Numbers and everyday words are no sign by themselves: they must agree with the candidates of
    # their rows, too. Rows that may have any label agree with everything.
    telling = [row for row in found if sets and len(sets[row]) < len(names)]
    agreeing = sum(found[row] <= sets[row] for row in telling)
    return bool(telling) and agreeing >= _NEARLY_ALL * len(telling)


def _divided(cell: str, names: frozenset[str]) -> frozenset[str]:
    """Return the labels that a cell consists of; none if there is anything else in it."""
    ways = [[cell], *(cell.split(mark) for mark in "|;,/")]
    if cell.strip()[:1] in ("[", "(", "{"):
        ways.append(list(map(str, parse_list(cell) or ())))
    for parts in ways:
        labels = _plain(parts)
        if labels and labels <= names:
            return labels
    return frozenset()


@dataclass(frozen=True)
class Roles:
    """What every column is used for; "" and () where there is none.

    ``separator`` tells how a candidate cell is divided, "" for columns of 0 and 1. ``votes`` says
    where votes come from: a ``vote_table``, a column for each of the ``annotators``, or an export.
    The features are made of ``text``, ``numeric``, ``categorical``, ``vectors`` and embedding
    ``files``; ``left_out`` says why a column is not used, and ``styles`` how the numbers of a
    column are written, unless with a point.
    """

    candidates: tuple[str, ...] = ()
    separator: str = ""
    votes: str = ""
    vote_table: VoteTable | None = None
    annotators: tuple[str, ...] = ()
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
        sets = listed(self.candidates) or f"votes: {self.votes}"
        if self.separator:
            words = {"json": "written as lists", "list": "lists"}
            sets += f" ({words.get(self.separator, f'separated by {self.separator!r}')})"
        elif self.candidates:
            sets += " (columns of 0 and 1)"
        reasons: dict[str, list[str]] = {}
        for name, why in self.left_out.items():
            reasons.setdefault(why, []).append(name)
        told = [f"{listed(names)}: {why}" for why, names in reasons.items()]
        if len(told) > _MAX_REASONS:
            told[_MAX_REASONS:] = [f"and {len(told) - _MAX_REASONS} reasons more"]
        lines = [
            ("candidates", sets, "--candidates, --separator, --annotators, --votes"),
            ("id", self.id or "the row number", "--id"),
            ("known labels", self.gold or "none", "--gold"),
            ("text", listed(self.text) or "none", "--text"),
            ("numbers", listed(self.numeric) or "none", "--features, --exclude"),
            ("categories", listed(self.categorical) or "none", "--features, --exclude"),
            ("embeddings", listed([*self.vectors, *self.files]), "--features"),
            ("impossible labels", self.impossible, "--impossible"),
            ("image", self.image, "--image"),
            ("left out", "; ".join(told), "--features"),
        ]
        return [line for line in lines if line[1]]


def guess_roles(table: Table, options: Options) -> Roles:
    """Decide what every column is used for; what the user said always wins."""
    frame = table.frame
    if len(frame) < 2:
        raise InputError(
            f"{table.name} has one row only: similar rows are needed to resolve a set."
        )
    excluded = set(_named(options.exclude, table, "--exclude"))
    free = [name for name in frame.columns if name not in excluded]
    votes = None if options.votes is None else open_votes(options.votes)
    identity = _said_or_first(options.id, _named_ids(table, options, free, votes), table, "--id")
    golds = (name for name in free if name.lower() in _GOLD_NAMES)
    gold = _said_or_first(options.gold, golds, table, "--gold")
    impossible = _said_or_first(options.impossible, (), table, "--impossible")
    free = [name for name in free if name not in (identity, gold, impossible)]
    has_no_id = not identity and options.id is None
    if has_no_id and votes is not None:
        identity = _column_of_names(table, options, free, votes)
    source = _source(table, options, free, votes, identity)
    candidates = (*source.candidates, *source.annotators)
    free = [name for name in free if name not in candidates]
    if has_no_id and votes is None:
        identity = _column_of_names(table, options, free)
    free = [name for name in free if name != identity]
    images = (name for name in free if _names_images(frame[name]))
    image = _said_or_first(options.image, images, table, "--image")
    roles: dict[str, Any] = {"id": identity, "gold": gold, "impossible": impossible, "image": image}
    used = {*roles.values(), *candidates}
    left_out: dict[str, str] = dict.fromkeys(sorted(excluded), "excluded")
    columns, files = _feature_names(table, options)
    texts = [] if list(options.text) == [NONE] else _named(options.text, table, "--text")
    explicit = bool(options.features)
    if not explicit:
        open_columns = [n for n in free if n != image and n not in options.text]
        left_out |= _reasons_not_to_use(table, open_columns, source)
    kinds: dict[str, Any] = {"text": texts, "numeric": [], "categorical": [], "vectors": []}
    styles: dict[str, str] = {}
    for name in columns if explicit else list(frame.columns):
        if name in used or name in texts or name in left_out:
            continue
        kind, told = _kind(table, name, explicit, explicit or not options.text)
        if not kind:
            left_out[name] = told
            continue
        kinds[kind].append(name)
        if told:
            styles[name] = told
    if explicit:
        said = {*columns, *texts, *used, *excluded}
        left_out |= {name: "not named" for name in frame.columns if name not in said}
    if not (files or any(kinds.values())):
        why = "; ".join(f"{name}: {reason}" for name, reason in list(left_out.items())[:5])
        raise InputError(
            f"{table.name} has no column that can tell the rows apart{f' ({why})' if why else ''}: "
            "name features with --features or a text column with --text."
        )
    found: dict[str, Any] = {kind: tuple(names) for kind, names in kinds.items()}
    return replace(source, **roles, **found, files=files, left_out=left_out, styles=styles)


def guess_separator(cells: pd.Series) -> str | None:
    """Return how the cells of a column are divided into labels; None if they are not."""
    values = [value for value in sampled(cells) if not is_absent(value)]
    if not values:
        return None
    if all(isinstance(v, (list, tuple, set, frozenset, np.ndarray)) for v in values):
        return None if all(is_vector(v) for v in values) else "list"
    texts = [str(value).strip() for value in values]
    lists = (parse_list(text) for text in texts if text[:1] in "[({")
    if 2 * sum(found is not None and not is_vector(found) for found in lists) >= len(texts):
        return "json"
    return next((separator for separator in SEPARATORS if _divides(texts, separator)), None)


def _divides(texts: list[str], separator: str) -> bool:
    """Whether cells look like sets: short names that come back again and again."""
    parts = [part.strip() for text in texts for part in text.split(separator)]
    divided = sum(separator in text for text in texts)
    if divided < max(1, 0.02 * len(texts)) or any(len(part) > _MAX_LABEL_LENGTH for part in parts):
        return False
    return len(set(parts)) <= max(0.5 * len(parts), 3)


def _named_ids(table: Table, options: Options, free: list[str], votes: Table | None) -> list[str]:
    """Return columns whose name, or that of a column of the votes, says that they hold ids."""
    named = {*options.text, *options.features, *options.candidates, *options.annotators}
    shared = [] if votes is None else [n for n in free if n in votes.frame.columns]
    exact = [name for name in free if name.lower() in _ID_NAMES]
    like = [name for name in free if name not in named and _is_like_id(table, name)]
    best = [name for name in shared if name in exact or name in like]
    return [n for n in (*best, *exact, *like, *shared) if _all_different(table, n)]


def _all_different(table: Table, name: str) -> bool:
    cells = table.text(name)
    return bool(cells.is_unique and (cells != "").all())


def _is_like_id(table: Table, name: str) -> bool:
    column = table.frame[name]
    is_whole = column.dtype.kind != "f" or (column.dropna() % 1 == 0).all()
    return bool(_ID_LIKE.fullmatch(name) and is_whole)


def _column_of_names(
    table: Table, options: Options, free: list[str], votes: Table | None = None
) -> str:
    """Return the first column of names of rows that the votes, if any, hold too; "" if none."""
    named = {*options.text, *options.features}
    for name in (n for n in free if n not in named and _is_name_of_rows(table, n)):
        known = set(table.text(name))
        others = () if votes is None else votes.frame.columns
        if votes is None or any(votes.text(n).isin(known).mean() >= 0.5 for n in others):
            return name
    return ""


def _is_name_of_rows(table: Table, name: str) -> bool:
    """Whether a column holds a word for every row that no other has, and neither date nor image."""
    column = table.frame[name]
    if not _might_be_sets(column) or len(column) < _MIN_NAMED_ROWS or _names_images(column):
        return False
    return _all_different(table, name) and not any(
        len(cell) > _MAX_ID_LENGTH
        or len(cell.split()) != 1
        or cell[:1] in "[({"
        or is_number(cell)
        or _DATE.fullmatch(cell)
        for cell in sampled(table.text(name))
    )


def _source(
    table: Table, options: Options, free: list[str], votes: Table | None, identity: str
) -> Roles:
    """Find where candidates come from, and nothing else; what the user said always wins."""
    frame = table.frame
    ways = ["--votes"] if votes is not None else []
    ways += [f"--{way}" for way in ("candidates", "annotators") if getattr(options, way)]
    if len(ways) > 1:
        said = " and ".join(ways)
        raise InputError(f"Candidates come from {said}: leave out all but one of them.")
    if votes is not None:
        ids = table.text(identity) if identity else [str(n + 1) for n in range(len(frame))]
        found = vote_table(votes, options.vote_columns, list(ids), identity)
        return Roles(votes=found.described(), vote_table=found)
    if options.candidates:
        names = tuple(_named(options.candidates, table, "--candidates"))
        single = options.separator or guess_separator(table.raw(names[0])) or "|"
        return Roles(names, single if len(names) == 1 else "")
    if options.annotators:
        names = tuple(_named(options.annotators, table, "--annotators"))
        if len(names) < 2:
            raise InputError("--annotators names one column only: name one for each annotator.")
        return _of_annotators(table, names, options)
    if table.votes is not None:
        return Roles(votes=f"{table.name}, {len(set(table.votes.who or ()))} annotators")
    named = [n for wanted in _SET_NAMES for n in free if n.lower() == wanted]
    others = [n for n in free if n not in named and _might_be_sets(frame[n])]
    for name in (*named, *others):
        separator = guess_separator(table.raw(name))
        if separator and (name in named or separator not in (",", "/")):
            return Roles((name,), options.separator or separator)
    if not named:
        used = {*_TRUTH_NAMES, *map(str.lower, _of_an_earlier_run(free))}
        named_already = {*options.text, *options.features, options.image}
        maybe = [n for n in free if n.lower() not in used and n not in named_already]
        annotators = guess_annotators(table, maybe)
        if annotators:
            return _of_annotators(table, annotators, options)
    flags = _flag_columns(frame, free)
    if flags:
        return Roles(flags)
    if named:
        return Roles((named[0],), options.separator or "|")
    raise InputError(
        f"No column of {table.name} looks like sets of candidate labels (columns: "
        f"{listed(frame.columns)}): name it with --candidates, name the columns of annotators with "
        "--annotators, or give --votes FILE."
    )


def _of_annotators(table: Table, names: tuple[str, ...], options: Options) -> Roles:
    guesses = (guess_separator(table.raw(name)) for name in names)
    separator = options.separator or next((g for g in guesses if g and g not in (",", "/")), "")
    return Roles((), separator, f"a column for each of {listed(names)}", annotators=names)


def _might_be_sets(column: pd.Series) -> bool:
    return column.dtype.kind not in "fiubM"


def _flag_columns(frame: pd.DataFrame, names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of 0 and 1 that share a prefix, such as ``label_cat``, ``label_dog``."""
    groups: dict[str, list[str]] = {}
    for name in names:
        prefix, _ = split_prefix(name)
        if prefix and frame[name].dtype.kind in "fiub" and frame[name].isin([0, 1]).all():
            groups.setdefault(prefix, []).append(name)
    best = max(groups.values(), key=len, default=[])
    covered = len(best) > 1 and (frame[best].to_numpy(dtype=float) > 0).any(axis=1).mean() > 0.9
    return tuple(best) if covered else ()


def _names_images(column: pd.Series) -> bool:
    return (
        _might_be_sets(column)
        and all(
            isinstance(value, str)
            and value.lower().endswith(_IMAGE_ENDINGS)
            and not value.startswith(".")  # an ending alone is no name
            for value in column.iloc[:_IMAGE_SAMPLE]
        )
    )


def _is_text(column: pd.Series) -> bool:
    """Whether most cells are different and have several words."""
    if not _might_be_sets(column):
        return False
    cells = sampled(column)
    texts = [value for value in cells if isinstance(value, str)]
    if len(texts) < max(1, 0.3 * len(cells)):
        return False
    words = np.mean([len(text.split()) for text in texts])
    return bool(words >= 2.5 and len(set(texts)) > 0.3 * len(texts))


def _feature_names(table: Table, options: Options) -> tuple[list[str], tuple[Path, ...]]:
    columns = {str(entry): _matching(str(entry), table) for entry in options.features}
    files = [entry for entry in options.features if not columns[str(entry)]]
    for entry in files:
        if Path(entry).suffix.lower() not in EMBEDDING_FILES:
            raise InputError(
                f"--features names {quoted(entry)}, which is neither a column of {table.name} nor "
                f"an embeddings file ({', '.join(EMBEDDING_FILES)}); the columns are "
                f"{listed(table.frame.columns)}."
            )
    names = dict.fromkeys(name for matches in columns.values() for name in matches)
    return list(names), tuple(map(Path, files))


def _kind(table: Table, name: str, explicit: bool, maybe_text: bool) -> tuple[str, str]:
    """Return what a column is good for and the style of its numbers, or "" and why it is not."""
    column = table.frame[name]
    if maybe_text and _is_text(column):
        return "text", ""
    is_answer = not explicit and name.lower() in _TRUTH_NAMES
    answer = "its name says that it holds the answer; --gold would use it"
    style = number_style(table, name)
    if style:
        # A column without a name, as pandas writes the index, may count the rows.
        may_count = name in _INDEX_NAMES and name == table.frame.columns[0] and not explicit
        if may_count and column.dtype.kind in "fiu" and (column.diff()[1:] == 1).all():
            return "", "the number of the row"
        if is_answer or (not explicit and name.lower() in _GOLD_NAMES):
            return "", answer
        if not explicit and (name.lower() in _ID_NAMES or _is_like_id(table, name)):
            return "", "its name says that it is an id"
        values, _ = read_numbers(table, name, style)
        is_constant = len(np.unique(values[~np.isnan(values)])) < 2
        return ("", "constant") if is_constant else ("numeric", "" if style == POINT else style)
    first = next((value for value in column if not is_absent(value)), None)
    if first is None:
        return "", "empty"
    if is_vector(first):
        return "vectors", ""
    if column.dtype.kind == "M":
        return "", "a date"
    if not isinstance(first, (str, bool, int, float, np.generic)):
        return "", f"holds {type(first).__name__} values"
    if is_answer:
        return "", answer
    n_values = column.astype(str).nunique()
    if n_values < 2:
        return "", "constant"
    if n_values > min(_MAX_CATEGORIES, max(2, len(column) // 2)) and not explicit:
        commas = "; its commas may divide thousands" * divides_thousands(str(first))
        repeated, shown = repeated_ids(table.text(name)) if _ID_LIKE.fullmatch(name) else ("", "")
        why = f"; it would be the id, but {repeated}: {shown}" if repeated else ""
        return "", f"{n_values} different values{commas}{why}"
    return "categorical", ""


def _said_or_first(said: str | None, guesses: Iterable[str], table: Table, option: str) -> str:
    """Return the column that was named, else the first guess; "" if there is none."""
    if said:
        return "" if said == NONE else _named([said], table, option)[0]
    return next(iter(guesses), "")


def _named(names: Sequence[str], table: Table, option: str) -> list[str]:
    found: dict[str, None] = {}
    for name in names:
        matches = _matching(name, table)
        if not matches and name != NONE:
            raise InputError(
                f"{table.name} has no column {quoted(name)}, which {option} names; it has "
                f"{listed(table.frame.columns)}."
            )
        found |= dict.fromkeys(matches)
    return list(found)


def _matching(pattern: str, table: Table) -> list[str]:
    columns = list(table.frame.columns)
    if pattern in columns:
        return [pattern]
    return [name for name in columns if fnmatchcase(name, pattern)] if "*" in pattern else []
