"""Of many rows a sample is learnt from, which speaks of all others."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from gmpll import PartialLabelClassifier
from gmpll.arrays import to_host
from gmpll.datasets import random_candidates
from gmpll.evidence import pipeline as stages
from gmpll.evidence import ridge, selection
from gmpll.evidence.forest import GrownForest
from gmpll.evidence.pipeline import Hyperparameters, learning_rows
from gmpll.evidence.ridge import KernelRidge
from gmpll.matching.feedback import feedback
from gmpll.methods import classifier

N_LEARNT = 150
SETTING = Hyperparameters(ridge=0.1, tau=0.5)


def problem(n=400):
    X, y = make_blobs(n, 6, centers=4, cluster_std=3.0, random_state=0)
    return X, np.asarray(random_candidates(y, 0.6, 1, random_state=0)), y


@pytest.fixture(autouse=True)
def _few_learnt(monkeypatch):
    monkeypatch.setattr(stages, "LEARNING_ROWS", N_LEARNT)
    for module in (stages, ridge, classifier):
        monkeypatch.setattr(module, "EXACT_ROWS", 120)
    monkeypatch.setattr(selection, "SELECTION_ROWS", 120)


def pipeline_of(X, mask):
    model = PartialLabelClassifier(random_state=0)
    return model.fit(X[:60], mask[:60])._pipeline(
        stages.CandidateRows(X, mask, np.arange(4), stages.Prior()), SETTING.views, 0
    )


def test_few_rows_are_all_learnt_from():
    assert learning_rows(N_LEARNT, 0) is None
    some = learning_rows(N_LEARNT + 1, 0)
    assert len(np.unique(some)) == N_LEARNT
    assert some.max() <= N_LEARNT


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_all_rows_are_asked_once_after_the_sample(share):
    """The literal steps, with a regression that is made of the sample's rows alone."""
    X, mask, _ = problem()
    whole = pipeline_of(X, mask)
    chosen = stages.replace(SETTING, forest=share)
    some = learning_rows(len(X), 0)
    views = [view.rows for view in whole.views]
    variances = whole.views[-1].variances
    regression = KernelRidge(
        [rows[some] for rows in views], ridge=0.1, variances=variances,
        rng=np.random.RandomState(0),
    )  # fmt: skip
    P, mass = whole.disambiguated.probabilities(0.5), whole.disambiguated.masses(0.5)
    of_sample = {"expected_mass": mass["expected_mass"] * N_LEARNT / len(X)}
    Q = feedback(regression.leave_one_out, mask[some], P[some], **of_sample)
    table = whole.table.rows
    grown = GrownForest.of(table[some], P[some], 0)
    if share:

        def both(Q):
            of_regression = np.maximum(regression.leave_one_out(Q), 0.0)
            return share * of_regression + share * grown.out_of_bag(Q)

        Q = feedback(both, mask[some], Q, n_iterations=1, **of_sample)
    scores = regression.predictor(Q)(views)
    scores[some] = regression.leave_one_out(Q)
    if share:
        trees = GrownForest.of(table[some], Q, 0).forest(table)
        trees[some] = grown.out_of_bag(Q)
        scores = share * np.maximum(scores, 0.0) + share * trees
    expected = feedback(lambda _: scores, mask, P, n_iterations=1, **mass)
    np.testing.assert_allclose(whole.confidences(chosen), expected, atol=1e-10)


def test_unseen_rows_are_predicted_by_what_the_sample_taught():
    X, mask, _ = problem()
    whole = pipeline_of(X, mask)
    P = whole.confidences(SETTING)
    some = learning_rows(len(X), 0)
    fitted = whole.sample.stages.regression(SETTING).predictor(P[some])
    unseen = X[:9] + 0.5
    expected = fitted([view.transform(unseen) for view in whole.views])
    np.testing.assert_allclose(whole.predictor(SETTING, P)(unseen), expected, atol=1e-12)


def test_a_sample_finds_nearly_what_all_rows_find(monkeypatch):
    X, mask, y = problem(900)
    fixed = {"ridge": 0.1, "tau": 0.5, "forest": 0.0, "stacking": 0.0}

    def fitted():
        model = PartialLabelClassifier(hyperparameters=fixed, random_state=0)
        return model.fit(X[:600], mask[:600])

    sampled = fitted()
    monkeypatch.setattr(stages, "LEARNING_ROWS", 600)
    whole = fitted()
    assert (sampled.labels_ == whole.labels_).mean() > 0.95
    assert sampled.score(X[600:], y[600:]) > whole.score(X[600:], y[600:]) - 0.03
    assert (sampled.labels_ != whole.labels_).any()


def test_every_part_is_there(library):
    """Calibration, stacking, trees and the probability that no candidate is right."""
    X, mask, y = problem()
    fixed = {"ridge": 0.1, "tau": 0.5, "forest": 0.5, "stacking": 1.0}

    def fitted(kind):
        model = PartialLabelClassifier(hyperparameters=fixed, random_state=0)
        return model.fit(kind(X), kind(mask))

    expected, found = fitted(np.asarray), fitted(library.array)
    np.testing.assert_array_equal(to_host(found.labels_), expected.labels_)
    np.testing.assert_allclose(found.outside_probability_, expected.outside_probability_, atol=1e-4)
    assert found.temperature_ == pytest.approx(expected.temperature_, rel=1e-3)
    unseen = to_host(found.predict_proba(library.array(X[:20] + 0.1)))
    np.testing.assert_allclose(unseen, expected.predict_proba(X[:20] + 0.1), atol=1e-3)
    assert (expected.labels_ == y).mean() > 0.9


def test_rows_can_come_later():
    X, mask, y = problem(500)
    fixed = {"ridge": 0.1, "tau": 0.5, "forest": 0.5, "stacking": 0.0}
    model = PartialLabelClassifier(hyperparameters=fixed, random_state=0)
    model.fit(X[:300], mask[:300]).partial_fit(X[300:], mask[300:])
    assert model.n_samples_seen_ == 500
    assert (model.labels_ == y).mean() > 0.9
    model.partial_fit(X[:10] + 0.1, mask[:10])
    assert len(model.labels_) == 510
