"""A calibrated learner keeps its labels and claims what it can."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gmpll import PLKNN, PLSVM, CalibratedPartialClassifier
from gmpll.datasets import random_candidates
from gmpll.uncertainty.reliability import expected_calibration_error
from problems import random_problem


@parametrize_with_checks([CalibratedPartialClassifier(PLKNN(), cv=2, random_state=0)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", ["temperature", "corrected"])
@pytest.mark.parametrize("base", [PLKNN(), PLSVM(max_iter=50)], ids=["votes", "decisions"])
def test_labels_stay_and_probabilities_get_better(base, method):
    X, _, truth = random_problem(0, m=600, d=5)
    mask = random_candidates(truth, p=0.7, r=1, random_state=0)
    model = CalibratedPartialClassifier(base, method, random_state=0).fit(X[:400], mask[:400])
    np.testing.assert_array_equal(model.predict(X[400:]), model.estimator_.predict(X[400:]))
    np.testing.assert_array_equal(model.labels_, model.estimator_.labels_)
    right = model.predict(X[400:]) == truth[400:]
    after = expected_calibration_error(model.predict_proba(X[400:]).max(axis=1), right)
    assert after < 0.1
    if isinstance(base, PLKNN):
        before = model.estimator_.predict_proba(X[400:]).max(axis=1)
        assert after < 0.5 * expected_calibration_error(before, right)


def test_unseen_labels_and_other_forms_of_candidates():
    X, mask, _ = random_problem(1, m=80)
    wide = np.zeros((80, 6), dtype=bool)
    wide[:, [0, 2, 3, 5]] = mask
    model = CalibratedPartialClassifier(PLKNN(), random_state=0).fit(X, wide)
    assert (model.predict_proba(X)[:, [1, 4]] == 0).all()
    assert (model.label_confidences_[:, [1, 4]] == 0).all()
    names = np.array(list("abcd"))
    sets = [set(names[row]) for row in mask]
    by_name = CalibratedPartialClassifier(PLKNN(), random_state=0).fit(X, sets)
    np.testing.assert_allclose(by_name.predict_proba(X), model.predict_proba(X)[:, [0, 2, 3, 5]])
    assert by_name.classes_.tolist() == list("abcd")


def test_known_labels_are_kept():
    X, mask, _ = random_problem(2, m=60)
    gold = np.full(60, -1)
    gold[0] = 3
    model = CalibratedPartialClassifier(PLKNN(), random_state=0).fit(X, mask, gold=gold)
    assert model.labels_[0] == 3
    assert model.label_confidences_[0, 3] == 1.0


def test_pipelines_tables_and_searches():
    X, mask, _ = random_problem(3, m=90)
    frame = pd.DataFrame(X, columns=list("abcd"))
    inner = make_pipeline(StandardScaler(), PLKNN(random_state=0))
    search = GridSearchCV(
        CalibratedPartialClassifier(inner, cv=2, random_state=0),
        {"estimator__plknn__n_neighbors": [1, 10]},
        cv=2,
        error_score="raise",
    ).fit(frame, mask)
    assert search.best_estimator_.feature_names_in_.tolist() == list("abcd")
    assert 0.0 <= search.score(frame, mask) <= 1.0
    outer = CalibratedPartialClassifier(
        GridSearchCV(PLKNN(random_state=0), {"n_neighbors": [1, 10]}, cv=2), random_state=0
    )
    assert outer.fit(X, mask).predict_proba(X).shape == mask.shape
