"""The methods as scikit-learn estimators, and what they share."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

torch = pytest.importorskip("torch")

from gmpll.deep import DEEP_METHODS  # noqa: E402
from problems import random_problem  # noqa: E402

QUICK = {"learning_rate": 0.02, "max_iter": 15, "random_state": 0, "device": "cpu"}
ESTIMATORS = [Method(**QUICK) for Method in DEEP_METHODS.values()]
every_method = pytest.mark.parametrize("method", ESTIMATORS, ids=lambda m: type(m).__name__)


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn(estimator, check):
    check(estimator)


def case(seed=0, m=60, d=4, q=4):
    X, mask, _ = random_problem(seed, m=m, d=d, q=q)
    return X, mask
