"""Any learner on what any method found."""

import itertools
import pickle
from dataclasses import asdict
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from gmpll import (
    GMPLL,
    PLKNN,
    CalibratedPartialClassifier,
    PartialLabelClassifier,
    candidates_from_votes,
)
from gmpll.datasets import make_partial_label_problem, random_candidates
from gmpll.evidence import pipeline as stages
from gmpll.evidence.ridge import KernelRidge
from gmpll.evidence.scikit import MIN_CONFIDENCE, ScikitLearner
from gmpll.matching import LocalAffinity, match
from gmpll.methods import METHODS
from gmpll.methods.baselines import MostFrequentCandidate, RandomCandidate
from gmpll.model_selection import candidate_lift_scorer
from problems import random_problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LEARNERS = {
    "auto": "auto",
    "logistic": LogisticRegression(),
    "forest": ExtraTreesClassifier(n_estimators=50, min_samples_leaf=5),
    "svc": SVC(),
    "regression": Ridge(),
}


def problem(seed=0, n_samples=400):
    """Classes in many dimensions, where ten neighbours know little; half of the rows to test."""
    data = make_partial_label_problem(
        n_samples,
        n_features=30,
        n_classes=4,
        mean_candidates=2.5,
        separation=3.5,
        random_state=seed,
    )
    half = n_samples // 2
    return (data.data[:half], data.candidates[:half]), (data.data[half:], data.target[half:])


def line(n_samples, rng):
    """Four labels along one feature."""
    truth = rng.randint(4, size=n_samples)
    return (truth + 0.2 * rng.randn(n_samples))[:, None], truth


def rings(n_samples, rng):
    """Three labels around each other."""
    truth = rng.randint(3, size=n_samples)
    angle, radius = 2 * np.pi * rng.rand(n_samples), 1 + truth + 0.15 * rng.randn(n_samples)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), truth


@parametrize_with_checks(
    [
        PartialLabelClassifier(PLKNN(), hyperparameters={"feedback": False}, random_state=0),
        PartialLabelClassifier(PLKNN(), GaussianNB(), random_state=0),
        PartialLabelClassifier(
            PLKNN(), LinearSVC(), hyperparameters={"feedback": True}, random_state=0
        ),
        PartialLabelClassifier(
            PLKNN(), Ridge(), hyperparameters={"feedback": False}, random_state=0
        ),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", [*METHODS.values(), RandomCandidate, MostFrequentCandidate])
def test_every_method_can_resolve(method):
    X, mask, _ = random_problem(0, m=40)
    model = PartialLabelClassifier(
        method(), LogisticRegression(), hyperparameters={"feedback": False}, random_state=0
    )
    model.fit(X, mask)
    found = clone(method()).set_params(random_state=model.disambiguator_.random_state)
    np.testing.assert_array_equal(model.label_confidences_, found.fit(X, mask).label_confidences_)
    assert mask[np.arange(40), model.labels_].all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


# No forest with feedback: what trees say of rows left out depends much on which go together.
@pytest.mark.parametrize(
    ("name", "feedback"),
    [pair for pair in itertools.product(LEARNERS, [False, True]) if pair != ("forest", True)],
)
def test_every_learner_beats_the_neighbours_vote(name, feedback):
    learner = LEARNERS[name]
    gains = []
    for seed in range(3):
        (X, candidates), (X_test, truth) = problem(seed)
        vote = PLKNN(random_state=0).fit(X, candidates).score(X_test, truth)
        model = PartialLabelClassifier(
            PLKNN(), learner, hyperparameters={"feedback": feedback}, random_state=0
        )
        gains.append(model.fit(X, candidates).score(X_test, truth) - vote)
    assert np.mean(gains) > 0.02


def test_probabilities_or_decisions_as_the_learner_has_them():
    (X, candidates), (X_test, _) = problem()
    for learner in ("auto", LogisticRegression(), Ridge()):
        model = PartialLabelClassifier(
            PLKNN(), learner, hyperparameters={"feedback": False}, random_state=0
        )
        assert not hasattr(model, "decision_function")
        p = model.fit(X, candidates).predict_proba(X_test)
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X_test))
    model = PartialLabelClassifier(
        PLKNN(), LinearSVC(), hyperparameters={"feedback": False}, random_state=0
    )
    assert not hasattr(model, "predict_proba")
    scores = model.fit(X, candidates).decision_function(X_test)
    np.testing.assert_array_equal(scores.argmax(axis=1), model.predict(X_test))


PLAIN = {"stacking": 0.0, "forest": 0.0, "feedback": False}


def test_the_regression_is_the_closed_form_on_the_soft_confidences():
    (X, candidates), (X_test, _) = problem()
    model = PartialLabelClassifier(
        PLKNN(), hyperparameters=PLAIN, calibrate=False, random_state=0
    ).fit(X, candidates)
    ridge = model.selected_["ridge"]
    views = model.predictor_.views
    literal = KernelRidge(
        [view.rows for view in views],
        ridge=ridge,
        variances=views[-1].variances,
        rng=np.random.RandomState(5),
    ).predictor(model.label_confidences_)
    scores = np.maximum(literal([view.transform(X_test) for view in views]), 0)
    np.testing.assert_allclose(
        model.predict_proba(X_test), scores / scores.sum(axis=1, keepdims=True), atol=1e-6
    )


@pytest.mark.parametrize(("make", "few"), [(line, 0.8), (rings, 0.5)])
def test_ridge_sees_positions(make, few):
    X, truth = make(725, np.random.RandomState(0))
    candidates = random_candidates(truth, p=0.6, r=1, random_state=0)
    model = PartialLabelClassifier(PLKNN(), random_state=0)
    model.fit(X[:200], candidates[:200])
    assert model.selected_["views"] == ("cosine", "rank", "euclidean")
    assert model.score(X[225:], truth[225:]) > 0.95
    model.fit(X[200:225], candidates[200:225])  # too few to compare
    assert model.selected_["views"] == ("cosine", "rank", "euclidean")
    assert model.selected_["feedback"] is False
    assert model.score(X[225:], truth[225:]) > few


def test_the_regression_is_chosen_by_held_out_lift():
    (X, candidates), _ = problem(n_samples=120)
    fixed = {"stacking": 0.0, "forest": 0.0}
    model = PartialLabelClassifier(PLKNN(), hyperparameters=fixed, random_state=0)
    scores = model.fit(X, candidates).selection_.scores
    assert len({tried.ridge for tried, _ in scores}) > 1
    assert {tried.feedback for tried, _ in scores} == {False, True}
    best, lift = scores[0]
    assert model.selected_ == {**asdict(best), "weight_exponent": None}
    assert lift == max(lift for _, lift in scores)
    assert len(model.predictor_.views) == len(best.views)


def test_out_of_sample_predictions_have_not_seen_the_row():
    X, _, truth = random_problem(3, m=45)
    P = np.eye(4)[truth]
    other = P.copy()
    other[7] = np.roll(P[7], 1)
    learner = ScikitLearner(X, GaussianNB(), "auto", np.random.RandomState(0))
    before = learner.out_of_sample(P)[7]
    again = ScikitLearner(X, GaussianNB(), "auto", np.random.RandomState(0))
    np.testing.assert_allclose(before, again.out_of_sample(other)[7])


def test_soft_targets_of_a_classifier_are_weighted_copies():
    X, mask, _ = random_problem(1, m=30)
    confidences = mask / mask.sum(axis=1, keepdims=True)
    rows, labels = np.nonzero(confidences > MIN_CONFIDENCE)
    predictor = ScikitLearner(X, GaussianNB(), "soft", np.random.RandomState(0)).fit(confidences)
    literal = GaussianNB().fit(X[rows], labels, sample_weight=confidences[rows, labels])
    np.testing.assert_allclose(predictor(X), literal.predict_proba(X))
    with pytest.raises(ValueError, match="KNeighborsClassifier takes no sample_weight"):
        PartialLabelClassifier(PLKNN(), KNeighborsClassifier(), targets="soft").fit(X, mask)


def test_hard_targets_carry_their_confidence():
    X, mask, _ = random_problem(2, m=50)
    model = PartialLabelClassifier(
        PLKNN(), GaussianNB(), hyperparameters={"feedback": False}, calibrate=False, random_state=0
    )
    model.fit(X, mask)
    literal = GaussianNB().fit(X, model.labels_, sample_weight=model.label_confidences_.max(axis=1))
    np.testing.assert_allclose(model.predict_proba(X), literal.predict_proba(X))
    piped = clone(model).set_params(learner=make_pipeline(StandardScaler(), GaussianNB()))
    assert np.isfinite(piped.fit(X, mask).predict_proba(X)).all()


def test_a_regressor_of_one_output_is_repeated():
    X, mask, _ = random_problem(2, m=40)
    model = PartialLabelClassifier(
        PLKNN(), SVR(), hyperparameters={"feedback": False}, random_state=0
    ).fit(X, mask)
    assert len(model.predictor_.model.estimators_) == mask.shape[1]
    assert model.predict_proba(X).shape == mask.shape


def test_feedback_is_chosen_by_held_out_lift():
    (X, candidates), _ = problem()
    model = PartialLabelClassifier(PLKNN(), GaussianNB(), random_state=0).fit(X, candidates)
    lifts = {tried.feedback: lift for tried, lift in model.selection_.scores}
    assert set(lifts) == {False, True}
    assert model.selected_["feedback"] == (lifts[True] > lifts[False])
    few = PartialLabelClassifier(PLKNN(), GaussianNB(), random_state=0)
    assert few.fit(X[:20], candidates[:20]).selected_["feedback"] is False


def test_scikit_learn_tools():
    (X, candidates), (X_test, truth) = problem()
    frame = pd.DataFrame(candidates, columns=list("abcd"))
    names = [f"feature {number}" for number in range(30)]
    pipeline = make_pipeline(
        StandardScaler(),
        PartialLabelClassifier(PLKNN(), GaussianNB(), hyperparameters={"feedback": False}),
    )
    search = GridSearchCV(
        pipeline,
        {"partiallabelclassifier__disambiguator__n_neighbors": [1, 20]},
        scoring=candidate_lift_scorer,
        cv=2,
        error_score="raise",
    ).fit(pd.DataFrame(X, columns=names), frame)
    assert search.best_params_ == {"partiallabelclassifier__disambiguator__n_neighbors": 20}
    predicted = search.predict(pd.DataFrame(X_test, columns=names))
    assert (predicted == np.array(list("abcd"))[truth]).mean() > 0.6


def test_sparse_features_and_repeated_fits():
    (X, candidates), (X_test, _) = problem(n_samples=120)
    model = PartialLabelClassifier(GMPLL("local", n_graph_neighbors=10), random_state=0)
    first = clone(model).fit(X, candidates)
    second = clone(model).fit(sp.csr_matrix(X), candidates)
    np.testing.assert_allclose(first.predict_proba(X_test), second.predict_proba(X_test))
    np.testing.assert_array_equal(first.labels_, second.labels_)


def test_known_labels_reach_the_learner():
    (X, candidates), _ = problem(n_samples=120)
    gold = np.full(60, -1)
    gold[3] = 2
    model = PartialLabelClassifier(PLKNN(), GaussianNB(), random_state=0)
    assert model.fit(X, candidates, gold=gold).labels_[3] == 2


class TestCandidateWeight:
    """Every set holds every label: all that tells them apart are features and weights."""

    @staticmethod
    def problem():
        X, mask, truth = random_problem(1, m=60)
        return X, np.ones_like(mask), truth, np.eye(4)[truth]

    @staticmethod
    def method(exponent):
        return PartialLabelClassifier(hyperparameters={**PLAIN, "weight_exponent": exponent})

    @pytest.mark.parametrize("feedback", [False, True])
    @pytest.mark.parametrize("learner", ["auto", Ridge()])
    def test_it_changes_what_is_found(self, learner, feedback):
        X, mask, truth, weight = self.problem()
        model = PartialLabelClassifier(
            self.method(1.0), learner, hyperparameters={"feedback": feedback}, random_state=0
        )
        assert (model.fit(X, mask, candidate_weight=weight).labels_ == truth).mean() > 0.9
        assert model.disambiguator_.selected_["weight_exponent"] == 1.0
        assert (model.fit(X, mask).labels_ == truth).mean() < 0.9

    def test_it_is_passed_on_and_cut_with_rows(self):
        X, mask, _ = random_problem(2, m=60, absent=True)
        X[:, 0] = np.arange(60)  # the row can be told from its features
        mask[11] = [False, False, False, True]  # in two of three parts
        weight = np.arange(240.0).reshape(60, 4)
        table = pd.DataFrame(weight, columns=list("abcd"))[list("cdab")]
        Recorder.fits.clear()
        model = PartialLabelClassifier(Recorder(), GaussianNB(), random_state=0)
        model.fit(X, pd.DataFrame(mask, columns=list("abcd")), candidate_weight=table)
        assert [len(rows) for rows, *_ in Recorder.fits] == [60] + [40] * 15
        assert {sets.mask.shape[1] for _, sets, _ in Recorder.fits} == {4}
        for rows, sets, given in Recorder.fits:
            columns = ["abcd".index(label) for label in sets.classes]
            expected = weight[np.ix_(rows[:, 0].astype(int), columns)]
            np.testing.assert_array_equal(given, expected)

    def test_feedback_trusts_the_weights_as_the_method_does(self):
        X, mask, _, weight = self.problem()
        wrong = np.roll(weight, 1, axis=1)
        for method in (self.method(0.0), CalibratedPartialClassifier(self.method(0.0))):
            model = PartialLabelClassifier(
                method, GaussianNB(), hyperparameters={"feedback": True}, random_state=0
            )
            plain = clone(model).fit(X, mask).label_confidences_
            ignored = clone(model).fit(X, mask, candidate_weight=wrong).label_confidences_
            np.testing.assert_allclose(ignored, plain)

    def test_votes_are_weights(self):
        voted = candidates_from_votes(np.repeat(np.arange(30), 3), ["a", "a", "b"] * 30)
        X = np.random.RandomState(0).randn(30, 2)
        model = PartialLabelClassifier(self.method(1.0), GaussianNB(), random_state=0)
        assert model.fit(X, voted).labels_.tolist() == ["a"] * 30
        given = clone(model).fit(X, voted.candidates, candidate_weight=voted.weights)
        np.testing.assert_array_equal(given.label_confidences_, model.label_confidences_)
        with pytest.warns(UserWarning, match="takes no candidate_weight, so that only the sets"):
            PartialLabelClassifier(PLKNN(), GaussianNB(), random_state=0).fit(X, voted)

    def test_a_method_that_cannot_take_it(self):
        X, mask, _, weight = self.problem()
        nested = CalibratedPartialClassifier(PartialLabelClassifier(PLKNN()))
        for wrapper in (PartialLabelClassifier(PLKNN()), nested):
            with pytest.raises(ValueError, match="takes no candidate_weight: leave it out"):
                wrapper.fit(X, mask, candidate_weight=weight)

    def test_inside_another_wrapper(self):
        X, mask, truth, weight = self.problem()
        inside = PartialLabelClassifier(
            self.method(1.0), GaussianNB(), hyperparameters={"feedback": False}
        )
        model = CalibratedPartialClassifier(inside, random_state=0)
        assert (model.fit(X, mask, candidate_weight=weight).labels_ == truth).mean() > 0.9


def test_one_label_for_all():
    model = PartialLabelClassifier(PLKNN(), LogisticRegression(), random_state=0)
    X = np.random.RandomState(0).randn(8, 2)
    assert model.fit(X, ["only"] * 8).predict(X).tolist() == ["only"] * 8


def test_wrong_parts_are_one_sentence():
    X, mask, _ = random_problem(0, m=20)
    with pytest.raises(ValueError, match="neither a classifier nor a regressor"):
        PartialLabelClassifier(PLKNN(), PartOnly()).fit(X, mask)
    with pytest.raises(ValueError, match="has no label_confidences_"):
        PartialLabelClassifier(PartOnly(), GaussianNB()).fit(X, mask)
    with pytest.raises(ValueError, match="The 'n_neighbors' parameter of PLKNN"):
        PartialLabelClassifier(PLKNN(n_neighbors=0), GaussianNB()).fit(X, mask)


class PartOnly(StandardScaler):
    def predict(self, X):
        return X

    def fit(self, X, y=None):
        return self


class Recorder(PLKNN):
    """A method that notes what it was fitted on."""

    fits: ClassVar[list] = []

    def fit(self, X, y, candidate_weight=None):
        self.fits.append((X, y, candidate_weight))
        return super().fit(X, y)


def test_sets_are_modelled_at_every_size(monkeypatch):
    """Of many rows a sample is modelled; it serves nearly as well as all of them."""
    rng = np.random.RandomState(0)
    X, y = make_blobs(600, 8, centers=6, cluster_std=3.5, random_state=0)
    partner = np.array([1, 2, 0, 4, 5, 3])[y]  # every label has one companion: sets follow labels
    mask = np.eye(6, dtype=bool)[y]
    listed = rng.uniform(size=600) < 0.7
    mask[listed, partner[listed]] = True
    options = {"views": ("cosine",), "ridge": 0.1, "stacking": 0.0, "forest": 0.0}

    def fitted():
        return PartialLabelClassifier(hyperparameters=options, random_state=0).fit(X, mask)

    exact = fitted()
    monkeypatch.setattr(stages, "EXACT_ROWS", 400)
    monkeypatch.setattr(stages, "number_of_landmarks", lambda n_samples: 300)
    sampled = fitted()
    assert exact.evidence_ != sampled.evidence_
    assert sampled.selected_["tau"] == exact.selected_["tau"]
    assert (sampled.labels_ == exact.labels_).mean() > 0.95
    few = PartialLabelClassifier(hyperparameters=options, random_state=0).fit(X[:60], mask[:60])
    assert few.selected_["tau"] is not None
    assert (few.class_prior_error_ > 0).any()


def test_a_saved_model_holds_its_rows_once():
    """Rows of single precision are stored as they came, whatever views and landmarks need."""
    rng = np.random.RandomState(0)
    y = rng.randint(4, size=200)
    X = (rng.randn(200, 300) + rng.randn(4, 300)[y]).astype(np.float32)
    mask = random_candidates(y, 0.5, 1, random_state=0)
    fixed = {"forest": 0.0, "stacking": 0.0, "ridge": 0.1, "tau": 0.5}
    model = PartialLabelClassifier(hyperparameters=fixed, random_state=0).fit(X, mask)
    saved = pickle.dumps(model)
    assert len(saved) < 2 * X.nbytes
    again = pickle.loads(saved)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_labels_have_as_many_rows_as_the_estimated_prior_says():
    """The matching keeps to the class prior of the set model; a fixed tau is not chosen."""
    X, y = load_iris(return_X_y=True)
    X, y = X[:120], y[:120]  # 50, 50 and 20 rows
    mask = random_candidates(y, 0.8, 1, random_state=0)
    model = PartialLabelClassifier(hyperparameters={"tau": 0.25}, random_state=0).fit(X, mask)
    problem = model.matching_
    np.testing.assert_allclose(problem.expected_mass, problem.priors.sum(axis=0))
    affinity = LocalAffinity(problem.weights, mask)
    matched = match(
        affinity, mask, start=problem.priors, priors=problem.priors,
        expected_mass=problem.expected_mass,
    )  # fmt: skip
    mass = matched.probabilities.sum(axis=0)
    np.testing.assert_allclose(mass, problem.expected_mass, atol=0.5)
    np.testing.assert_allclose(model.class_prior_, [50 / 120, 50 / 120, 20 / 120], atol=0.05)
    assert model.selected_["tau"] == 0.25
    assert (model.labels_ == y).mean() > 0.93
