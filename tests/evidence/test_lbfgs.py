"""The minimiser against SciPy's, and several problems at once against each alone."""

import numpy as np
import pytest
from scipy.optimize import minimize

from gmpll.arrays import to_host
from gmpll.evidence.lbfgs import minimised


def logistic(xp, targets, rows):
    """The loss of logistic regressions with a small penalty; targets are (..., n_rows)."""

    def function(x):
        logits = (rows @ x[..., None])[..., 0]
        value = (xp.log1p(xp.exp(logits)) - targets * logits).sum(-1) + 0.05 * (x**2).sum(-1)
        error = 1.0 / (1.0 + xp.exp(-logits)) - targets
        return value, (error[..., None, :] @ rows)[..., 0, :] + 0.1 * x

    return function


@pytest.fixture
def problems():
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(80, 12)) * np.logspace(0, 1, 12)
    return rows, (rng.uniform(size=(5, 80)) < 0.3).astype(float)


def test_it_finds_the_minimum(problems):
    rows, targets = problems
    function = logistic(np, targets[0], rows)
    found = minimised(function, np.zeros(12), max_iter=500)
    wanted = minimize(function, np.zeros(12), jac=True, method="BFGS")
    assert function(found)[0] <= wanted.fun + 1e-4


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_every_problem_ends_as_it_would_alone(problems, library):
    rows, targets = problems
    alone = [minimised(logistic(np, t, rows), np.zeros(12), max_iter=60) for t in targets]
    xp = np
    if library == "torch":
        xp = pytest.importorskip("torch", reason="PyTorch is not installed")
        rows, targets = xp.as_tensor(rows), xp.as_tensor(targets)
    start = xp.zeros((5, 12), dtype=xp.float64)
    found = minimised(logistic(xp, targets, rows), start, max_iter=60)
    np.testing.assert_allclose(to_host(found), alone, atol=1e-6)


def test_a_flat_function_ends_at_once():
    calls = []

    def flat(x):
        calls.append(x)
        return np.float64(1.0), np.zeros_like(x)

    np.testing.assert_array_equal(minimised(flat, np.ones(3), max_iter=50), np.ones(3))
    assert len(calls) == 2


def test_a_number_that_nothing_depends_on_stays():
    def function(x):
        return 0.5 * (x[0] - 2.0) ** 2, np.array([x[0] - 2.0, 0.0])

    np.testing.assert_allclose(minimised(function, np.array([9.0, 5.0]), max_iter=50), [2.0, 5.0])


def test_a_problem_that_no_step_makes_smaller_stays_where_it_is():
    """The second one says that it falls where it rises; the first ends all the same."""

    def function(x):
        value = np.stack([0.5 * (x[0, 0] - 2.0) ** 2, np.abs(x[1, 0])])
        return value, np.stack([x[0] - 2.0, np.ones(1)])

    found = minimised(function, np.zeros((2, 1)), max_iter=30)
    np.testing.assert_allclose(found, [[2.0], [0.0]], atol=1e-6)
    assert found[1, 0] == 0.0
