"""What the estimators share that wrap a partial label learner."""

from abc import ABCMeta, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from gmpll._meta import TrainingRows, held_out_probabilities, label_probabilities, seeded
from gmpll._sklearn import fit_context
from gmpll._typing import Floats
from gmpll.base import BasePartialLabelClassifier
from gmpll.candidates import as_candidates
from gmpll.methods.classifier import PartialLabelClassifier
from gmpll.side_information import apply_constraints, votes_as_weights, weights_by_label

#: What a fitted wrapper has only if its learner has it too.
OPTIONAL_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "labels_", "label_confidences_")


class PartialLabelWrapper(MetaEstimatorMixin, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of the estimators that add something to a partial label learner.

    A subclass has these parameters and writes ``_fit(data, rng)``, which sets ``estimator_``.

    Parameters
    ----------
    estimator : partial label learner, default=None
        With ``predict_proba`` or ``decision_function``; by default
        :class:`gmpll.PartialLabelClassifier`.
    random_state : int, RandomState instance or None, default=None
        Draws the rows that are held out, and the estimator's own random state where that is left
        open.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimator_ : estimator
        Fitted on all rows.
    n_features_in_, feature_names_in_
        Number and names of the features, if the estimator knows them.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    estimator: Any
    cv: Any
    random_state: Any
    estimator_: Any
    classes_: NDArray[Any]

    @abstractmethod
    def _fit(self, data: TrainingRows, rng: RandomState) -> None:
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
        gold, impossible, candidate_weight : default=None
            Labels that are known, labels that cannot be, and how much speaks for every candidate,
            as in :meth:`gmpll.PartialLabelClassifier.fit`. Weights are an error if the ``fit`` of
            the wrapped estimator does not take them.
        """
        X = X if hasattr(X, "shape") else np.asarray(X)
        y, candidate_weight = votes_as_weights(self, y, candidate_weight)
        sets = as_candidates(y, n_samples=X.shape[0] if X.ndim else None)
        if not (gold is None and impossible is None and candidate_weight is None):
            y = sets = apply_constraints(sets, gold=gold, impossible=impossible)
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
        """Predict the label of unseen rows, as the wrapped estimator does."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def predict_proba(self, X: Any) -> Floats:
        """Probability of every label for unseen rows; columns in the order of ``classes_``.

        Where the wrapped estimator has only ``decision_function``, it is the softmax of it.
        """
        check_is_fitted(self)
        return self._changed(label_probabilities(self.estimator_, X, self.classes_))

    def _changed(self, probabilities: Floats) -> Floats:
        """Return what a wrapper makes of the probabilities of its learner."""
        return probabilities

    score = BasePartialLabelClassifier.score  # of whatever predicts and has classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator
        tags.input_tags.sparse = inner is None or get_tags(inner).input_tags.sparse
        return tags

    def _held_out(self, inner: Any, data: TrainingRows, rng: RandomState) -> Floats:
        """Return for every row the probabilities by a copy that was fitted without it."""
        if len(data.sets.mask) < 2:
            name = type(self).__name__
            raise ValueError(f"{name} holds rows out and needs two at least, but got n_samples=1.")
        return held_out_probabilities(inner, self.estimator_, data, self.cv, rng)

    def _inner(self, rng: RandomState) -> Any:
        """Return an unfitted copy of the learner; the default if none was given."""
        return seeded(PartialLabelClassifier() if self.estimator is None else self.estimator, rng)
