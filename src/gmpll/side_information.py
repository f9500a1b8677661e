r"""What is known beyond the candidate sets.

What is certain changes the sets themselves (:func:`apply_constraints`): a row whose label is known
has that one candidate, and a label that a row cannot have is none of its candidates. Every method
takes it, because every method takes candidate sets.

What is uncertain is a prior (:class:`Prior`): weights of the candidates, such as the votes of
annotators, which multiply the support of every assignment in every iteration of the matching, and
the frequencies of the classes, towards which every iteration draws the masses of the labels.
"""

import reprlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn import get_config  # type: ignore[attr-defined]
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from gmpll._columns import aligned_columns, label_codes
from gmpll._typing import Floats, Mask, Places
from gmpll.candidates import (
    SET_TYPES,
    CandidateSets,
    VotedCandidates,
    is_missing,
    looks_like_a_mask,
)
from gmpll.rounding import confidences_within

#: Stands for an unknown label, as in ``sklearn.semi_supervised``, unless it is one of the labels.
UNKNOWN = -1
#: Share of a row's prior that is spread evenly over its candidates: a candidate that nobody voted
#: for is unlikely, not impossible.
EVEN_SHARE = 0.1
#: Largest exponent that the weights of candidates may get.
MAX_WEIGHT_EXPONENT = 3.0


def apply_constraints(
    sets: CandidateSets, *, gold: Any = None, impossible: Any = None
) -> CandidateSets:
    """Return the candidate sets with known and impossible labels worked in.

    Both are given as to ``fit`` of :class:`gmpll.base.BasePartialLabelClassifier`. A label without
    a column in a DataFrame is possible everywhere. Labels that the sets do not have, and a row that
    is left without a candidate, are a ValueError that names the first such row.

    Examples
    --------
    >>> from gmpll import as_candidates
    >>> from gmpll.side_information import apply_constraints
    >>> sets = as_candidates([{"cat", "dog"}, {"cat", "dog", "emu"}, {"cat", "dog"}])
    >>> impossible = [None, {"dog"}, None]
    >>> apply_constraints(sets, gold=["emu", None, None], impossible=impossible).to_lists()
    [['emu'], ['cat', 'emu'], ['cat', 'dog']]
    """
    if gold is None and impossible is None:
        return sets
    mask = sets.mask.copy()
    codes = known_labels(gold, sets.classes, n_samples=len(mask))
    rows = np.flatnonzero(codes >= 0)
    mask[rows] = False
    mask[rows, codes[rows]] = True
    if impossible is not None:
        mask &= ~_impossible(impossible, sets.classes, n_samples=len(mask))
        empty = np.flatnonzero(~mask.any(axis=1))
        if empty.size:
            row, code = empty[0], codes[empty[0]]
            why = "has no candidate left, because all of its candidates are said to be impossible"
            fix = "fix y or impossible, or give the row all labels in y"
            if code >= 0:
                known = repr(sets.classes.tolist()[code])
                why = f"has the known label {known}, which is said to be impossible for it"
                fix = "fix gold or impossible"
            more = f" (and {empty.size - 1} more rows)" if empty.size > 1 else ""
            raise ValueError(f"Row {row}{more} {why}: {fix}.")
    return CandidateSets(mask, sets.classes)


def known_labels(gold: Any, classes: NDArray[Any], *, n_samples: int) -> Places:
    """Return the place of every known label among the classes, -1 where no label is known."""
    codes = np.full(n_samples, UNKNOWN, dtype=np.intp)
    if gold is None:
        return codes
    labels = gold.tolist() if hasattr(gold, "tolist") else list(gold)
    if len(labels) != n_samples:
        raise ValueError(
            f"gold has {len(labels)} labels for {n_samples} rows: give one for every row, None "
            "where it is not known."
        )
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    for row, label in enumerate(labels):
        if is_missing(label):
            continue
        try:
            codes[row] = code_of[label]
        except (KeyError, TypeError):
            if isinstance(label, (int, float, np.number)) and label == UNKNOWN:
                continue
            raise _unknown_label("gold", row, label) from None
    return codes


def weight_argument(estimator: Any) -> str | None:
    """Return the name under which ``fit`` takes weights of candidates, None if it takes none."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        argument = weight_argument(last)
        routed = get_config()["enable_metadata_routing"]
        return argument if argument is None or routed else f"{name}__{argument}"
    taken = "candidate_weight" if has_fit_parameter(estimator, "candidate_weight") else None
    inner = getattr(estimator, "estimator", getattr(estimator, "disambiguator", None))
    if inner is None:
        return taken
    argument = weight_argument(inner)  # a wrapper takes what it can pass on, so does a search
    return argument and (taken or argument)


def votes_as_weights(
    estimator: Any, y: Any, candidate_weight: Any = None, classes: NDArray[Any] | None = None
) -> tuple[Any, Any]:
    """Take candidates that were made from votes apart: sets and, unless given, their weights.

    Any other form of y is left as it is. A warning says so if the ``fit`` of the estimator takes no
    weights. Their columns are in the order of ``classes``, by default that of the votes.
    """
    if not isinstance(y, VotedCandidates):
        return y, candidate_weight
    if candidate_weight is None and weight_argument(estimator) is None:
        warnings.warn(
            f"The fit of {type(estimator).__name__} takes no candidate_weight, so that only the "
            "sets of the voted candidates count, not how many voted: use PartialLabelClassifier, "
            "or pass y.candidates.",
            stacklevel=3,
        )
    elif candidate_weight is None:
        labels = y.candidates.classes
        candidate_weight = aligned_columns(
            y.weights, labels, labels if classes is None else classes
        )
    return y.candidates, candidate_weight


def weights_by_label(weights: Any, sets: CandidateSets) -> Floats:
    """Return checked weights of candidates, columns in the order of the sets' classes."""
    values = _by_label(weights, sets.classes, "candidate_weight", n_samples=len(sets.mask))
    bad = np.argwhere(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        row, column = bad[0]
        raise ValueError(
            f"candidate_weight is {values[row, column]} in row {row} for the label "
            f"{sets.classes.tolist()[column]!r}: weights are numbers that are not negative."
        )
    return values


def candidate_prior(weights: Any, sets: CandidateSets) -> Floats:
    """Return how likely the weights make every candidate, relative to the best of its row.

    The weights are not negative, of any scale, in the order of the classes; a DataFrame is read by
    the names of its columns and has one for every class. What is not a candidate is ignored. A row
    of equal (or no) weights gets ones only: it says nothing.
    """
    mask, values = sets.mask, weights_by_label(weights, sets)
    even = confidences_within(mask.astype(np.float64), mask)
    # Divided by the largest first, so that no sum overflows and equal weights stay exactly equal.
    largest = np.where(mask, values, 0.0).max(axis=1, keepdims=True)
    shares = confidences_within(values / np.where(largest > 0, largest, 1.0), mask)
    prior = np.where(mask, (1.0 - EVEN_SHARE) * shares + EVEN_SHARE * even, 0.0)
    return prior / prior.max(axis=1, keepdims=True)


def class_shares(class_prior: Any, classes: NDArray[Any], seen: Mask) -> Floats:
    """Return the prior frequencies of the labels that are ``seen``; they sum to one.

    They are given in the order of the classes or as a mapping that names every label, not
    negative and of any scale.
    """
    if isinstance(class_prior, Mapping):
        missing = [label for label in classes.tolist() if label not in class_prior]
        if missing:
            raise ValueError(f"class_prior has no frequency for the label {missing[0]!r}.")
        class_prior = [class_prior[label] for label in classes.tolist()]
    shares = np.asarray(class_prior, dtype=np.float64)
    if shares.shape != classes.shape:
        raise ValueError(
            f"class_prior has shape {shares.shape}, but there are {len(classes)} labels: give one "
            "frequency for each, in the order of classes_, or a mapping of label to frequency."
        )
    if not (np.isfinite(shares).all() and (shares >= 0).all() and (shares[seen] > 0).any()):
        raise ValueError(
            "class_prior must hold finite numbers that are not negative, at least one of them "
            "positive for a label that occurs."
        )
    return shares[seen] / shares[seen].sum()


def estimate_weight_exponent(prior: Floats, found: Floats, mask: Mask) -> float:
    r"""Estimate the exponent with which the weights predict best what was found without them.

    .. math:: \max_s \sum_i \log \sum_l p_{il} \frac{b_{il}^s}{\sum_k b_{ik}^s}

    with p the probabilities ``found`` and b the ``prior`` of :func:`candidate_prior`. Weights that
    have nothing to do with the labels get about 0.
    """
    telling = (np.where(mask, prior, 1.0) < 1.0).any(axis=1)
    if not telling.any():
        return 1.0
    inside, p = mask[telling], found[telling]
    logarithms = np.log(np.where(inside, prior[telling], 1.0))

    def surprise(exponent: float) -> float:
        expected = confidences_within(np.exp(exponent * logarithms), inside)
        agreement = (p * expected).sum(axis=1)
        return -float(np.log(np.maximum(agreement, np.finfo(float).tiny)).mean())

    return float(minimize_scalar(surprise, bounds=(0.0, MAX_WEIGHT_EXPONENT), method="bounded").x)


@dataclass(frozen=True)
class Prior:
    """What is likely before any row is compared with another.

    It holds what :func:`candidate_prior` and :func:`class_shares` return, None where nothing is
    known, and the exponent of the candidates' weights; None has it estimated.
    """

    candidates: Floats | None = None
    classes: Floats | None = None
    weight_exponent: float | None = None

    def part(self, rows: Places, seen: Mask) -> "Prior":
        """Return the prior of some rows and labels."""
        candidates, classes = self.candidates, self.classes
        if candidates is not None:
            candidates = candidates[rows][:, seen]
        if classes is not None:
            # Labels that none of the rows contains may be all that is expected.
            classes = classes[seen] if classes[seen].any() else np.ones(int(seen.sum()))
            classes = classes / classes.sum()
        return Prior(candidates, classes, self.weight_exponent)

    def expected_mass(self, n_samples: int) -> Floats | None:
        """Return how many of so many rows should have each label, None if that is not known."""
        return None if self.classes is None else n_samples * self.classes[None, :]


def _impossible(impossible: Any, classes: NDArray[Any], *, n_samples: int) -> Mask:
    if sp.issparse(impossible) or getattr(impossible, "ndim", 1) == 2:
        if _has_names(impossible):
            for label in impossible.columns.difference(classes.tolist(), sort=False):
                ruled_out = np.flatnonzero(impossible[label].to_numpy())
                if ruled_out.size:
                    raise _unknown_label("impossible", int(ruled_out[0]), label)
            impossible = impossible.reindex(columns=classes.tolist(), fill_value=0)
        values = _by_label(impossible, classes, "impossible", n_samples=n_samples)
        bad = np.argwhere((values != 0) & (values != 1))
        if bad.size:
            row, column = bad[0]
            raise ValueError(
                f"impossible has the entry {values[row, column]} in row {row}: entries must be 0 "
                "or 1."
            )
        return values.astype(bool)
    rows = list(impossible)
    if len(rows) != n_samples:
        raise ValueError(
            f"impossible has {len(rows)} sets for {n_samples} rows: give one for every row, None "
            "where nothing is excluded."
        )
    if looks_like_a_mask([labels for labels in rows if not is_missing(labels)]):
        raise ValueError(
            "impossible is a list of equally long lists of 0 and 1 that repeat labels, which "
            "reads as sets of the labels 0 and 1: if it is a 0/1 matrix, pass "
            "np.asarray(impossible)."
        )
    mask = np.zeros((n_samples, len(classes)), dtype=bool)
    for row, labels in enumerate(rows):
        if is_missing(labels):
            continue
        if not isinstance(labels, SET_TYPES):
            raise ValueError(
                f"Row {row} of impossible is {reprlib.repr(labels)}: write a set of labels, single "
                "ones too."
            )
        codes = label_codes(list(labels), classes)
        if (codes < 0).any():
            raise _unknown_label("impossible", row, list(labels)[int(np.argmin(codes))])
        mask[row, codes] = True
    return mask


def _unknown_label(name: str, row: int, label: Any) -> ValueError:
    return ValueError(
        f"Row {row} of {name} has the label {label!r}, which y does not know: fix it, or give y "
        "as a table with a column for every label."
    )


def _has_names(table: Any) -> bool:
    return hasattr(table, "columns") and hasattr(table, "reindex")


def _by_label(table: Any, classes: NDArray[Any], name: str, *, n_samples: int) -> Floats:
    """Return a table with a row per instance and a column per label as an array of numbers."""
    if _has_names(table):
        missing = [repr(label) for label in classes.tolist() if label not in table.columns]
        if missing:
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            raise ValueError(
                f"{name} has no column for the label{'s' * (len(missing) > 1)} "
                f"{', '.join(missing[:5])}{more}: give one for every label of y, of zeros if there "
                "is nothing to say."
            )
        table = table[classes.tolist()]  # no row has a label that y does not know
    dense = table.toarray() if hasattr(table, "toarray") else table
    try:
        values = np.asarray(dense, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, a column per label.") from None
    if values.shape != (n_samples, len(classes)):
        raise ValueError(
            f"{name} has shape {values.shape}, but there are {n_samples} rows and {len(classes)} "
            "labels: give a row per instance and a column per label, in the order of classes_."
        )
    return values
