import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from gmpll import ridge as module
from gmpll.ridge import ConfidenceRidge


def problem(m=40, d=3, q=4, seed=0):
    rng = np.random.RandomState(seed)
    return rng.randn(m, d), rng.dirichlet(np.ones(q), size=m)


def median_squared_distance(X):
    return np.median(euclidean_distances(X, squared=True)[~np.eye(len(X), dtype=bool)])


def test_fitted_values_equal_kernel_ridge_of_scikit_learn():
    X, Y = problem()
    gamma = 1.5 / median_squared_distance(X)
    ours = ConfidenceRidge([X], width=1.5, ridge=0.1, rng=np.random.RandomState(0))
    reference = KernelRidge(alpha=0.1, kernel="rbf", gamma=gamma).fit(X, Y)
    queries = np.random.RandomState(1).randn(10, 3)
    np.testing.assert_allclose(ours.predictor(Y)([queries]), reference.predict(queries), atol=1e-5)


def test_leave_one_out_equals_fitting_without_the_row():
    X, Y = problem(m=25)
    ours = ConfidenceRidge([X], width=1.0, ridge=0.2, rng=np.random.RandomState(0))
    gamma = 1.0 / median_squared_distance(X)
    opinions = ours.leave_one_out(Y)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        kernel = rbf_kernel(X, gamma=gamma)
        coefficients = np.linalg.solve(kernel[np.ix_(rest, rest)] + 0.2 * np.eye(24), Y[rest])
        np.testing.assert_allclose(opinions[i], kernel[i, rest] @ coefficients, atol=1e-5)


def test_views_add_up_to_the_mean_kernel():
    X, Y = problem()
    other = X**3
    ours = ConfidenceRidge([X, other], ridge=0.1, rng=np.random.RandomState(0))
    kernel = (
        rbf_kernel(X, gamma=1 / median_squared_distance(X))
        + rbf_kernel(other, gamma=1 / median_squared_distance(other))
    ) / 2
    expected = kernel @ np.linalg.solve(kernel + 0.1 * np.eye(len(X)), Y)
    np.testing.assert_allclose(ours.predictor(Y)([X, other]), expected, atol=1e-5)


def test_another_ridge_shares_the_kernel():
    X, Y = problem()
    first = ConfidenceRidge([X], ridge=0.1, rng=np.random.RandomState(0))
    second = first.with_ridge(0.01)
    fresh = ConfidenceRidge([X], ridge=0.01, rng=np.random.RandomState(0))
    np.testing.assert_allclose(second.leave_one_out(Y), fresh.leave_one_out(Y))
    assert second.features is first.features
    assert first.with_ridge(0.1) is first


def test_landmarks_approximate_the_full_kernel(monkeypatch):
    X, Y = problem(m=300, d=2)
    exact = ConfidenceRidge([X], rng=np.random.RandomState(0)).leave_one_out(Y)
    monkeypatch.setattr(module, "MAX_LANDMARKS", 60)
    few = ConfidenceRidge([X], rng=np.random.RandomState(0))
    assert few.features.shape[1] <= 60
    assert np.abs(few.leave_one_out(Y) - exact).mean() < 0.02


@pytest.mark.parametrize("X", [np.zeros((5, 2)), np.ones((1, 3)), np.arange(4.0)[:, None]])
def test_degenerate_rows(X):
    Y = np.tile([0.25, 0.75], (len(X), 1))
    ours = ConfidenceRidge([X], rng=np.random.RandomState(0))
    assert np.isfinite(ours.leave_one_out(Y)).all()
    assert np.isfinite(ours.predictor(Y)([X])).all()
