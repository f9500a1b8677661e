"""Scorers for scikit-learn's tools, without true labels and with those kept beside the candidates.

Use them with ``GridSearchCV`` and ``cross_validate`` where y is a candidate matrix. Those that need
no true label compare methods and settings; only :func:`true_label_scorer` tells the accuracy.

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

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import make_scorer

from gmpll._columns import aligned_columns, sets_by_name
from gmpll._typing import Floats
from gmpll.arrays import to_host
from gmpll.candidates import CandidateSets, as_candidates
from gmpll.metrics import approximated_accuracy, candidate_lift, covering_rate


def true_label_scorer() -> Any:
    """Return a scorer for the accuracy on true labels that are kept beside the candidates.

    The methods are fitted with the candidates; the true labels are passed on as ``truth`` to the
    scorer alone, by scikit-learn's metadata routing, which has to be enabled.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.model_selection import cross_val_score
    >>> from gmpll import PLKNN
    >>> from gmpll.datasets import make_partial_label_problem
    >>> from gmpll.model_selection import true_label_scorer
    >>> problem = make_partial_label_problem(n_samples=90, random_state=0)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     accuracy = cross_val_score(
    ...         PLKNN(random_state=0),
    ...         problem.data,
    ...         problem.candidates,
    ...         scoring=true_label_scorer(),
    ...         params={"truth": problem.target},
    ...         cv=3,
    ...     )
    >>> accuracy.shape
    (3,)
    """
    return make_scorer(_share_of_right_labels).set_score_request(truth=True)


def _share_of_right_labels(candidates: Any, y_pred: Any, *, truth: Any) -> float:
    return float(np.mean(to_host(y_pred) == np.asarray(truth)))


def covering_rate_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Share of held-out rows whose prediction lies in their candidate set.

    No accuracy: a wrong label may be a candidate too, so it favours labels that sit in most sets.
    The ``score`` of the methods of this library is the same, with a warning.
    """
    return covering_rate(_sets(estimator, y), estimator.predict(X))


def candidate_lift_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Covering rate corrected for chance, see :func:`gmpll.metrics.candidate_lift`.

    How often labels are candidates is counted on the held-out rows. If the estimator has
    ``label_confidences_``, their column means serve as class prior; in a pipeline, a search or
    a wrapper those of the learner inside.
    """
    sets = _sets(estimator, y)
    return candidate_lift(sets, estimator.predict(X), _class_prior(estimator, sets.classes))


def approximated_accuracy_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Believe the model within the candidates, see :func:`gmpll.metrics.approximated_accuracy`.

    Needs ``predict_proba``. A candidate that the estimator does not know counts nothing.
    """
    classes = getattr(estimator, "classes_", None)
    return approximated_accuracy(_sets(estimator, y), estimator.predict_proba(X), classes)


def _sets(estimator: Any, y: Any) -> CandidateSets:
    """Read candidates as the estimator's own ``score`` does."""
    classes = getattr(estimator, "classes_", None)
    return as_candidates(y) if classes is None else sets_by_name(y, to_host(classes))


def _class_prior(estimator: Any, classes: NDArray[Any]) -> Floats | None:
    """Return the mean confidence of every label, None if the estimator has no confidences."""
    learner = _with_confidences(estimator)
    if learner is None:
        return None
    shares = to_host(learner.label_confidences_).mean(axis=0, keepdims=True)
    return aligned_columns(shares, to_host(learner.classes_), classes)[0]


def _with_confidences(estimator: Any) -> Any:
    """Return the outermost part of a fitted estimator that has confidences of its own."""
    while estimator is not None and not hasattr(estimator, "label_confidences_"):
        if hasattr(estimator, "steps"):  # a pipeline
            estimator = estimator.steps[-1][1]
        else:  # a search or a wrapper
            inner = getattr(estimator, "estimator_", None)
            estimator = getattr(estimator, "best_estimator_", inner)
    return estimator
