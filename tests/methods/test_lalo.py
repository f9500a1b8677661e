"""LALO against a literal version and worked figures."""

import numpy as np
import pytest

from gmpll import LALO
from gmpll.methods.lalo import neighbor_graph
from tiny import UNSEEN, fit, literal_projection, literal_regression, z_scored


def literal_graph(rows, k):
    m = len(rows)
    distance = np.array([[np.linalg.norm(a - b) for b in rows] for a in rows])
    near = [[j for j in np.argsort(distance[i], kind="stable") if j != i][:k] for i in range(m)]
    sigma = np.mean([distance[i, near[i][-1]] for i in range(m)])
    A = np.zeros((m, m))
    for i in range(m):
        for j in near[i]:
            weight = np.exp(-(distance[i, j] ** 2) / sigma**2)
            A[i, j] += weight  # mutual neighbours count twice
            A[j, i] += weight
    root = np.sqrt(A.sum(axis=1))
    return A / root[:, None] / root[None, :]


def literal_lalo(rows, mask, k, mu, n_iter):
    graph = literal_graph(rows, k)
    P = mask / mask.sum(axis=1, keepdims=True)
    for _ in range(n_iter):
        *_, A, b, fitted = literal_regression(rows, P, 0.05)
        for _ in range(300):
            P = literal_projection((fitted + mu * graph @ P) / (1 + mu), mask)
    return P, A, b


def test_the_graph():
    rows = np.random.RandomState(0).randn(25, 3)
    np.testing.assert_allclose(neighbor_graph(rows, 4, None).toarray(), literal_graph(rows, 4))


def test_a_copy_is_a_neighbour_and_no_row_its_own():
    rows = np.array([[0.0], [0.0], [1.0], [3.0]])
    graph = neighbor_graph(rows, 1, None).toarray()
    assert (np.diag(graph) == 0).all()
    assert graph[0, 1] > 0
    # All rows coincide: every neighbour has the weight 1.
    same = neighbor_graph(np.zeros((4, 2)), 3, None).toarray()
    np.testing.assert_allclose(same, (1 - np.eye(4)) / 3)


def test_the_six_rows_after_one_iteration():
    confidences = fit(LALO, n_neighbors=2, max_iter=1).label_confidences_
    np.testing.assert_allclose(confidences[0], [0.497587, 0.502413, 0], atol=1e-6)
    np.testing.assert_allclose(confidences[4], [0.457850, 0, 0.542150], atol=1e-6)
    confidences = fit(LALO, n_neighbors=2, max_iter=1, smoothness=0.5).label_confidences_
    np.testing.assert_allclose(confidences[0], [0.483489, 0.516511, 0], atol=1e-6)
    np.testing.assert_allclose(confidences[2], [0, 0.750134, 0.249866], atol=1e-6)


def test_the_six_rows_after_fifty_iterations():
    model = fit(LALO, n_neighbors=2)
    np.testing.assert_allclose(model.label_confidences_[1], [0.759696, 0, 0.240304], atol=1e-6)
    expected = [[0.400650, 0.555283, 0.044067], [0.019720, 0.674653, 0.305626]]
    np.testing.assert_allclose(model.decision_function(UNSEEN), expected, atol=1e-6)


@pytest.mark.parametrize("mu", [0.0, 0.2, 3.0])
def test_it_is_the_literal_loop_and_predicts_by_the_last_regression(mu):
    X, mask, rows = z_scored(1, m=20)
    P, coefficients, intercept = literal_lalo(rows, mask, 5, mu, 3)
    model = LALO(n_neighbors=5, smoothness=mu, max_iter=3, tol=0.0, random_state=0).fit(X, mask)
    np.testing.assert_allclose(model.label_confidences_, P, atol=1e-7)
    kernel = literal_regression(rows, P, 0.05)[0]
    # The regression has learned the confidences before the last step, not P.
    np.testing.assert_allclose(
        model.decision_function(X), kernel @ coefficients + intercept, atol=1e-6
    )


def test_without_smoothness_it_projects_the_regression():
    X, mask, rows = z_scored(2)
    model = LALO(smoothness=0.0, max_iter=1, random_state=0).fit(X, mask)
    fitted = literal_regression(rows, mask / mask.sum(axis=1, keepdims=True), 0.05)[-1]
    np.testing.assert_allclose(
        model.label_confidences_, literal_projection(fitted, mask), atol=1e-9
    )


def test_smoothness_makes_neighbours_alike():
    X, mask, rows = z_scored(3, m=60)
    graph = neighbor_graph(rows, 10, None)

    def roughness(mu):
        P = LALO(smoothness=mu, random_state=0).fit(X, mask).label_confidences_
        return np.vdot(P, P - graph @ P) / np.vdot(P, P)

    assert roughness(5.0) < roughness(0.5) < roughness(0.0)
