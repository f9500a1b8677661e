"""A new method: what a row is rated by, and what is learned from the candidates."""

import numpy as np
from sklearn.datasets import load_iris

from gmpll.base import BasePartialLabelClassifier, DecisionMixin
from gmpll.datasets import random_candidates
from gmpll.rounding import confidences_within


class NearestMean(DecisionMixin, BasePartialLabelClassifier):
    """A row has the label whose mean is nearest; the candidates of a row share its weight."""

    def __init__(self, *, random_state=None):
        self.random_state = random_state

    def _fit(self, X, mask, rng):
        weights = mask / mask.sum(axis=1, keepdims=True)
        self._means = weights.T @ X / weights.sum(axis=0)[:, None]
        return confidences_within(np.exp(self._scores(X)), mask)

    def _scores(self, X):
        return -np.linalg.norm(X[:, None] - self._means, axis=2)


def test_it_learns():
    X, truth = load_iris(return_X_y=True)
    model = NearestMean().fit(X, random_candidates(truth, p=0.7, r=1, random_state=0))
    assert np.mean(model.labels_ == truth) > 0.9
    assert model.score(X, truth) > 0.8
