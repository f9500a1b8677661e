"""What changes nothing: order of rows, labels and features, units, containers, threads.

``TOLERANCE`` says for every method how far the confidences may move, and why they move at all:

==========  ======  ======  =====  ================================================================
method      rows    labels  units  why
==========  ======  ======  =====  ================================================================
GM-PLL      close   close   close  sums in another order; from 30 rows on a setting is chosen on
                                   random parts of the rows, which may turn out otherwise in
                                   another order
PL-KNN      close   close   close  sums in another order
PL-SVM      close   close   close  sums in another order
CLPL        close   close   close  the optimiser stops within its tolerance
LSB-CMM     5e-2    5e-2    5e-2   unfinished optimisations inside of EM amplify rounding
M3PL        no      no      close  LIBLINEAR takes rows and labels in a random order of places;
                                   the problem has many minima
PL-LEAF     close   close   close  sums in another order
IPAL        close   close   close  sums in another order
PL-ECOC     1e-2    no      close  LIBSVM stops within its tolerance; codes are drawn place by place
SURE        close   close   close  sums in another order
LALO        close   close   close  sums in another order
PL-AGGD     close   close   close  the optimiser stops within its tolerance
PL-CL       close   close   close  the optimiser stops within its tolerance
==========  ======  ======  =====  ================================================================

Exact for all: repeated fits, any container and any form of the candidates, single precision
input, names of the labels, threads, units that are powers of two. No method promises that copying
every row changes nothing (neighbourhoods and penalties change), except PL-SVM, whose loss is a
mean; but copies of a row get the confidences of the row, except in M3PL, whose class sizes may
have to part them.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from generic import awkward_features, examples, generic_problems, masks, refused
from hypothesis import given
from hypothesis import strategies as st
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
    explain,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.parametrize(
        "method",
        METHODS := [
            PartialLabelClassifier(random_state=0),
            GMPLL("local", random_state=0, balance=0.5),
            GMPLL(prediction="joint", random_state=0),
            PLKNN(random_state=0),
            PLSVM(max_iter=60, random_state=0),
            CLPL(random_state=0),
            LSBCMM(components_per_label=2, max_iter=12, random_state=0),
            M3PL(growth=19.0, random_state=0),
            PLLEAF(random_state=0),
            IPAL(random_state=0),
            PLECOC(min_per_side=1, random_state=0),
            SURE(max_iter=10, random_state=0),
            LALO(max_iter=10, random_state=0),
            PLAGGD(max_iter=3, random_state=0),
            PLCL(max_iter=3, random_state=0),
        ],
        ids=[
            "GMPLL", "GMPLL-independent", "GMPLL-paper", "PLKNN", "PLSVM", "CLPL", "LSBCMM",
            "M3PL", "PLLEAF", "IPAL", "PLECOC", "SURE", "LALO", "PLAGGD", "PLCL",
        ],
    ),
]  # fmt: skip

CLOSE = 1e-6
TOLERANCE = {
    "rows": {LSBCMM: 5e-2, M3PL: None, PLECOC: 1e-2},
    "labels": {LSBCMM: 5e-2, M3PL: None, PLECOC: None},
    "units": {LSBCMM: 5e-2},
}


def tolerance(method, change):
    return TOLERANCE[change].get(type(method), CLOSE)


def scores(model, X):
    rate = model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
    return rate(X)


def assert_same(one, other, queries):
    """Assert that two fitted models agree to the last bit."""
    np.testing.assert_array_equal(one.label_confidences_, other.label_confidences_)
    np.testing.assert_array_equal(scores(one, queries), scores(other, queries))
    np.testing.assert_array_equal(one.predict(queries), other.predict(queries))


def assert_probabilities(model, mask):
    confidences = model.label_confidences_
    assert np.isfinite(confidences).all()
    assert (confidences >= 0).all()
    assert (confidences[~mask] == 0).all()
    np.testing.assert_allclose(confidences.sum(axis=1), 1.0)
    assert mask[np.arange(len(mask)), model.labels_].all()


@given(st.data(), masks(max_rows=7, max_labels=4))
@examples(12)
def test_awkward_data_is_learnt_from(method, data, mask):
    X = data.draw(awkward_features(len(mask)))
    model = clone(method).fit(X, mask)
    assert_probabilities(model, mask)
    queries = data.draw(st.sampled_from([X, -X, np.zeros_like(X), np.full_like(X, 1e300)]))
    rated = scores(model, queries)
    assert not np.isnan(rated).any()
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(rated.sum(axis=1), 1.0)
    assert np.isin(model.predict(queries), np.flatnonzero(mask.any(axis=0))).all()
    assert 0 <= model.score(X, mask) <= 1


@given(generic_problems())
@examples(2)
def test_containers_repetitions_and_threads_change_nothing(method, problem):
    X, mask, queries = problem
    X = np.where(np.abs(X) < 0.2, 0.0, X).astype(np.float32)
    reference = clone(method).fit(X.astype(np.float64), mask)
    names = np.array([f"n{code}" for code in range(mask.shape[1])])
    assert_same(reference, clone(method).fit(X, mask), queries)
    assert_same(reference, clone(method).fit(sp.csr_array(X), sp.csr_array(mask * 1)), queries)
    assert_same(reference, clone(method).fit(np.asfortranarray(X), mask.astype(int)), queries)
    if "n_jobs" in method.get_params():
        assert_same(reference, clone(method).set_params(n_jobs=2).fit(X, mask), queries)
    for form in (pd.DataFrame(mask, columns=names), [set(names[row]) for row in mask]):
        named = clone(method).fit(X, form)
        np.testing.assert_array_equal(named.label_confidences_, reference.label_confidences_)
        np.testing.assert_array_equal(named.labels_, names[reference.labels_])
        np.testing.assert_array_equal(named.predict(queries), names[reference.predict(queries)])


@given(generic_problems(), st.randoms(use_true_random=False))
@examples(4)
def test_the_order_of_rows_does_not_matter(method, problem, random):
    X, mask, queries = problem
    allowed = tolerance(method, "rows")
    order = np.array(random.sample(range(len(X)), len(X)))
    one, other = clone(method).fit(X, mask), clone(method).fit(X[order], mask[order])
    if allowed is None:
        assert_probabilities(other, mask[order])
        return
    np.testing.assert_allclose(
        other.label_confidences_, one.label_confidences_[order], atol=allowed, rtol=0
    )
    np.testing.assert_allclose(scores(other, queries), scores(one, queries), atol=10 * allowed)


@given(generic_problems(), st.randoms(use_true_random=False))
@examples(4)
def test_the_order_of_labels_does_not_matter(method, problem, random):
    X, mask, _ = problem
    allowed = tolerance(method, "labels")
    order = np.array(random.sample(range(mask.shape[1]), mask.shape[1]))
    one, other = clone(method).fit(X, mask), clone(method).fit(X, mask[:, order])
    if allowed is None:
        assert_probabilities(other, mask[:, order])
        return
    np.testing.assert_allclose(
        other.label_confidences_, one.label_confidences_[:, order], atol=allowed, rtol=0
    )


@given(generic_problems(), st.data())
@examples(4)
def test_units_and_the_order_of_features_do_not_matter(method, problem, data):
    X, mask, queries = problem
    # The default compares features in their own units too: there only a common unit is free.
    d = 1 if isinstance(method, PartialLabelClassifier) else X.shape[1]
    one = clone(method).fit(X, mask)
    powers = 2.0 ** np.array(data.draw(st.lists(st.integers(-400, 400), min_size=d, max_size=d)))
    scaled = clone(method).fit(X * powers, mask)
    np.testing.assert_array_equal(scaled.label_confidences_, one.label_confidences_)
    np.testing.assert_array_equal(scores(scaled, queries * powers), scores(one, queries))
    factor = np.array(data.draw(st.lists(st.floats(1e-3, 1e3), min_size=d, max_size=d)))
    shift = np.array(data.draw(st.lists(st.floats(-10, 10), min_size=d, max_size=d)))
    other = clone(method).fit(((X + shift) * factor)[:, ::-1], mask)
    np.testing.assert_allclose(
        other.label_confidences_,
        one.label_confidences_,
        atol=tolerance(method, "units"),
        rtol=0,
    )


@given(generic_problems(max_rows=10))
@examples(2)
def test_copies_of_a_row_share_its_fate(method, problem):
    X, mask, _ = problem
    model = clone(method).fit(np.vstack([X, X]), np.vstack([mask, mask]))
    first, second = np.split(model.label_confidences_, 2)
    if isinstance(method, M3PL):
        assert_probabilities(model, np.vstack([mask, mask]))
        return
    # Of two copies at the same distance LALO's graph may take one: the k-th neighbour.
    atol = 1e-2 if isinstance(method, LALO) else CLOSE
    np.testing.assert_allclose(first, second, atol=atol, rtol=0)
    if isinstance(method, PLSVM):
        alone = clone(method).fit(X, mask)
        np.testing.assert_allclose(first, alone.label_confidences_, atol=CLOSE, rtol=0)


@given(masks(), masks(), st.sampled_from(["fit", "score", "predict"]))
@examples(6)
def test_what_does_not_fit_together_is_refused_in_a_sentence(method, mask, other, call):
    X = np.arange(float(len(mask) * 2)).reshape(-1, 2)
    if call == "fit" and len(mask) != len(other):
        error, _ = refused(lambda: clone(method).fit(X, other), ValueError)
        assert "rows" in str(error)
        return
    model = clone(method).fit(X, mask)
    error, _ = refused(lambda: model.predict(np.ones((3, 5))), ValueError)
    assert "features" in str(error)
    error, _ = refused(lambda: model.predict(np.full((1, 2), np.nan)), ValueError)
    assert "NaN" in str(error)


@given(generic_problems(), st.integers(-3, 20))
@examples(2)
def test_explanations_hold_for_every_row(method, problem, row):
    X, mask, _ = problem
    model = clone(method).fit(X, mask)
    error, explanation = refused(lambda: explain(model, row), (ValueError, TypeError, IndexError))
    if error is None:
        assert explanation is not None
