"""Scores of predictions: against the truth, and against candidate sets where there is none.

Without true labels a prediction can still be compared with the candidate set of its row. That it
lies inside says the less the more sets its label sits in; the *candidate lift* corrects for that.
These are computed on rows that were held out of fitting. Where the truth is known and the labels
are ordered (ages, grades), :func:`mean_absolute_label_error` tells how far off predictions are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import mean_absolute_error

from gmpll._columns import aligned_columns, label_codes
from gmpll.arrays import to_host
from gmpll.candidates import as_candidates

#: A label that sits in (nearly) all sets is covered by chance: its hits count nothing.
CERTAIN = 0.99


def covered(candidates: Any, y_pred: ArrayLike) -> NDArray[np.bool_]:
    """Return for every row whether the predicted label is one of its candidates.

    The sets may come in any form that :func:`gmpll.as_candidates` reads, here and below.
    """
    return _hits(*_columns(candidates, y_pred))


def covering_rate(
    candidates: Any, y_pred: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Share of rows whose predicted label lies in their candidate set, which is no accuracy.

    A wrong label may be a candidate too; only with singleton sets, which are true labels, it is the
    accuracy. ``sample_weight`` says how much each row counts.

    Examples
    --------
    >>> from gmpll.metrics import covering_rate
    >>> covering_rate([{"a", "b"}, {"b"}], ["a", "a"])
    0.5
    >>> covering_rate([{"a", "b"}, {"b"}], ["a", "a"], sample_weight=[3, 1])
    0.75
    """
    hits = covered(candidates, y_pred).astype(np.float64)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return float(np.average(hits, weights=weights))


def candidate_lift(
    candidates: Any, y_pred: ArrayLike, class_prior: ArrayLike | None = None
) -> float:
    r"""Covering rate corrected for chance: an estimate of the accuracy without true labels.

    A right label is always covered. A wrong one is covered if it sits in the set by chance; with
    :math:`c_l` the probability of that, each held-out row counts
    :math:`(\text{hit} - c_{\hat y}) / (1 - c_{\hat y})`: 1 if every prediction is covered, about 0
    for blind guesses, possibly less. The ``class_prior`` is the estimated share of the rows whose
    true label each label is, in the order of the sets' classes: those occurrences are no chance,
    see :func:`chance_of_covering`.

    Examples
    --------
    >>> from gmpll.metrics import candidate_lift
    >>> sets = [{"a", "b"}, {"a"}, {"a", "b"}, {"a", "c"}]
    >>> candidate_lift(sets, ["a", "a", "a", "a"])  # everybody has an "a"
    0.0
    >>> candidate_lift(sets, ["b", "a", "b", "c"])
    0.75
    """
    mask, columns = _columns(candidates, y_pred)
    chance = chance_of_covering(mask.mean(axis=0), class_prior)
    return float(row_lifts(mask, columns, chance).mean())


def chance_of_covering(
    frequency: NDArray[np.floating], class_prior: ArrayLike | None = None
) -> NDArray[np.float64]:
    r"""Probability that a label sits in the set of a row whose true label is another.

    A label is in the sets of its own rows and, by chance, in others:
    :math:`f_l = \pi_l + (1 - \pi_l) c_l`.

    The frequency f is the share of the candidate sets that contain the label, the class prior π the
    share of the rows that truly have it; without it 0 is taken, which overrates chance.
    """
    if class_prior is None:
        return np.asarray(frequency, dtype=np.float64)
    prior = np.minimum(np.asarray(class_prior, dtype=np.float64), CERTAIN)
    return np.clip((frequency - prior) / (1.0 - prior), 0.0, 1.0)


def row_lifts(
    mask: NDArray[np.bool_], columns: NDArray[np.integer], chance: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return what every row counts in the candidate lift; 0 where chance makes a hit certain.

    The predicted column is -1 for a label that no set contains, which chance never covers.
    """
    of_column = np.where(columns >= 0, chance[columns], 0.0)
    informative = of_column <= CERTAIN
    rest = np.where(informative, 1.0 - of_column, 1.0)
    return np.where(informative, (_hits(mask, columns) - of_column) / rest, 0.0)


def approximated_accuracy(
    candidates: Any, probabilities: ArrayLike, classes: ArrayLike | None = None
) -> float:
    """Probability that the predicted label is right, believing the model within the candidates.

    The model's probabilities are restricted to the candidates of the row and normalised; the row
    counts what is then left on the label that the model predicts (nothing if that is none of
    them). ``classes`` are the labels of the columns of the probabilities, by default the sets'
    classes; a candidate that is none of them has no probability.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.metrics import approximated_accuracy
    >>> approximated_accuracy(np.array([[1, 1, 0]]), [[0.75, 0.25, 0.0]])
    0.75
    >>> approximated_accuracy([{"b"}], [[0.75, 0.25]], classes=["a", "b"])  # "a" is predicted
    0.0
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2 or not np.isfinite(p).all() or (p < 0).any():
        raise ValueError(
            "The probabilities must be a table of numbers that are not negative, with a row per "
            "instance and a column per label."
        )
    mask, labels = as_candidates(candidates, n_samples=p.shape[0])
    if classes is not None:
        mask = aligned_columns(mask, labels, np.asarray(classes))
    if mask.shape != p.shape:
        raise ValueError(
            f"The candidates have {mask.shape[1]} labels but the probabilities {p.shape[1]} "
            "columns: they need one each per label."
        )
    inside = np.where(mask, p, 0.0)
    total = inside.sum(axis=1)
    on_predicted = inside[np.arange(len(p)), p.argmax(axis=1)]
    return float(np.where(total > 0, on_predicted / np.where(total > 0, total, 1.0), 0.0).mean())


def mean_absolute_label_error(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Mean distance between true and predicted labels that are numbers, such as ages or grades.

    The accuracy calls a neighbouring grade as wrong as the farthest one; this does not. It is in
    the unit of the labels, and smaller is better. Labels are integers or floats, not text.

    Examples
    --------
    >>> from gmpll.metrics import mean_absolute_label_error
    >>> mean_absolute_label_error([30, 41, 7], [30, 40, 12])
    2.0
    """
    return float(mean_absolute_error(_numbers(y_true, "true"), _numbers(y_pred, "predicted")))


def _numbers(labels: ArrayLike, which: str) -> NDArray[np.float64]:
    """Return labels as floats: differences of unsigned integers would wrap around."""
    values = np.asarray(labels)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise ValueError(
            f"The {which} labels must be a vector of numbers, so that they have distances, but "
            f"they are {values.dtype} of shape {values.shape}."
        )
    return values.astype(np.float64)


def _hits(mask: NDArray[np.bool_], columns: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return for every row whether the predicted column is one of its candidates."""
    return (columns >= 0) & mask[np.arange(len(mask)), columns]


def _columns(candidates: Any, y_pred: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return the mask and the column of every prediction, -1 for a label of no set."""
    predicted = to_host(y_pred)
    if predicted.ndim != 1:
        raise ValueError(
            f"The predictions must be a vector with a label for every row, but their shape is "
            f"{predicted.shape}."
        )
    mask, classes = as_candidates(candidates, n_samples=predicted.shape[0])
    return mask, label_codes(predicted, classes)
