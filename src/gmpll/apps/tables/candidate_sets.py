"""Candidate sets from a table: cells that list labels, columns of 0 and 1, votes, known labels."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gmpll.apps.tables.errors import InputError, counted, listed, quoted
from gmpll.apps.tables.guesses import Roles, guess_separator
from gmpll.apps.tables.labels import Options, parse_cells, read_votes, without_prefix
from gmpll.apps.tables.tables import Table
from gmpll.candidates import VotedCandidates, candidates_from_votes

#: More labels than this are no labels: the wrong column or the wrong separator was read.
MAX_LABELS = 10_000
#: Rows times labels; several arrays of this size are held at a time.
MAX_CELLS = 60_000_000

_TRUE = {"1", "1.0", "true", "yes"}
_FALSE = {"0", "0.0", "false", "no", ""}


@dataclass(frozen=True)
class LabelSets:
    """Candidates of every row.

    A row whose label is known has only that candidate; ``gold`` is its code, else -1. ``classes``
    are sorted. ``problems`` are odd but were not refused. The ``votes`` are those of every row, of
    which the candidates are made, None if they are not; their annotators are None if nobody is
    named.
    """

    mask: NDArray[np.bool_]
    classes: NDArray[np.str_]
    gold: NDArray[np.int64]
    problems: tuple[str, ...] = ()
    votes: VotedCandidates | None = None

    @property
    def annotated(self) -> bool:
        """Whether it is known who voted, so that every annotator is modelled."""
        return self.votes is not None and self.votes.annotators is not None

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """How many votes each candidate got, None without votes."""
        return None if self.votes is None else self.votes.weights


def row_ids(table: Table, roles: Roles) -> NDArray[np.str_]:
    """Return the id of every row: its cell in the id column, else its number, counted from 1."""
    if not roles.id:
        return np.arange(1, len(table.frame) + 1).astype(str)
    cells = table.text(roles.id)
    absent = np.flatnonzero((cells == "").to_numpy(dtype=bool))
    if absent.size:
        raise InputError(f"Row {absent[0] + 1} of {table.name} has no id in the column {roles.id}.")
    repeated = np.flatnonzero(cells.duplicated().to_numpy())
    if repeated.size:
        raise InputError(
            f"The id {quoted(cells.iloc[repeated[0]])} stands in more than one row of "
            f"{table.name}, for instance in row {repeated[0] + 1}: ids must differ."
        )
    return _as_array(cells.tolist(), "id")


def label_sets(table: Table, roles: Roles, options: Options, ids: NDArray[np.str_]) -> LabelSets:
    """Read the candidates of every row; refuse rows without any, and sets of one label each."""
    problems: list[str] = []
    votes: VotedCandidates | None = None
    if options.votes is not None:
        votes = _from_votes(options, ids, problems)
        mask, classes = votes.weights > 0, votes.candidates.classes
    elif len(roles.candidates) > 1:
        mask, classes = _from_flags(table, roles.candidates)
    else:
        mask, classes = _from_cells(table, roles.candidates[0], roles.separator)
    unknown = np.flatnonzero(~np.isin(classes, list(options.labels)))
    if options.labels and unknown.size:
        row = int(np.argmax(mask[:, unknown[0]]))
        raise InputError(
            f"{_place(row, ids)} has the unknown label {quoted(classes[unknown[0]])}: --labels "
            "does not name it."
        )
    problems += _look_alikes(classes.tolist())
    was_ambiguous = bool((mask.sum(axis=1) > 1).any())
    gold = _known_codes(table, roles, classes, ids)
    known = np.flatnonzero(gold >= 0)
    outside = int((~mask[known, gold[known]]).sum())
    if outside:
        problems.append(f"{counted(outside, 'known label', 'is')} no candidate of the row")
    mask[known] = False
    mask[known, gold[known]] = True
    if len(classes) == 0:
        raise InputError("There is no label in any row: is it the right candidate column?")
    if len(classes) == 1:
        raise InputError(
            f"All rows have the one label {quoted(classes[0])}: there is nothing to resolve; is it "
            "the right column, and the right --separator?"
        )
    empty = np.flatnonzero(~mask.any(axis=1))
    if empty.size and options.empty != "all":
        others = empty.size - 1
        who = f" and {counted(others, 'more row')} have" if others else " has"
        raise InputError(
            f"{_place(empty[0], ids)}{who} no candidate label: give it one, or use --empty all to "
            "let it have any label."
        )
    if empty.size:
        mask[empty] = True
        problems.append(f"{counted(empty.size, 'row', 'has')} no candidates: any label is possible")
    if roles.impossible:
        mask &= ~_impossible(table, roles, classes, problems)
        empty = np.flatnonzero(~mask.any(axis=1))
    if roles.impossible and empty.size:
        label = gold[empty[0]]
        known_too = f", although {quoted(classes[label])} is its known label" if label >= 0 else ""
        raise InputError(
            f"{_place(empty[0], ids)} has no candidate label that the column {roles.impossible} "
            f"leaves possible{known_too}: fix the row, or turn the column off with --impossible "
            "none."
        )
    sets = LabelSets(mask, classes, gold, tuple(problems), votes)
    if not sets.annotated:  # of annotators even a single vote is in doubt
        _check_work(mask, roles, was_ambiguous)
    return sets


def _as_array(names: list[str], what: str) -> NDArray[np.str_]:
    """Return names as an array, which would silently drop NUL characters at their ends."""
    ends_in_nul = next((name for name in names if name.endswith("\0")), None)
    if ends_in_nul is not None:
        raise InputError(
            f"The {what} {quoted(ends_in_nul)} ends in a NUL character: fix or remove it."
        )
    return np.array(names, dtype=str)


def _place(row: int, ids: NDArray[np.str_]) -> str:
    number = f"Row {row + 1}"
    return number if ids[row] == str(row + 1) else f"{number} (id {quoted(ids[row])})"


# Where candidates are written ----------------------------------------------------------------


def _from_cells(
    table: Table, column: str, separator: str
) -> tuple[NDArray[np.bool_], NDArray[np.str_]]:
    codes, parsed = parse_cells(table, column, separator)
    if None in parsed:
        row = int(np.flatnonzero(codes == parsed.index(None))[0])
        raise InputError(
            f'{table.place(row, column)}, which is no list of labels like ["cat", "dog"]: fix it, '
            "or name another --separator."
        )
    names = sorted({name for labels in parsed for name in labels or ()})
    _check_label_count(len(names), len(codes), f"the column {column}")
    code_of = {name: code for code, name in enumerate(names)}
    patterns = np.zeros((len(parsed), len(names)), dtype=bool)
    for place, labels in enumerate(parsed):
        patterns[place, [code_of[name] for name in labels or ()]] = True
    return patterns[codes], _as_array(names, "label")


def _from_flags(table: Table, columns: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.str_]]:
    _check_label_count(len(columns), len(table.frame), "the columns of 0 and 1")
    mask = np.zeros((len(table.frame), len(columns)), dtype=bool)
    for place, name in enumerate(columns):
        cells = table.text(name).str.strip().str.lower()
        mask[:, place] = cells.isin(_TRUE)
        bad = np.flatnonzero(~cells.isin(_TRUE | _FALSE).to_numpy())
        if bad.size:
            raise InputError(
                f"{table.place(bad[0], name)}: with several candidate columns every cell must be "
                "0 or 1."
            )
    names = _as_array(without_prefix(columns), "label")
    order = np.argsort(names)
    return mask[:, order], names[order]


def _from_votes(options: Options, ids: NDArray[np.str_], problems: list[str]) -> VotedCandidates:
    """Return the votes of every row; who voted is kept where it matters."""
    votes = read_votes(options)
    table = votes.table
    items, labels = table.text(votes.item), table.text(votes.label).str.strip()
    absent = np.flatnonzero(((items == "") | (labels == "")).to_numpy(dtype=bool))
    if absent.size:
        raise InputError(f"Row {absent[0] + 1} of {table.name} has no item or no label: remove it.")
    known = items.isin(set(ids.tolist())).to_numpy()
    if not known.any():
        raise InputError(
            f"No item of {table.name} ({quoted(items.iloc[0])}, ...) is the id of a row "
            f"({quoted(ids[0])}, ...): name the id column with --id, and the columns of the votes "
            "with --vote-columns."
        )
    if not known.all():
        strange = counted(int((~known).sum()), "vote", "is")
        problems.append(f"{strange} for items that are not in the input")
    _check_label_count(labels[known].nunique(), len(ids), f"the column {votes.label} of the votes")
    _as_array(labels[known].unique().tolist(), "label")
    who = table.text(votes.who).str.strip()[known] if votes.who else labels[:0]
    names = who.tolist() if (who != "").any() else None
    try:
        voted = candidates_from_votes(
            items[known].tolist(),
            labels[known].tolist(),
            names,
            min_share=options.min_share,
            all_items=ids.tolist(),
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    if names is None or options.method != "gmpll" or options.trust is not None:
        return voted._replace(annotators=None)
    unnamed = np.flatnonzero((who == "").to_numpy())
    if unnamed.size:
        raise InputError(
            f"Row {np.flatnonzero(known)[unnamed[0]] + 1} of {table.name} does not say who voted, "
            f"other rows do: fill the column {votes.who}, or leave it out with --vote-columns "
            f"{votes.item},{votes.label}."
        )
    assert voted.votes is not None
    rows, columns = voted.votes.nonzero()
    ballots = np.column_stack([rows, columns // len(voted.candidates.classes)])
    contradictions = int((np.unique(ballots, axis=0, return_counts=True)[1] > 1).sum())
    if contradictions:
        problems.append(
            f"{counted(contradictions, 'time')} an annotator gave an item several labels: each of "
            "them has a share of the vote"
        )
    return voted


def _known_codes(
    table: Table, roles: Roles, classes: NDArray[np.str_], ids: NDArray[np.str_]
) -> NDArray[np.int64]:
    """Return the code of every row's known label, -1 where it has none."""
    if not roles.gold:
        return np.full(len(ids), -1, dtype=np.int64)
    code_of = {name: code for code, name in enumerate(classes.tolist())} | {"": -1}
    cells = table.text(roles.gold).str.strip().tolist()
    stranger = next((row for row, cell in enumerate(cells) if cell not in code_of), None)
    if stranger is not None:
        raise InputError(
            f"{_place(stranger, ids)} has the known label {quoted(cells[stranger])}, which is "
            "nobody's candidate: fix the column, or turn it off with --gold none."
        )
    return np.array([code_of[cell] for cell in cells], dtype=np.int64)


def _impossible(
    table: Table, roles: Roles, classes: NDArray[np.str_], problems: list[str]
) -> NDArray[np.bool_]:
    """Return the labels that a row cannot have."""
    separator = guess_separator(table.raw(roles.impossible)) or roles.separator or "|"
    excluded, names = _from_cells(table, roles.impossible, separator)
    mask = np.zeros((len(excluded), len(classes)), dtype=bool)
    is_known = np.isin(names, classes)
    mask[:, np.searchsorted(classes, names[is_known])] = excluded[:, is_known]
    if not is_known.all():
        unknown = [quoted(name) for name in names[~is_known].tolist()]
        problems.append(
            f"the column {roles.impossible} rules out {listed(unknown, 3)}, which no row "
            "has as a candidate"
        )
    return mask


# What is refused, and what is noted ----------------------------------------------------------


def _look_alikes(names: list[str]) -> list[str]:
    """Name the first labels that differ only in case, and the first that look the same."""

    def first_pair(key: Callable[[str], str]) -> tuple[str, str] | None:
        seen: dict[str, str] = {}
        return next(((o, n) for n in names if (o := seen.setdefault(key(n), n)) != n), None)

    notes = []
    if pair := first_pair(str.casefold):
        notes.append(f"the labels {quoted(pair[0])} and {quoted(pair[1])} differ only in case")
    if pair := first_pair(_visible):
        notes.append(
            f"the labels {pair[0]!a} and {pair[1]!a} look alike: they differ in spaces, or in how "
            "their characters are written"
        )
    return notes


def _visible(name: str) -> str:
    """Return what can be seen of a name: composed, with single spaces, nothing invisible."""
    composed = unicodedata.normalize("NFC", name)
    return " ".join("".join(c for c in composed if unicodedata.category(c) != "Cf").split())


def _check_label_count(n_labels: int, n_rows: int, where: str) -> None:
    if n_labels > MAX_LABELS:
        raise InputError(
            f"There are {n_labels} different labels in {where}, more than the {MAX_LABELS} that "
            "are taken: is it the right column, and the right --separator?"
        )
    if n_labels * n_rows > MAX_CELLS:
        raise InputError(
            f"{n_rows} rows times {n_labels} labels are more than memory is planned for "
            f"({MAX_CELLS}): resolve a part of the rows at a time."
        )


def _check_work(mask: NDArray[np.bool_], roles: Roles, was_ambiguous: bool) -> None:
    if (mask.sum(axis=1) > 1).any():
        return
    if was_ambiguous:
        known = [f"the known labels in the column {roles.gold}"] if roles.gold else []
        excluded = [f"the column {roles.impossible}"] if roles.impossible else []
        raise InputError(
            f"Every row has one candidate only, because of {' and '.join(known + excluded)}: there "
            "is nothing left to resolve; turn the column off with "
            f"{'--gold' if roles.gold else '--impossible'} none."
        )
    hint = ""
    if len(roles.candidates) == 1:
        divided = f"the column {roles.candidates[0]} was divided at {roles.separator!r}"
        hint = f" ({divided}; another --separator?)"
    raise InputError(f"Every row has one candidate only: there is nothing to resolve{hint}.")
