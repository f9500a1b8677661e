"""Candidate sets from a table: cells that list labels, columns of 0 and 1, votes, known labels."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.preprocessing import MultiLabelBinarizer

from gmpll._typing import Floats, Integers, Mask, Names
from gmpll.apps.tables.annotator_columns import votes_in_columns
from gmpll.apps.tables.errors import InputError, counted, listed, quoted
from gmpll.apps.tables.exports import Votes
from gmpll.apps.tables.guesses import Roles, guess_separator
from gmpll.apps.tables.labels import Options, read_cells, repeated_ids, without_prefix
from gmpll.apps.tables.spelling import Spelling, read_spelling
from gmpll.apps.tables.tables import Table
from gmpll.candidates import CandidateSets, VotedCandidates, candidates_from_votes
from gmpll.label_names import rename_labels

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
    are sorted, but for the last ``n_new``, which reviewers brought. ``problems`` are odd but were
    not refused. The ``votes`` are those of every row, of which the candidates are made, None if
    they are not; their annotators are None if nobody is named. ``merged`` has for every new name
    the labels that became it, and how often they stood.
    """

    mask: Mask
    classes: Names
    gold: Integers
    problems: tuple[str, ...] = ()
    votes: VotedCandidates | None = None
    merged: dict[str, dict[str, int]] = field(default_factory=dict)
    n_new: int = 0

    def with_labels(self, names: Sequence[str]) -> Self:
        """Add labels that no row has among its candidates yet."""
        q, more = len(self.classes), ((0, 0), (0, len(names)))
        classes = np.array([*self.classes.tolist(), *names], dtype=str)
        mask, votes = np.pad(self.mask, more), self.votes
        if votes is not None:
            sets = CandidateSets(np.pad(votes.candidates.mask, more), classes)
            votes = votes._replace(candidates=sets, weights=np.pad(votes.weights, more))
        if votes is not None and votes.votes is not None:
            cast = votes.votes.tocoo()
            who, labels = divmod(cast.col, q)
            n_columns = votes.votes.shape[1] // q * len(classes)
            places = (cast.row, who * len(classes) + labels)
            wider = sp.csr_array((cast.data, places), shape=(len(mask), n_columns))
            votes = votes._replace(votes=wider)
        return replace(self, mask=mask, classes=classes, votes=votes, n_new=len(names))

    @property
    def annotated(self) -> bool:
        """Whether it is known who voted, so that every annotator is modelled."""
        return self.votes is not None and self.votes.annotators is not None

    @property
    def weights(self) -> Floats | None:
        """How many votes each candidate got, None without votes."""
        return None if self.votes is None else self.votes.weights


def row_ids(table: Table, roles: Roles) -> Names:
    """Return the id of every row: its cell in the id column, else its number, counted from 1."""
    if not roles.id:
        return np.arange(1, len(table.frame) + 1).astype(str)
    cells = table.text(roles.id)
    absent = np.flatnonzero((cells == "").to_numpy(dtype=bool))
    if absent.size:
        raise InputError(f"Row {absent[0] + 1} of {table.name} has no id in the column {roles.id}.")
    repeated, shown = repeated_ids(cells)
    if repeated:
        raise InputError(
            f"{repeated} in the column {roles.id} of {table.name}: {shown}; make them differ, or "
            "use --id none."
        )
    return _as_array(cells.tolist(), "id")


def label_sets(table: Table, roles: Roles, options: Options, ids: Names) -> LabelSets:
    """Read the candidates of every row; refuse rows without any, and sets of one label each."""
    problems: list[str] = []
    votes: VotedCandidates | None = None
    known_cells = table.text(roles.gold).str.strip().tolist() if roles.gold else []
    written = sorted({cell for cell in known_cells if cell})
    if roles.votes:
        given = _given_votes(table, roles, ids, problems)
        counts = Counter(given.labels)
        spelling, merged = read_spelling(counts, written, options, problems)
        name_of = {label: spelling(label) for label in counts}
        renamed = given._replace(labels=[name_of[label] for label in given.labels])
        votes = _voted(renamed, roles, options, ids, problems)
        mask, classes = votes.weights > 0, votes.candidates.classes
    else:
        if len(roles.candidates) > 1:
            sets = _from_flags(table, roles.candidates)
        else:
            sets = _from_cells(table, roles.candidates[0], roles.separator)
        totals = sets.mask.sum(axis=0).tolist()
        by_label = dict(zip(sets.classes.tolist(), totals, strict=True))
        spelling, merged = read_spelling(by_label, written, options, problems)
        changed = {name: spelling(name) for name in by_label if spelling(name) != name}
        mask, classes = rename_labels(sets, changed) if changed else sets
        _as_array(classes.tolist(), "label")
    unknown = np.flatnonzero(~np.isin(classes, list(options.labels)))
    if options.labels and unknown.size:
        row = int(np.argmax(mask[:, unknown[0]]))
        raise InputError(
            f"{_place(row, ids)} has the unknown label {quoted(classes[unknown[0]])}: --labels "
            "does not name it."
        )
    was_ambiguous = bool((mask.sum(axis=1) > 1).any())
    gold = np.full(len(ids), -1, dtype=np.int64)
    if known_cells:
        named = pd.Series([spelling(cell) if cell else "" for cell in known_cells])
        gold = pd.Index(classes).get_indexer(named).astype(np.int64)
        strangers = np.flatnonzero((gold < 0) & (named != "").to_numpy())
        if strangers.size:
            raise InputError(
                f"{_place(strangers[0], ids)} has the known label {quoted(named[strangers[0]])}, "
                "which is nobody's candidate: fix the column, or turn it off with --gold none."
            )
    known = np.flatnonzero(gold >= 0)
    outside = int((~mask[known, gold[known]]).sum())
    if outside:
        problems.append(
            f"{counted(outside, 'known label', 'is')} no candidate of the row: correct the column, "
            "or turn it off with --gold none"
        )
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
        problems.append(
            f"{counted(empty.size, 'row', 'has')} no candidates: any label is possible unless you "
            "name some"
        )
    if roles.impossible:
        mask &= ~_impossible(table, roles, classes, spelling, problems)
        empty = np.flatnonzero(~mask.any(axis=1))
    if roles.impossible and empty.size:
        label = gold[empty[0]]
        known_too = f", although {quoted(classes[label])} is its known label" if label >= 0 else ""
        raise InputError(
            f"{_place(empty[0], ids)} has no candidate label that the column {roles.impossible} "
            f"leaves possible{known_too}: fix the row, or turn the column off with --impossible "
            "none."
        )
    found = LabelSets(mask, classes, gold, tuple(problems), votes, merged)
    if not found.annotated:  # of annotators even a single vote is in doubt
        _check_work(mask, roles, was_ambiguous)
    return found


def _as_array(names: list[str], what: str) -> Names:
    """Return names as an array, which would silently drop NUL characters at their ends."""
    ends_in_nul = next((name for name in names if name.endswith("\0")), None)
    if ends_in_nul is not None:
        raise InputError(
            f"The {what} {quoted(ends_in_nul)} ends in a NUL character: fix or remove it."
        )
    return np.array(names, dtype=str)


def _place(row: int, ids: Names) -> str:
    number = f"Row {row + 1}"
    return number if ids[row] == str(row + 1) else f"{number} (id {quoted(ids[row])})"


def _from_cells(table: Table, column: str, separator: str) -> CandidateSets:
    codes, parsed = read_cells(table, column, separator)
    binarizer = MultiLabelBinarizer(sparse_output=True).fit(parsed)
    names = binarizer.classes_.tolist()
    _check_label_count(len(names), len(codes), f"the column {column}")
    patterns = binarizer.transform(parsed).astype(bool).toarray()
    return CandidateSets(patterns[codes], _as_array(names, "label"))


def _from_flags(table: Table, columns: Sequence[str]) -> CandidateSets:
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
    return CandidateSets(mask[:, order], names[order])


def _given_votes(table: Table, roles: Roles, ids: Names, problems: list[str]) -> Votes:
    """Return who gave which row which label, as it is written."""
    if roles.vote_table is None:
        given = table.votes
        if given is None or roles.annotators:
            given = votes_in_columns(table, roles.annotators, roles.separator)
        if not given.labels:
            raise InputError(f"No annotator gave a label in {table.name}: name other columns.")
        _check_label_count(len(set(given.labels)), len(ids), "the votes")
        return given
    votes = roles.vote_table
    table = votes.table
    items, labels = table.text(votes.item), table.text(votes.label).str.strip()
    absent = np.flatnonzero(((items == "") | (labels == "")).to_numpy(dtype=bool))
    if absent.size:
        raise InputError(f"Row {absent[0] + 1} of {table.name} has no item or no label: remove it.")
    row_of = {name: row for row, name in enumerate(ids.tolist())}
    known = items.isin(row_of).to_numpy()
    if not known.any():
        raise InputError(
            f"No item of {table.name} ({quoted(items.iloc[0])}, ...) is the id of a row "
            f"({quoted(ids[0])}, ...): name the id column with --id, and the columns of the votes "
            "with --vote-columns."
        )
    if not known.all():
        strange = counted(int((~known).sum()), "vote", "is")
        problems.append(
            f"{strange} for items that are not in the input, and ignored: check the column of ids "
            "with --id"
        )
    _check_label_count(labels[known].nunique(), len(ids), f"the column {votes.label} of the votes")
    who = table.text(votes.who).str.strip()[known] if votes.who else labels[:0]
    return Votes(
        items[known].map(row_of).tolist(),
        labels[known].tolist(),
        who.tolist() if (who != "").any() else None,
    )


def _voted(
    votes: Votes, roles: Roles, options: Options, ids: Names, problems: list[str]
) -> VotedCandidates:
    """Return the votes of every row; who voted is kept where it matters."""
    _as_array(list(set(votes.labels)), "label")
    items = ids[votes.rows].tolist()
    try:
        voted = candidates_from_votes(
            items, votes.labels, votes.who, min_share=options.min_share, all_items=ids.tolist()
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    if votes.who is None or options.method != "gmpll" or options.trust is not None:
        return voted._replace(annotators=None)
    if "" in votes.who:
        assert roles.vote_table is not None  # the other sources name everybody
        table, item, label, who = roles.vote_table
        unnamed = int(np.flatnonzero(table.text(who).str.strip() == "")[0])
        raise InputError(
            f"Row {unnamed + 1} of {table.name} does not say who voted, other rows do: fill the "
            f"column {who}, or leave it out with --vote-columns {item},{label}."
        )
    assert voted.votes is not None
    rows, columns = voted.votes.nonzero()
    ballots = np.column_stack([rows, columns // len(voted.candidates.classes)])
    contradictions = int((np.unique(ballots, axis=0, return_counts=True)[1] > 1).sum())
    if contradictions:
        problems.append(
            f"{counted(contradictions, 'time')} an annotator gave an item several labels: each of "
            "them has a share of the vote; keep the one that was meant"
        )
    return voted


def _impossible(
    table: Table, roles: Roles, classes: Names, spelling: Spelling, problems: list[str]
) -> Mask:
    """Return the labels that a row cannot have."""
    separator = guess_separator(table.raw(roles.impossible)) or roles.separator or "|"
    sets = _from_cells(table, roles.impossible, separator)
    excluded, names = rename_labels(sets, {n: spelling(n) for n in sets.classes.tolist()})
    mask = np.zeros((len(excluded), len(classes)), dtype=bool)
    is_known = np.isin(names, classes)
    mask[:, np.searchsorted(classes, names[is_known])] = excluded[:, is_known]
    if not is_known.all():
        unknown = [quoted(name) for name in names[~is_known].tolist()]
        problems.append(
            f"the column {roles.impossible} rules out {listed(unknown, 3)}, which no row "
            "has as a candidate: check how it is written"
        )
    return mask


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


def _check_work(mask: Mask, roles: Roles, was_ambiguous: bool) -> None:
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
