"""PL-CL against a literal version, worked figures and PL-AGGD."""

import numpy as np
import pytest

from gmpll import PLAGGD, PLCL
from gmpll.graph.neighbors import nearest_neighbors
from tiny import UNSEEN, fit, literal_confidences, literal_graph, literal_regression, z_scored


def test_the_six_rows():
    confidences = fit(PLCL, n_neighbors=2, max_iter=1).label_confidences_
    np.testing.assert_allclose(confidences[0], [0.916772, 0.083228, 0], atol=1e-6)
    np.testing.assert_allclose(confidences[2], [0, 0.954772, 0.045228], atol=1e-6)
    model = fit(PLCL, n_neighbors=2)
    assert model.n_iter_ == 8
    np.testing.assert_allclose(model.label_confidences_[4], [0.005320, 0, 0.994680], atol=1e-6)
    expected = [[0.543827, 0.489745, -0.033572], [0.065859, 0.571785, 0.362355]]
    np.testing.assert_allclose(model.decision_function(UNSEEN), expected, atol=1e-6)


@pytest.mark.parametrize(("alpha", "beta", "mu"), [(0.5, 0.5, 1.0), (2.0, 0.3, 0.7)])
def test_it_is_the_literal_loop(alpha, beta, mu):
    features, mask, rows = z_scored(1, m=12, d=5, q=3)
    directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    near = nearest_neighbors(directions, 3).indices
    uniform = mask / mask.sum(axis=1, keepdims=True)
    graph = literal_graph(directions, near, np.zeros(mask.shape))
    P, Q = literal_confidences(graph, mask, 0.0, 0.0, uniform), 1.0 - mask
    for _ in range(2):
        F = literal_regression(rows, P, 0.03)[-1]
        F_c = literal_regression(rows, Q, 0.03 / alpha)[-1]
        graph = literal_graph(directions, near, P, 1.5, mu)
        for i, j in np.ndindex(mask.shape):  # with the confidences before this iteration
            free = (alpha * F_c[i, j] + beta * (1 - P[i, j])) / (alpha + beta)
            Q[i, j] = min(max(free, 0.0), 1.0) if mask[i, j] else 1.0
        target = (F + beta * (1 - Q)) / (1 + beta)
        P = literal_confidences(graph, mask, (1 + beta) / mu, target, P)
    model = PLCL(
        complementary=alpha, agreement=beta, feature_weight=1.5, label_weight=mu,
        n_neighbors=3, max_iter=2, tol=0.0, random_state=0,
    ).fit(features, mask)  # fmt: skip
    np.testing.assert_allclose(model.label_confidences_, P, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_without_agreement_it_is_pl_aggd(alpha):
    features, mask, _ = z_scored(2)
    shared = {"regularization": 0.05, "max_iter": 4, "tol": 0.0, "random_state": 0}
    reference = PLAGGD(**shared).fit(features, mask)
    model = PLCL(complementary=alpha, agreement=0.0, **shared).fit(features, mask)
    np.testing.assert_array_equal(model.label_confidences_, reference.label_confidences_)
    np.testing.assert_array_equal(
        model.decision_function(features), reference.decision_function(features)
    )


def test_without_a_second_regression_the_complement_mirrors_the_confidences():
    features, mask, _ = z_scored(3)
    model = PLCL(complementary=0.0, random_state=0).fit(features, mask)
    close = PLCL(complementary=1e-9, random_state=0).fit(features, mask)
    np.testing.assert_allclose(model.label_confidences_, close.label_confidences_, atol=1e-6)
    assert not np.allclose(
        model.label_confidences_, PLCL(random_state=0).fit(features, mask).label_confidences_
    )


def test_the_graph_can_be_left_out():
    features, mask, _ = z_scored(4)
    model = PLCL(label_weight=0.0, random_state=0).fit(features, mask)
    assert np.isfinite(model.decision_function(features)).all()
    np.testing.assert_allclose(model.label_confidences_.sum(axis=1), 1.0)
