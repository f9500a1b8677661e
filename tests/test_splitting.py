"""The library's own forms of candidates in scikit-learn's tools."""

import pickle

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_validate, train_test_split

from gmpll import (
    PLKNN,
    CandidateSets,
    PartialLabelClassifier,
    RejectingClassifier,
    VotedCandidates,
    as_candidates,
    candidates_from_votes,
)
from problems import random_problem

LABELS = np.array(list("abcd"))


@pytest.fixture
def problem():
    X, mask, _ = random_problem(0, m=60)
    return X, mask, CandidateSets(mask, LABELS)


def voted(sets):
    rows, labels = np.nonzero(sets.mask)
    return candidates_from_votes(rows, sets.classes[labels], weights=1.0 + np.arange(len(rows)) % 3)


def test_rows_are_picked_and_fields_stay(problem):
    _, mask, sets = problem
    for key in ([3, 1], np.array([3, 1]), (np.array([3, 1]), ...)):
        np.testing.assert_array_equal(sets[key].mask, mask[[3, 1]])
        assert sets[key].classes is LABELS
    np.testing.assert_array_equal(sets[:2].mask, mask[:2])
    np.testing.assert_array_equal(sets[mask[:, 0]].mask, mask[mask[:, 0]])
    assert sets[0] is sets.mask
    assert sets[-1] is sets.classes
    first, second = sets
    assert (first is mask, second is LABELS) == (True, True)
    assert sets.shape == (60, 4)
    np.testing.assert_array_equal(np.asarray(sets), mask)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(sets)).mask, mask)
    votes = voted(sets)
    some = votes[np.array([3, 1])]
    assert isinstance(some, VotedCandidates)
    np.testing.assert_array_equal(some.weights, votes.weights[[3, 1]])
    assert some.items.tolist() == [3, 1]
    assert votes[1] is votes.items


def test_cross_validation(problem):
    X, mask, sets = problem
    expected = cross_validate(PLKNN(random_state=0), X, mask, cv=3)["test_score"]
    found = cross_validate(PLKNN(random_state=0), X, sets, cv=3, error_score="raise")
    np.testing.assert_array_equal(found["test_score"], expected)
    parts = train_test_split(X, sets, random_state=0)
    assert isinstance(parts[2], CandidateSets)
    assert parts[2].shape == (45, 4)


def test_a_search_inside_a_wrapper_gets_the_weights(problem):
    X, _, sets = problem
    grid = {"hyperparameters": [{"weight_exponent": 0.5}, {"weight_exponent": 1.0}]}
    search = GridSearchCV(PartialLabelClassifier(), grid, cv=2)
    model = RejectingClassifier(search, threshold=0.0, random_state=0)
    weights = voted(sets).weights
    model.fit(X, sets, candidate_weight=weights)
    assert model.estimator_.best_estimator_.selected_["weight_exponent"] in (0.5, 1.0)


def test_votes_are_cut_with_their_weights(problem):
    X, _, sets = problem
    result = cross_validate(
        PartialLabelClassifier(random_state=0, hyperparameters={"weight_exponent": 1.0}),
        X,
        voted(sets),
        cv=2,
        return_estimator=True,
        error_score="raise",
    )
    assert [model.selected_["weight_exponent"] for model in result["estimator"]] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["a", "b", "c"], r"has 4 columns, but its classes have the shape \(3,\)"),
        ([["a", "b", "c", "d"]], r"has 4 columns, but its classes have the shape \(1, 4\)"),
        (["a", "b", "c", "b"], "two columns for the label 'b'"),
    ],
)
def test_sets_that_are_none(problem, classes, message):
    X, mask, _ = problem
    wrong = CandidateSets(mask, np.array(classes))
    with pytest.raises(ValueError, match=message):
        as_candidates(wrong)
    with pytest.raises(ValueError, match=message):
        PLKNN().fit(X, wrong)
