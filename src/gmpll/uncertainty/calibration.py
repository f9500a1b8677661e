"""Calibrated probabilities by temperature scaling, without true labels.

The mathematics, and the condition under which it holds, is in
:mod:`gmpll.evidence.temperature`.
"""

from dataclasses import field
from typing import Annotated

import numpy as np
from numpy.random import RandomState

from gmpll._meta import TrainingRows
from gmpll._parameters import Learner, Seed, with_parameters
from gmpll._sklearn import Integral, Interval, StrOptions
from gmpll._typing import Floats, Mask
from gmpll.evidence.temperature import (
    candidate_temperature,
    confidence_exponent,
    false_candidate_rates,
    sharpen,
    temper,
)
from gmpll.rounding import confidences_within
from gmpll.uncertainty.wrapper import PartialLabelWrapper


@with_parameters
class CalibratedPartialClassifier(PartialLabelWrapper):
    """Calibrate the confidences of a partial label learner without true labels.

    Every row is predicted by a copy of the estimator that was fitted without it. The temperature
    that makes the candidate sets of these rows most likely is then applied to the estimator
    fitted on all rows (temperature scaling). Predicted labels do not change. What makes
    :class:`gmpll.PartialLabelClassifier` more or less sure altogether, its stacking and forest, is
    chosen on all rows and not again for a copy.

    Parameters
    ----------
    method : {"temperature", "corrected"}, default="temperature"
        The likelihood of a candidate set: ``"temperature"`` takes all labels for equally frequent
        wrong candidates; ``"corrected"`` estimates a rate for every label first, which is right
        where some labels sit in most sets, and costs some stability.
    cv : int, default=3
        Number of parts. The estimator is fitted ``cv + 1`` times.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; a label that no training row contains always has the probability zero.
    temperature_ : float
        Below 1 the estimator was too modest, above 1 too sure.
    false_rates_ : ndarray of shape (n_classes,) or None
        Estimated rates of wrong candidates, if corrected for.
    labels_, label_confidences_ : ndarray
        Those of the estimator if it has them, the confidences calibrated by
        :func:`gmpll.evidence.temperature.confidence_exponent`.

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

    estimator: Learner = field(default=None, kw_only=False)
    method: Annotated[str, StrOptions({"temperature", "corrected"})] = field(
        default="temperature", kw_only=False
    )
    cv: Annotated[int, Interval(Integral, 2, None, closed="left")] = 3
    random_state: Seed = None

    def _fit(self, data: TrainingRows, rng: RandomState) -> None:
        inner = self._inner(rng)
        self.estimator_ = data.fit(inner)
        self._seen: Mask = np.asarray(data.sets.mask.any(axis=0))
        mask = data.sets.mask[:, self._seen]
        held_out = self._held_out(inner, data, rng)[:, self._seen]
        corrected = self.method == "corrected"
        self.false_rates_ = false_candidate_rates(held_out, mask) if corrected else None
        self.temperature_ = candidate_temperature(held_out, mask, self.false_rates_)
        if hasattr(self.estimator_, "label_confidences_"):
            likelihood = temper(held_out, self.temperature_)
            if self.false_rates_ is not None:
                likelihood = likelihood / self.false_rates_
            found = self.estimator_.label_confidences_[:, self._seen]
            exponent = confidence_exponent(found, mask, confidences_within(likelihood, mask))
            self.labels_ = self.estimator_.labels_
            self.label_confidences_ = np.zeros(data.sets.mask.shape)
            self.label_confidences_[:, self._seen] = sharpen(found, mask, exponent)

    def _changed(self, probabilities: Floats) -> Floats:
        calibrated = np.zeros(probabilities.shape)
        calibrated[:, self._seen] = temper(probabilities[:, self._seen], self.temperature_)
        return calibrated
