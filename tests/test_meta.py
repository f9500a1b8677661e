"""What all wrappers of a partial label learner share."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gmpll import (
    PLKNN,
    CalibratedPartialClassifier,
    ConformalPartialClassifier,
    PartialLabelClassifier,
    RejectingClassifier,
    as_candidates,
    candidates_from_votes,
)
from gmpll._meta import settled
from problems import random_problem

WRAPPERS = [CalibratedPartialClassifier, RejectingClassifier, ConformalPartialClassifier]


def frame_problem(m=120):
    """Candidates in a table whose columns are not sorted."""
    X, mask, _ = random_problem(0, m=m)
    return X, pd.DataFrame(mask, columns=list("dcba"))


@pytest.mark.parametrize("wrapper", [None, *WRAPPERS])
def test_the_score_reads_tables_by_name_and_matrices_by_place(wrapper):
    X, frame = frame_problem()
    inner = PLKNN(random_state=0)
    model = inner if wrapper is None else wrapper(inner, random_state=0)
    expected = model.fit(X, frame).score(X, frame)
    assert expected > 0.6
    sets = as_candidates(frame)
    for same in (
        frame[list("abcd")],
        frame.to_numpy(),
        sp.csr_array(frame.to_numpy()),
        sets,
        sets.to_lists(),
    ):
        assert model.score(X, same) == expected


def test_nothing_is_held_against_a_row_of_any_label():
    X, frame = frame_problem()
    model = CalibratedPartialClassifier(PLKNN(random_state=0), random_state=0).fit(X, frame)
    predicted = model.predict(X)
    sets = [None] * 60 + [{label} for label in predicted[60:]]
    sets[:30] = [{"no such label"}] * 30
    assert model.score(X, sets) == 0.75
    np.testing.assert_array_equal(model.estimator_.score(X, sets), 0.75)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_rows_count_by_their_weight(wrapper):
    X, frame = frame_problem()
    model = wrapper(PLKNN(random_state=0), random_state=0).fit(X, frame)
    weight = np.arange(len(X)) % 3
    repeated = np.repeat(np.arange(len(X)), weight)
    weighted = model.score(X, frame, sample_weight=weight)
    assert weighted == pytest.approx(model.score(X[repeated], frame.iloc[repeated]))


class Recorder(ClassifierMixin, BaseEstimator):
    """A learner that notes what it was fitted on."""

    fits: ClassVar[list] = []

    def fit(self, X, y, candidate_weight=None):
        sets = as_candidates(y)
        self.classes_ = sets.classes
        self.fits.append((X, sets, candidate_weight))
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


class TestCandidateWeight:
    @pytest.mark.parametrize("wrapper", WRAPPERS)
    @pytest.mark.parametrize("inside", [Recorder(), make_pipeline("passthrough", Recorder())])
    def test_it_is_passed_on_and_cut_with_the_rows(self, wrapper, inside):
        X, frame = frame_problem(m=30)
        X = X + np.arange(30)[:, None] * 100  # the row can be told from its features
        sets = as_candidates(frame).to_lists()  # a part of them may lack a label
        weight = pd.DataFrame(np.arange(120.0).reshape(30, 4), columns=list("bdac"))
        Recorder.fits.clear()
        wrapper(inside, random_state=0).fit(X, sets, candidate_weight=weight)
        assert any(len(rows) < 30 for rows, _, _ in Recorder.fits)
        for rows, seen, given in Recorder.fits:
            assert seen.classes.tolist() == list("abcd")
            numbers = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in rows]
            np.testing.assert_array_equal(given, weight[list("abcd")].to_numpy()[numbers])

    def test_it_changes_what_is_found(self):
        X, mask, truth = random_problem(1, m=60)
        mask = np.ones_like(mask)
        weight = np.eye(4)[truth]
        wrapped = CalibratedPartialClassifier(
            PartialLabelClassifier(hyperparameters={"weight_exponent": 1.0}), random_state=0
        )
        wrapped.fit(X, mask, candidate_weight=weight)
        assert (wrapped.labels_ == truth).mean() > 0.9
        assert (wrapped.fit(X, mask).labels_ == truth).mean() < 0.9

    @pytest.mark.parametrize("wrapper", WRAPPERS)
    def test_a_learner_that_cannot_take_it(self, wrapper):
        X, frame = frame_problem(m=30)
        nested = CalibratedPartialClassifier(PLKNN(), random_state=0)
        for inside in (PLKNN(), make_pipeline("passthrough", PLKNN()), nested):
            with pytest.raises(ValueError, match="takes no candidate_weight: leave it out"):
                wrapper(inside, random_state=0).fit(X, frame, candidate_weight=frame * 1.0)

    def test_votes_are_weights(self):
        voted = candidates_from_votes(np.repeat(np.arange(30), 3), ["a", "a", "b"] * 30)
        Recorder.fits.clear()
        RejectingClassifier(Recorder(), threshold=0.5).fit(np.zeros((30, 1)), voted)
        np.testing.assert_array_equal(Recorder.fits[0][2], voted.weights)

    def test_wrong_weights_are_named_by_their_row(self):
        X, frame = frame_problem(m=30)
        weight = np.ones((30, 4))
        weight[7, 2] = -1
        with pytest.raises(ValueError, match=r"-1\.0 in row 7"):
            RejectingClassifier(random_state=0).fit(X, frame, candidate_weight=weight)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_nothing_is_left_of_an_earlier_fit(wrapper):
    X, frame = frame_problem(m=30)
    model = wrapper(PLKNN(random_state=0), random_state=0)
    model.fit(pd.DataFrame(X, columns=list("wxyz")), frame)
    assert model.feature_names_in_.tolist() == list("wxyz")
    model.fit(X, frame)
    assert not hasattr(model, "feature_names_in_")
    model.set_params(estimator=Recorder()).fit(X, frame)
    for attribute in ("n_features_in_", "labels_", "label_confidences_"):
        assert not hasattr(model, attribute)


class Chooser(PLKNN):
    """Chooses a number of neighbours, and notes what every copy was told."""

    told: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.told.append(self.n_neighbors)
        return super().fit(X, y)

    hyperparameters = None
    selected_: ClassVar[dict[str, float]] = {"stacking": 0.0, "forest": 0.0}

    def set_params(self, hyperparameters=None, **parameters):
        if hyperparameters is not None:
            parameters["n_neighbors"] = 3
        return super().set_params(**parameters)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model,
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: RejectingClassifier(model, threshold=0.5),
    ],
)
def test_copies_do_not_choose_again_what_all_rows_have_chosen(wrap):
    X, mask, _ = random_problem(0, m=60)
    Chooser.told.clear()
    CalibratedPartialClassifier(wrap(Chooser(random_state=0)), random_state=0).fit(X, mask)
    assert Chooser.told == [Chooser().n_neighbors, 3, 3, 3]


def test_stacking_and_forest_are_settled():
    X, mask, _ = random_problem(0, m=60)
    model = PartialLabelClassifier(
        hyperparameters={"forest": 0.25, "stacking": 1.0}, random_state=0
    ).fit(X, mask)
    copy = settled(PartialLabelClassifier(), model)
    assert copy.hyperparameters == {"stacking": 1.0, "forest": 0.25}
