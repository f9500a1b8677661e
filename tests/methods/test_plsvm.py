import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from gmpll.methods.plsvm import PLSVM, objective, shares_of_best, within_ball
from problems import problems, random_problem


def as_seen(X, mask):
    """Features with a constant one, and the mask, as the method uses them."""
    return np.c_[np.ones(len(X)), StandardScaler().fit_transform(X)], mask[:, mask.any(axis=0)]


def literal_objective(weights, rows, mask, regularization, chosen=None):
    """The published objective row by row; ``chosen`` fixes the candidate that is believed."""
    value = 0.5 * regularization * (weights**2).sum()
    for i, (x, candidates) in enumerate(zip(rows, mask, strict=True)):
        if candidates.all():
            continue
        scores = weights @ x
        best = scores[candidates].max() if chosen is None else scores[chosen[i]]
        value += max(0.0, 1.0 - best + scores[~candidates].max()) / len(rows)
    return value


def literal_pegasos(rows, mask, regularization, n_steps):
    """PL-Pegasos as published, row by row; the first step from zero shares everything.

    Returns all weights visited and the candidate believed for every row in each of them.
    """
    m, q = mask.shape
    weights, believed = [np.zeros((q, rows.shape[1]))], []
    for t in range(1, n_steps + 1):
        W, chosen = weights[-1], []
        step = np.zeros_like(W)
        for x, candidates in zip(rows, mask, strict=True):
            scores = W @ x
            inside, outside = np.flatnonzero(candidates), np.flatnonzero(~candidates)
            p = inside[np.argmax(scores[inside])]
            chosen.append(p)
            if not outside.size:
                continue
            n = outside[np.argmax(scores[outside])]
            if scores[p] - scores[n] < 1 and t == 1:
                step[inside] += x / inside.size
                step[outside] -= x / outside.size
            elif scores[p] - scores[n] < 1:
                step[p] += x
                step[n] -= x
        eta = 1.0 / (regularization * t)
        W = (1.0 - eta * regularization) * W + eta / m * step
        length = np.sqrt((W**2).sum())
        weights.append(W * min(1.0, 1.0 / (np.sqrt(regularization) * length)) if length else W)
        believed.append(chosen)
    return weights, believed


@pytest.mark.parametrize("regularization", [0.003, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(2))
def test_follows_the_published_steps(seed, regularization):
    X, mask, _ = random_problem(seed, m=30, d=4, q=5)
    rows, seen = as_seen(X, mask)
    weights, _ = literal_pegasos(rows, seen, regularization, 60)
    path = [literal_objective(W, rows, seen, regularization) for W in weights]

    model = PLSVM(regularization=regularization, max_iter=60).fit(X, mask)
    np.testing.assert_allclose(model.objective_path_, path, rtol=1e-9)
    np.testing.assert_allclose(model.weights_, weights[1 + int(np.argmin(path[1:]))], atol=1e-9)


@pytest.mark.parametrize("regularization", [0.01, 0.1])
def test_regret_bound_although_the_objective_is_not_convex(regularization):
    # Step t is a sub-gradient step on f_t, convex, that keeps the candidates believed at W_t.
    # f_t touches f at W_t and lies above it elsewhere, so the Pegasos bound compares the path
    # with any fixed weights V in the ball under the beliefs of the path.
    n_steps = 150
    X, mask, truth = random_problem(1, m=40, d=4, q=4)
    rows, seen = as_seen(X, mask)
    assert (seen.sum(axis=1) > 1).any()
    weights, believed = literal_pegasos(rows, seen, regularization, n_steps)
    path = PLSVM(regularization=regularization, max_iter=n_steps).fit(X, mask).objective_path_

    # Length of a sub-gradient: lambda W in the ball, and a row is in two blocks.
    steepest = np.sqrt(regularization) + np.sqrt(2) * np.linalg.norm(rows, axis=1).max()
    slack = steepest**2 * (1 + np.log(n_steps)) / (2 * regularization * n_steps)
    supervised = PLSVM(regularization=regularization, max_iter=n_steps).fit(X, truth).weights_
    for V in (np.zeros_like(supervised), supervised, weights[-1], weights[n_steps // 2]):
        assert np.linalg.norm(V) <= regularization**-0.5 + 1e-12
        surrogates = [
            literal_objective(V, rows, seen, regularization, chosen) for chosen in believed
        ]
        assert min(surrogates) >= literal_objective(V, rows, seen, regularization) - 1e-12
        assert path[:n_steps].mean() <= np.mean(surrogates) + slack


@pytest.mark.parametrize("regularization", [0.01, 0.1, 1.0])
def test_with_singletons_it_is_the_svm_of_crammer_and_singer(regularization):
    X, _, truth = random_problem(0, m=90, d=4, q=4)
    mask = np.eye(4, dtype=bool)[truth]
    rows, _ = as_seen(X, mask)
    svm = LinearSVC(
        C=1.0 / (regularization * 90),
        multi_class="crammer_singer",
        fit_intercept=False,
        tol=1e-8,
        max_iter=1_000_000,
        random_state=0,
    ).fit(rows, truth)
    minimum = literal_objective(svm.coef_, rows, mask, regularization)

    model = PLSVM(regularization=regularization).fit(X, truth)
    steepest = np.sqrt(regularization) + np.sqrt(2) * np.linalg.norm(rows, axis=1).max()
    bound = steepest**2 * (1 + np.log(1000)) / (2 * regularization * 1000)
    assert minimum - 1e-6 <= model.objective_ <= minimum + bound
    assert model.objective_ <= 1.005 * minimum  # far better than the bound


@settings(max_examples=25, deadline=None)
@given(problems())
def test_weights_are_the_best_of_the_path_and_lie_in_the_ball(problem):
    X, mask, _ = problem
    model = PLSVM(regularization=0.05, max_iter=40, random_state=0).fit(X, mask)
    value = literal_objective(model.weights_, *as_seen(X, mask), 0.05)
    assert value == pytest.approx(model.objective_path_[1:].min())
    assert model.objective_ == model.objective_path_[1:].min()
    assert model.objective_path_[0] <= 1.0
    assert np.linalg.norm(model.weights_) <= 0.05**-0.5 * (1 + 1e-12)


def test_the_start_is_not_the_answer_where_no_step_beats_it():
    # Three labels of probability 1/3 each, slightly more where their feature is: the hinge loss of
    # any weights is at least that of none.
    rng = np.random.RandomState(0)
    X = np.tile(np.eye(3), (200, 1))
    y = np.where(rng.rand(600) < 0.1, X.argmax(axis=1), rng.randint(3, size=600))
    model = PLSVM(regularization=0.1, random_state=0).fit(X, y)
    assert model.objective_ > model.objective_path_[0]
    assert np.ptp(model.decision_function(np.eye(3)), axis=1).min() > 0


def test_projection_tames_the_first_steps():
    X, mask, _ = random_problem(0, m=40, d=4, q=4)
    rows, seen = as_seen(X, mask)
    _, pull = objective(np.zeros((4, 5)), rows, seen, 1e-4)
    assert np.linalg.norm(pull / 1e-4) > 10 * 1e-4**-0.5  # where the first step would lead
    path = PLSVM(regularization=1e-4, max_iter=5).fit(X, mask).objective_path_
    projected = within_ball(pull / 1e-4, 1e-4**-0.5)
    assert np.linalg.norm(projected) == pytest.approx(1e-4**-0.5)
    assert path[1] == pytest.approx(literal_objective(projected, rows, seen, 1e-4))


def test_within_ball_leaves_the_inside_alone():
    inside = np.array([[0.3, 0.4]])
    np.testing.assert_array_equal(within_ball(inside, 0.5), inside)
    np.testing.assert_allclose(within_ball(10 * inside, 0.5), inside)


def test_tied_labels_share_the_step():
    np.testing.assert_array_equal(
        shares_of_best(np.array([[1.0, 3.0, 2.0], [2.0, 2.0, -np.inf]])),
        [[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]],
    )


def test_pull_is_minus_the_gradient_where_there_is_one():
    X, mask, _ = random_problem(2, m=30, d=3, q=4)
    weights = np.random.RandomState(0).randn(4, 3)
    _, pull = objective(weights, X, mask, 0.0)
    numeric = np.empty_like(weights)
    for index in np.ndindex(weights.shape):
        step = np.zeros_like(weights)
        step[index] = 1e-6
        up, down = (literal_objective(weights + s * step, X, mask, 0.0) for s in (1, -1))
        numeric[index] = (up - down) / 2e-6
    np.testing.assert_allclose(-pull, numeric, atol=1e-7)


def test_a_full_set_contributes_nothing():
    X, mask, _ = random_problem(0, m=20, d=3, q=4)
    weights = np.random.RandomState(0).randn(4, 3)
    value, pull = objective(weights, X, mask, 0.0)
    padded = np.r_[X, 9 * np.ones((20, 3))], np.r_[mask, np.ones((20, 4), dtype=bool)]
    padded_value, padded_pull = objective(weights, *padded, 0.0)
    assert padded_value == pytest.approx(value / 2)
    np.testing.assert_allclose(padded_pull, pull / 2)


def test_every_label_has_its_own_bias():
    # On one ray from the origin labels differ only by their biases.
    X = np.repeat([[1.0], [2.0], [3.0]], 20, axis=0)
    y = np.repeat(["near", "middle", "far"], 20)
    model = PLSVM(regularization=1e-3, max_iter=5000, standardize=False).fit(X, y)
    assert model.predict([[1.0], [2.0], [3.0]]).tolist() == ["near", "middle", "far"]


def test_stopping():
    X, mask, _ = random_problem(0, m=60, d=4, q=4)
    everything = PLSVM(max_iter=300).fit(X, mask)
    assert everything.n_iter_ == 300
    assert everything.objective_path_.shape == (301,)
    early = PLSVM(max_iter=300, tol=1e-3).fit(X, mask)
    moves = np.abs(np.diff(everything.objective_path_))
    assert early.n_iter_ == np.argmax(moves <= 1e-3) + 1 < 300
    np.testing.assert_array_equal(
        early.objective_path_, everything.objective_path_[: early.n_iter_ + 1]
    )


def test_order_of_rows_and_labels_does_not_matter():
    X, mask, _ = random_problem(3, m=70, d=4, q=5)
    reference = PLSVM(max_iter=200, random_state=0).fit(X, mask)
    rng = np.random.RandomState(0)
    rows, labels = rng.permutation(70), rng.permutation(5)
    model = PLSVM(max_iter=200, random_state=1).fit(X[rows], mask[rows][:, labels])
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(X)[:, labels], atol=1e-6
    )
    np.testing.assert_array_equal(labels[model.labels_], reference.labels_[rows])


def test_without_information_the_label_is_drawn_not_the_first():
    model = PLSVM(random_state=0).fit(np.zeros((200, 1)), np.ones((200, 4), dtype=int))
    assert (np.bincount(model.labels_, minlength=4) > 20).all()
