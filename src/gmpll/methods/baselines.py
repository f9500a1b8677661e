"""Floors: a method that does not beat these has learned nothing from the candidates."""

from dataclasses import field
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn import config_context  # type: ignore[attr-defined]
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import murmurhash3_32

from gmpll._parameters import Learner, Seed, with_parameters
from gmpll._typing import Floats, Mask
from gmpll.base import BasePartialLabelClassifier, ProbabilityMixin
from gmpll.rounding import best_labels, confidences_within


@with_parameters
class _Floor(ProbabilityMixin, BasePartialLabelClassifier):
    """A baseline that never looks at the features."""

    random_state: Seed = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


@with_parameters
class RandomCandidate(_Floor):
    """Draw one of the candidates.

    A training row gets any of its candidates with equal probability. An unseen row has no
    candidates; it gets the label that a random candidate of a random training row would have.

    Attributes
    ----------
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        Uniform.

    Examples
    --------
    >>> from gmpll.methods.baselines import RandomCandidate
    >>> model = RandomCandidate(random_state=0).fit([[0.0], [1.0]], [{"a", "b"}, {"c"}])
    >>> model.label_confidences_
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        uniform = mask / mask.sum(axis=1, keepdims=True)
        self._upper_ends = np.cumsum(uniform.mean(axis=0))
        self._seed = rng.randint(2**31 - 1)
        return uniform

    def _scores(self, X: Floats) -> Floats:
        # The draw is a hash of the row, so a row's answer depends on that row alone and is the
        # same in every call, as the prediction of unseen rows must.
        rows = X + 0.0  # makes -0.0 and 0.0 one
        hashes = [murmurhash3_32(row.tobytes(), self._seed, positive=True) for row in rows]
        draw = np.array(hashes) / 2.0**32
        n_labels = self._upper_ends.shape[0]
        label = np.minimum(np.searchsorted(self._upper_ends, draw, side="right"), n_labels - 1)
        return np.eye(n_labels)[label]


@with_parameters
class MostFrequentCandidate(_Floor):
    """Choose the candidate that most candidate sets contain.

    Unseen rows all get the label that most candidate sets contain. Labels that are equally
    frequent are told apart by a seeded draw.

    Attributes
    ----------
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        Proportional to the frequencies.

    Examples
    --------
    >>> from gmpll.methods.baselines import MostFrequentCandidate
    >>> sets = [{"a", "b"}, {"b", "c"}, {"c"}, {"a", "b"}]
    >>> MostFrequentCandidate(random_state=0).fit([[0.0]] * 4, sets).labels_
    array(['b', 'b', 'c', 'b'], dtype='<U1')
    """

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        frequency = mask.mean(axis=0)
        self._share = frequency / frequency.sum()
        return confidences_within(np.broadcast_to(frequency, mask.shape), mask)

    def _scores(self, X: Floats) -> Floats:
        return np.tile(self._share, (X.shape[0], 1))


@with_parameters
class AnyCandidate(ProbabilityMixin, BasePartialLabelClassifier):
    """Train a plain classifier on one candidate per row, drawn at random.

    This is what a user without partial label learning would do.

    Parameters
    ----------
    estimator : classifier, default=None
        Any scikit-learn classifier. By default logistic regression on z-scored features.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier; its classes are column numbers of the labels that occur.
    labels_ : ndarray of shape (n_samples,)
        The candidates that the trained classifier prefers.

    Examples
    --------
    >>> from gmpll.methods.baselines import AnyCandidate
    >>> X, sets = [[0.0], [0.1], [5.0], [5.1]], [{"a"}, {"a"}, {"b"}, {"b"}]
    >>> AnyCandidate(random_state=0).fit(X, sets).predict([[4.0]])
    array(['b'], dtype='<U1')
    """

    estimator: Learner = field(default=None, kw_only=False)
    random_state: Seed = None

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        drawn = best_labels(np.where(mask, 0.0, -np.inf), rng=rng)
        self._labels = np.eye(mask.shape[1])
        template = self.estimator
        if (drawn == drawn[0]).all():  # many classifiers refuse to learn a single class
            template = DummyClassifier(strategy="constant", constant=drawn[0])
        elif template is None:
            template = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        # The caller's own classifier: its parameters are checked although ours have been.
        with config_context(skip_parameter_validation=False):
            self.estimator_ = clone(template).fit(X, drawn)
        return confidences_within(self._scores(X), mask)

    def _scores(self, X: Floats) -> Floats:
        if not hasattr(self.estimator_, "predict_proba"):
            return self._labels[self.estimator_.predict(X)]
        return self.estimator_.predict_proba(X) @ self._labels[self.estimator_.classes_]
