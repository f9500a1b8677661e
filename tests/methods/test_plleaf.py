import warnings

import numpy as np
import pytest
import scipy.io
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from gmpll.graph.neighbors import nearest_neighbors
from gmpll.methods import plleaf
from gmpll.methods._regression import KernelRegression, training_kernel
from gmpll.methods._simplex import (
    accelerated,
    confidence_step,
    deviation_from_neighbors,
    project_on_simplex,
)
from gmpll.methods.plleaf import PLLEAF, SlackProblem, candidate_gap
from problems import random_problem


def deviation_of(rows, k):
    return deviation_from_neighbors(rows, nearest_neighbors(rows, k).indices)


def directions(X):
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# --- projection on the simplex --------------------------------------------------------------


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_projection_satisfies_the_optimality_conditions(seed, scale):
    rng = np.random.RandomState(seed)
    values = scale * rng.randn(8, 5)
    mask = rng.random_sample((8, 5)) < 0.6
    mask[np.arange(8), rng.randint(5, size=8)] = True
    projected = project_on_simplex(values, mask)
    np.testing.assert_allclose(projected.sum(axis=1), 1.0, atol=1e-9)
    assert np.all(projected >= 0)
    assert np.all(projected[~mask] == 0)
    # A point is the projection iff it takes the same from all that stay positive, and the
    # others lie below that threshold.
    for row, value, inside in zip(projected, values, mask, strict=True):
        taken = (value - row)[row > 0]
        threshold = taken.mean()
        np.testing.assert_allclose(taken, threshold, atol=1e-9 * max(scale, 1))
        assert np.all(value[inside & (row == 0)] <= threshold + 1e-9 * max(scale, 1))


def test_projection_keeps_what_lies_on_the_simplex():
    point = np.array([[0.25, 0.75, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(project_on_simplex(point, np.ones((2, 3), dtype=bool)), point)


# --- step 1: the graph ----------------------------------------------------------------------


def test_graph_weights_are_the_constrained_minimisers():
    X, _, _ = random_problem(0, m=25, d=10)
    rows = directions(X)
    weights = np.eye(25) - deviation_of(rows, 6).toarray()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    for i in range(25):
        distance = ((rows - rows[i]) ** 2).sum(axis=1)
        near = [j for j in np.argsort(distance) if j != i][:6]
        heavy = 1e4  # a heavy extra equation makes the weights sum to one
        system = np.vstack([rows[near].T, np.full(6, heavy)])
        expected, _ = scipy.optimize.nnls(system, np.append(rows[i], heavy))
        np.testing.assert_allclose(weights[i, near], expected, atol=1e-6)
        assert set(np.flatnonzero(weights[i])) <= set(near)


# --- step 2: the confidences ----------------------------------------------------------------


def small_confidence_problem(seed, m=14):
    X, mask, _ = random_problem(seed, m=m, d=6, q=4)
    return deviation_of(directions(X), 4), mask


def uniform(mask):
    return mask / mask.sum(axis=1, keepdims=True)


def solve_confidences(deviation, mask):
    step = confidence_step(deviation, mask)
    return accelerated(step, uniform(mask), max_iter=20_000, tol=1e-12)


def total_deviation(deviation, confidences):
    return np.square(deviation @ confidences).sum()


@pytest.mark.parametrize("seed", range(4))
def test_confidences_reach_the_minimum_of_a_generic_solver(seed):
    deviation, mask = small_confidence_problem(seed)
    solution = solve_confidences(deviation, mask)
    assert solution.converged

    dense = deviation.toarray()
    hessian = 2 * dense.T @ dense

    def full(values):
        table = np.zeros(mask.shape)
        table[mask] = values
        return table

    owner = np.nonzero(mask)[0]
    generic = scipy.optimize.minimize(
        lambda values: np.square(dense @ full(values)).sum(),
        uniform(mask)[mask],
        jac=lambda values: (hessian @ full(values))[mask],
        method="SLSQP",
        bounds=[(0, 1)] * owner.size,
        constraints={"type": "eq", "fun": lambda v: np.bincount(owner, v) - 1},
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert generic.success
    assert total_deviation(dense, solution.point) == pytest.approx(generic.fun, abs=1e-8)


def test_confidences_satisfy_the_optimality_conditions():
    deviation, mask = small_confidence_problem(5, m=80)
    confidences = solve_confidences(deviation, mask).point
    gradient = 2 * deviation.T @ (deviation @ confidences)
    for row, slope, inside in zip(confidences, gradient, mask, strict=True):
        multiplier = slope[row > 0].mean()
        np.testing.assert_allclose(slope[row > 0], multiplier, atol=1e-9)
        assert np.all(slope[inside] >= multiplier - 1e-9)


def test_plain_steps_never_raise_the_deviation():
    deviation, mask = small_confidence_problem(6, m=80)
    step = confidence_step(deviation, mask)
    confidences = uniform(mask)
    trace = [total_deviation(deviation, confidences)]
    for _ in range(100):
        confidences = step(confidences)
        trace.append(total_deviation(deviation, confidences))
    assert np.all(np.diff(trace) <= 1e-12)
    assert trace[-1] < 0.9 * trace[0]


def test_a_row_that_many_follow_does_not_break_the_step():
    m = 30
    follows = np.r_[1, np.zeros(m - 1, dtype=int)]
    weights = sp.csr_array((np.ones(m), (np.arange(m), follows)), shape=(m, m))
    deviation = sp.eye_array(m, format="csr") - weights
    mask = np.ones((m, 3), dtype=bool)
    mask[2] = [True, False, False]
    solution = solve_confidences(deviation, mask)
    assert solution.converged
    # Everybody follows row 0 and row 2 is certain: all agree with it at no cost.
    np.testing.assert_allclose(solution.point, np.tile([1, 0, 0], (m, 1)), atol=1e-5)


def test_singletons_keep_their_label():
    X, _, truth = random_problem(4, m=40, d=5, q=4)
    model = PLLEAF(random_state=0).fit(X, np.eye(4, dtype=int)[truth])
    np.testing.assert_array_equal(model.label_confidences_, np.eye(4)[truth])


# --- step 3: the regressor ------------------------------------------------------------------


def objective_and_gradient(kernel, targets, gap, C1, C2, epsilon, beta, intercept):
    """The printed objective, term by term, and its derivative."""
    fitted = kernel @ beta + intercept
    residual = targets - fitted
    length = np.linalg.norm(residual, axis=1)
    excess = np.maximum(length - epsilon, 0)
    value = (
        0.5 * np.trace(beta.T @ kernel @ beta) + C1 * (excess**2).sum() - C2 * (gap * fitted).sum()
    )
    by_fitted = -2 * C1 * (excess / np.maximum(length, 1e-300))[:, None] * residual - C2 * gap
    return value, kernel @ (beta + by_fitted), by_fitted.sum(axis=0)


def regression_problem(seed, m=40, q=4):
    X, mask, _ = random_problem(seed, m=m, d=4, q=q)
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    targets = project_on_simplex(np.random.RandomState(seed).randn(m, q), mask)
    return rows, targets, candidate_gap(mask)


def slack_problem(rows, targets, gap, *, C1, C2, epsilon):
    regression = KernelRegression(rows, 1 / (2 * C1), remedy="none")
    problem = SlackProblem(regression, targets, regression.ridge * C2 * gap, epsilon)

    def solve(slack):
        return regression.coefficients(problem.regression_targets(slack))

    return problem, solve


PENALTIES = [
    {"C1": 10.0, "C2": 1.0, "epsilon": 0.1},
    {"C1": 0.5, "C2": 0.0, "epsilon": 0.3},
    {"C1": 100.0, "C2": 0.01, "epsilon": 0.5},
    {"C1": 1.0, "C2": 5.0, "epsilon": 0.0},
]


@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize("seed", range(2))
def test_regressor_reaches_the_minimum_of_a_generic_solver(seed, penalties):
    rows, targets, gap = regression_problem(seed)
    kernel, _ = training_kernel(rows)
    problem, solve = slack_problem(rows, targets, gap, **penalties)
    solution = accelerated(problem.step, np.zeros(targets.shape), max_iter=20_000, tol=1e-11)
    beta, intercept = solve(solution.point)
    value, by_beta, by_intercept = objective_and_gradient(
        kernel, targets, gap, **penalties, beta=beta, intercept=intercept
    )
    assert solution.converged
    assert np.abs(by_beta).max() < 1e-6
    assert np.abs(by_intercept).max() < 1e-6

    m, q = targets.shape
    # In the coordinates of the kernel's root the problem is well enough shaped for L-BFGS.
    root = np.linalg.cholesky(kernel + 1e-10 * np.eye(m))

    def generic(flat):
        coordinates, b = flat[: m * q].reshape(m, q), flat[m * q :]
        coefficients = np.linalg.solve(root.T, coordinates)
        value, by_beta, by_b = objective_and_gradient(
            kernel, targets, gap, **penalties, beta=coefficients, intercept=b
        )
        return value, np.append(np.linalg.solve(root, by_beta).ravel(), by_b)

    found = scipy.optimize.minimize(
        generic,
        np.zeros(m * q + q),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-9},
    )
    assert value == pytest.approx(found.fun, rel=1e-6, abs=1e-6)


def test_rows_without_loss_have_the_coefficients_of_the_gap():
    rows, targets, gap = regression_problem(3)
    problem, solve = slack_problem(rows, targets, gap, C1=100.0, C2=0.01, epsilon=0.5)
    slack = accelerated(problem.step, np.zeros(targets.shape), max_iter=20_000, tol=1e-12).point
    beta, intercept = solve(slack)
    fitted = training_kernel(rows)[0] @ beta + intercept
    free = np.linalg.norm(targets - fitted, axis=1) < 0.5 - 1e-6
    assert 0 < free.sum() < 40
    np.testing.assert_allclose(beta[free], 0.01 * gap[free], atol=1e-8)


def test_plain_steps_never_raise_the_objective_even_below_zero():
    penalties = {"C1": 1.0, "C2": 5.0, "epsilon": 0.4}
    rows, targets, gap = regression_problem(1)
    kernel, _ = training_kernel(rows)
    problem, solve = slack_problem(rows, targets, gap, **penalties)
    slack, trace = np.zeros(targets.shape), []
    for _ in range(30):
        beta, intercept = solve(slack)
        value, _, _ = objective_and_gradient(
            kernel, targets, gap, **penalties, beta=beta, intercept=intercept
        )
        trace.append(value)
        slack = problem.step(slack)
    assert trace[-1] < 0  # relative tests of decrease must survive this
    assert trace[-1] < trace[0]
    assert np.all(np.diff(trace) <= 1e-10)


def test_the_gap_pushes_candidates_up_and_others_down():
    mask = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
    gap = candidate_gap(mask)
    np.testing.assert_allclose(np.where(mask, gap, 0).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.where(mask, 0, gap).sum(axis=1), [-1.0, -1.0, 0.0])
    np.testing.assert_allclose(gap[0], [0.5, 0.5, -0.5, -0.5])


def test_kernel_width_is_the_mean_distance():
    rows = np.random.RandomState(0).randn(20, 3)
    kernel, width = training_kernel(rows, None)
    distances = [np.linalg.norm(rows[i] - rows[j]) for i in range(20) for j in range(i)]
    assert width == pytest.approx(np.mean(distances))
    np.testing.assert_allclose(kernel, rbf_kernel(rows, gamma=1 / (2 * width**2)))


def test_prediction_is_the_regressor_on_rows_that_keep_their_length():
    X, mask, _ = random_problem(2, m=40, d=5)
    model = PLLEAF(random_state=0).fit(X, mask)
    mean, std = X.mean(axis=0), X.std(axis=0)
    unseen = np.random.RandomState(0).randn(9, 5)
    kernel = rbf_kernel(
        (unseen - mean) / std, (X - mean) / std, gamma=1 / (2 * model.kernel_width_**2)
    )
    expected = kernel @ model._regressor.coefficients + model._regressor.intercept
    np.testing.assert_allclose(model.decision_function(unseen), expected, atol=1e-12)


def test_fit_minimises_the_printed_objective_for_its_own_confidences():
    X, mask, _ = random_problem(8, m=50, d=5, q=4)
    model = PLLEAF(random_state=0).fit(X, mask)
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel = rbf_kernel(rows, gamma=1 / (2 * model.kernel_width_**2))
    _, by_beta, by_intercept = objective_and_gradient(
        kernel,
        model.label_confidences_,
        candidate_gap(mask),
        10.0,
        1.0,
        0.1,
        beta=model._regressor.coefficients,
        intercept=model._regressor.intercept,
    )
    assert np.abs(by_beta).max() < 1e-5
    assert np.abs(by_intercept).max() < 1e-5


# --- the estimator --------------------------------------------------------------------------


def test_the_model_can_decide_on_training_rows():
    X, mask, _ = random_problem(9, m=60, d=5, q=4)
    model = PLLEAF(transductive="model", random_state=0).fit(X, mask)
    scores = np.where(mask, model.decision_function(X), -np.inf)
    assert model.labels_.tolist() == scores.argmax(axis=1).tolist()
    projected = project_on_simplex(np.where(mask, scores, 0), mask)
    np.testing.assert_allclose(model.label_confidences_, projected, atol=1e-8)
    by_confidences = PLLEAF(random_state=0).fit(X, mask)
    assert not np.allclose(by_confidences.label_confidences_, projected)
    np.testing.assert_array_equal(by_confidences.decision_function(X), model.decision_function(X))


def test_warns_if_it_stops_early():
    X, mask, _ = random_problem(1, m=40, d=5, q=4)
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        PLLEAF(max_iter=1, random_state=0).fit(X, mask)


def test_refuses_a_kernel_that_is_too_large(monkeypatch):
    monkeypatch.setattr(plleaf, "KERNEL_LIMIT_BYTES", 8 * 30**2)
    X, mask, _ = random_problem(1, m=31)
    with pytest.raises(ValueError, match="for 31 training rows, more than the limit"):
        PLLEAF().fit(X, mask)
    PLLEAF().fit(X[:30], mask[:30])


def test_says_what_to_do_if_the_kernel_is_singular():
    X = np.repeat(np.eye(3), 10, axis=0)
    with pytest.raises(ValueError, match="make C1 smaller"):
        PLLEAF(C1=1e300).fit(X, np.ones((30, 2), dtype=int))


def test_permuting_rows_and_labels_permutes_the_answer():
    X, mask, _ = random_problem(5, m=60, d=12, q=5)
    rng = np.random.RandomState(0)
    rows, columns = rng.permutation(60), rng.permutation(5)
    model = PLLEAF(random_state=0).fit(X, mask)
    permuted = PLLEAF(random_state=0).fit(X[rows], mask[rows][:, columns])
    expected = model.label_confidences_[rows][:, columns]
    np.testing.assert_allclose(permuted.label_confidences_, expected, atol=1e-5)
    unseen = rng.randn(20, 12)
    np.testing.assert_allclose(
        permuted.decision_function(unseen), model.decision_function(unseen)[:, columns], atol=1e-5
    )


@pytest.mark.parametrize("epsilon", [0.0, 2.0])
def test_converges_for_a_ball_of_no_size_and_for_one_larger_than_the_simplex(epsilon):
    X, mask, _ = random_problem(1, m=30, d=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = PLLEAF(epsilon=epsilon, random_state=0).fit(X, mask)
    assert np.isfinite(model.decision_function(X)).all()
