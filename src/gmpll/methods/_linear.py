"""What the linear methods share: a weight vector with a bias per label, on z-scored features."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.preprocessing import add_dummy_feature

from gmpll._typing import Floats, Mask
from gmpll.base import BasePartialLabelClassifier, DecisionMixin
from gmpll.graph.views import Scaling
from gmpll.rounding import confidences_within

__all__ = ["LinearScorer"]


class LinearScorer(DecisionMixin, BasePartialLabelClassifier):
    """Score labels by ``weights_ @ [1, x]``; the confidences are the softmax of the scores."""

    standardize: bool
    weights_: Floats

    @abstractmethod
    def _learn(self, rows: Floats, mask: Mask) -> Floats:
        """Return the weights, (n_labels, 1 + n_features); ``rows`` begin with a one."""

    def _fit(self, X: Floats, mask: Mask, rng: Any) -> Floats:
        self._scaling = Scaling(X, standardize=self.standardize)
        self.weights_ = self._learn(self._with_bias(X), mask)
        scores = np.where(mask, self._scores(X), -np.inf)
        return confidences_within(softmax(scores, axis=1), mask)

    def _scores(self, X: Floats) -> Floats:
        return self._with_bias(X) @ self.weights_.T

    def _with_bias(self, X: Floats) -> Floats:
        return add_dummy_feature(self._scaling.transform(X))
