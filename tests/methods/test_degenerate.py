"""Data with next to nothing in it: every comparison method gives an answer, without a warning."""

import warnings

import numpy as np
import pytest

from gmpll import (
    CLPL,
    IPAL,
    LALO,
    LSBCMM,
    M3PL,
    PLAGGD,
    PLCL,
    PLECOC,
    PLKNN,
    PLLEAF,
    PLSVM,
    SURE,
)
from problems import random_problem

RANDOM = np.random.RandomState(0).randn(30, 3)
CYCLE = np.eye(3, dtype=bool)[np.arange(30) % 3]
GROUPS = np.eye(3, dtype=bool)[np.arange(30) // 10]
OVERLAP = np.array([[1, 1, 0], [0, 1, 1]] * 6, dtype=bool)
DATA = {
    "one row": (RANDOM[:1], np.array([[True, True, False]])),
    "one full row": (RANDOM[:1], np.ones((1, 3), dtype=bool)),
    "one row and label": (RANDOM[:1], np.ones((1, 1), dtype=bool)),
    "one label": (RANDOM[:5], np.ones((5, 1), dtype=bool)),
    "full sets": (RANDOM, np.ones((30, 4), dtype=bool)),
    "singletons": (RANDOM, CYCLE),
    "equal rows": (np.ones((12, 2)), OVERLAP),
    "equal rows of full sets": (np.repeat(np.eye(3), 3, axis=0), np.ones((9, 3), dtype=bool)),
    "groups of equal rows": (np.repeat(np.eye(3), 10, axis=0), GROUPS),
    "zero rows": (np.zeros((4, 3)), np.array([[1, 0], [1, 1], [0, 1], [1, 1]], dtype=bool)),
    "zero rows of full sets": (np.zeros((9, 2)), np.ones((9, 3), dtype=bool)),
    "zero rows with known labels": (np.zeros((30, 2)), CYCLE),
    "one zero row": random_problem(0, zero_rows=True)[:2],
    "constant feature": (np.c_[np.full(30, 7.0), np.arange(30.0)], GROUPS),
    "unseen label": (RANDOM[:6], np.tile([True, True, False], (6, 1))),
    "huge features": (1e8 * RANDOM, CYCLE),
}
METHODS = [
    *(PLKNN(weights=weights) for weights in ("distance", "uniform", "rank")),
    IPAL(),
    *(PLLEAF(transductive=rule) for rule in ("confidences", "model")),
    *(CLPL(standardize=standardize) for standardize in (True, False)),
    *(PLSVM(standardize=standardize) for standardize in (True, False)),
    *(
        LSBCMM(components_per_label=number, max_iter=30, standardize=standardize)
        for number in (1, 5)
        for standardize in (True, False)
    ),
    PLECOC(),
    M3PL(),
    SURE(),
    LALO(),
    PLAGGD(),
    PLCL(),
]
EXPECTED_WARNINGS = [
    ".* so that every row has all others",
    ".* random splits of the labels",
    # The solver of older versions of scikit-learn does not notice that it is done.
    "Liblinear failed to converge",
]


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_degenerate_data(method, name):
    X, mask = DATA[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for message in EXPECTED_WARNINGS:
            warnings.filterwarnings("ignore", message=message)
        model = method.set_params(random_state=0).fit(X, mask)
        rate = getattr(model, "predict_proba", None) or model.decision_function
        scores, predicted = rate(X), model.predict(X)
    seen = mask.any(axis=0)
    assert np.isfinite(scores[:, seen] if scores.ndim == 2 else scores).all()
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(scores.sum(axis=1), 1.0)
    assert seen[predicted].all()
    assert mask[np.arange(len(X)), model.labels_].all()
    np.testing.assert_allclose(model.label_confidences_.sum(axis=1), 1.0)
    assert (model.label_confidences_[~mask] == 0).all()
    bounds = getattr(model, "bound_path_", np.zeros(1))
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
