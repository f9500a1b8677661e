import numpy as np
import pytest
from scipy.optimize import nnls

from gmpll.methods.ipal import IPAL, mass_correction
from problems import random_problem


def to_directions(X, mean, std):
    rows = (X - mean) / std
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def nearest(rows, query, k, leave_out=None):
    distance = ((rows - query) ** 2).sum(axis=1)
    return [j for j in np.argsort(distance, kind="stable") if j != leave_out][:k]


def literal_training(rows, mask, k, alpha, max_iter=100, tol=1e-4):
    """Steps 1 to 3 as published: confidences before and after the mass correction."""
    m, q = mask.shape
    graph = np.zeros((m, m))
    for i in range(m):
        near = nearest(rows, rows[i], k, leave_out=i)
        weights, _ = nnls(rows[near].T, rows[i])
        graph[i, near] = weights / (weights.sum() or 1.0)
    initial = mask / mask.sum(axis=1, keepdims=True)
    current = initial
    for _ in range(max_iter):
        mixed = alpha * graph @ current + (1 - alpha) * initial
        mixed[~mask] = 0
        new = mixed / mixed.sum(axis=1, keepdims=True)
        change = np.linalg.norm(new - current, 2)
        current = new
        if change < tol:
            break
    corrected = current.copy()
    for label in range(q):
        corrected[:, label] *= initial[:, label].sum() / current[:, label].sum()
    return graph, current, corrected


def literal_residuals(rows, labels, query, k, q):
    near = nearest(rows, query, k)
    weights, _ = nnls(rows[near].T, query)
    residuals = []
    for label in range(q):
        part = sum((w * rows[j] for w, j in zip(weights, near, strict=True) if labels[j] == label))
        residuals.append(np.linalg.norm(query - part))
    return residuals


# More features than neighbours here and below: otherwise many weights reconstruct equally well.
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_the_published_steps_written_out(seed):
    X, mask, _ = random_problem(seed, m=60, d=12, q=5)
    mean, std = X.mean(axis=0), X.std(axis=0)
    rows = to_directions(X, mean, std)
    graph, _, corrected = literal_training(rows, mask, k=8, alpha=0.95)
    model = IPAL(n_neighbors=8, random_state=0).fit(X, mask)

    np.testing.assert_allclose(model._reconstruction_graph().toarray(), graph, atol=1e-8)
    expected = corrected / corrected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.label_confidences_, expected, atol=1e-8)
    best = np.where(mask, corrected, -np.inf)
    np.testing.assert_allclose(best[np.arange(60), model.labels_], best.max(axis=1), rtol=1e-7)

    unseen = np.random.RandomState(seed).randn(20, 12)
    queries = to_directions(unseen, mean, std)
    residuals = [literal_residuals(rows, model.labels_, query, 8, 5) for query in queries]
    np.testing.assert_allclose(model.decision_function(unseen), -np.array(residuals), atol=1e-8)
    assert model.predict(unseen).tolist() == np.argmin(residuals, axis=1).tolist()


def test_graph_rows_sum_to_one_and_nobody_is_its_own_neighbour():
    X, mask, _ = random_problem(1, m=50, d=5, duplicates=True)
    graph = IPAL(random_state=0).fit(X, mask)._reconstruction_graph()
    np.testing.assert_allclose(graph.sum(axis=1), 1.0)
    assert np.all(graph.diagonal() == 0)


def test_weights_need_not_sum_to_one_for_an_unseen_row():
    # In two dimensions the query is the sum of its neighbours, not a mean of them. With weights
    # that sum to one the best it could do is the half way point.
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    model = IPAL(standardize=False, random_state=0).fit(X, ["a", "a"])
    np.testing.assert_allclose(model.decision_function([[1.0, 1.0]]), 0.0, atol=1e-9)


def test_the_length_of_a_row_does_not_matter():
    X, mask, _ = random_problem(2, m=40, d=12)
    stretch = np.random.RandomState(0).uniform(0.1, 10, size=(40, 1))
    model = IPAL(standardize=False, random_state=0).fit(X, mask)
    stretched = IPAL(standardize=False, random_state=0).fit(stretch * X, mask)
    np.testing.assert_allclose(stretched.label_confidences_, model.label_confidences_, atol=1e-9)
    np.testing.assert_allclose(
        stretched.decision_function(3 * X), model.decision_function(X), atol=1e-6
    )


def test_singletons_stay_as_they_are():
    X, _, truth = random_problem(4, m=40, d=5, q=4)
    model = IPAL(random_state=0).fit(X, np.eye(4, dtype=int)[truth])
    np.testing.assert_array_equal(model.label_confidences_, np.eye(4)[truth])
    assert model.n_iter_ == 1


def test_every_candidate_keeps_some_confidence():
    X, mask, _ = random_problem(6, m=80, d=3, q=5)
    model = IPAL(max_iter=1000, tol=0, random_state=0).fit(X, mask)
    assert np.all(model.label_confidences_[mask] > 0)


def test_mass_correction_restores_the_mass_of_every_label():
    rng = np.random.RandomState(0)
    initial, settled = rng.random_sample((2, 30, 4))
    corrected = settled * mass_correction(initial, settled)
    np.testing.assert_allclose(corrected.sum(axis=0), initial.sum(axis=0))
    settled[:, 2] = 0.0
    assert mass_correction(initial, settled)[2] == 1.0


def test_mass_correction_decides_labels():
    _, mask, _ = random_problem(0, m=60, q=5)
    X = np.random.RandomState(0).randn(60, 12)  # nothing to learn: neighbours often disagree
    rows = to_directions(X, X.mean(axis=0), X.std(axis=0))
    _, settled, corrected = literal_training(rows, mask, k=10, alpha=0.95)
    labels = IPAL(random_state=0).fit(X, mask).labels_
    assert labels.tolist() == np.where(mask, corrected, -1).argmax(axis=1).tolist()
    assert labels.tolist() != np.where(mask, settled, -1).argmax(axis=1).tolist()


def test_stops_by_tolerance_or_by_the_number_of_rounds():
    X, mask, _ = random_problem(1, m=60, d=5, q=5)
    capped = IPAL(max_iter=3, random_state=0).fit(X, mask)
    settled = IPAL(max_iter=10_000, tol=1e-12, random_state=0).fit(X, mask)
    assert capped.n_iter_ == 3
    assert settled.n_iter_ < 10_000
    again = IPAL(max_iter=2 * settled.n_iter_, tol=0, random_state=0).fit(X, mask)
    np.testing.assert_allclose(again.label_confidences_, settled.label_confidences_, atol=1e-9)


def test_a_query_that_nothing_reconstructs_gets_the_majority_of_its_neighbours():
    X = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, -0.1]])
    model = IPAL(standardize=False, random_state=0).fit(X, ["b", "a", "b"])
    assert model.predict([[0.0, 0.0], [-1.0, 0.0]]).tolist() == ["b", "b"]
    # 1/3 of the neighbours are not "b", 2/3 are not "a".
    np.testing.assert_allclose(model.decision_function([[0.0, 0.0]]), -1 / 3 + 2 / 3)


def test_unseen_rows_do_not_depend_on_each_other():
    X, mask, _ = random_problem(7, m=50, d=20, q=4)
    unseen = np.random.RandomState(1).randn(30, 20)
    model = IPAL(random_state=0).fit(X, mask)
    alone = np.vstack([model.decision_function(unseen[i : i + 1]) for i in range(30)])
    np.testing.assert_allclose(model.decision_function(unseen), alone, atol=1e-10)


def test_blocks_of_queries_make_no_difference(monkeypatch):
    X, mask, _ = random_problem(8, m=50, d=6, q=4)
    model = IPAL(random_state=0).fit(X, mask)
    whole = model.decision_function(X)
    monkeypatch.setattr("gmpll.engines.numpy.MAP_BYTES", 8 * 10 * 6 * 7)
    np.testing.assert_allclose(model.decision_function(X), whole, atol=1e-12)


def test_permuting_rows_and_labels_permutes_the_answer():
    X, mask, _ = random_problem(5, m=60, d=12, q=5)
    rng = np.random.RandomState(0)
    rows, columns = rng.permutation(60), rng.permutation(5)
    model = IPAL(random_state=0).fit(X, mask)
    permuted = IPAL(random_state=0).fit(X[rows], mask[rows][:, columns])
    expected = model.label_confidences_[rows][:, columns]
    np.testing.assert_allclose(permuted.label_confidences_, expected, atol=1e-9)
    unseen = rng.randn(20, 12)
    np.testing.assert_allclose(
        permuted.decision_function(unseen), model.decision_function(unseen)[:, columns], atol=1e-8
    )


def test_full_sets_leave_everything_undecided():
    X = np.random.RandomState(0).randn(30, 4)
    model = IPAL(random_state=0).fit(X, np.ones((30, 3), dtype=int))
    np.testing.assert_allclose(model.label_confidences_, 1 / 3)
