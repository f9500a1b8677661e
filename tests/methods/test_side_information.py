"""Knowledge beyond the candidate sets, as users of the estimators see it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gmpll import (
    PLKNN,
    CandidateSets,
    PartialLabelClassifier,
    RejectingClassifier,
    VotedCandidates,
    candidates_from_votes,
)
from gmpll.datasets import random_candidates
from gmpll.matching import LocalAffinity, match
from gmpll.methods import METHODS
from gmpll.rounding import confidences_within
from problems import random_problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every_method = pytest.mark.parametrize(
    "method", [Method(random_state=0) for Method in METHODS.values()], ids=list(METHODS)
)
every_kind = pytest.mark.parametrize(
    "params",
    [
        pytest.param({}, id="default"),
        pytest.param({"hyperparameters": {"views": ("cosine",), "forest": 0.0}}, id="one view"),
        pytest.param({"learner": LinearRegression()}, id="learner"),
    ],
)


def case(seed=0, m=60):
    return random_problem(seed, m=m, d=4, q=4)


def digits(n=400, r=5):
    X, truth = load_digits(return_X_y=True)
    return X[:n], random_candidates(truth[:n], p=1.0, r=r, random_state=0), truth[:n]


def votes(mask, truth, care, seed=0, n_votes=3):
    """Votes for candidates; each names the truth with probability ``care``, else any."""
    rng = np.random.RandomState(seed)
    counts = np.zeros(mask.shape)
    for _ in range(n_votes):
        guess = np.where(mask, rng.random_sample(mask.shape), -1.0).argmax(axis=1)
        named = np.where(rng.random_sample(len(mask)) < care, truth, guess)
        counts[np.arange(len(mask)), named] += 1
    return counts


@every_method
def test_certain_knowledge_is_a_narrower_set(method):
    X, mask, truth = case()
    gold = np.where(np.arange(60) % 5 == 0, truth, -1)
    outside = 5
    gold[outside] = int(np.flatnonzero(~mask[outside])[0])  # the candidates of this row are wrong
    impossible = [set() for _ in range(60)]
    for row in np.flatnonzero((mask.sum(axis=1) > 1) & (gold < 0))[:20]:
        impossible[row] = {int(np.flatnonzero(mask[row])[0])}
    by_hand = mask.copy()
    by_hand[gold >= 0] = np.eye(4, dtype=bool)[gold[gold >= 0]]
    for row, labels in enumerate(impossible):
        by_hand[row, list(labels)] = False
    if isinstance(method, PartialLabelClassifier):  # a set may be wrong, what is known is not
        method = clone(method).set_params(outside="never")
    model = clone(method).fit(X, mask, gold=gold, impossible=impossible)
    reference = clone(method).fit(X, by_hand)
    np.testing.assert_array_equal(model.label_confidences_, reference.label_confidences_)
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    np.testing.assert_array_equal(model.predict(X), reference.predict(X))
    np.testing.assert_array_equal(model.labels_[gold >= 0], gold[gold >= 0])
    assert (model.label_confidences_[np.flatnonzero(gold >= 0), gold[gold >= 0]] == 1.0).all()
    found = clone(method).fit_predict(X, mask, gold=gold, impossible=impossible)
    np.testing.assert_array_equal(found, reference.labels_)


@every_method
def test_rows_of_which_nothing_is_known(method):
    X, mask, truth = case()
    rng = np.random.RandomState(0)
    X = 4 * rng.randn(4, 4)[truth] + rng.randn(60, 4)
    sets = [set(np.flatnonzero(row)) if i % 3 else None for i, row in enumerate(mask)]
    model = clone(method).fit(X, sets)
    if type(method) is not METHODS["M3PL"]:  # it does not manage that on so few rows
        assert (model.labels_ == truth)[::3].mean() > 0.6  # a guess is right for a quarter
    full = mask.copy()
    full[::3] = True
    np.testing.assert_array_equal(model.labels_, clone(method).fit(X, full).labels_)


def test_only_the_default_takes_weights():
    X, mask, _ = case()
    for Method in METHODS.values():
        if Method is PartialLabelClassifier:
            continue
        with pytest.raises(TypeError, match="candidate_weight"):
            Method().fit(X, mask, candidate_weight=mask)


def with_exponent(exponent, params):
    fixed = {**params.get("hyperparameters", {}), "weight_exponent": exponent}
    return PartialLabelClassifier(random_state=0, **{**params, "hyperparameters": fixed})


@every_kind
def test_equal_weights_change_nothing(params):
    X, mask, _ = case()
    plain = PartialLabelClassifier(random_state=0, **params).fit(X, mask)
    assert plain.selected_["weight_exponent"] is None
    for trust in (None, 2.5):
        equal = with_exponent(trust, params)
        equal.fit(X, mask, candidate_weight=np.full(mask.shape, 7.0))
        for found, wanted in (
            (equal.label_confidences_, plain.label_confidences_),
            (equal.predict_proba(X), plain.predict_proba(X)),
        ):
            np.testing.assert_allclose(found, wanted, atol=1e-10)
    ignored = with_exponent(0, params)
    ignored.fit(X, mask, candidate_weight=np.random.RandomState(0).random_sample(mask.shape))
    np.testing.assert_allclose(ignored.label_confidences_, plain.label_confidences_, atol=1e-10)


@every_kind
def test_weights_and_priors_keep_the_promises_of_the_family(params):
    X, mask, truth = case()
    wide = np.zeros((60, 6), dtype=bool)
    wide[:, [0, 2, 3, 5]] = mask
    weights = votes(mask, truth, 0.7)
    spread = np.zeros((60, 6))
    spread[:, [0, 2, 3, 5]] = weights
    model = PartialLabelClassifier(random_state=0, class_prior=[1, 2, 3, 4, 5, 6], **params)
    model.fit(X, wide, candidate_weight=spread)
    reference = PartialLabelClassifier(random_state=0, class_prior=[1, 3, 4, 6], **params)
    reference.fit(X, mask, candidate_weight=weights)
    assert (model.label_confidences_[~wide] == 0).all()
    np.testing.assert_allclose(model.label_confidences_.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.labels_, np.array([0, 2, 3, 5])[reference.labels_])
    np.testing.assert_array_equal(model.predict(X), pickle.loads(pickle.dumps(model)).predict(X))
    assert clone(model).get_params()["class_prior"] == [1, 2, 3, 4, 5, 6]


def test_a_weight_of_zero_is_not_impossible_but_strong_weights_decide():
    X, mask, truth = case()
    against = np.where(np.eye(4, dtype=bool)[truth], 0.0, 1.0)
    model = with_exponent(0.01, {}).fit(X, mask, candidate_weight=against)
    free = PartialLabelClassifier(random_state=0).fit(X, mask)
    assert (model.labels_ == free.labels_).mean() > 0.9
    decided = with_exponent(50.0, {}).fit(X, mask, candidate_weight=against)
    ambiguous = mask.sum(axis=1) > 1
    assert (decided.labels_ != truth)[ambiguous].all()


def test_careful_votes_help_and_noise_does_no_harm():
    X, mask, truth = digits(300, r=7)

    def accuracy(**given):
        return (
            PartialLabelClassifier(hyperparameters={"views": ("cosine", "rank")}, random_state=0)
            .fit(X, mask, **given)
            .labels_
            == truth
        ).mean()

    alone = accuracy()
    counts = votes(mask, truth, 0.5)
    majority = (counts + 0.1 * np.random.RandomState(0).random_sample(counts.shape)).argmax(axis=1)
    both = accuracy(candidate_weight=counts)
    assert both > alone + 0.02
    assert both > (majority == truth).mean() + 0.1
    assert accuracy(candidate_weight=votes(mask, truth, 0.0)) > alone - 0.02
    never_right = np.where(np.eye(10, dtype=bool)[truth], 0.0, votes(mask, truth, 0.0))
    assert accuracy(candidate_weight=never_right) > alone - 0.02


def test_weight_exponent_is_estimated_from_the_votes():
    X, mask, truth = digits()
    trusts = [
        PartialLabelClassifier(random_state=0)
        .fit(X, mask, candidate_weight=votes(mask, truth, care))
        .selected_["weight_exponent"]
        for care in (0.0, 0.3, 0.7)
    ]
    assert trusts[0] < 0.2
    assert all(np.diff(trusts) > 0.2)


def test_known_labels_help_the_other_rows():
    X, mask, truth = digits(r=7)
    known = np.random.RandomState(0).random_sample(400) < 0.2
    alone = (
        PartialLabelClassifier(hyperparameters={"views": ("cosine", "rank")}, random_state=0)
        .fit(X, mask)
        .labels_
    )
    told = (
        PartialLabelClassifier(hyperparameters={"views": ("cosine", "rank")}, random_state=0)
        .fit(X, mask, gold=np.where(known, truth, -1))
        .labels_
    )
    assert (told[known] == truth[known]).all()
    assert (told == truth)[~known].mean() > (alone == truth)[~known].mean() + 0.03


def test_the_class_prior_draws_the_masses():
    prior = np.array([0.8, 0.15, 0.05])
    truth = np.repeat([0, 1, 2], [160, 30, 10])
    fixed = {"hyperparameters": {"forest": 0.0}, "calibrate": False, "random_state": 0}
    right = []
    for seed in range(3):
        rng = np.random.RandomState(seed)
        X = 0.5 * rng.randn(3, 5)[truth] + rng.randn(200, 5)
        mask = np.eye(3, dtype=bool)[truth]
        mask |= rng.random_sample(mask.shape) < 0.8
        free = PartialLabelClassifier(**fixed).fit(X, mask)
        drawn = PartialLabelClassifier(class_prior=prior, **fixed).fit(X, mask)
        assert np.abs(free.class_prior_ - prior).sum() > 0.05
        assert np.abs(drawn.class_prior_ - prior).sum() < 0.02
        right.append([(model.labels_ == truth).mean() for model in (free, drawn)])
    assert np.mean(right, axis=0)[1] > np.mean(right, axis=0)[0] + 0.05
    by_name = PartialLabelClassifier(class_prior={0: 80, 1: 15, 2: 5}, **fixed).fit(X, mask)
    np.testing.assert_allclose(by_name.label_confidences_, drawn.label_confidences_)


class TestScikitLearn:
    def test_cross_validation_cuts_what_is_given(self):
        X, mask, truth = case()
        params = {
            "gold": np.where(np.arange(60) % 4 == 0, truth, -1),
            "impossible": [None] * 60,
            "candidate_weight": votes(mask, truth, 0.5),
        }
        plain = cross_validate(PartialLabelClassifier(random_state=0), X, mask, cv=3, params=params)
        with config_context(enable_metadata_routing=True):
            model = PartialLabelClassifier(random_state=0).set_fit_request(
                gold=True, impossible=True, candidate_weight=True
            )
            pipeline = make_pipeline(StandardScaler(), model)
            routed = cross_validate(
                pipeline, X, mask, cv=3, params=params, error_score="raise", return_estimator=True
            )
        assert routed["estimator"][0][-1].selected_["weight_exponent"] is not None
        assert len(plain["test_score"]) == len(routed["test_score"]) == 3

    def test_known_rows_keep_their_label_in_every_fold(self):
        X, mask, truth = case()
        gold = np.where(np.arange(60) % 2 == 0, truth, -1)
        result = cross_validate(
            PartialLabelClassifier(random_state=0),
            X,
            mask,
            cv=3,
            params={"gold": gold},
            return_indices=True,
            return_estimator=True,
        )
        for model, train in zip(result["estimator"], result["indices"]["train"], strict=True):
            known = gold[train] >= 0
            np.testing.assert_array_equal(model.labels_[known], gold[train][known])

    def test_grid_search_and_pipelines_without_routing(self):
        X, mask, truth = case()
        frame = pd.DataFrame(mask, columns=list("wxyz"))
        weights = pd.DataFrame(votes(mask, truth, 0.5), columns=list("wxyz"))
        search = GridSearchCV(
            make_pipeline(StandardScaler(), PartialLabelClassifier(random_state=0)),
            {"partiallabelclassifier__hyperparameters": [{"weight_exponent": 0.5}, None]},
            cv=2,
            error_score="raise",
        )
        search.fit(X, frame, partiallabelclassifier__candidate_weight=weights)
        assert search.best_estimator_[-1].selected_["weight_exponent"] is not None


def test_explanations_replay_what_happened():
    X, mask, truth = case(seed=3)
    model = with_exponent(1.0, {"class_prior": [4, 3, 2, 1]})
    model.fit(X, mask, candidate_weight=votes(mask, truth, 0.6))
    problem = model.matching_
    matched = match(
        LocalAffinity(problem.weights, mask),
        mask,
        max_iter=model.n_iter_,
        start=confidences_within(problem.priors, mask),
        priors=problem.priors,
        expected_mass=problem.expected_mass,
    )
    replayed = problem.path(np.arange(60), model.n_iter_)[:, -1]
    np.testing.assert_allclose(replayed, matched.probabilities, atol=1e-10)


class TestVotedCandidates:
    """What candidates_from_votes returns is candidates and weights at once."""

    def voted(self, seed=2):
        X, mask, truth = case(seed)
        counts = votes(mask, truth, care=0.6)
        rows, labels = np.nonzero(mask)
        weights = counts[rows, labels] + 0.5
        return X, candidates_from_votes(rows, np.array(list("abcd"))[labels], weights=weights)

    def test_the_weights_of_votes_count(self):
        X = np.zeros((2, 1))
        voted = candidates_from_votes([0, 0, 0, 1, 1], ["a", "a", "b", "a", "b"])
        found = with_exponent(1.0, {}).fit(X, voted).label_confidences_
        assert found[0, 0] > 0.55

    @every_kind
    def test_weights_that_are_given_count_instead_of_the_votes(self, params):
        X, voted = self.voted()
        model = PartialLabelClassifier(random_state=0, **params)
        assert hasattr(clone(model).fit(X, voted), "annotators_")
        expected = clone(model).fit(X, voted.candidates, candidate_weight=voted.weights)
        found = clone(model).fit(X, voted, candidate_weight=voted.weights)
        assert not hasattr(found, "annotators_")
        np.testing.assert_array_equal(found.label_confidences_, expected.label_confidences_)
        assert found.selected_ == expected.selected_
        assert found.selected_["weight_exponent"] is not None

    def test_rows_that_come_later_have_other_labels(self):
        X, voted = self.voted()
        rows = voted.candidates.mask[:, 1:].any(axis=1).nonzero()[0][:6]
        later = VotedCandidates(
            CandidateSets(voted.candidates.mask[rows, 1:], np.array(list("bcd"))),
            voted.items[rows],
            voted.weights[rows, 1:],
        )
        weight = np.zeros((6, 5))
        weight[:, 1:4] = later.weights
        first = PartialLabelClassifier(random_state=0).partial_fit(X, voted, list("abcde"))
        np.testing.assert_array_equal(
            first.resolve(X[rows], later).confidences,
            first.resolve(X[rows], later.candidates, candidate_weight=weight).confidences,
        )
        second = clone(first).partial_fit(X, voted, list("abcde"))
        first.partial_fit(X[rows], later)
        second.partial_fit(X[rows], later.candidates, candidate_weight=weight)
        np.testing.assert_array_equal(first.label_confidences_, second.label_confidences_)

    @pytest.mark.parametrize(
        "model", [PLKNN(random_state=0), RejectingClassifier(PLKNN(), threshold=0.5)]
    )
    def test_methods_that_take_no_weights_say_so(self, model):
        X, voted = self.voted()
        with pytest.warns(UserWarning, match="takes no candidate_weight, so that only the sets"):
            model.fit(X, voted)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(X, voted.candidates)
