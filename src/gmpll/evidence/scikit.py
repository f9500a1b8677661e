"""Any scikit-learn classifier or regressor as a learner on confidences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from gmpll._columns import aligned_columns
from gmpll._meta import label_probabilities
from gmpll._typing import Floats, Places
from gmpll.rounding import as_probabilities, best_labels, one_hot

#: In how many folds the out-of-sample predictions are made.
N_FOLDS = 3
#: A candidate of less confidence is no training row of its own.
MIN_CONFIDENCE = 1e-3


def check_learner(learner: Any) -> None:
    """Raise unless it is a classifier or a regressor."""
    if not (is_regressor(learner) or is_classifier(learner)):
        raise ValueError(
            f"The learner {learner!r} is neither a classifier nor a regressor: "
            "pass a scikit-learn estimator of one of these kinds, or 'auto'."
        )


class ScikitLearner:
    """A classifier or regressor, and the rows it is trained on.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    learner : estimator
        Copied for every fit.
    targets : {"auto", "soft", "hard"}
        ``"soft"``: confidences of all labels as the outputs of a regression; for a classifier a
        copy of the row for every candidate, weighted by its confidence. ``"hard"``: the best
        label. ``"auto"`` is soft for regressions and hard for classifiers.
    rng : RandomState
        Draws folds, and labels where confidences tie.
    """

    #: How often its predictions are fed back.
    n_iterations = 2

    def __init__(self, X: Floats, learner: Any, targets: str, rng: np.random.RandomState) -> None:
        self.X = X
        self.learner = learner
        self.targets = targets
        self.regression = is_regressor(learner)
        self.soft = targets == "soft" or (targets == "auto" and self.regression)
        self._rng = rng
        if self.regression and not get_tags(learner).target_tags.multi_output:
            self.learner = MultiOutputRegressor(learner)

    def part(self, rows: Places) -> ScikitLearner:
        """Return the same on some of the rows alone."""
        return ScikitLearner(self.X[rows], self.learner, self.targets, self._rng)

    def out_of_sample(self, P: Floats) -> Floats:
        """Return cross-fitted probabilities of the training rows."""
        if len(self.X) < N_FOLDS:
            return P
        scores = np.zeros(P.shape)
        folds = KFold(N_FOLDS, shuffle=True, random_state=self._rng)
        for train, held_out in folds.split(self.X):
            fitted = self._fit(self.X[train], P[train])
            scores[held_out] = fitted.probabilities(self.X[held_out])
        return scores

    def fit(self, P: Floats) -> ScikitPredictor:
        """Train on confidences."""
        return self._fit(self.X, P)

    def _fit(self, X: Floats, P: Floats) -> ScikitPredictor:
        model = clone(self.learner)
        if self.regression:
            target = P if self.soft else one_hot(self._best(P), P.shape[1]).astype(np.float64)
            return ScikitPredictor(model.fit(X, target), P.shape[1])
        rows, labels = self._examples(P)
        if (labels == labels[0]).all():  # classifiers refuse to learn from a single class
            model = DummyClassifier(strategy="constant", constant=labels[0])
        argument = _weight_argument(model)
        weights = {argument: P[rows, labels]} if argument else {}
        return ScikitPredictor(model.fit(X[rows], labels, **weights), P.shape[1])

    def _examples(self, P: Floats) -> tuple[Places, Places]:
        """Return rows and their labels: one each, or one for every candidate."""
        if not self.soft:
            return np.arange(len(P)), self._best(P)
        if _weight_argument(self.learner) is None:
            raise ValueError(
                f"{type(self.learner).__name__} takes no sample_weight, which targets='soft' "
                "needs: use targets='hard' or another learner."
            )
        rows, labels = np.nonzero(P > MIN_CONFIDENCE)
        return rows, labels

    def _best(self, P: Floats) -> Places:
        return best_labels(P, rng=self._rng)


@dataclass(frozen=True)
class ScikitPredictor:
    """A fitted scikit-learn estimator that scores labels."""

    model: Any
    n_labels: int

    def __call__(self, X: Floats) -> Floats:
        """Score the labels of unseen rows, by probabilities where the estimator has them."""
        if is_regressor(self.model) or hasattr(self.model, "predict_proba"):
            return self.probabilities(X)
        scores = np.asarray(self.model.decision_function(X), dtype=np.float64)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        return aligned_columns(scores, self.model.classes_, np.arange(self.n_labels), -np.inf)

    def probabilities(self, X: Floats) -> Floats:
        """Return scores between 0 and 1, by softmax if there are only decision values."""
        if is_regressor(self.model):
            values = np.asarray(self.model.predict(X), dtype=np.float64)
            return as_probabilities(values.reshape(len(X), self.n_labels))
        return label_probabilities(self.model, X, np.arange(self.n_labels))


def _weight_argument(learner: Any) -> str | None:
    """Return the name under which ``fit`` takes weights of rows, None if it takes none."""
    if isinstance(learner, Pipeline):
        name, last = learner.steps[-1]
        return f"{name}__sample_weight" if has_fit_parameter(last, "sample_weight") else None
    return "sample_weight" if has_fit_parameter(learner, "sample_weight") else None
