import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as ReferenceRidge
from sklearn.metrics.pairwise import euclidean_distances

from gmpll.evidence import ridge as module
from gmpll.evidence.ridge import KernelRidge, LandmarkKernel


def problem(m=40, d=3, q=4, seed=0):
    rng = np.random.RandomState(seed)
    return rng.randn(m, d), rng.dirichlet(np.ones(q), size=m)


def median_squared_distance(X):
    return np.median(euclidean_distances(X, squared=True)[~np.eye(len(X), dtype=bool)])


def rational_quadratic(X, Z=None):
    """The kernel of one view, with the median squared distance of X for its scale."""
    return 1.0 / (1.0 + euclidean_distances(X, Z, squared=True) / median_squared_distance(X))


def linear(X, Z=None):
    return X @ (X if Z is None else Z).T / (X**2).sum(axis=1).mean()


def kernel_of(X, Z=None):
    """The kernel of rows that have a single view."""
    return (rational_quadratic(X, Z) + linear(X, Z)) / 2


def test_fitted_values_equal_kernel_ridge_of_scikit_learn():
    X, Y = problem()
    ours = KernelRidge([X], ridge=0.1, rng=np.random.RandomState(0))
    reference = ReferenceRidge(alpha=0.1, kernel="precomputed").fit(kernel_of(X), Y)
    queries = np.random.RandomState(1).randn(10, 3)
    expected = reference.predict(kernel_of(X, queries).T)
    np.testing.assert_allclose(ours.predictor(Y)([queries]), expected, atol=1e-5)


def test_some_of_the_rows_make_the_regression_without_the_others():
    X, Y = problem()
    whole = KernelRidge([X], ridge=0.2, rng=np.random.RandomState(0))
    some, others = np.arange(0, 40, 2), np.arange(1, 40, 2)
    part = whole.part(some)
    K = kernel_of(X)
    expected = np.linalg.solve(K[np.ix_(some, some)] + 0.2 * np.eye(20), Y[some])
    np.testing.assert_allclose(part.coefficients(Y[some]), expected)
    np.testing.assert_allclose(whole.between(others, some), K[np.ix_(others, some)])


def test_leave_one_out_equals_fitting_without_the_row():
    X, Y = problem(m=25)
    ours = KernelRidge([X], ridge=0.2, rng=np.random.RandomState(0))
    predictions = ours.leave_one_out(Y)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        kernel = kernel_of(X)
        coefficients = np.linalg.solve(kernel[np.ix_(rest, rest)] + 0.2 * np.eye(24), Y[rest])
        np.testing.assert_allclose(predictions[i], kernel[i, rest] @ coefficients, atol=1e-5)


def test_views_add_up_to_the_mean_kernel():
    X, Y = problem()
    other = X**3
    ours = KernelRidge([X, other], ridge=0.1, rng=np.random.RandomState(0))
    kernel = (rational_quadratic(X) + rational_quadratic(other) + linear(other)) / 3
    expected = kernel @ np.linalg.solve(kernel + 0.1 * np.eye(len(X)), Y)
    np.testing.assert_allclose(ours.predictor(Y)([X, other]), expected, atol=1e-5)


def test_another_ridge_shares_the_kernel():
    X, Y = problem()
    first = KernelRidge([X], ridge=0.1, rng=np.random.RandomState(0))
    second = first.with_ridge(0.01)
    fresh = KernelRidge([X], ridge=0.01, rng=np.random.RandomState(0))
    np.testing.assert_allclose(second.leave_one_out(Y), fresh.leave_one_out(Y))
    assert second._gram is first._gram
    assert first.with_ridge(0.1) is first


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_unit_of_the_features_does_not_matter(scale):
    X, Y = problem()
    ours = KernelRidge([X], rng=np.random.RandomState(0)).leave_one_out(Y)
    scaled = KernelRidge([scale * X], rng=np.random.RandomState(0)).leave_one_out(Y)
    np.testing.assert_allclose(scaled, ours, atol=1e-9)


def few_landmarks(monkeypatch, n_landmarks):
    monkeypatch.setattr(module, "EXACT_ROWS", n_landmarks)
    monkeypatch.setattr(module, "MANY_LANDMARKS", n_landmarks)


def test_all_of_few_rows_are_landmarks_and_of_more_gradually_fewer(monkeypatch):
    monkeypatch.setattr(module, "EXACT_ROWS", 30)
    monkeypatch.setattr(module, "MANY_LANDMARKS", 9)
    for m, expected in ((30, 30), (31, 29), (50, 10), (52, 9), (90, 9)):
        X, _ = problem(m=m)
        assert KernelRidge([X], rng=np.random.RandomState(0)).n_landmarks == expected


def test_a_triangle_is_mirrored_block_by_block(monkeypatch):
    monkeypatch.setattr(module, "MIRRORED_ROWS", 3)
    square = np.random.RandomState(0).randn(8, 8)
    expected = np.triu(square) + np.triu(square, 1).T
    np.testing.assert_array_equal(module._mirrored(square.copy()), expected)


def test_landmarks_approximate_the_full_kernel(monkeypatch):
    X, Y = problem(m=300, d=2)
    exact = KernelRidge([X], rng=np.random.RandomState(0)).leave_one_out(Y)
    few_landmarks(monkeypatch, 60)
    few = KernelRidge([X], rng=np.random.RandomState(0))
    assert few.n_landmarks == 60
    assert np.abs(few.leave_one_out(Y) - exact).mean() < 0.02


@pytest.mark.parametrize("X", [np.zeros((5, 2)), np.ones((1, 3)), np.arange(4.0)[:, None]])
def test_degenerate_rows(X):
    Y = np.tile([0.25, 0.75], (len(X), 1))
    ours = KernelRidge([X], rng=np.random.RandomState(0))
    assert np.isfinite(ours.leave_one_out(Y)).all()
    assert np.isfinite(ours.predictor(Y)([X])).all()


def landmark_problem(monkeypatch, m=50, n_landmarks=12):
    """Return rows, confidences, the regression, and the two kernels of the formulas."""
    X, Y = problem(m=m, d=2)
    few_landmarks(monkeypatch, n_landmarks)
    few = KernelRidge([X], ridge=0.3, rng=np.random.RandomState(0))
    landmarks = few._kernel.landmarks[0]
    R = kernel_of(X, landmarks)
    N = R[few_rows(X, landmarks)] + module.JITTER * np.eye(n_landmarks)
    return X, Y, few, R, N


def few_rows(X, landmarks):
    return [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in landmarks]


def test_landmarks_are_rows_drawn_once_each(monkeypatch):
    X, _, few, _, _ = landmark_problem(monkeypatch)
    places = few_rows(X, few._kernel.landmarks[0])
    assert places == sorted(set(places))
    assert len(places) == few.n_landmarks == 12
    assert places != list(range(12))


def test_landmarks_solve_the_normal_equations(monkeypatch):
    X, Y, few, R, N = landmark_problem(monkeypatch)
    expected = np.linalg.solve(R.T @ R + 0.3 * N, R.T @ Y)
    np.testing.assert_allclose(few.predictor(Y)([X]), R @ expected, atol=1e-5)
    hat = R @ np.linalg.solve(R.T @ R + 0.3 * N, R.T)
    np.testing.assert_allclose(few.leverage, hat.diagonal(), atol=1e-5)
    stronger = few.with_ridge(2.0)
    expected = R @ np.linalg.solve(R.T @ R + 2.0 * N, R.T @ Y)
    np.testing.assert_allclose(stronger.predictor(Y)([X]), expected, atol=1e-5)
    assert stronger.ridge == 2.0


def test_leaving_one_out_with_landmarks_equals_fitting_without_the_row(monkeypatch):
    X, Y, few, R, N = landmark_problem(monkeypatch)
    predictions = few.leave_one_out(Y)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        without = np.linalg.solve(R[rest].T @ R[rest] + 0.3 * N, R[rest].T @ Y[rest])
        np.testing.assert_allclose(predictions[i], R[i] @ without, atol=1e-5)
    some = np.array([3, 17, 40])
    np.testing.assert_allclose(few.leave_one_out(Y, some), predictions[some], atol=1e-12)


def test_the_kernel_between_many_rows_and_landmarks_is_in_single_precision(monkeypatch):
    X, Y = problem(m=200, d=2)
    few_landmarks(monkeypatch, 30)
    single = KernelRidge([X], rng=np.random.RandomState(0))
    assert single._features.dtype == np.float32
    double = KernelRidge([X], rng=np.random.RandomState(0))
    kernel = replace(double.kernel, is_double=True)
    double._features = np.linalg.solve(double._root, kernel(X).T).T
    double._gram = double._features.T @ double._features
    np.testing.assert_allclose(single.leave_one_out(Y), double.leave_one_out(Y), atol=2e-3)
    np.testing.assert_allclose(single.predictor(Y)([X]), double.predictor(Y)([X]), atol=2e-3)


def test_many_rows_of_one_feature_have_a_regression(monkeypatch):
    # The kernel between landmarks is next to singular: single precision would make it indefinite.
    monkeypatch.setattr(module, "EXACT_ROWS", 400)
    monkeypatch.setattr(module, "MANY_LANDMARKS", 400)
    X = np.random.RandomState(0).rand(1000, 1)
    found = KernelRidge([X], rng=np.random.RandomState(0)).leave_one_out(np.sin(9.0 * X))
    np.testing.assert_allclose(found, np.sin(9.0 * X), atol=0.1)


def test_the_kernel_of_many_rows_is_that_of_its_blocks(monkeypatch):
    X, _ = problem(m=50)
    kernel = LandmarkKernel.of([X], [X[:9]], np.random.RandomState(0))
    whole = kernel(X)
    monkeypatch.setattr(module, "KERNEL_ROWS", 7)
    np.testing.assert_allclose(kernel(X), whole, atol=1e-14)


def test_the_leverage_of_all_rows_is_that_of_kernel_ridge():
    X, _ = problem(m=20)
    ours = KernelRidge([X], ridge=0.2, rng=np.random.RandomState(0))
    K = kernel_of(X)
    hat = K @ np.linalg.inv(K + 0.2 * np.eye(20))
    np.testing.assert_allclose(ours.leverage, hat.diagonal(), atol=1e-8)


def test_a_row_of_leverage_one_has_a_finite_prediction(monkeypatch):
    X, Y = problem(m=30)
    few_landmarks(monkeypatch, 29)
    nearly_free = KernelRidge([X], ridge=1e-14, rng=np.random.RandomState(0))
    with np.errstate(divide="raise", invalid="raise"):
        assert np.isfinite(nearly_free.leave_one_out(Y)).all()


def test_the_inverse_of_a_singular_matrix_is_shifted_until_there_is_one():
    ones = np.ones((4, 4))
    found = module._inverse_of(module._factor_of(ones, 0.5))
    np.testing.assert_allclose(found @ (ones + 0.5 * np.eye(4)), np.eye(4), atol=1e-12)
    indefinite = np.diag([1.0, 1.0, -1e-9])
    found = module._inverse_of(module._factor_of(indefinite, 0.0))
    shift = 100 * module.TINY_SHIFT  # the first shift that makes it positive
    np.testing.assert_allclose(found, np.linalg.inv(indefinite + shift * np.eye(3)), rtol=1e-6)
    np.testing.assert_array_equal(indefinite, np.diag([1.0, 1.0, -1e-9]))


def test_gram_is_the_product():
    rows = np.random.RandomState(0).randn(6, 4)
    np.testing.assert_allclose(module._product_with_itself(rows), rows.T @ rows, atol=1e-12)


def test_typical_distances_and_lengths_are_those_of_a_sample(monkeypatch):
    rng = np.random.RandomState(0)
    X = rng.randn(31, 2)
    found = LandmarkKernel.of([X, 2 * X], [], rng)
    median = median_squared_distance(X)
    assert found.scales == pytest.approx([median, 4 * median])
    assert found.weights == pytest.approx(np.full(2, 1 / (4 * X**2).sum(axis=1).mean()))
    uneven = LandmarkKernel.of([X], [], rng, np.array([3.0, 1.0])).weights
    assert uneven == pytest.approx(np.array([3.0, 1.0]) / (X**2 @ [3.0, 1.0]).mean())
    assert LandmarkKernel.of([np.array([[0.0], [3.0]])], [], rng).scales == [9.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a median of nothing
        for alike in (np.zeros((5, 2)), np.zeros((1, 2))):
            found = LandmarkKernel.of([alike], [], rng)
            assert (found.scales, found.weights.tolist()) == ([1.0], [1.0, 1.0])
    monkeypatch.setattr(module, "SCALE_SAMPLE", 4)
    drawn = X[np.random.RandomState(7).permutation(31)[:4]]
    found = LandmarkKernel.of([X], [], np.random.RandomState(7))
    assert found.scales == pytest.approx([median_squared_distance(drawn)])


def test_the_kernel_has_one_scale_for_every_view():
    X, Z = np.array([[0.0], [1.0]]), np.array([[0.0], [2.0]])
    found = LandmarkKernel([X[1:], Z[1:]], [0.5, 0.25], np.array([1 / 8]))(X, Z)
    near = (1.0 + 1.0 + 4.0 / 8.0) / 3
    far = (1 / (1 + 1 / 0.5) + 1 / (1 + 4 / 0.25) + 0.0) / 3
    np.testing.assert_allclose(found, [[far], [near]])
    with pytest.raises(ValueError, match="longer"):
        LandmarkKernel([X, Z], [0.5, 0.25], np.ones(1))(X)
