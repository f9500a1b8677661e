"""Labels under other names: variants of one label found, merged and renamed.

Labels that people type differ by accident: ``Billing``, ``billing``, ``BILLING `` and a decomposed
``é`` are other labels to a program. Every such variant takes candidates away from the right one.
"""

import unicodedata
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from gmpll._typing import Places
from gmpll.candidates import CandidateSets, VotedCandidates, as_candidates


def label_variants(y: Any, *, accents: bool = True) -> list[dict[Any, int]]:
    """Find labels that differ only in how they are written.

    Parameters
    ----------
    y : candidate sets in any form
        What :func:`gmpll.as_candidates` reads, or votes.
    accents : bool, default=True
        Whether labels that differ in accents, or in compatible characters such as full-width
        letters, are variants too. Case, whitespace, invisible characters and the Unicode form
        always are.

    Returns
    -------
    list of dict
        For each label that is written in several ways, its variants and the number of rows (with
        votes: of votes) that have them, the commonest first.

    See Also
    --------
    merge_labels : Make one label of the variants.
    rename_labels : Give labels the names that you choose.

    Examples
    --------
    >>> from gmpll import label_variants
    >>> label_variants([["Billing", "refund"], ["billing"], ["Billing"], ["café"], ["cafe"]])
    [{'Billing': 2, 'billing': 1}, {'cafe': 1, 'café': 1}]
    """
    return variants(_counts(y), accents=accents)


def merge_labels(y: Any, *, accents: bool = False) -> Any:
    """Make one label of those that differ only in how they are written.

    Labels that differ in case, whitespace, invisible characters or Unicode form become the
    commonest of them, with single spaces and composed characters.

    Parameters
    ----------
    y : candidate sets in any form
        What :func:`gmpll.as_candidates` reads, or votes.
    accents : bool, default=False
        Whether labels that differ in accents are merged too.

    Returns
    -------
    CandidateSets or VotedCandidates
        Votes if ``y`` is votes: an annotator's votes for two variants of a label are one vote.

    See Also
    --------
    label_variants : Say what would be merged.

    Examples
    --------
    >>> from gmpll import merge_labels
    >>> merge_labels([["Billing", "billing "], ["Billing", "refund"]]).to_lists()
    [['Billing'], ['Billing', 'refund']]
    """
    return rename_labels(y, merged_names(_counts(y), accents=accents))


def rename_labels(y: Any, names: Mapping[Any, Any]) -> Any:
    """Give labels other names; labels that get the same name become one.

    Parameters
    ----------
    y : candidate sets in any form
        What :func:`gmpll.as_candidates` reads, or votes.
    names : mapping
        New names of labels; labels that are not in it keep theirs.

    Returns
    -------
    CandidateSets or VotedCandidates
        Votes if ``y`` is votes: an annotator's votes for two labels that become one are one vote.

    Raises
    ------
    ValueError
        If ``names`` has a name for something that is no label.

    Examples
    --------
    >>> from gmpll import candidates_from_votes, rename_labels
    >>> votes = candidates_from_votes(["a", "a", "b"], ["cat", "kitty", "dog"], ["I", "you", "I"])
    >>> renamed = rename_labels(votes, {"kitty": "cat"})
    >>> renamed.candidates.to_lists(), renamed.weights.tolist()
    ([['cat'], ['dog']], [[2.0, 0.0], [0.0, 1.0]])
    """
    sets = _sets(y)
    before = sets.classes.tolist()
    strange = next((name for name in names if name not in before), None)
    if strange is not None:
        raise ValueError(f"names has {strange!r}, which is no label: leave it out, or correct it.")
    after = [names.get(label, label) for label in before]
    classes = as_candidates([[name] for name in after]).classes if after else sets.classes
    place = {name: code for code, name in enumerate(classes.tolist())}
    code = np.array([place[name] for name in after], dtype=np.intp)
    mask = np.zeros((len(sets.mask), len(classes)), dtype=bool)
    for column, target in enumerate(code):
        mask[:, target] |= sets.mask[:, column]
    renamed = CandidateSets(mask, classes)
    if not isinstance(y, VotedCandidates):
        return renamed
    votes = None if y.votes is None else _joined_votes(y.votes, y.annotators, code, len(classes))
    totals = np.zeros(mask.shape)
    if votes is None:
        np.add.at(totals.T, code, y.weights.T)
    else:
        found = votes.tocoo()
        np.add.at(totals, (found.row, found.col % len(classes)), found.data)
    return y._replace(candidates=renamed, weights=np.where(mask, totals, 0.0), votes=votes)


def variants(counts: Mapping[Any, int], *, accents: bool = True) -> list[dict[Any, int]]:
    """Group labels, given with their counts, that differ only in how they are written."""
    groups: dict[Any, dict[Any, int]] = {}
    for label in sorted(counts, key=lambda label: (-counts[label], str(label))):
        groups.setdefault(spelling_key(label, accents=accents), {})[label] = counts[label]
    return [group for group in groups.values() if len(group) > 1]


def merged_names(counts: Mapping[Any, int], *, accents: bool = False) -> dict[Any, Any]:
    """Return the new names of labels that :func:`merge_labels` changes."""
    names: dict[Any, Any] = {}
    for group in variants(counts, accents=accents):
        best = unicodedata.normalize("NFC", " ".join(next(iter(group)).split()))
        names |= {label: best for label in group if label != best}
    return names


def spelling_key(label: Any, *, accents: bool = False) -> Any:
    """Return what is left of a label without the differences in writing."""
    if not isinstance(label, str):
        return label
    form: Literal["NFKD", "NFC"] = "NFKD" if accents else "NFC"
    text = unicodedata.normalize(form, unicodedata.normalize(form, label).casefold())
    dropped = ("Cf", "Mn") if accents else ("Cf",)
    return " ".join("".join(c for c in text if unicodedata.category(c) not in dropped).split())


def _sets(y: Any) -> CandidateSets:
    if isinstance(y, VotedCandidates):
        return y.candidates
    return y if isinstance(y, CandidateSets) else as_candidates(y)


def _counts(y: Any) -> dict[Any, int]:
    sets = _sets(y)
    totals = y.weights if isinstance(y, VotedCandidates) else sets.mask
    return dict(zip(sets.classes.tolist(), totals.sum(axis=0).astype(int).tolist(), strict=True))


def _joined_votes(
    votes: sp.csr_array, annotators: Any, code: Places, n_classes: int
) -> sp.csr_array:
    """Return the votes for the new labels: named ones count once, others are added up."""
    old = votes.tocoo()
    who, label = np.divmod(old.col.astype(np.int64), len(code))
    shape = (old.shape[0], old.shape[1] // len(code) * n_classes)
    place = old.row.astype(np.int64) * shape[1] + who * n_classes + code[label]
    places, group = np.unique(place, return_inverse=True)
    weights = np.zeros(len(places))
    (np.add if annotators is None else np.maximum).at(weights, group, old.data)
    return sp.coo_array((weights, np.divmod(places, shape[1])), shape=shape).tocsr()
