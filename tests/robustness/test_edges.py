"""Every method at the edges of what a problem can be."""

import numpy as np
import pytest
from sklearn.base import clone

from gmpll import (
    CLPL,
    GMPLL,
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
    PartialLabelClassifier,
)
from gmpll.graph.views import Scaling
from gmpll.methods import lsbcmm, m3pl
from problems import random_problem

METHODS = [
    PartialLabelClassifier(random_state=0),
    GMPLL(prediction="joint", random_state=0),
    PLKNN(random_state=0),
    PLSVM(max_iter=100, random_state=0),
    CLPL(random_state=0),
    LSBCMM(components_per_label=2, max_iter=20, random_state=0),
    M3PL(growth=19.0, random_state=0),
    PLLEAF(random_state=0),
    IPAL(random_state=0),
    PLECOC(random_state=0),
    SURE(random_state=0),
    LALO(random_state=0),
    PLAGGD(random_state=0),
    PLCL(random_state=0),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
pytestmark = pytest.mark.filterwarnings("ignore")

X, MASK, _ = random_problem(0, m=12, d=3, q=4)
SINGLE = np.eye(4, dtype=bool)
CASES = {
    "one row": (X[:1], MASK[:1]),
    "one row, every label": (X[:1], np.ones((1, 4), dtype=bool)),
    "two rows": (X[:2], MASK[:2]),
    "one label": (X, np.ones((12, 1), dtype=bool)),
    "every label everywhere": (X, np.ones((12, 4), dtype=bool)),
    "no ambiguity": (X, SINGLE[np.arange(12) % 4]),
    "the same label for all": (X, SINGLE[np.zeros(12, dtype=int)]),
    "huge": (X * 1e300, MASK),
    "the largest": (np.sign(X) * np.finfo(float).max, MASK),
    "tiny": (X * 1e-300, MASK),
    "below normal": (X * 1e-320, MASK),
    "features of all sizes": (X * [1e300, 1.0, 1e-300], MASK),
    "rows of all sizes": (X * np.tile([1e300, 1e-300], 6)[:, None], MASK),
    "far from zero": (X + 1e12, MASK),
    "equal rows": (np.ones((12, 3)), MASK),
    "zeros": (np.zeros((12, 3)), MASK),
    "contradicting copies": (
        np.vstack([X[:6], X[:6]]),
        np.vstack([SINGLE[np.arange(6) % 4], SINGLE[np.arange(1, 7) % 4]]),
    ),
    "a constant feature": (np.hstack([X, np.full((12, 1), 7.0)]), MASK),
    "one feature": (X[:, :1], MASK),
    "more features than rows": (np.random.RandomState(1).standard_normal((12, 60)), MASK),
    "two different rows": (np.repeat(X[:2], 6, axis=0), MASK),
}


@every_method
@pytest.mark.parametrize("case", CASES)
def test_edges(method, case):
    features, mask = CASES[case]
    model = clone(method).fit(features, mask)
    confidences = model.label_confidences_
    assert np.isfinite(confidences).all()
    assert (confidences >= 0).all()
    assert (confidences[~mask] == 0).all()
    np.testing.assert_allclose(confidences.sum(axis=1), 1.0)
    assert mask[np.arange(len(mask)), model.labels_].all()

    seen = mask.any(axis=0)
    for queries in (features, np.zeros_like(features), np.full_like(features, 1e300)):
        predicted = model.predict(queries)
        assert seen[predicted].all()
        rate = model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
        rated = rate(queries)
        assert not np.isnan(rated).any()
        if hasattr(model, "predict_proba"):
            np.testing.assert_allclose(rated.sum(axis=1), 1.0)


@every_method
def test_sizes_of_features_change_nothing(method):
    """Powers of two are exact, so even features near 1e300 give the very same confidences."""
    reference = clone(method).fit(X, MASK).label_confidences_
    for exponent in (900, -900):
        scaled = clone(method).fit(X * 2.0**exponent, MASK)
        np.testing.assert_array_equal(scaled.label_confidences_, reference)


def test_scaling_is_that_of_scikit_learn():
    from sklearn.preprocessing import StandardScaler

    rng = np.random.RandomState(0)
    rows = rng.standard_normal((50, 6)) * [1e-9, 1e-3, 1.0, 7.0, 1e5, 1e12] + [0, 1, 5, -3, 1e6, 0]
    np.testing.assert_array_equal(
        Scaling(rows).transform(rows), StandardScaler().fit(rows).transform(rows)
    )


def many_labels(q, m=12):
    rng = np.random.RandomState(0)
    mask = np.zeros((m, q), dtype=bool)
    mask[rng.randint(m, size=q), np.arange(q)] = True
    return rng.standard_normal((m, 3)), mask


@pytest.mark.parametrize(
    "method",
    [
        # Whether the labels are ordered is found out from all pairs of them: 800 MB.
        GMPLL("local", random_state=0, balance=0.5),
        PLKNN(random_state=0),
        PLSVM(max_iter=3, random_state=0),
        CLPL(max_iter=3, random_state=0),
        PLLEAF(max_iter=1, random_state=0),
        IPAL(max_iter=3, random_state=0),
        PLECOC(max_draws=200, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_ten_thousand_labels(method):
    features, mask = many_labels(10_000)
    model = method.fit(features, mask)
    assert mask[np.arange(len(mask)), model.labels_].all()
    assert model.predict(features[:2]).shape == (2,)


def test_methods_that_cannot_take_so_many_labels_say_so():
    features, mask = many_labels(10_000)
    with pytest.raises(ValueError, match=r"10000 labels with components_per_label=5 would take"):
        LSBCMM(random_state=0).fit(features, mask)
    with pytest.raises(ValueError, match=f"at most {m3pl.MAX_LABELS}"):
        M3PL(random_state=0).fit(features, mask)
    assert lsbcmm.TABLES_LIMIT_BYTES > 8 * lsbcmm.N_TABLES * 5 * 219**2  # the largest of the field
