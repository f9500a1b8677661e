"""Candidate label sets: reading them in every form users have, and describing them.

In partial label learning the supervision of row ``i`` is a set ``S_i`` of candidate labels of
which one is right. Inside the library the sets of all rows are one boolean matrix, the *mask*,
with a row per instance and a column per label; :func:`as_candidates` makes it from whatever the
user has, and :class:`CandidateSets` turns it back.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from gmpll._typing import Floats, Mask, Places

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CandidateSets",
    "CandidateStatistics",
    "VotedCandidates",
    "as_candidates",
    "candidates_from_votes",
]

SET_TYPES = (set, frozenset, list, tuple)


class CandidateSets(NamedTuple):
    """Candidate sets in the library's own form.

    ``mask``, boolean of shape (n_samples, n_classes), is True where the label of the column is a
    candidate of the row; ``classes`` holds the label of each column. It has the ``shape`` of its
    mask, and an array of row numbers picks rows, so that tools of scikit-learn can make folds.

    Examples
    --------
    >>> from gmpll import as_candidates
    >>> sets = as_candidates([{"cat", "dog"}, {"dog"}])
    >>> sets.to_lists()
    [['cat', 'dog'], ['dog']]
    >>> sets.statistics().mean_size
    1.5
    >>> sets[[1]].to_lists()
    [['dog']]
    """

    mask: Mask
    classes: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and labels."""
        return self.mask.shape

    def __getitem__(self, key: Any) -> Any:
        """Pick rows by an array, a list or a slice; a number picks a field, as in any tuple."""
        if isinstance(key, (int, np.integer)):
            return tuple.__getitem__(self, key)
        return CandidateSets(self.mask[_rows_of_key(key)], self.classes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.mask, dtype=dtype, copy=copy)

    def to_lists(self) -> list[list[Any]]:
        """Return a list of labels for every row, in the order of ``classes``."""
        return [self.classes[row].tolist() for row in self.mask]

    def to_sparse(self) -> sp.csr_array:
        """Return the mask as a SciPy sparse array of 0 and 1."""
        return sp.csr_array(self.mask.astype(np.int8))

    def to_frame(self, index: Any = None) -> pd.DataFrame:
        """Return the mask as a pandas DataFrame whose columns are the labels."""
        import pandas as pd

        return pd.DataFrame(self.mask, columns=self.classes, index=index)

    def statistics(self) -> CandidateStatistics:
        """Return sizes, label frequencies, co-occurrence and ambiguity degree."""
        return CandidateStatistics.of(self)


def as_candidates(y: Any, *, n_samples: int | None = None) -> CandidateSets:
    """Read candidate sets from any of the accepted forms.

    Parameters
    ----------
    y : array, sparse matrix, DataFrame or sequence
        One of

        * a 2-D array or SciPy sparse matrix of 0 and 1 (or booleans), a row per instance and a
          column per label; the labels are ``0, 1, ...``;
        * a pandas DataFrame of the same, whose column names are the labels;
        * a sequence of sets, lists or tuples of labels (a plain list of lists is always read
          this way, also if it holds only 0 and 1); None stands for a row of which nothing is
          known: every label that occurs is its candidate;
        * a 1-D sequence of labels: every row's set holds that one label. A numeric array of
          shape (n_samples, 1) is read so too, with a warning, as everywhere in scikit-learn;
        * what :func:`candidates_from_votes` returns; only the sets of it are read.
    n_samples : int, default=None
        If given, the number of rows that ``y`` must have.

    Returns
    -------
    CandidateSets
        Mask and labels. A label that no row contains (an empty column) keeps its place; it is
        never assigned to anything.

    Raises
    ------
    ValueError
        If a row has no candidate, an entry is neither 0 nor 1, a label is missing (NaN, None)
        or the lengths differ. The message names the first offending row.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll import as_candidates
    >>> as_candidates(np.array([[1, 1, 0], [0, 0, 1]])).to_lists()
    [[0, 1], [2]]
    >>> as_candidates(["b", "a"]).mask.astype(int)
    array([[0, 1],
           [1, 0]])
    >>> as_candidates([{"cat", "dog"}, {"emu"}, None]).to_lists()
    [['cat', 'dog'], ['emu'], ['cat', 'dog', 'emu']]
    """
    if isinstance(y, VotedCandidates):
        y = y.candidates
    if isinstance(y, CandidateSets):
        sets = _checked_sets(y)
    elif y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: "
            "give a candidate matrix, a sequence of label sets or a label vector."
        )
    elif sp.issparse(y):
        sets = _from_sparse(y)
    elif hasattr(y, "columns") and hasattr(y, "to_numpy"):
        sets = _from_frame(y)
    elif _is_sequence_of_sets(y):
        sets = _from_label_sets(y)
    else:
        sets = _from_array(y)
    if n_samples is not None and sets.mask.shape[0] != n_samples:
        raise ValueError(
            f"X has {n_samples} rows but y has candidate sets for {sets.mask.shape[0]}: "
            "they need one row each per instance."
        )
    return sets


def _rows_of_key(key: Any) -> Any:
    """Return what picks rows: scikit-learn writes ``y[rows, ...]``."""
    return key[0] if isinstance(key, tuple) and key[1:] == (Ellipsis,) else key


def _checked_sets(sets: CandidateSets) -> CandidateSets:
    mask, classes = _mask_from_matrix(np.asarray(sets.mask)), np.asarray(sets.classes)
    if classes.shape != mask.shape[1:]:
        raise ValueError(
            f"The mask of the CandidateSets has {mask.shape[1]} columns, but its classes have the "
            f"shape {classes.shape}: give one label for each column."
        )
    label, columns = Counter(classes.tolist()).most_common(1)[0]
    if columns > 1:
        raise ValueError(
            f"The CandidateSets have two columns for the label {label!r}: give one for each label."
        )
    return CandidateSets(mask, classes)


def _from_array(y: Any) -> CandidateSets:
    array = np.asarray(y)
    if array.ndim == 2 and (array.shape[1] != 1 or array.dtype == bool):
        return CandidateSets(_mask_from_matrix(array), np.arange(array.shape[1]))
    if array.ndim > 2:
        raise ValueError(f"y has {array.ndim} dimensions; candidate sets need one or two.")
    labels = column_or_1d(y, warn=True)
    if labels.shape[0] == 0:
        raise ValueError("y is empty: at least one row is needed.")
    missing = _first_missing(labels)
    if missing is not None:
        raise ValueError(
            f"Input y contains NaN or None: row {missing} has no label. "
            "Remove the row or give its candidates."
        )
    check_classification_targets(labels)
    classes, codes = _sorted_unique(labels)
    return CandidateSets(codes[:, None] == np.arange(classes.shape[0]), classes)


def _from_label_sets(y: Sequence[Collection[Any] | None]) -> CandidateSets:
    known = {number: row for number, row in enumerate(y) if row is not None}
    numbers, rows = np.array(list(known)), list(known.values())
    sizes = np.array([len(row) for row in rows])
    if (sizes == 0).any():
        raise ValueError(_empty_set_message(numbers[sizes == 0]))
    if looks_like_a_mask(rows):
        raise ValueError(
            "y is a list of equally long lists of 0 and 1 that repeat labels, which reads as "
            "candidate sets of the labels 0 and 1. If it is a 0/1 matrix, pass np.asarray(y)."
        )
    labels = np.fromiter((label for row in rows for label in row), dtype=object)
    owners = np.repeat(numbers, sizes)
    missing = _first_missing(labels)
    if missing is not None:
        raise ValueError(
            f"Row {owners[missing]} of y has a missing label (NaN or None) among its candidates."
        )
    classes, codes = _sorted_unique(_tight(labels))
    mask = np.ones((len(y), classes.shape[0]), dtype=bool)
    mask[numbers] = False
    mask[owners, codes] = True
    return CandidateSets(mask, classes)


def _from_frame(frame: Any) -> CandidateSets:
    columns = list(frame.columns)
    if len(set(columns)) != len(columns):
        raise ValueError("The candidate table has two columns of the same name.")
    values = frame.to_numpy()
    if len(columns) == 1 and not all(value in (0, 1) for value in values.ravel().tolist()):
        return _from_array(values.ravel())  # a column of labels, as pandas users write y
    return CandidateSets(_mask_from_matrix(values), _tight(np.fromiter(columns, dtype=object)))


def _from_sparse(matrix: Any) -> CandidateSets:
    if matrix.ndim != 2:
        raise ValueError("A sparse y must have two dimensions: rows and labels.")
    coo = sp.coo_array(matrix)
    bad = np.flatnonzero(~np.isin(coo.data, (0, 1)))
    if bad.size:
        raise _bad_entry(coo.data[bad[0]], coo.row[bad[0]], coo.col[bad[0]])
    return CandidateSets(_checked_rows(coo.astype(bool).toarray()), np.arange(coo.shape[1]))


def _mask_from_matrix(matrix: NDArray[Any]) -> Mask:
    if matrix.ndim != 2:
        raise ValueError("A candidate matrix must have two dimensions: rows and labels.")
    if matrix.dtype == bool:
        return _checked_rows(matrix)
    if matrix.dtype == object:
        is_zero_one = np.frompyfunc(_is_zero_one, 1, 1)
        good = is_zero_one(matrix).astype(bool)
    elif matrix.dtype.kind in "iuf":
        good = (matrix == 0) | (matrix == 1)
    else:
        raise ValueError(
            f"Unknown label type: a candidate matrix holds 0 and 1 (or booleans), not "
            f"{matrix.dtype} values. For named labels pass sets of labels or a DataFrame."
        )
    if not good.all():
        row, column = np.argwhere(~good)[0]
        raise _bad_entry(matrix[row, column], row, column)
    return _checked_rows(matrix.astype(bool))


def _checked_rows(mask: Mask) -> Mask:
    if mask.shape[0] == 0 or mask.shape[1] == 0:
        raise ValueError(
            f"The candidate matrix has shape {mask.shape}: at least one row and label are needed."
        )
    empty = np.flatnonzero(~mask.any(axis=1))
    if empty.size:
        raise ValueError(_empty_set_message(empty))
    return mask


def _empty_set_message(rows: Places) -> str:
    more = f" (and {rows.size - 1} more rows)" if rows.size > 1 else ""
    return (
        f"Row {rows[0]}{more} has an empty candidate set: every row needs at least one "
        "candidate. Drop such rows, or give them all labels if nothing is known."
    )


def _bad_entry(value: Any, row: int, column: int) -> ValueError:
    return ValueError(
        f"Unknown label type: the candidate matrix has the entry {value!s} at row {row}, column "
        f"{column}; entries must be 0 or 1. Counts of votes go to candidate_weight of fit."
    )


def _is_sequence_of_sets(y: Any) -> bool:
    if hasattr(y, "to_numpy"):  # a pandas Series
        y = y.to_numpy()
    if isinstance(y, np.ndarray):
        if y.ndim != 1 or y.dtype != object:
            return False
    elif hasattr(y, "__array__") or not isinstance(y, Sequence) or isinstance(y, str):
        return False
    if not any(isinstance(row, SET_TYPES) for row in y):
        return False
    single = [row is not None and not isinstance(row, SET_TYPES) for row in y]
    if any(single):
        first = single.index(True)
        raise ValueError(
            f"y mixes label sets and single labels: row {first} is {reprlib.repr(y[first])}. "
            "Write every row as a set, single labels too."
        )
    return True


def looks_like_a_mask(rows: list[Collection[Any]]) -> bool:
    """Whether sets of labels may be meant as the rows of a 0/1 matrix."""
    if not all(isinstance(row, (list, tuple)) for row in rows):
        return False
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
        return False
    if not all(_is_zero_one(value) for row in rows for value in row):
        return False
    return any(len(set(row)) < len(row) for row in rows)


def _is_zero_one(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.number)) and value in (0, 1)


def is_missing(value: Any) -> bool:
    """Whether a value stands for nothing: None, NaN, NaT, pandas.NA."""
    if isinstance(value, np.ndarray):
        return False
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither true nor false
        return True


def _first_missing(labels: NDArray[Any]) -> int | None:
    if labels.dtype == object:
        return next((row for row, label in enumerate(labels) if is_missing(label)), None)
    missing = np.isnan(labels) if labels.dtype.kind == "f" else np.False_
    return int(np.argmax(missing)) if missing.any() else None


def _tight(labels: NDArray[Any]) -> NDArray[Any]:
    """Give labels of one kind a dtype of that kind, so that predictions get it too."""
    kinds = {type(label) for label in labels.tolist()}
    if len(kinds) == 1 or all(issubclass(kind, (int, float, np.number)) for kind in kinds):
        tight = np.asarray(labels.tolist())
        # NumPy's text drops NUL characters at the end, which would make two labels one.
        if tight.ndim == 1 and (tight.dtype.kind != "U" or tight.tolist() == labels.tolist()):
            return tight
    return labels


def _sorted_unique(labels: NDArray[Any]) -> tuple[NDArray[Any], Places]:
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise ValueError(
            f"The labels cannot be sorted because they mix the types {', '.join(kinds)}: "
            "make them all of one type, for instance strings."
        ) from None


@dataclass(frozen=True)
class CandidateStatistics:
    """What a collection of candidate sets looks like.

    ``sizes[s]`` is the number of rows with s candidates, ``mean_size`` their mean number (the
    paper's AVG-CL*), ``singleton_share`` the share of rows with one. ``label_frequency`` is the
    share of the sets that contain each label, ``unseen`` marks those that none contains. Entry
    (l, l') of ``cooccurrence`` is the share of the sets with label l that contain l' too (0 for an
    unseen label), and ``ambiguity_degree`` its largest entry off the diagonal: 1 means that some
    label never appears without a certain companion: the sets alone cannot tell the two apart.
    """

    n_samples: int
    n_classes: int
    mean_size: float
    sizes: Places
    singleton_share: float
    label_frequency: Floats
    cooccurrence: Floats
    ambiguity_degree: float
    unseen: Mask

    @classmethod
    def of(cls, candidates: Any) -> CandidateStatistics:
        """Describe candidate sets given in any form that :func:`as_candidates` reads."""
        mask = as_candidates(candidates).mask
        n_samples, n_classes = mask.shape
        size = mask.sum(axis=1)
        sparse = sp.csr_array(mask.astype(np.float64))
        together = np.asarray((sparse.T @ sparse).todense())
        count = together.diagonal().copy()
        cooccurrence = together / np.maximum(count, 1)[:, None]
        others = cooccurrence[~np.eye(n_classes, dtype=bool)]
        return cls(
            n_samples=n_samples,
            n_classes=n_classes,
            mean_size=float(size.mean()),
            sizes=np.bincount(size, minlength=n_classes + 1),
            singleton_share=float((size == 1).mean()),
            label_frequency=count / n_samples,
            cooccurrence=cooccurrence,
            ambiguity_degree=float(others.max()) if others.size else 0.0,
            unseen=count == 0,
        )


class VotedCandidates(NamedTuple):
    """Candidate sets made from votes.

    Row i of ``candidates`` belongs to ``items[i]``; items are in the order of their first vote.
    ``weights`` (n_items, n_classes) sums the votes for each label, zero outside the candidates.
    ``votes``, sparse of shape (n_items, n_annotators * n_classes), tells who voted what: the weight
    of annotator w's vote for label l stands in column ``w * n_classes + l``; votes without names
    are those of one annotator. ``annotators`` are their names, in the order of their first vote.
    What is not known is None. As with :class:`CandidateSets`, an array of row numbers picks rows.
    """

    candidates: CandidateSets
    items: NDArray[Any]
    weights: Floats
    votes: sp.csr_array | None = None
    annotators: NDArray[Any] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and labels."""
        return self.candidates.shape

    def __getitem__(self, key: Any) -> Any:
        """Pick rows by an array, a list or a slice; a number picks a field, as in any tuple."""
        if isinstance(key, (int, np.integer)):
            return tuple.__getitem__(self, key)
        rows = _rows_of_key(key)
        sets: Any = self.candidates[key]
        votes = None if self.votes is None else self.votes[rows]
        return VotedCandidates(sets, self.items[rows], self.weights[rows], votes, self.annotators)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.candidates.__array__(dtype, copy)


def candidates_from_votes(
    items: Iterable[Any],
    labels: Iterable[Any],
    annotators: Iterable[Any] | None = None,
    weights: ArrayLike | None = None,
    *,
    min_share: float = 0.0,
    all_items: Iterable[Any] | None = None,
) -> VotedCandidates:
    """Turn annotators' votes into candidate sets: whatever somebody said is a candidate.

    Parameters
    ----------
    items, labels : sequences of the same length
        Vote ``v`` says that ``items[v]`` has the label ``labels[v]``.
    annotators : sequence, default=None
        Who cast each vote. If given, an annotator's repeated vote for the same label of the
        same item counts once (with its largest weight).
    weights : sequence of float, default=None
        Positive weight of each vote; 1 by default.
    min_share : float, default=0.0
        Labels with less than this share of an item's total weight are dropped; an item's best
        label always stays.
    all_items : sequence, default=None
        All items in the order of the rows of X, each once. Every label is a candidate of an item
        that nobody voted on. By default the items are those with votes.

    Returns
    -------
    VotedCandidates
        Candidate sets, the items they belong to, and the summed weights. As y of ``fit`` it is
        candidates and ``candidate_weight`` at once, if the rows of X are in the order of
        ``items``.

    Examples
    --------
    >>> from gmpll import candidates_from_votes
    >>> voted = candidates_from_votes(["a", "a", "b"], ["cat", "dog", "dog"])
    >>> voted.candidates.to_lists()
    [['cat', 'dog'], ['dog']]
    """
    item_list, label_array = list(items), np.fromiter(labels, dtype=object)
    n_votes = len(item_list)
    if not n_votes:
        raise ValueError("There are no votes: at least one (item, label) pair is needed.")
    if n_votes != len(label_array):
        raise ValueError(
            f"There are {n_votes} items but {len(label_array)} labels: a vote has one each."
        )
    if not 0.0 <= min_share <= 1.0:
        raise ValueError(f"min_share is {min_share}; it must be between 0 and 1.")
    weight = np.ones(n_votes) if weights is None else np.asarray(weights, dtype=float)
    if weight.shape != (n_votes,):
        raise ValueError(f"There are {n_votes} votes but {weight.size} weights.")
    sound = np.isfinite(weight) & (weight > 0)
    if not sound.all():
        vote = int(np.argmin(sound))
        raise ValueError(f"Vote {vote} has the weight {weight[vote]}; weights must be positive.")
    missing = _first_missing(label_array)
    if missing is not None:
        raise ValueError(f"Vote {missing} has no label (NaN or None).")
    classes, label = _sorted_unique(_tight(label_array))
    item, item_names = _item_codes(item_list, all_items)
    who, names = _codes([None] * n_votes if annotators is None else list(annotators))
    if len(who) != n_votes:
        raise ValueError(f"There are {n_votes} votes but {len(who)} annotators.")
    if annotators is not None:  # of equal votes of an annotator only the weightiest counts
        order = np.argsort(-weight, kind="stable")
        extents = (len(names), len(item_names), len(classes))
        vote_code = np.ravel_multi_index((who, item, label), extents)
        kept = np.sort(order[np.unique(vote_code[order], return_index=True)[1]])
        item, label, who, weight = item[kept], label[kept], who[kept], weight[kept]

    n, q = len(item_names), len(classes)
    total = np.zeros((n, q))
    np.add.at(total, (item, label), weight)
    keep = (total > 0) & (total >= min_share * total.sum(axis=1, keepdims=True))
    keep |= total == total.max(axis=1, keepdims=True)  # all labels where nobody voted
    places = (item.astype(np.int64), who.astype(np.int64) * q + label)
    votes = sp.coo_array((weight, places), shape=(n, len(names) * q)).tocsr()
    sets, weights = CandidateSets(keep, classes), np.where(keep, total, 0.0)
    return VotedCandidates(sets, item_names, weights, votes, None if annotators is None else names)


def _codes(values: list[Any]) -> tuple[Places, NDArray[Any]]:
    """Number values in the order in which they occur first, and name what is numbered."""
    seen: dict[Any, int] = {}
    codes = np.fromiter((seen.setdefault(v, len(seen)) for v in values), np.intp, len(values))
    return codes, _tight(np.fromiter(seen, dtype=object))


def _item_codes(items: list[Any], all_items: Iterable[Any] | None) -> tuple[Places, NDArray[Any]]:
    """Number the items of the votes, as rows of all items where these are given."""
    if all_items is None:
        return _codes(items)
    known = list(all_items)
    codes, names = _codes(known + items)
    numbers = codes[: len(known)]
    if len(set(numbers.tolist())) < len(known):
        twice = known[int(np.argmax(np.bincount(numbers)[numbers] > 1))]
        raise ValueError(f"all_items has the item {twice!r} twice: name each item once.")
    if len(names) > len(known):
        vote = int(np.argmax(codes[len(known) :] >= len(known)))
        raise ValueError(f"Vote {vote} is for the item {items[vote]!r}, which all_items lacks.")
    return codes[len(known) :], names
