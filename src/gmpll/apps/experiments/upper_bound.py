"""The ceiling: what a plain classifier reaches when it is told the truth.

It is no partial label learner. It has no candidates, it is not in ``gmpll.methods``, and it is
the only thing in an experiment that the true labels of training rows are handed to.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC

#: Its printed name.
FULL_SUPERVISION = "Full supervision"


class FullSupervision:
    """An RBF support vector machine trained on the true labels.

    Its features are z-scored and every row scaled to length one: the space in which GM-PLL
    compares instances. It is one strong classifier, not the best there is for each data set, so a
    partial label learner may come close to it.
    """

    def fit_on_truth(self, X: NDArray[np.float64], truth: NDArray[np.integer]) -> Self:
        """Learn from true labels (named so that it cannot stand in for a method's ``fit``)."""
        # A support vector machine needs two classes; a small fold can hold only one.
        self._only_label = truth[0] if (truth == truth[0]).all() else None
        if self._only_label is None:
            self._classifier = make_pipeline(StandardScaler(), Normalizer(), SVC(C=10.0)).fit(
                X, truth
            )
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.integer]:
        """Predict the label of unseen rows."""
        if self._only_label is not None:
            return np.full(X.shape[0], self._only_label)
        return self._classifier.predict(X)
