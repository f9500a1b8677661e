"""What the estimators share that wrap a partial label learner.

Such a wrapper leaves features and candidates to the learner in the form in which the user gave
them: a pipeline that picks columns of a table by name works inside it.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from gmpll._columns import aligned_columns, sets_by_name
from gmpll._sklearn import HasMethods, fit_context
from gmpll.candidates import CandidateSets, as_candidates
from gmpll.metrics import covering_rate
from gmpll.side_information import narrowed, votes_as_weights, weight_argument, weights_by_label

__all__ = [
    "PartialLabelWrapper",
    "TrainingRows",
    "aligned_columns",
    "held_out_probabilities",
    "label_probabilities",
    "rows_of",
    "seeded",
]

#: What a fitted wrapper has only if its learner has it too.
OPTIONAL_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "labels_", "label_confidences_")


class PartialLabelWrapper(MetaEstimatorMixin, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of the estimators that add something to a partial label learner.

    A subclass has the parameters ``estimator`` and ``random_state`` and writes
    ``_fit(data, rng)``, which sets ``estimator_``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [None, HasMethods(["fit", "predict"])],
        "random_state": ["random_state"],
    }

    estimator: Any
    random_state: Any
    estimator_: Any
    classes_: NDArray[Any]

    @abstractmethod
    def _fit(self, data: TrainingRows, rng: np.random.RandomState) -> None:
        """Fit the learner and what is added to it."""

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        gold: Any = None,
        impossible: Any = None,
        candidate_weight: Any = None,
    ) -> Self:
        """Learn from rows with candidate labels.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Features, in any form that the wrapped estimator takes.
        y : candidate sets
            In any form that :func:`gmpll.as_candidates` reads.
        gold, impossible : default=None
            Labels that are known, and labels that cannot be, as in
            :meth:`gmpll.base.BasePartialLabelClassifier.fit`.
        candidate_weight : array-like, sparse matrix or DataFrame, default=None
            How much speaks for every candidate of a row, as in :meth:`gmpll.GMPLL.fit`; an error
            if the ``fit`` of the wrapped estimator does not take it.

        Returns
        -------
        self
        """
        X = X if hasattr(X, "shape") else np.asarray(X)
        y, candidate_weight = votes_as_weights(self, y, candidate_weight)
        sets = as_candidates(y, n_samples=X.shape[0] if X.ndim else None)
        if not (gold is None and impossible is None and candidate_weight is None):
            y = sets = narrowed(sets, gold=gold, impossible=impossible)
        weights = None if candidate_weight is None else weights_by_label(candidate_weight, sets)
        for attribute in OPTIONAL_ATTRIBUTES:  # of an earlier fit
            self.__dict__.pop(attribute, None)
        self.classes_ = sets.classes
        self._fit(TrainingRows(X, y, sets, weights), check_random_state(self.random_state))
        for attribute in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, attribute):
                setattr(self, attribute, getattr(self.estimator_, attribute))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of unseen rows, as the wrapped estimator does.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of every label for unseen rows.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one; columns in the order of ``classes_``. Where the wrapped estimator
            has only ``decision_function``, the softmax of it.
        """
        check_is_fitted(self)
        return label_probabilities(self.estimator_, X, self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose prediction lies in their candidate set (accuracy for true labels).

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Features.
        y : candidate sets or true labels
            In any form that ``fit`` takes.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        float
        """
        predicted = self.predict(X)
        return covering_rate(sets_by_name(y, self.classes_), predicted, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = (
            self.estimator is None or get_tags(self.estimator).input_tags.sparse
        )
        return tags

    def _inner(self, rng: np.random.RandomState) -> Any:
        """Return an unfitted copy of the learner; GM-PLL if none was given."""
        if self.estimator is not None:
            return seeded(self.estimator, rng)
        from gmpll.methods.gmpll import GMPLL

        return seeded(GMPLL(), rng)


@dataclass(frozen=True)
class TrainingRows:
    """What a learner is fitted on, all rows of it or some.

    Attributes
    ----------
    X, y
        Rows and candidates as the user gave them.
    sets : CandidateSets
        The same candidates as a mask.
    weights : ndarray of shape (n_samples, n_classes) or None
        Weights of the candidates.
    """

    X: Any
    y: Any
    sets: CandidateSets
    weights: NDArray[np.float64] | None = None

    def fit(self, estimator: Any, rows: NDArray[np.intp] | None = None) -> Any:
        """Fit an estimator on some of the rows, by default on all."""
        X, y, weights = self.X, self.y, self.weights
        if rows is not None:
            X, y = rows_of(X, rows), rows_of(y, rows)
            weights = None if weights is None else weights[rows]
        if weights is None:
            return estimator.fit(X, y)
        argument = weight_argument(estimator)
        if argument is None:
            raise ValueError(
                f"The fit of {type(estimator).__name__} takes no candidate_weight: leave it out, "
                "or wrap a learner that takes it, such as GMPLL."
            )
        return estimator.fit(X, y, **{argument: weights})


def seeded(estimator: Any, rng: np.random.RandomState) -> Any:
    """Return an unfitted copy in which every random state that was left open is drawn."""
    copy = clone(estimator)
    parameters = copy.get_params(deep=True)
    open_states = [
        name
        for name in sorted(parameters)
        if name.rsplit("__", 1)[-1] == "random_state" and parameters[name] is None
    ]
    return copy.set_params(**{name: rng.randint(np.iinfo(np.int32).max) for name in open_states})


def settled(estimator: Any, fitted: Any) -> Any:
    """Return an unfitted copy that is of the same kind as a fitted one.

    A copy that chooses for itself on some of the rows may be of another kind than the model whose
    confidences are in question, and surer or less sure of everything.
    """
    return clone(estimator).set_params(**_settled_parameters(fitted))


def _settled_parameters(fitted: Any) -> dict[str, Any]:
    if hasattr(fitted, "steps"):
        name, last = fitted.steps[-1]
    elif getattr(fitted, "estimator", None) is not None and hasattr(fitted, "estimator_"):
        name, last = "estimator", fitted.estimator_
    else:
        own = getattr(fitted, "_settled_parameters", None)
        return {} if own is None else own()
    return {f"{name}__{key}": value for key, value in _settled_parameters(last).items()}


def rows_of(data: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of features or of candidates, in the form that they came in."""
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    if hasattr(data, "tocsr"):
        return data.tocsr()[rows]
    if hasattr(data, "shape"):
        return data[rows]
    if hasattr(data, "__array__"):
        return np.asarray(data)[rows]
    return [data[row] for row in rows]


def label_probabilities(model: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return a fitted model's probabilities, columns in the order of ``classes``.

    Without ``predict_proba`` they are the softmax of ``decision_function``.
    """
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(X), dtype=np.float64)
    else:
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        if scores.ndim == 1:  # of two labels the second is rated, of one itself
            scores = np.column_stack([-scores / 2, scores / 2])[:, -len(model.classes_) :]
        probabilities = softmax(scores, axis=1)
    return aligned_columns(probabilities, model.classes_, classes)


def held_out_probabilities(
    estimator: Any, fitted: Any, data: TrainingRows, n_folds: int, rng: np.random.RandomState
) -> NDArray[np.float64]:
    """Return for every row the probabilities by a model that was fitted without it.

    The candidates of the row took no part either, but in the kind of model that was chosen on all
    rows.

    Parameters
    ----------
    estimator : estimator
        Copied and fitted once per fold.
    fitted : estimator
        The same, fitted on all rows; what kind of model it chose is not chosen again.
    data : TrainingRows
        Rows and candidates.
    n_folds : int
        Number of parts; every row its own if there are fewer rows.
    rng : RandomState
        Draws the parts.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
    """
    n_samples, classes = len(data.sets.mask), data.sets.classes
    folds = KFold(min(n_folds, n_samples), shuffle=True, random_state=rng)
    probabilities = np.zeros(data.sets.mask.shape)
    for train, held_out in folds.split(np.zeros(n_samples)):
        model = data.fit(settled(estimator, fitted), train)
        probabilities[held_out] = label_probabilities(model, rows_of(data.X, held_out), classes)
    return probabilities
