"""A new criterion: a function of candidate sets and predictions, for scikit-learn's tools."""

from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold

from gmpll import PLKNN, as_candidates
from gmpll.datasets import random_candidates
from gmpll.metrics import covered


def surprise(candidates, y_pred):
    """Mean of hits, each worth the share of labels that its set leaves out."""
    mask = as_candidates(candidates).mask
    return float((covered(candidates, y_pred) * (1 - mask.mean(axis=1))).mean())


def surprise_scorer(estimator, X, y):
    return surprise(y, estimator.predict(X))


def test_it_chooses():
    assert surprise([{"a"}, {"b"}], ["a", "a"]) == 0.25
    X, truth = load_iris(return_X_y=True)
    candidates = random_candidates(truth, p=0.7, r=1, random_state=0)
    grid, folds = {"n_neighbors": [1, 10]}, KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(PLKNN(random_state=0), grid, scoring=surprise_scorer, cv=folds)
    assert search.fit(X, candidates).best_params_ == {"n_neighbors": 10}
