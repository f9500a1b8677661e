"""What the estimators share that wrap a partial label learner.

Such a wrapper leaves features and candidates to the learner in the form in which the user gave
them: a pipeline that picks columns of a table by name works inside it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.special import softmax
from sklearn.base import clone
from sklearn.model_selection import KFold

from gmpll._columns import aligned_columns
from gmpll._typing import Floats, Places
from gmpll.candidates import CandidateSets
from gmpll.side_information import weight_argument

#: What a copy of a fitted model does not choose anew.
SETTLED_HYPERPARAMETERS = ("stacking", "forest")


@dataclass(frozen=True)
class TrainingRows:
    """What a learner is fitted on, all rows of it or some."""

    X: Any  # as the user gave it, like y
    y: Any
    sets: CandidateSets  # the same candidates as a mask
    weights: Floats | None = None  # of the candidates, (n_samples, n_classes)

    def fit(self, estimator: Any, rows: Places | None = None) -> Any:
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
                "or use a learner that takes it, such as PartialLabelClassifier."
            )
        return estimator.fit(X, y, **{argument: weights})


def seeded(estimator: Any, rng: RandomState) -> Any:
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
    """Return an unfitted copy that is of the same kind as a fitted one, and chooses nothing."""
    return clone(estimator).set_params(**_settled_parameters(fitted))


def _settled_parameters(fitted: Any) -> dict[str, Any]:
    if hasattr(fitted, "steps"):
        name, last = fitted.steps[-1]
    elif getattr(fitted, "estimator", None) is not None and hasattr(fitted, "estimator_"):
        name, last = "estimator", fitted.estimator_
    elif hasattr(fitted, "selected_") and hasattr(fitted, "hyperparameters"):
        kept = {name: fitted.selected_[name] for name in SETTLED_HYPERPARAMETERS}
        return {"hyperparameters": {**(fitted.hyperparameters or {}), **kept}}
    else:
        return {}
    return {f"{name}__{key}": value for key, value in _settled_parameters(last).items()}


def rows_of(data: Any, rows: Places) -> Any:
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


def label_probabilities(model: Any, X: Any, classes: Any) -> Floats:
    """Return a fitted model's probabilities, or the softmax of its decisions, by ``classes``."""
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(X), dtype=np.float64)
    else:
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        if scores.ndim == 1:  # of two labels the second is rated, of one itself
            scores = np.column_stack([-scores / 2, scores / 2])[:, -len(model.classes_) :]
        probabilities = softmax(scores, axis=1)
    return aligned_columns(probabilities, model.classes_, classes)


def held_out_probabilities(
    estimator: Any, fitted: Any, data: TrainingRows, n_folds: int, rng: RandomState
) -> Floats:
    """Return for every row the probabilities by a copy that was fitted without it."""
    n_samples = len(data.sets.mask)
    folds = KFold(min(n_folds, n_samples), shuffle=True, random_state=rng)
    probabilities = np.zeros(data.sets.mask.shape)
    for train, out in folds.split(probabilities):
        model = data.fit(settled(estimator, fitted), train)
        probabilities[out] = label_probabilities(model, rows_of(data.X, out), data.sets.classes)
    return probabilities
