import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import shuffle

from gmpll import PLKNN, PartialLabelClassifier, RejectingClassifier, as_candidates
from gmpll.datasets import random_candidates
from gmpll.metrics import candidate_lift
from gmpll.model_selection import (
    approximated_accuracy_scorer,
    candidate_lift_scorer,
    covering_rate_scorer,
    true_label_scorer,
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
        PartialLabelClassifier(random_state=0),
        X,
        frame,
        scoring=candidate_lift_scorer,
        cv=3,
        error_score="raise",
    )["test_score"]
    assert (scores > 0.5).all()


def test_the_prior_comes_from_the_confidences(iris):
    X, mask, y = iris
    model = PartialLabelClassifier(random_state=0).fit(X, mask)
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


class TestLabelsOfTheModel:
    """Scorers match columns by label, as ``score`` does."""

    @pytest.fixture
    def fitted(self, iris):
        X, mask, _ = iris
        frame = pd.DataFrame(mask, columns=["z", "y", "x"])
        return PLKNN(random_state=0).fit(X, frame), X, frame

    @pytest.mark.parametrize("scorer", SCORERS)
    def test_every_form_has_the_same_score(self, fitted, scorer):
        model, X, frame = fitted
        expected = scorer(model, X, frame)
        assert expected > 0.5
        sets = as_candidates(frame)
        for same in (frame.to_numpy(), frame[["x", "y", "z"]], sets, sets.to_lists()):
            assert scorer(model, X, same) == pytest.approx(expected)

    def test_the_covering_rate_is_the_score_of_a_plain_matrix(self, fitted):
        model, X, frame = fitted
        plain = frame.to_numpy()
        assert covering_rate_scorer(model, X, plain) == model.score(X, plain)

    def test_rows_that_lack_a_label(self, fitted):
        model, X, frame = fitted
        some = ~frame["y"].to_numpy()
        table, sets = frame[some], as_candidates(frame[some]).to_lists()
        assert len(as_candidates(sets).classes) == 2
        expected = approximated_accuracy_scorer(model, X[some], table)
        assert approximated_accuracy_scorer(model, X[some], sets) == pytest.approx(expected)

    def test_a_candidate_that_the_model_does_not_know(self, fitted):
        model, X, _ = fitted
        assert approximated_accuracy_scorer(model, X, [{"w"}] * len(X)) == 0.0


def test_the_lift_is_the_same_inside_a_pipeline_a_search_and_a_wrapper(iris):
    X, mask, _ = iris
    mask = mask | (np.arange(3) == 0) & (np.arange(len(X)) % 2 == 0)[:, None]
    expected = candidate_lift_scorer(PLKNN(random_state=0).fit(X, mask), X, mask)
    assert expected != candidate_lift(mask, PLKNN(random_state=0).fit(X, mask).predict(X))
    for outer in (
        make_pipeline("passthrough", PLKNN(random_state=0)),
        GridSearchCV(PLKNN(random_state=0), {"n_neighbors": [10]}, cv=2),
        RejectingClassifier(PLKNN(random_state=0), threshold=0.0),
    ):
        assert candidate_lift_scorer(outer.fit(X, mask), X, mask) == expected
    tree = DecisionTreeClassifier(random_state=0).fit(X, mask.argmax(axis=1))
    assert candidate_lift_scorer(tree, X, mask) == candidate_lift(mask, tree.predict(X))


def test_true_labels_beside_the_candidates(iris):
    X, mask, truth = iris
    model = PLKNN(random_state=0)
    with config_context(enable_metadata_routing=True):
        found = cross_validate(
            model, X, mask, scoring=true_label_scorer(), params={"truth": truth}, cv=KFold(3)
        )
        direct = true_label_scorer()(model.fit(X, mask), X, mask, truth=truth)
    expected = [
        np.mean(clone(model).fit(X[train], mask[train]).predict(X[test]) == truth[test])
        for train, test in KFold(3).split(X)
    ]
    assert found["test_score"].tolist() == pytest.approx(expected)
    assert direct == np.mean(model.predict(X) == truth)


def test_a_score_of_candidate_sets_says_that_it_is_no_accuracy(iris):
    X, mask, truth = iris
    model = PLKNN(random_state=0).fit(X, mask)
    with pytest.warns(UserWarning, match="covering rate and no accuracy"):
        covered = model.score(X, mask)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.score(X, truth) < covered
