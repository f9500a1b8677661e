r"""Calibrating confidences from candidate sets alone.

A temperature T sharpens or softens probabilities without changing their order,
:math:`p_l(T) \propto p_l^{1/T}`. With true labels it is fitted by maximum likelihood on held-out
rows. Candidate sets have a likelihood too: if wrong candidates are drawn without regard to the
features, label l with rate :math:`c_l`, the set S of a row at x has

.. math:: P(S \mid x) \propto \sum_{l \in S} \frac{p_l(x)}{c_l} ,

and where the rates are equal that is the probability of the set, :math:`\sum_{l \in S} p_l(x)`.
Its maximum is the calibrated temperature. The condition matters: candidates that were chosen
*because* they look like the truth at x make every model look right, and no method that sees
candidate sets alone can notice.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from gmpll._meta import (
    PartialLabelWrapper,
    TrainingRows,
    held_out_probabilities,
    label_probabilities,
)
from gmpll._sklearn import Integral, Interval, StrOptions
from gmpll.metrics import chance_of_covering
from gmpll.rounding import confidences_within

__all__ = [
    "CalibratedPartialClassifier",
    "candidate_temperature",
    "confidence_exponent",
    "false_candidate_rates",
    "sharpen",
    "temper",
]

#: Share that a label keeps which a model gives nothing: otherwise one row that was found
#: impossible would decide on the temperature of all.
FLOOR = 1e-3
#: Temperatures are searched between exp of these.
LOG_TEMPERATURES = (-4.0, 3.0)
#: Exponents of the training rows' confidences are searched between exp of these.
LOG_EXPONENTS = (-6.0, 6.0)
#: A label is a false candidate at least this often; a rate of zero would make it certain.
LEAST_RATE = 0.02


def temper(probabilities: ArrayLike, temperature: float) -> NDArray[np.float64]:
    r"""Sharpen (T < 1) or soften (T > 1) probabilities; the order of the labels stays.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
        Probabilities; a small share is added to each, so that zeros can be softened as well.
    temperature : float
        The temperature T.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        Rows sum to one.

    Examples
    --------
    >>> from gmpll.uncertainty.calibration import temper
    >>> temper([[0.6, 0.4]], 0.5).round(2)
    array([[0.69, 0.31]])
    """
    return softmax(_log(probabilities) / temperature, axis=1)


def candidate_temperature(
    probabilities: ArrayLike,
    mask: NDArray[np.bool_],
    false_rates: ArrayLike | None = None,
) -> float:
    r"""Find the temperature at which candidate sets of held-out rows are most likely.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
        Probabilities of rows that were held out of the matching as well.
    mask : ndarray of shape (n_samples, n_classes), bool
        Their candidates.
    false_rates : array-like of shape (n_classes,), default=None
        How often each label is a wrong candidate, see :func:`false_candidate_rates`; by default
        all are equally often.

    Returns
    -------
    float
        1 if no set leaves a label out: such sets tell nothing. :math:`\log T` has a standard
        normal prior, which counts like one row and keeps T finite where every row is covered.

    Examples
    --------
    Right three times of four, the model should claim no more:

    >>> import numpy as np
    >>> from gmpll.uncertainty.calibration import candidate_temperature, temper
    >>> p = np.tile([0.99, 0.005, 0.005], (400, 1))
    >>> mask = np.tile([True, False, False], (400, 1))
    >>> mask[::4] = [False, True, False]
    >>> temper(p[:1], candidate_temperature(p, mask)).max().round(2)
    np.float64(0.75)
    """
    telling = ~mask.all(axis=1)
    if not telling.any():
        return 1.0
    logs = _log(probabilities)[telling]
    rates = np.ones(mask.shape[1]) if false_rates is None else np.asarray(false_rates)
    weights = np.where(mask[telling], 1.0 / np.maximum(rates, LEAST_RATE), 0.0)

    def loss(log_temperature: float) -> float:
        tempered = logs * np.exp(-log_temperature)
        inside = logsumexp(tempered, axis=1, b=weights)
        of_the_sets = (inside - logsumexp(tempered, axis=1)).sum()
        return float(0.5 * log_temperature**2 - of_the_sets)

    return float(np.exp(minimize_scalar(loss, bounds=LOG_TEMPERATURES, method="bounded").x))


def false_candidate_rates(
    probabilities: NDArray[np.float64], mask: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Estimate how often each label is a candidate of rows whose true label is another.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Probabilities of held-out rows; within the candidates they say how common each label is.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.

    Returns
    -------
    ndarray of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.uncertainty.calibration import false_candidate_rates
    >>> mask = np.array([[True, True], [True, False], [False, True], [True, True]])
    >>> false_candidate_rates(np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]]), mask)
    array([0.5, 0.5])
    """
    prior = confidences_within(probabilities, mask).mean(axis=0)
    return np.maximum(chance_of_covering(mask.mean(axis=0), prior), LEAST_RATE)


def confidence_exponent(
    confidences: NDArray[np.float64],
    mask: NDArray[np.bool_],
    posterior: NDArray[np.float64],
) -> float:
    r"""Find the power that brings confidences of training rows to a level without labels.

    What a row's candidates are given by the matching overrates itself, as the neighbours'
    confidences have seen the candidates of the row. A model fitted without the row knows less and
    underrates it. One exponent for all rows is chosen such that the mean confidence in the labels
    found lies halfway between the two. That it is halfway is a rule of thumb.

    Parameters
    ----------
    confidences : ndarray of shape (n_samples, n_classes)
        Confidences of training rows (some or all), zero outside the candidates.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.
    posterior : ndarray of shape (n_samples, n_classes)
        Calibrated probabilities of the same rows by models fitted without them, restricted to
        the candidates.

    Returns
    -------
    float
        For :func:`sharpen`; 1 where no exponent reaches the level (single candidates, ties).

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.uncertainty.calibration import confidence_exponent, sharpen
    >>> mask = np.array([[True, True, False]])
    >>> sure, less_sure = np.array([[0.9, 0.1, 0.0]]), np.array([[0.7, 0.3, 0.0]])
    >>> sharpen(sure, mask, confidence_exponent(sure, mask, less_sure)).round(2)
    array([[0.8, 0.2, 0. ]])
    """
    top = confidences.max(axis=1, keepdims=True)
    leading = mask & (confidences >= top)
    held_out = np.where(leading, posterior, 0.0).sum(axis=1) / leading.sum(axis=1)
    goal = 0.5 * (float(top.mean()) + float(held_out.mean()))

    def excess(log_exponent: float) -> float:
        return float(sharpen(confidences, mask, np.exp(log_exponent)).max(axis=1).mean()) - goal

    low, high = LOG_EXPONENTS
    if excess(low) >= 0 or excess(high) <= 0:
        return 1.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-6)))


def sharpen(
    confidences: NDArray[np.float64], mask: NDArray[np.bool_], exponent: float
) -> NDArray[np.float64]:
    """Raise confidences to a power within the candidates; the labels found stay.

    Parameters
    ----------
    confidences : ndarray of shape (n_samples, n_classes)
        Confidences, zero outside the candidates.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.
    exponent : float
        Above 1 sharpens, below 1 softens.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        Rows sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.uncertainty.calibration import sharpen
    >>> sharpen(np.array([[0.6, 0.4, 0.0]]), np.array([[True, True, False]]), 2.0).round(2)
    array([[0.69, 0.31, 0.  ]])
    """
    ratios = confidences / confidences.max(axis=1, keepdims=True)
    return confidences_within(ratios**exponent, mask)


class CalibratedPartialClassifier(PartialLabelWrapper):
    """Calibrate the confidences of a partial label learner without true labels.

    Every row is predicted by a copy of the estimator that was fitted without it. The temperature
    that makes the candidate sets of these rows most likely is then applied to the estimator
    fitted on all rows. Predicted labels do not change. What makes :class:`gmpll.GMPLL` more or
    less sure altogether, its readout and forest, is chosen on all rows and not again for a copy.

    Parameters
    ----------
    estimator : partial label learner, default=None
        With ``predict_proba`` or ``decision_function``; :class:`gmpll.GMPLL` by default.
    method : {"temperature", "corrected"}, default="temperature"
        The likelihood of a candidate set: ``"temperature"`` takes all labels for equally frequent
        wrong candidates; ``"corrected"`` estimates a rate for every label first, which is right
        where some labels sit in most sets, and costs some stability.
    cv : int, default=3
        Number of parts. The estimator is fitted ``cv + 1`` times.
    random_state : int, RandomState instance or None, default=None
        Draws the parts, and the estimator's own random state where that is left open.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimator_ : estimator
        Fitted on all rows.
    temperature_ : float
        Below 1 the estimator was too modest, above 1 too sure.
    false_rates_ : ndarray of shape (n_classes,) or None
        Estimated rates of wrong candidates, if corrected for.
    labels_, label_confidences_ : ndarray
        Those of the estimator if it has them, the confidences calibrated by
        :func:`confidence_exponent`.
    n_features_in_ : int
        Number of features seen during ``fit``, if the estimator knows it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names, if X has string column names.

    Notes
    -----
    The maximum is the right temperature if wrong candidates do not depend on the features given
    the true label, and on the label as ``method`` says. It is not where labels become candidates
    because they resemble the truth (an annotator's doubt), nor between two labels that always
    occur together: there the result is overconfident, and only true labels can tell.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gmpll import CalibratedPartialClassifier, PLKNN
    >>> from gmpll.datasets import random_candidates
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CalibratedPartialClassifier(PLKNN(), random_state=0)
    >>> model = model.fit(X, random_candidates(y, p=0.6, r=1, random_state=0))
    >>> model.estimator_.predict_proba(X[:1]).round(2)  # votes of neighbours: too modest
    array([[0.67, 0.07, 0.26]])
    >>> model.predict_proba(X[:1]).round(2)
    array([[0.98, 0.  , 0.02]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialLabelWrapper._parameter_constraints,
        "method": [StrOptions({"temperature", "corrected"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any = None,
        method: str = "temperature",
        *,
        cv: int = 3,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.random_state = random_state

    def _fit(self, data: TrainingRows, rng: np.random.RandomState) -> None:
        inner = self._inner(rng)
        self.estimator_ = data.fit(inner)
        self._seen: NDArray[np.bool_] = np.asarray(data.sets.mask.any(axis=0))
        mask = data.sets.mask[:, self._seen]
        if len(mask) < 2:
            raise ValueError(
                "Calibration holds rows out and needs two at least, but got n_samples=1."
            )
        held_out = held_out_probabilities(inner, self.estimator_, data, self.cv, rng)[:, self._seen]
        self.false_rates_ = None
        if self.method == "corrected":
            self.false_rates_ = false_candidate_rates(held_out, mask)
        self.temperature_ = candidate_temperature(held_out, mask, self.false_rates_)
        if hasattr(self.estimator_, "label_confidences_"):
            self._calibrate_training_rows(held_out, mask)

    def _calibrate_training_rows(
        self, held_out: NDArray[np.float64], mask: NDArray[np.bool_]
    ) -> None:
        likelihood = temper(held_out, self.temperature_)
        if self.false_rates_ is not None:
            likelihood = likelihood / self.false_rates_
        found = self.estimator_.label_confidences_[:, self._seen]
        exponent = confidence_exponent(found, mask, confidences_within(likelihood, mask))
        self.labels_ = self.estimator_.labels_
        self.label_confidences_ = np.zeros((len(mask), len(self._seen)))
        self.label_confidences_[:, self._seen] = sharpen(found, mask, exponent)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Calibrated probability of every label for unseen rows.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one; columns in the order of ``classes_``. A label that no training row
            contains has probability zero.
        """
        check_is_fitted(self)
        probabilities = label_probabilities(self.estimator_, X, self.classes_)
        calibrated = np.zeros(probabilities.shape)
        calibrated[:, self._seen] = temper(probabilities[:, self._seen], self.temperature_)
        return calibrated


def _log(probabilities: ArrayLike) -> NDArray[np.float64]:
    return np.log(np.asarray(probabilities, dtype=np.float64) + FLOOR)
