"""The regression that SURE, LALO, PL-AGGD, PL-CL and PL-LEAF share."""

import numpy as np
import pytest
import scipy.optimize
from sklearn.metrics.pairwise import rbf_kernel

from gmpll.methods import _regression
from gmpll.methods._regression import KernelRegression, training_kernel
from tiny import MASK, UNSEEN, X, literal_regression

UNIFORM = MASK / MASK.sum(axis=1, keepdims=True)


def test_the_six_rows():
    regression = KernelRegression(X, 0.05, remedy="none")
    assert regression.width == pytest.approx(2.533557914)
    kernel, _ = training_kernel(X)
    expected = [1, 0.855739, 0.855739, 0.677413, 0.458889, 0.677413]
    np.testing.assert_allclose(kernel[0], expected, atol=1e-6)
    _, intercept = regression.coefficients(UNIFORM)
    np.testing.assert_allclose(intercept, [0.229786, 0.053388, 0.716827], atol=1e-6)
    fitted = regression.fitted(UNIFORM)
    np.testing.assert_allclose(fitted[0], [0.377913, 0.382353, 0.239734], atol=1e-6)
    np.testing.assert_allclose(fitted[2], [0.087575, 0.644385, 0.268041], atol=1e-6)
    np.testing.assert_allclose(fitted[4], [0.424794, 0.069023, 0.506183], atol=1e-6)


def test_it_minimises_the_objective():
    targets = np.random.RandomState(0).randn(6, 1)
    kernel, _ = training_kernel(X)

    def objective(flat):
        residual = targets[:, 0] - kernel @ flat[:6] - flat[6]
        return residual @ residual + 0.3 * flat[:6] @ kernel @ flat[:6]

    found = scipy.optimize.minimize(objective, np.zeros(7), options={"gtol": 1e-10})
    coefficients, intercept = KernelRegression(X, 0.3, remedy="none").coefficients(targets)
    assert objective(np.r_[coefficients[:, 0], intercept]) == pytest.approx(found.fun)


def test_fitted_and_predicted_values_are_those_of_the_linear_system(monkeypatch):
    rows, targets = np.random.RandomState(1).randn(30, 3), np.random.RandomState(2).rand(30, 4)
    regression = KernelRegression(rows, 0.2, remedy="none")
    _, width, coefficients, intercept, fitted = literal_regression(rows, targets, 0.2)
    np.testing.assert_allclose(regression.fitted(targets), fitted)
    unseen = np.random.RandomState(3).randn(9, 3)
    expected = rbf_kernel(unseen, rows, gamma=1 / (2 * width**2)) @ coefficients + intercept
    regressor = regression.regressor(targets)
    np.testing.assert_allclose(regressor(unseen), expected)
    monkeypatch.setattr(_regression, "BLOCK_BYTES", 8 * 30 * 2)  # two rows per block
    np.testing.assert_allclose(regressor(unseen), expected)


def test_rows_of_the_fitted_values_sum_to_one_where_the_targets_do():
    regressor = KernelRegression(X, 0.05, remedy="none").regressor(UNIFORM)
    np.testing.assert_allclose(regressor(UNSEEN).sum(axis=1), 1.0)
    np.testing.assert_allclose(regressor.coefficients.sum(axis=0), 0.0, atol=1e-12)


class InOrder(np.random.RandomState):
    """Draws the first rows."""

    def permutation(self, n):
        return np.arange(n)


def test_landmarks_that_stand_for_all_rows_change_nothing(monkeypatch):
    rows, targets = np.random.RandomState(1).randn(40, 3), np.random.RandomState(2).rand(80, 4)
    twice = np.vstack([rows, rows])
    exact = KernelRegression(twice, 0.2, width=1.0, remedy="none")
    monkeypatch.setattr(_regression, "EXACT_ROWS", 79)
    fewer = KernelRegression(twice, 0.2, width=1.0, remedy="none", rng=InOrder(0))
    assert len(fewer.regressor(targets).rows) == 39
    assert np.abs(fewer.fitted(targets) - exact.fitted(targets)).max() < 0.2
    np.testing.assert_allclose(fewer.fitted(targets), fewer.regressor(targets)(twice), atol=1e-9)

    thrice, targets = np.vstack([twice, rows[:1]]), np.vstack([targets, targets[:1]])
    monkeypatch.setattr(_regression, "EXACT_ROWS", 80)
    exact = KernelRegression(thrice, 0.2, width=1.0, remedy="none")
    all_of_them = KernelRegression(thrice, 0.2, width=1.0, remedy="none", rng=InOrder(0))
    assert len(all_of_them.regressor(targets).rows) == 40
    np.testing.assert_allclose(all_of_them.fitted(targets), exact.fitted(targets), atol=1e-6)


def test_a_singular_kernel_says_what_to_do():
    rows = np.repeat(np.eye(3), 10, axis=0)
    with pytest.raises(ValueError, match="singular to working precision: raise it"):
        KernelRegression(rows, 1e-300, remedy="raise it")
