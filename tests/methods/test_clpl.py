import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from gmpll.methods.clpl import CLPL, objective
from problems import problems, random_problem


def literal_objective(weights, rows, mask, C):
    """The published objective, one row and one label after the other."""
    value = 0.5 * (weights**2).sum()
    for x, candidates in zip(rows, mask, strict=True):
        scores = [w @ x for w in weights]
        average = sum(scores[c] for c in np.flatnonzero(candidates)) / candidates.sum()
        value += C * max(0.0, 1.0 - average) ** 2
        for c in np.flatnonzero(~candidates):
            value += C * max(0.0, 1.0 + scores[c]) ** 2
    return value


def stacked(rows, mask):
    """The equivalent binary problem: a positive example per row, a negative per non-candidate."""
    examples, signs = [], []
    q = mask.shape[1]
    for x, candidates in zip(rows, mask, strict=True):
        examples.append(sp.csr_array(np.kron(candidates / candidates.sum(), x)[None, :]))
        signs.append(1)
        for c in np.flatnonzero(~candidates):
            examples.append(sp.csr_array(np.kron(np.eye(q)[c], x)[None, :]))
            signs.append(-1)
    return sp.vstack(examples, format="csr"), np.array(signs)


def as_seen(X, mask):
    """Features with a constant one, and the mask, as the method uses them."""
    return np.c_[np.ones(len(X)), StandardScaler().fit_transform(X)], mask[:, mask.any(axis=0)]


@pytest.mark.parametrize("seed", range(3))
def test_objective_and_gradient(seed):
    X, mask, _ = random_problem(seed, m=15, d=3, q=4)
    rows, shares = np.c_[np.ones(15), X], mask / mask.sum(axis=1, keepdims=True)
    weights = np.random.RandomState(seed).randn(4, 4)
    value, gradient = objective(weights.ravel(), rows, mask, shares, 0.7)
    assert value == pytest.approx(literal_objective(weights, rows, mask, 0.7))
    numeric = approx_fprime(
        weights.ravel(), lambda w: literal_objective(w.reshape(4, 4), rows, mask, 0.7)
    )
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(2))
def test_is_the_binary_svm_on_the_stacked_examples(seed, C):
    X, mask, _ = random_problem(seed, m=60, d=4, q=5)
    examples, signs = stacked(*as_seen(X, mask))
    svm = LinearSVC(
        C=C, loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-10, max_iter=10_000
    ).fit(examples, signs)
    reference = literal_objective(svm.coef_.reshape(5, 5), *as_seen(X, mask), C)

    model = CLPL(C=C, random_state=0).fit(X, mask)
    assert model.objective_ == pytest.approx(reference, rel=1e-8)
    assert model.objective_ == pytest.approx(
        literal_objective(model.weights_, *as_seen(X, mask), C), rel=1e-12
    )
    np.testing.assert_allclose(model.weights_.ravel(), svm.coef_.ravel(), atol=1e-4)


def test_with_singletons_it_is_one_versus_rest():
    X, _, truth = random_problem(0, m=80, d=3, q=4)
    rows = np.c_[np.ones(80), StandardScaler().fit_transform(X)]
    svm = LinearSVC(dual=False, fit_intercept=False, tol=1e-10).fit(rows, truth)
    np.testing.assert_allclose(CLPL().fit(X, truth).weights_, svm.coef_, atol=1e-4)


def test_the_candidates_count_by_their_mean_not_by_their_sum():
    # One row with all of q labels: w = t for each bias minimises q t^2 / 2 + (1 - t)^2.
    q = 6
    model = CLPL(standardize=False).fit(np.zeros((1, 2)), np.ones((1, q), dtype=bool))
    np.testing.assert_allclose(model.weights_[:, 0], 2 / (q + 2), rtol=1e-5)


def test_every_label_has_its_own_bias():
    # On one ray from the origin labels differ only by their biases.
    X = np.repeat([[1.0], [2.0], [3.0]], 20, axis=0)
    y = np.repeat(["near", "middle", "far"], 20)
    model = CLPL(C=100.0, standardize=False, random_state=0).fit(X, y)
    assert model.predict([[0.5], [4.0]]).tolist() == ["near", "far"]
    assert np.ptp(model.weights_[:, 0]) > 1.0


def test_a_full_set_has_only_the_positive_term():
    rows, mask = np.array([[1.0, 2.0]]), np.ones((1, 3), dtype=bool)
    large = np.full((3, 2), 5.0)
    value, gradient = objective(large.ravel(), rows, mask, mask / 3, 1.0)
    assert value == 0.5 * (large**2).sum()
    np.testing.assert_array_equal(gradient, large.ravel())


@settings(max_examples=30, deadline=None)
@given(problems())
def test_no_small_step_improves_the_solution(problem):
    X, mask, _ = problem
    model = CLPL(random_state=0).fit(X, mask)
    rows, seen = as_seen(X, mask)
    rng = np.random.RandomState(0)
    for size in (1e-3, 1e-1, 1.0):
        other = model.weights_ + size * rng.randn(*model.weights_.shape)
        # Strong convexity: away from the minimum f grows by at least half the square of the step.
        growth = 0.5 * ((other - model.weights_) ** 2).sum()
        assert literal_objective(other, rows, seen, 1.0) >= model.objective_ + 0.99 * growth


def test_order_of_rows_and_labels_does_not_matter():
    X, mask, _ = random_problem(3, m=70, d=4, q=5)
    reference = CLPL(random_state=0).fit(X, mask)
    rng = np.random.RandomState(0)
    rows, labels = rng.permutation(70), rng.permutation(5)
    model = CLPL(random_state=1).fit(X[rows], mask[rows][:, labels])
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(X)[:, labels], atol=1e-4
    )
    np.testing.assert_array_equal(labels[model.labels_], reference.labels_[rows])


def test_stopping():
    X, mask, _ = random_problem(0, m=60, d=4, q=4)
    rows, seen = as_seen(X, mask)
    shares = seen / seen.sum(axis=1, keepdims=True)

    def slope(weights):
        return np.abs(objective(weights.ravel(), rows, seen, shares, 1.0)[1]).max()

    for tol in (1e-2, 1e-6):
        model = CLPL(tol=tol).fit(X, mask)
        assert slope(model.weights_) <= tol * slope(np.zeros_like(model.weights_))
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        CLPL(max_iter=1).fit(X, mask)


def test_large_C_still_converges_and_small_C_stays_finite():
    X, mask, _ = random_problem(0, m=60, d=4, q=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for C in CLPL.C_GRID:
            assert np.isfinite(CLPL(C=C).fit(X, mask).weights_).all()
