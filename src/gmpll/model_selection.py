"""Scorers for scikit-learn's tools that need no true label.

Use them with ``GridSearchCV`` and ``cross_validate`` where y is a candidate matrix:

>>> import numpy as np
>>> from sklearn.datasets import load_iris
>>> from sklearn.model_selection import GridSearchCV
>>> from gmpll import PLKNN
>>> from gmpll.datasets import random_candidates
>>> from gmpll.model_selection import candidate_lift_scorer
>>> X, truth = load_iris(return_X_y=True)
>>> candidates = random_candidates(truth, p=0.7, r=1, random_state=0)
>>> plknn = PLKNN(random_state=0)
>>> search = GridSearchCV(plknn, {"n_neighbors": [1, 10]}, scoring=candidate_lift_scorer, cv=3)
>>> search.fit(X[::2], candidates[::2]).best_params_
{'n_neighbors': 10}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gmpll.candidates import as_candidates
from gmpll.metrics import approximated_accuracy, chance_of_covering, covered, lift_of_rows

__all__ = ["approximated_accuracy_scorer", "candidate_lift_scorer", "covering_rate_scorer"]


def covering_rate_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Share of held-out rows whose prediction lies in their candidate set."""
    return float(covered(y, estimator.predict(X)).mean())


def candidate_lift_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Covering rate corrected for chance, see :func:`gmpll.metrics.candidate_lift`.

    How often labels are candidates is counted on the held-out rows. If the estimator has
    ``label_confidences_``, their column means serve as class prior.
    """
    mask, classes = as_candidates(y)
    predicted = estimator.predict(X)
    column = {label: index for index, label in enumerate(classes.tolist())}
    columns = np.array([column.get(label, -1) for label in predicted.tolist()], dtype=np.intp)
    chance = chance_of_covering(mask.mean(axis=0), _class_prior(estimator, classes))
    hit = (columns >= 0) & mask[np.arange(len(mask)), columns]
    return float(lift_of_rows(hit, np.where(columns >= 0, chance[columns], 0.0)).mean())


def approximated_accuracy_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Believe the model within the candidates, see :func:`gmpll.metrics.approximated_accuracy`.

    Needs ``predict_proba`` and candidates whose labels are the estimator's classes.
    """
    return approximated_accuracy(y, estimator.predict_proba(X))


def _class_prior(estimator: Any, classes: np.ndarray) -> np.ndarray | None:
    confidences = getattr(estimator, "label_confidences_", None)
    if confidences is None:
        return None
    share = dict(zip(estimator.classes_.tolist(), confidences.mean(axis=0), strict=True))
    return np.array([share.get(label, 0.0) for label in classes.tolist()])
