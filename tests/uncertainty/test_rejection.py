import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gmpll import (
    GMPLL,
    PLKNN,
    PLSVM,
    CalibratedPartialClassifier,
    PartialLabelClassifier,
    RejectingClassifier,
)
from gmpll.datasets import make_partial_label_problem
from gmpll.uncertainty.rejection import coverage_threshold


def problem():
    data = make_partial_label_problem(
        900, n_features=5, n_classes=4, mean_candidates=1.8, separation=2.5, random_state=0
    )
    return data.data, data.candidates, data.target


@parametrize_with_checks(
    [RejectingClassifier(PLKNN(), threshold=0.0, reject_label=-9, random_state=0)]
)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_the_threshold_leaves_the_wanted_share():
    rng = np.random.RandomState(0)
    confidence = rng.random_sample(1000)
    for coverage in (0.001, 0.3, 0.9, 1.0):
        assert (confidence >= coverage_threshold(confidence, coverage)).mean() == coverage
    tied = np.full(10, 0.5)
    assert (tied >= coverage_threshold(tied, 0.2)).all()


@pytest.mark.parametrize("base", [PLKNN(), PLSVM(max_iter=50)], ids=["votes", "decisions"])
@pytest.mark.parametrize("coverage", [0.5, 0.8])
def test_coverage_carries_over_and_what_is_left_is_better(base, coverage):
    X, candidates, truth = problem()
    model = RejectingClassifier(base, coverage=coverage, reject_label=-1, random_state=0)
    predicted = model.fit(X[:500], candidates[:500]).predict(X[500:])
    answered = predicted != -1
    assert predicted.dtype.kind == "i"
    assert abs(answered.mean() - coverage) < 0.1
    right = model.estimator_.predict(X[500:]) == truth[500:]
    assert right[answered].mean() > right[~answered].mean() + 0.1
    np.testing.assert_array_equal(predicted[answered], model.estimator_.predict(X[500:])[answered])


def test_the_reject_label_is_the_users():
    X, candidates, _ = problem()
    names = ["apple", "berry", "cherry", "date"]
    frame = pd.DataFrame(candidates[:200], columns=names)
    for label, kind in (("?", "U"), (None, "O"), (-1, "O"), (np.nan, "O")):
        model = RejectingClassifier(PLKNN(), coverage=0.5, reject_label=label, random_state=0)
        predicted = model.fit(X[:200], frame).predict(X[200:])
        assert predicted.dtype.kind == kind
        rejected = ~model.accepts(X[200:])
        assert 0 < rejected.sum() < len(predicted)
        assert all(value is label or value == label for value in predicted[rejected])
        assert set(predicted[~rejected]) <= set(names)
    with pytest.raises(ValueError, match="reject_label='date' is one of the labels"):
        RejectingClassifier(PLKNN(), reject_label="date").fit(X[:200], frame)


def test_a_level_reads_as_a_probability_after_calibration():
    X, candidates, truth = problem()
    calibrated = CalibratedPartialClassifier(
        PartialLabelClassifier(GMPLL("local", n_graph_neighbors=15, balance=0.5))
    )
    model = RejectingClassifier(calibrated, threshold=0.6, reject_label=-1, random_state=0)
    predicted = model.fit(X[:400], candidates[:400]).predict(X[400:])
    answered = predicted != -1
    assert answered.sum() > 50
    assert (predicted == truth[400:])[answered].mean() > 0.6


def test_a_given_level_needs_no_held_out_fits():
    X, candidates, _ = problem()
    model = RejectingClassifier(PLKNN(random_state=0), threshold=0.6).fit(X, candidates)
    assert model.threshold_ == 0.6
    np.testing.assert_array_equal(
        model.accepts(X), PLKNN(random_state=0).fit(X, candidates).predict_proba(X).max(1) >= 0.6
    )
