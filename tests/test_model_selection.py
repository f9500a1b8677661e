import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.utils import shuffle

from gmpll import GMPLL, PLKNN
from gmpll.datasets import random_candidates
from gmpll.metrics import candidate_lift
from gmpll.model_selection import (
    approximated_accuracy_scorer,
    candidate_lift_scorer,
    covering_rate_scorer,
)

SCORERS = [covering_rate_scorer, candidate_lift_scorer, approximated_accuracy_scorer]


@pytest.fixture
def iris():
    X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    return X, random_candidates(y, 0.7, 1, random_state=0), y


@pytest.mark.parametrize("scorer", SCORERS)
def test_scorers_work_in_cross_validation_and_rank_a_good_model_first(iris, scorer):
    X, mask, _ = iris
    search = GridSearchCV(
        PLKNN(random_state=0), {"n_neighbors": [10, 90]}, scoring=scorer, cv=3, error_score="raise"
    ).fit(X, mask)
    assert search.best_params_ == {"n_neighbors": 10}


def test_named_labels(iris):
    X, mask, _ = iris
    frame = pd.DataFrame(mask, columns=["x", "y", "z"])
    scores = cross_validate(
        GMPLL(random_state=0), X, frame, scoring=candidate_lift_scorer, cv=3, error_score="raise"
    )["test_score"]
    assert (scores > 0.5).all()


def test_the_prior_comes_from_the_confidences(iris):
    X, mask, y = iris
    model = GMPLL(random_state=0).fit(X, mask)
    prior = model.label_confidences_.mean(axis=0)
    assert candidate_lift_scorer(model, X, mask) == candidate_lift(mask, model.predict(X), prior)
    assert candidate_lift_scorer(model, X, y) == pytest.approx(
        candidate_lift(y, model.predict(X), prior)
    )


def test_covering_rate_scorer_is_the_score(iris):
    X, mask, _ = iris
    model = PLKNN(random_state=0).fit(X, mask)
    assert covering_rate_scorer(model, X, mask) == model.score(X, mask)
    assert np.isfinite(approximated_accuracy_scorer(model, X, mask))
