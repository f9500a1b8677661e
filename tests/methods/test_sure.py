"""SURE against a literal version, worked figures and its objective."""

import numpy as np
import pytest

from gmpll import SURE
from gmpll.methods.sure import rewarded
from tiny import MASK, UNSEEN, fit, literal_projection, literal_regression, z_scored


def step(values, reward):
    values = np.array([values])
    return rewarded(values, np.ones(values.shape, dtype=bool), reward, np.random.RandomState(0))[0]


def test_the_step_on_worked_figures():
    np.testing.assert_allclose(
        step([0.5, 0.3, 0.1], 0.3), [0.633333, 0.283333, 0.083333], atol=1e-6
    )
    np.testing.assert_allclose(step([0.9, 0.2, -0.1], 0.3), [0.925, 0.075, 0.0])
    # Without a reward it is the projection; with a large one a single candidate is left.
    np.testing.assert_allclose(
        step([0.5, 0.3, 0.1], 0.0), [0.533333, 0.333333, 0.133333], atol=1e-6
    )
    np.testing.assert_array_equal(step([0.5, 0.3, 0.1], 2.0), [1.0, 0.0, 0.0])


def test_no_other_winner_is_better():
    rng = np.random.RandomState(0)
    for _ in range(50):
        scores, mask = rng.randn(1, 5), rng.random_sample((1, 5)) < 0.7
        mask[0, 0] = True
        found = rewarded(scores, mask, 0.8, rng)
        values = []
        for label in np.flatnonzero(mask[0]):
            other = literal_projection(scores + 0.4 * np.eye(5)[label], mask)
            values.append(((other - scores)[mask] ** 2).sum() - 0.8 * other[0, label])
        value = ((found - scores)[mask] ** 2).sum() - 0.8 * found.max()
        assert value == pytest.approx(min(values))


def test_tied_candidates_are_drawn():
    mask = np.ones((200, 2), dtype=bool)
    winners = rewarded(np.zeros((200, 2)), mask, 2.0, np.random.RandomState(0)).argmax(axis=1)
    assert 60 < winners.sum() < 140


def test_the_six_rows_after_one_iteration():
    confidences = fit(SURE, max_iter=1).label_confidences_
    np.testing.assert_allclose(confidences[0], [0.411450, 0.588550, 0], atol=1e-6)
    np.testing.assert_allclose(confidences[1], [0.622645, 0, 0.377355], atol=1e-6)
    np.testing.assert_allclose(confidences[4], [0.384083, 0, 0.615917], atol=1e-6)


def test_the_six_rows_after_fifty_iterations():
    model = fit(SURE)
    np.testing.assert_allclose(model.label_confidences_[0], [0.292627, 0.707373, 0], atol=1e-6)
    np.testing.assert_allclose(model.label_confidences_[1:], np.eye(3)[[0, 1, 1, 2, 2]], atol=1e-9)
    scores = model.decision_function(UNSEEN)
    expected = [[0.466577, 0.617809, -0.084386], [-0.119762, 0.728287, 0.391475]]
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def literal_sure(rows, mask, n_iter):
    confidences = mask.astype(float)  # the rows of the first targets do not sum to one
    for _ in range(n_iter):
        fitted = literal_regression(rows, confidences, 0.05)[-1]
        winner = np.where(mask, fitted, -np.inf).argmax(axis=1)
        confidences = literal_projection(fitted + 0.15 * np.eye(mask.shape[1])[winner], mask)
    return confidences


@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_the_literal_loop(seed):
    X, mask, rows = z_scored(seed)
    model = SURE(max_iter=7, tol=0.0, random_state=0).fit(X, mask)
    expected = literal_sure(rows, mask, 7)
    assert model.n_iter_ == 7
    np.testing.assert_allclose(model.label_confidences_, expected, atol=1e-8)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    model.set_params(unit_rows=True).fit(X, mask)
    np.testing.assert_allclose(
        model.label_confidences_, literal_sure(rows / lengths, mask, 7), atol=1e-8
    )


def test_the_objective_never_rises():
    X, mask, rows = z_scored(3)
    values = []
    for n_iter in range(1, 12):
        P = SURE(max_iter=n_iter, tol=0.0, random_state=0).fit(X, mask).label_confidences_
        kernel, _, A, _, fitted = literal_regression(rows, P, 0.05)
        norm = np.trace(A.T @ kernel @ A)
        values.append(((P - fitted) ** 2).sum() + 0.05 * norm - 0.3 * P.max(axis=1).sum())
    assert (np.diff(values) <= 1e-9).all()
    assert values[-1] < values[0]


def test_singletons_stay_and_labels_may_be_permuted():
    X, mask, _ = z_scored(1)
    mask[:10] = np.eye(4, dtype=bool)[mask[:10].argmax(axis=1)]
    model = SURE(random_state=0).fit(X, mask)
    np.testing.assert_allclose(model.label_confidences_[:10], mask[:10])
    columns = np.array([2, 0, 3, 1])
    permuted = SURE(random_state=0).fit(X, mask[:, columns])
    np.testing.assert_allclose(
        permuted.label_confidences_, model.label_confidences_[:, columns], atol=1e-9
    )


def test_it_stops_by_tolerance_or_by_the_number_of_iterations():
    X, mask, _ = z_scored(2)
    assert SURE(max_iter=3, tol=0.0).fit(X, mask).n_iter_ == 3
    assert SURE(max_iter=1000, tol=1e-2).fit(X, mask).n_iter_ < 200


def test_many_rows_are_learned_by_landmarks(monkeypatch):
    monkeypatch.setattr("gmpll.methods._regression.EXACT_ROWS", 60)
    X, mask, _ = z_scored(0, m=61)
    model = SURE(random_state=0).fit(X, mask)
    assert len(model._regressor.rows) == 30
    exact = SURE(random_state=0).fit(X[:60], mask[:60])
    assert (model.predict(X) == exact.predict(X)).mean() > 0.8


def test_the_mask_is_not_changed():
    before = MASK.copy()
    fit(SURE)
    np.testing.assert_array_equal(MASK, before)
