"""What the linear methods share: a weight vector with a bias per label, on z-scored features."""

from abc import abstractmethod

import numpy as np
from numpy.random import RandomState
from scipy.special import softmax
from sklearn.preprocessing import add_dummy_feature

from gmpll._parameters import Seed, Switch, with_parameters
from gmpll._typing import Floats, Mask
from gmpll.base import BasePartialLabelClassifier, DecisionMixin
from gmpll.graph.views import Scaling
from gmpll.rounding import confidences_within


class BiasedScaling(Scaling):
    """Scaling that puts a one before the features of every row, whose weight is the bias."""

    def transform(self, X: Floats) -> Floats:
        """Scale rows."""
        return add_dummy_feature(super().transform(X))


@with_parameters
class LinearScorer(DecisionMixin, BasePartialLabelClassifier):
    """Score labels by ``weights_ @ [1, x]``.

    Attributes
    ----------
    weights_ : ndarray of shape (n_labels, n_features_in_ + 1)
        A row for every label that occurs: its bias, then its weights of the features as the
        method uses them (z-scored unless ``standardize=False``).
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        The softmax of the scores over the candidates: an order of the candidates, no calibrated
        probability.
    """

    standardize: Switch = True
    random_state: Seed = None

    @abstractmethod
    def _learn(self, rows: Floats, mask: Mask) -> Floats:
        """Return the weights, (n_labels, 1 + n_features); ``rows`` begin with a one."""

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        self._scaling = BiasedScaling(X, standardize=self.standardize)
        self.weights_ = self._learn(self._scaling.transform(X), mask)
        scores = np.where(mask, self._scores(X), -np.inf)
        return confidences_within(softmax(scores, axis=1), mask)

    def _scores(self, X: Floats) -> Floats:
        return self._scaling.transform(X) @ self.weights_.T
