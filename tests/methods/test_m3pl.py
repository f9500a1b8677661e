"""M3PL against literal transcriptions: generic solvers, small data, the published loop."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, minimize
from sklearn.datasets import load_iris, make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from gmpll.methods.m3pl import (
    M3PL,
    InfeasibleSizesError,
    LabelAssignment,
    SVMProblem,
    class_size_bounds,
    feasible_assignment,
    hinge_losses,
    penalty_schedule,
)
from problems import real_world

RNG = np.random.RandomState


def ambiguous(n_samples=60, n_labels=4, extra=0.3, seed=0, spread=1.5):
    """Blobs whose rows have further random candidates."""
    X, y = make_blobs(n_samples, n_features=3, centers=n_labels, cluster_std=spread, random_state=3)
    mask = np.eye(n_labels, dtype=bool)[y]
    mask |= RNG(seed).random_sample(mask.shape) < extra
    return X, mask, y


# --- The SVM step ---------------------------------------------------------------------------


def svm_by_generic_solver(X, y, C, n_labels):
    """The primal quadratic programme with explicit slacks, handed to a general solver."""
    m, d = X.shape
    lifted = np.c_[X, np.ones(m)]
    n_weights = n_labels * (d + 1)

    rows = []
    for i in range(m):
        for c in range(n_labels):
            if c != y[i]:
                row = np.zeros(n_weights + m)
                row[y[i] * (d + 1) : (y[i] + 1) * (d + 1)] += lifted[i]
                row[c * (d + 1) : (c + 1) * (d + 1)] -= lifted[i]
                row[n_weights + i] = 1.0
                rows.append(row)
    A = np.array(rows)
    scale = np.r_[np.ones(n_weights), np.zeros(m)]
    slack = np.r_[np.zeros(n_weights), np.full(m, C)]
    result = minimize(
        lambda v: 0.5 * (scale * v) @ v + slack @ v,
        np.r_[np.zeros(n_weights), np.ones(m)],
        jac=lambda v: scale * v + slack,
        bounds=[(None, None)] * n_weights + [(0, None)] * m,
        constraints={"type": "ineq", "fun": lambda v: A @ v - 1, "jac": lambda v: A},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert result.success
    W = result.x[:n_weights].reshape(n_labels, d + 1)
    return W[:, :-1], W[:, -1], result.fun


@pytest.mark.parametrize("n_labels", [2, 3, 4])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_svm_step_reaches_the_optimum_of_a_generic_solver(n_labels, C):
    X = RNG(1).normal(size=(12, 2))
    y = np.arange(12) % 3 % n_labels  # with four labels the last one has no row
    rows = np.c_[np.ones(12), X]
    weights = SVMProblem(rows, n_labels, tol=1e-7, seed=0).solve(np.arange(12), y, C)
    losses = hinge_losses(rows @ weights.T)
    objective = 0.5 * (weights**2).sum() + C * losses[np.arange(12), y].sum()
    coef, intercept, expected = svm_by_generic_solver(X, y, C, n_labels)
    assert objective == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(weights[:, 1:], coef, atol=2e-3)
    np.testing.assert_allclose(weights[:, 0], intercept, atol=2e-3)


def test_hinge_losses_are_the_definition():
    scores = RNG(0).normal(size=(20, 5))
    scores[0, :2] = scores[0].max() + 1.0  # two labels share the top
    for i, g in enumerate(scores):
        for c in range(5):
            expected = max(0.0, 1.0 - (g[c] - max(np.delete(g, c))))
            assert hinge_losses(scores)[i, c] == pytest.approx(expected)


# --- The label step -------------------------------------------------------------------------


def assignment_by_repeated_columns(costs, mask, sizes):
    """The same integer problem as a linear sum assignment with a column per place."""
    places = np.repeat(np.arange(mask.shape[1]), sizes)
    big = np.where(mask, costs, 1e5)[:, places]
    row, place = linear_sum_assignment(big)
    return places[place[np.argsort(row)]]


@pytest.mark.parametrize("seed", range(5))
def test_assignment_is_optimal_for_exact_sizes(seed):
    _, mask, y = ambiguous(seed=seed)
    costs = RNG(seed).random_sample(mask.shape)
    sizes = np.bincount(y, minlength=mask.shape[1])
    found = LabelAssignment(mask, sizes, sizes, RNG(0)).solve(costs)
    expected = assignment_by_repeated_columns(costs, mask, sizes)
    assert mask[np.arange(len(mask)), found].all()
    np.testing.assert_array_equal(np.bincount(found, minlength=mask.shape[1]), sizes)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("drift", [0.01, 0.3, 10.0])
def test_an_assignment_can_be_solved_again_for_other_costs(drift):
    _, mask, y = ambiguous()
    sizes = np.bincount(y, minlength=mask.shape[1])
    rng = RNG(0)
    assignment = LabelAssignment(mask, sizes, sizes, rng)
    costs = rng.random_sample(mask.shape)
    for _ in range(6):
        found = assignment.solve(costs)
        np.testing.assert_array_equal(found, assignment_by_repeated_columns(costs, mask, sizes))
        costs = costs + drift * rng.random_sample(mask.shape)


def test_costs_of_any_scale_do_no_harm():
    _, mask, y = ambiguous()
    sizes = np.bincount(y, minlength=mask.shape[1])
    assignment = LabelAssignment(mask, sizes, sizes, RNG(0))
    for scale in (1e200, 0.0, 1e-200, 1.0):
        costs = scale * RNG(1).random_sample(mask.shape)
        labels = assignment.solve(costs)
        np.testing.assert_array_equal(np.bincount(labels, minlength=mask.shape[1]), sizes)
        best = assignment_by_repeated_columns(costs / (scale or 1.0), mask, sizes)
        rows = np.arange(len(mask))
        assert costs[rows, labels].sum() == pytest.approx(costs[rows, best].sum())


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_assignment_does_not_depend_on_the_scale_of_the_costs(scale):
    """At a tiny penalty all losses are one up to the sixth digit."""
    _, mask, _ = ambiguous()
    costs = RNG(0).random_sample(mask.shape)
    bounds = class_size_bounds(mask, "bounds", RNG(0))
    expected = LabelAssignment(mask, *bounds, RNG(0)).solve(costs)
    found = LabelAssignment(mask, *bounds, RNG(0)).solve(scale * costs)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_always_admit_an_assignment(seed):
    rng = RNG(seed)
    mask = rng.random_sample((15, 6)) < 0.4
    mask[np.arange(15), rng.randint(6, size=15)] = True
    lower, upper = class_size_bounds(mask, "bounds", rng)
    labels = LabelAssignment(mask, lower, upper, rng).solve(np.zeros(mask.shape))
    counts = np.bincount(labels, minlength=6)
    assert mask[np.arange(15), labels].all()
    assert ((lower <= counts) & (counts <= upper)).all()


def test_class_size_rules():
    mask = np.array([[1, 1, 0, 0]] * 3 + [[0, 0, 1, 1]] * 4 + [[0, 0, 1, 0]], dtype=bool)
    # Expected sizes 1.5, 1.5, 3, 2: one row is left over.
    for rule in ("remainder", "smallest"):
        drawn = {tuple(class_size_bounds(mask, rule, RNG(s))[0].astype(int)) for s in range(20)}
        assert drawn == {(2, 1, 3, 2), (1, 2, 3, 2)}  # the tie is drawn, not given to the first
    mask = np.vstack([mask, [[1, 0, 0, 1]] * 2, [[0, 0, 0, 1]] * 2]).astype(bool)
    # Now 2.5, 1.5, 3, 5 and one left over: the smallest floor is the second's.
    assert class_size_bounds(mask, "smallest", RNG(0))[0].tolist() == [2, 2, 3, 5]
    lower, upper = class_size_bounds(mask, "bounds", RNG(0))
    assert lower.tolist() == [2, 1, 3, 5]
    assert upper.tolist() == [3, 2, 3, 5]


def test_infeasible_sizes_fall_back_to_bounds_with_a_warning():
    mask = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=bool)
    # Expected sizes 2.5, 1.5, 1: "smallest" gives the left-over row to label 1 or to label 2,
    # which cannot take it.
    outcomes = []
    for seed in range(20):
        sizes, _ = class_size_bounds(mask, "smallest", RNG(seed))
        if sizes[2] == 2:
            with pytest.raises(InfeasibleSizesError):
                LabelAssignment(mask, sizes, sizes, RNG(0)).solve(np.zeros(mask.shape))
            with pytest.warns(UserWarning, match="between floor and ceiling"):
                assignment = feasible_assignment(mask, "smallest", RNG(seed))
        else:
            assignment = feasible_assignment(mask, "smallest", RNG(seed))
        labels = assignment.solve(np.zeros(mask.shape))
        assert mask[np.arange(5), labels].all()
        outcomes.append(sizes[2])
    assert {1, 2} == set(outcomes)


def test_ties_of_the_assignment_ignore_the_order_of_labels():
    mask = np.ones((1, 3), dtype=bool)
    found = {
        int(LabelAssignment(mask, np.zeros(3), np.ones(3), RNG(s)).solve(np.zeros((1, 3)))[0])
        for s in range(30)
    }
    assert found == {0, 1, 2}


# --- The loop -------------------------------------------------------------------------------


def test_schedule_is_the_published_loop():
    C_max, delta = 0.7, 0.5
    C, expected = 1e-5 * C_max, []
    while C_max > C:
        C = min((1 + delta) * C, C_max)
        expected.append(C)
    np.testing.assert_allclose(penalty_schedule(C_max, delta), expected)
    assert len(expected) == 29


@pytest.mark.parametrize("C_max", [0.01, 1.0])
def test_objective_never_rises_at_a_fixed_penalty(C_max):
    X, mask, _ = ambiguous(n_samples=150, n_labels=6, extra=0.4)
    model = M3PL(C_max=C_max, random_state=0).fit(X, mask)
    assert len(model.objective_path_) == len(model.penalties_)
    assert max(len(path) for path in model.objective_path_) > 2
    for path in model.objective_path_:
        assert (np.diff(path) <= 0).all()


def test_last_objective_is_that_of_the_fitted_model():
    X, mask, _ = ambiguous(n_samples=100)
    model = M3PL(C_max=0.1, random_state=0).fit(X, mask)
    rows = StandardScaler().fit_transform(X)
    scores = rows @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores)
    own = scores[np.arange(100), model.labels_]
    scores[np.arange(100), model.labels_] = -np.inf
    slack = np.maximum(0, 1 - own + scores.max(axis=1)).sum()
    norm = (model.coef_**2).sum() + (model.intercept_**2).sum()
    assert model.objective_path_[-1][-1] == pytest.approx(0.5 * norm + 0.1 * slack)


def published_loop(X, mask, C_max, delta, tol):
    """Literal alternation with generic solvers and exact class sizes; returns the labels."""
    m, q = mask.shape
    sizes = class_size_bounds(mask, "remainder", RNG(0))[0].astype(int)

    def assign(W, b):
        G = X @ W.T + b
        cost = np.empty((m, q))
        for i in range(m):
            for c in range(q):
                cost[i, c] = max(0.0, 1.0 - (G[i, c] - max(np.delete(G[i], c))))
        y = assignment_by_repeated_columns(cost, mask, sizes)
        return y, cost[np.arange(m), y].sum()

    # First weights from every candidate with equal share: at so small a penalty no margin is
    # reached, so the dual is at its bound and the weights are plain sums.
    share = mask / mask.sum(axis=1, keepdims=True)
    first = (share - (1 - share) / (q - 1)).T @ np.c_[X, np.ones(m)]
    y, _ = assign(first[:, :-1], first[:, -1])
    C = 1e-5 * C_max
    while C_max > C:
        C = min((1 + delta) * C, C_max)
        old = np.inf
        while True:
            W, b, _ = svm_by_generic_solver(X, y, C, q)
            y, slack = assign(W, b)
            value = 0.5 * ((W**2).sum() + (b**2).sum()) + C * slack
            if old - value < tol:
                break
            old = value
    return y, W


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_agrees_with_the_published_loop_on_generic_solvers(seed):
    rng = RNG(seed)
    truth = np.arange(18) % 3
    centers = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    X = StandardScaler().fit_transform(centers[truth] + 0.7 * rng.normal(size=(18, 2)))
    # Four of six rows of a label have one more candidate, such that all sizes are exactly six.
    mask = np.eye(3, dtype=bool)[truth]
    mask[np.arange(12), (truth[:12] + 1) % 3] = True
    expected, W = published_loop(X, mask, C_max=0.5, delta=4.0, tol=1e-4)
    model = M3PL(C_max=0.5, growth=4.0, class_sizes="remainder", svm_tol=1e-7, random_state=0)
    model.fit(X, mask)
    np.testing.assert_array_equal(model.labels_, expected)
    np.testing.assert_allclose(model.coef_, W, atol=5e-3)


def test_with_true_labels_it_is_the_crammer_singer_machine():
    X, y = load_iris(return_X_y=True)
    model = M3PL(C_max=0.1, svm_tol=1e-6, random_state=0).fit(X, y)
    rows = StandardScaler().fit_transform(X)
    svm = LinearSVC(multi_class="crammer_singer", C=0.1, tol=1e-6, max_iter=100_000, random_state=0)
    svm.fit(rows, y)
    np.testing.assert_array_equal(model.labels_, y)
    np.testing.assert_allclose(model.coef_, svm.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, svm.intercept_, atol=1e-3)


@pytest.mark.parametrize("class_sizes", ["bounds", "remainder", "smallest"])
def test_labels_are_candidates_and_respect_the_class_sizes(class_sizes):
    X, mask, y = ambiguous(n_samples=120, n_labels=5)
    model = M3PL(class_sizes=class_sizes, random_state=0).fit(X, mask)
    assert mask[np.arange(120), model.labels_].all()
    expected = (mask / mask.sum(axis=1, keepdims=True)).sum(axis=0)
    counts = np.bincount(model.labels_, minlength=5)
    assert (np.abs(counts - expected) <= 1).all()
    assert np.mean(model.labels_ == y) > 0.8
    np.testing.assert_array_equal(model.label_confidences_.argmax(axis=1), model.labels_)
    np.testing.assert_array_equal(model.label_confidences_.sum(axis=1), 1.0)


# --- Invariance and degenerate input --------------------------------------------------------


def test_order_of_rows_and_labels_does_not_matter():
    X, mask, _ = ambiguous(n_samples=90, n_labels=4, spread=1.0)
    model = M3PL(svm_tol=1e-6, random_state=0).fit(X, mask)
    rows, labels = RNG(5).permutation(90), RNG(6).permutation(4)
    other = M3PL(svm_tol=1e-6, random_state=0).fit(X[rows], mask[rows][:, labels])
    np.testing.assert_array_equal(labels[other.labels_], model.labels_[rows])
    np.testing.assert_array_equal(labels[other.predict(X)], model.predict(X))


def test_same_seed_same_model():
    X, mask, _ = ambiguous()
    first, second = (M3PL(random_state=7).fit(X, mask) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.labels_, second.labels_)


def test_grid_search_needs_no_truth():
    X, mask, _ = ambiguous(n_samples=60)
    grid = {"C_max": M3PL.TUNING_GRID["C_max"][:2]}
    search = GridSearchCV(M3PL(growth=2.0, random_state=0), grid, cv=2).fit(X, mask)
    assert search.best_params_["C_max"] in grid["C_max"]
    assert 0.5 < search.best_score_ <= 1.0


def test_schedule_matters_on_lost():
    """Without the slow start the labels of the first round are learnt by heart."""
    X, mask, truth = real_world("lost")
    slow = M3PL(growth=2.0, random_state=0).fit(X, mask)
    at_once = M3PL(growth=1e6, random_state=0).fit(X, mask)
    assert len(at_once.penalties_) == 1
    assert np.mean(slow.labels_ == truth) > 0.82
    assert np.mean(slow.labels_ == truth) > np.mean(at_once.labels_ == truth) + 0.04
