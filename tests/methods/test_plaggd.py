"""PL-AGGD against a literal version on generic solvers, worked figures and its objective."""

import numpy as np
import pytest

from gmpll import PLAGGD
from gmpll.graph.neighbors import nearest_neighbors
from gmpll.graph.views import unit_rows
from gmpll.methods._simplex import accelerated, confidence_step, deviation_from_neighbors
from tiny import (
    MASK,
    UNSEEN,
    X,
    fit,
    literal_confidences,
    literal_graph,
    literal_projection,
    literal_regression,
    z_scored,
)

NEAR = np.array([[1, 2], [0, 2], [3, 1], [2, 4], [5, 3], [4, 0]])


def objective(rows, directions, P, graph, learned):
    """The three unknowns are the confidences, the graph, and the regression of these targets."""
    kernel, _, A, _, fitted = literal_regression(rows, learned, 0.05)
    return (
        ((P - fitted) ** 2).sum()
        + 0.05 * np.trace(A.T @ kernel @ A)
        + ((directions - graph @ directions) ** 2).sum()
        + ((P - graph @ P) ** 2).sum()
    )


def test_the_graph_of_the_six_rows():
    directions = unit_rows(X)
    np.testing.assert_array_equal(nearest_neighbors(directions, 2).indices, NEAR)
    graph = np.eye(6) - deviation_from_neighbors(directions, NEAR).toarray()
    np.testing.assert_allclose(graph[1, [0, 2]], [0.723607, 0.276393], atol=1e-6)
    np.testing.assert_allclose(graph[2, [1, 3]], [0.401273, 0.598727], atol=1e-6)
    np.testing.assert_allclose(graph[0, 1], 1.0)


def test_the_start_of_the_six_rows():
    step = confidence_step(deviation_from_neighbors(unit_rows(X), NEAR), MASK)
    start = accelerated(step, MASK / MASK.sum(axis=1, keepdims=True)).point
    np.testing.assert_allclose(start[1], [0.893701, 0, 0.106299], atol=1e-6)
    np.testing.assert_allclose(start[4], [0.042972, 0, 0.957028], atol=1e-6)


def test_the_six_rows():
    confidences = fit(PLAGGD, n_neighbors=2, max_iter=1).label_confidences_
    np.testing.assert_allclose(confidences[0], [0.947801, 0.052199, 0], atol=1e-6)
    np.testing.assert_allclose(confidences[1], [0.915984, 0, 0.084016], atol=1e-6)
    model = fit(PLAGGD, n_neighbors=2)
    assert model.n_iter_ == 10
    np.testing.assert_allclose(model.label_confidences_[0], [0.923984, 0.076016, 0], atol=1e-6)
    expected = [[0.573917, 0.472784, -0.046701], [0.048782, 0.571801, 0.379417]]
    np.testing.assert_allclose(model.decision_function(UNSEEN), expected, atol=1e-6)


def test_it_is_the_literal_loop():
    features, mask, rows = z_scored(1, m=12, d=5, q=3)
    directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    near = nearest_neighbors(directions, 3).indices
    uniform = mask / mask.sum(axis=1, keepdims=True)
    graph = literal_graph(directions, near, np.zeros(mask.shape))
    P = literal_confidences(graph, mask, 0.0, 0.0, uniform)
    for _ in range(2):
        graph = literal_graph(directions, near, P, 2.0, 0.5)
        fitted = literal_regression(rows, P, 0.05)[-1]
        P = literal_confidences(graph, mask, 1 / 0.5, fitted, P)
    model = PLAGGD(
        n_neighbors=3, feature_weight=2.0, label_weight=0.5, max_iter=2, tol=0.0, random_state=0
    ).fit(features, mask)
    np.testing.assert_allclose(model.label_confidences_, P, atol=1e-5)


def test_every_step_lowers_the_objective():
    features, mask, rows = z_scored(3)
    directions = unit_rows(rows)
    near = nearest_neighbors(directions, 10).indices
    values, P = [], PLAGGD(max_iter=1, tol=0.0).fit(features, mask).label_confidences_
    for n_iter in range(2, 8):
        graph = np.eye(len(P)) - deviation_from_neighbors(np.hstack([directions, P]), near)
        values.append(objective(rows, directions, P, graph, P))
        before, P = P, PLAGGD(max_iter=n_iter, tol=0.0).fit(features, mask).label_confidences_
        values.append(objective(rows, directions, P, graph, before))
        values.append(objective(rows, directions, P, graph, P))
    assert (np.diff(values) <= 1e-7).all()
    assert values[-1] < values[0]


def test_without_weight_of_the_labels_the_regression_alone_counts():
    features, mask, rows = z_scored(4)
    first = PLAGGD(max_iter=1, tol=0.0).fit(features, mask)
    alone = PLAGGD(max_iter=2, tol=0.0, label_weight=0.0).fit(features, mask)
    previous = PLAGGD(max_iter=1, tol=0.0, label_weight=0.0).fit(features, mask).label_confidences_
    fitted = literal_regression(rows, previous, 0.05)[-1]
    np.testing.assert_allclose(
        alone.label_confidences_, literal_projection(fitted, mask), atol=1e-8
    )
    assert not np.allclose(alone.label_confidences_, first.label_confidences_)


def test_with_a_huge_weight_of_the_labels_confidences_are_those_of_the_neighbours():
    features, mask, rows = z_scored(5)
    mask[:] = True
    model = PLAGGD(label_weight=1e6, n_neighbors=3, max_iter=3).fit(features, mask)
    P = model.label_confidences_
    near = nearest_neighbors(unit_rows(rows), 3).indices
    described = np.hstack([unit_rows(rows), 1e3 * P])
    assert np.abs(deviation_from_neighbors(described, near) @ P).max() < 1e-3


@pytest.mark.parametrize("seed", [0, 1])
def test_permuting_labels_permutes_the_answer(seed):
    features, mask, _ = z_scored(seed)
    columns = np.array([2, 0, 3, 1])
    model = PLAGGD(random_state=0).fit(features, mask)
    permuted = PLAGGD(random_state=0).fit(features, mask[:, columns])
    np.testing.assert_allclose(
        permuted.label_confidences_, model.label_confidences_[:, columns], atol=1e-6
    )


def test_duplicates_and_zero_rows_are_no_obstacle():
    features, mask, _ = z_scored(0)
    features[1:12] = features[0]
    features[12] = 0.0
    model = PLAGGD(standardize=False, random_state=0).fit(features, mask)
    assert np.isfinite(model.decision_function(features)).all()
    np.testing.assert_allclose(model.label_confidences_.sum(axis=1), 1.0)
