r"""Candidate sets made from labels, for experiments in which the truth is known.

Every function takes the labels as codes ``0 .. q-1`` and returns a boolean mask with a row per
instance and a column per label, in which the true label always is a candidate. All randomness
comes from uniform numbers of a :class:`numpy.random.RandomState`, whose stream NumPy keeps
frozen: the same seed gives the same sets on every platform and with every release.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state, gen_batches

from gmpll._typing import Floats, Mask, Places, RandomSource
from gmpll.rounding import one_hot

#: Uniform numbers for a whole mask are drawn in blocks of about this many bytes.
BLOCK_BYTES = 2**26
#: Added to every probability of the weak model, so that every mean size can be reached.
SMOOTHING = 1e-6


def random_candidates(
    y: ArrayLike,
    p: float,
    r: int,
    *,
    n_classes: int | None = None,
    random_state: RandomSource | None = None,
) -> Mask:
    r"""Add r labels, drawn uniformly, to a share p of the rows.

    Exactly ``round(p * n)`` rows, drawn without replacement, get ``r`` distinct labels other than
    their own, every such set of ``r`` being equally probable. This is the protocol of the paper's
    controlled experiments.

    Parameters
    ----------
    y : array-like of shape (n_samples,), int
        True labels, ``0 .. n_classes - 1``.
    p : float in [0, 1]
        Share of rows with more than one candidate.
    r : int
        Number of labels added there, at most ``n_classes - 1``.
    n_classes : int, default=None
        Number of labels; by default the largest in ``y`` plus one.
    random_state : int, RandomState or None, default=None
        Seed.

    Examples
    --------
    >>> from gmpll.datasets.corruption import random_candidates
    >>> random_candidates([0, 1, 2, 3], p=0.5, r=2, random_state=0).sum(axis=1).tolist()
    [3, 1, 1, 3]
    """
    labels, q = _check_labels(y, n_classes)
    _check_share(p, "p")
    _check_extra(r, q - 1, f"{q} labels leave only {q - 1} besides the true one")
    rng = check_random_state(random_state)
    mask = one_hot(labels, q)
    rows = _drawn_rows(len(labels), p, rng)
    _add_distinct(mask, rows, labels[rows, None], r, rng)
    return mask


def cooccurring_candidates(
    y: ArrayLike,
    p: float,
    r: int = 1,
    *,
    epsilon: float,
    companions: ArrayLike | None = None,
    n_classes: int | None = None,
    random_state: RandomSource | None = None,
) -> Mask:
    r"""Add labels among which a fixed companion of the true label is frequent.

    A share p of the rows gets r labels. With probability ``epsilon`` the companion of the true
    label is one of them; the others are drawn uniformly from the labels that are neither the true
    one nor its companion. With ``r=1``, a partially labelled row of true label :math:`y` has

    .. math:: P(c(y) \in S) = \epsilon, \qquad
              P(k \in S) = \frac{1 - \epsilon}{q - 2}\quad (k \ne y, c(y)).

    Parameters
    ----------
    y, p, n_classes, random_state
        As for :func:`random_candidates`.
    r : int, default=1
        Number of labels added there.
    epsilon : float in [0, 1]
        Probability of the companion.
    companions : array-like of shape (n_classes,), int, default=None
        Companion of every label; by default drawn with ``random_state`` so that every label is
        the companion of exactly one other.

    Examples
    --------
    >>> from gmpll.datasets.corruption import cooccurring_candidates
    >>> cooccurring_candidates([0, 1, 2], p=1, epsilon=1, companions=[1, 2, 0]).astype(int)
    array([[1, 1, 0],
           [0, 1, 1],
           [1, 0, 1]])
    """
    labels, q = _check_labels(y, n_classes)
    _check_share(p, "p")
    _check_share(epsilon, "epsilon")
    most = q - 2 if epsilon < 1 else q - 1
    _check_extra(r, most, f"with epsilon={epsilon} and {q} labels, only {most} can be added")
    rng = check_random_state(random_state)
    if companions is None:  # the labels in a random circle; the companion is the next one
        circle = np.argsort(rng.random_sample(q), kind="stable")
        companion = np.empty(q, dtype=np.intp)
        companion[circle] = np.roll(circle, -1)
    else:
        companion, n_companions = _check_labels(companions, q)
        if len(companion) != n_companions or (companion == np.arange(q)).any():
            raise ValueError(f"companions must name another label for each of the {q} labels.")
    mask = one_hot(labels, q)
    rows = _drawn_rows(len(labels), p, rng)
    with_companion = rng.random_sample(len(rows)) < epsilon
    if r == 0:
        return mask
    excluded = np.column_stack([labels[rows], companion[labels[rows]]])
    mask[rows[with_companion], excluded[with_companion, 1]] = True
    _add_distinct(mask, rows[with_companion], excluded[with_companion], r - 1, rng)
    _add_distinct(mask, rows[~with_companion], excluded[~with_companion], r, rng)
    return mask


def class_dependent_candidates(
    y: ArrayLike, transition: ArrayLike, *, random_state: RandomSource | None = None
) -> Mask:
    r"""Include every label with a probability that depends on the true label.

    Independently for all labels, :math:`P(k \in S \mid y) = T_{yk}`.

    Parameters
    ----------
    y, random_state
        As for :func:`random_candidates`.
    transition : array-like of shape (n_classes, n_classes)
        The probabilities :math:`T`, with ones on the diagonal; rows need not sum to one.

    Examples
    --------
    >>> from gmpll.datasets.corruption import class_dependent_candidates
    >>> class_dependent_candidates([0, 1], [[1, 1, 0], [0, 1, 1], [0, 0, 1]]).astype(int)
    array([[1, 1, 0],
           [0, 1, 1]])
    """
    inclusion = np.asarray(transition, dtype=np.float64)
    if inclusion.ndim != 2 or inclusion.shape[0] != inclusion.shape[1]:
        raise ValueError(f"transition must be a square matrix, not of shape {inclusion.shape}.")
    if not ((inclusion >= 0) & (inclusion <= 1)).all():
        raise ValueError("transition must hold probabilities between 0 and 1.")
    if not (np.diag(inclusion) == 1).all():
        raise ValueError("transition must have ones on its diagonal: the truth is a candidate.")
    labels, q = _check_labels(y, inclusion.shape[0])
    mask = one_hot(labels, q)
    _include(mask, lambda part: inclusion[labels[part]], check_random_state(random_state))
    return mask


def instance_dependent_candidates(
    X: ArrayLike,
    y: ArrayLike,
    *,
    mean_candidates: float = 2.0,
    classifier: Any = None,
    n_folds: int = 5,
    n_classes: int | None = None,
    random_state: RandomSource | None = None,
) -> Mask:
    r"""Include the labels that a weak model confuses with the true one.

    A classifier trained on the other folds gives every row probabilities :math:`P_{ik}`.
    Independently for all labels other than the true one,

    .. math:: P(k \in S_i) = \min(1, c P_{ik})

    where the number :math:`c` is chosen such that the expected mean size is
    ``mean_candidates``. Rows that are hard for the model so get large sets.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features.
    y, n_classes
        As for :func:`random_candidates`.
    mean_candidates : float in [1, n_classes], default=2.0
        Expected mean size of the sets.
    classifier : scikit-learn classifier with ``predict_proba``, default=None
        The weak model; by default a regularised logistic regression on z-scored features.
    n_folds : int, default=5
        Number of folds.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the draws. A probability that the model computes differently in
        its last digits on another platform can, rarely, change a set.

    Examples
    --------
    >>> from gmpll.datasets import load_embedded
    >>> from gmpll.datasets.corruption import instance_dependent_candidates
    >>> iris = load_embedded("iris")
    >>> mask = instance_dependent_candidates(
    ...     iris.data, iris.target, mean_candidates=1.3, random_state=0
    ... )
    >>> bool(mask[:50, 2].mean() < mask[50:100, 2].mean())  # virginica is no setosa
    True
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import check_array

    labels, q = _check_labels(y, n_classes)
    if not 1 <= mean_candidates <= q:
        raise ValueError(f"mean_candidates must be between 1 and {q}, not {mean_candidates}.")
    rng = check_random_state(random_state)
    features = check_array(X)
    if len(features) != len(labels):
        raise ValueError(f"X has {len(features)} rows but y has {len(labels)}.")
    if classifier is None:
        classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
    folds = KFold(n_folds, shuffle=True, random_state=rng)
    with warnings.catch_warnings():
        # A rare label may be absent from the other folds: its column keeps the smoothing alone.
        warnings.filterwarnings("ignore", "Number of classes in training fold", RuntimeWarning)
        found = cross_val_predict(classifier, features, labels, cv=folds, method="predict_proba")
    confusion = np.full((len(labels), q), SMOOTHING)
    confusion[:, np.unique(labels)] += found
    mask = one_hot(labels, q)
    confusion[mask] = 0.0
    inclusion = np.minimum(1.0, _confusion_scale(confusion, mean_candidates) * confusion)
    _include(mask, lambda part: inclusion[part], rng)
    return mask


def _include(
    mask: Mask, probabilities: Callable[[slice], Floats], rng: np.random.RandomState
) -> None:
    """Add every label with its probability, independently, in blocks of rows."""
    for part in gen_batches(len(mask), max(1, BLOCK_BYTES // (8 * mask.shape[1]))):
        mask[part] |= rng.random_sample(mask[part].shape) < probabilities(part)


def _confusion_scale(confusion: Floats, mean_candidates: float) -> float:
    """Find c such that the mean row sum of min(1, c * confusion) is mean_candidates - 1."""
    from scipy.optimize import brentq

    def excess(log_scale: float) -> float:
        included = np.minimum(1.0, np.exp(log_scale) * confusion).sum() / len(confusion)
        return float(included - (mean_candidates - 1))

    if mean_candidates == 1:
        return 0.0
    low, high = np.log(1e-12), np.log(1 / SMOOTHING)
    if excess(high) <= 0:  # every other label is included for certain
        return float(np.exp(high))
    return float(np.exp(brentq(excess, low, high, xtol=1e-12)))


def _check_labels(y: ArrayLike, n_classes: int | None) -> tuple[Places, int]:
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(f"y must be a vector of labels, not of shape {labels.shape}.")
    if labels.dtype.kind not in "iu":
        raise ValueError(
            "y must hold the codes 0, 1, ... of the labels as integers: make them with "
            "numpy.unique(y, return_inverse=True)."
        )
    largest = int(labels.max())
    q = largest + 1 if n_classes is None else int(n_classes)
    if labels.min() < 0 or largest >= q:
        raise ValueError(
            f"y must lie between 0 and {q - 1} but spans {int(labels.min())} to {largest}."
        )
    return labels.astype(np.intp), q


def _check_share(value: float, name: str) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, not {value}.")


def _check_extra(r: int, most: int, why: str) -> None:
    if int(r) != r or r < 0:
        raise ValueError(f"r must be a non-negative integer, not {r}.")
    if r > most:
        raise ValueError(f"r={r} labels cannot be added: {why}.")


def _drawn_rows(n: int, p: float, rng: np.random.RandomState) -> Places:
    """Draw round(p * n) rows, in ascending order."""
    order = np.argsort(rng.random_sample(n), kind="stable")
    return np.sort(order[: round(p * n)])


def _add_distinct(
    mask: Mask, rows: Places, excluded: Places, r: int, rng: np.random.RandomState
) -> None:
    """Set r labels outside the excluded ones in each of the rows, all choices equally probable.

    Floyd's sampling without replacement, for all rows at once: r steps whatever the number of
    rows and labels. ``mask`` may hold excluded labels only when it comes here.
    """
    excluded = np.sort(excluded, axis=1)
    pool = mask.shape[1] - excluded.shape[1]
    for last in range(pool - r, pool):
        drawn = (rng.random_sample(len(rows)) * (last + 1)).astype(np.intp)
        label = _outside(drawn, excluded)
        taken = mask[rows, label]
        label[taken] = _outside(np.full(int(taken.sum()), last, dtype=np.intp), excluded[taken])
        mask[rows, label] = True


def _outside(position: Places, excluded: Places) -> Places:
    """Return the label at a position among those that are not excluded (sorted, per row)."""
    label = position.copy()
    for column in excluded.T:
        label += label >= column
    return label
