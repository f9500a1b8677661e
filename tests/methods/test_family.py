"""What every method of the family promises."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gmpll import GMPLL, IPAL, LALO, LSBCMM, M3PL, PLAGGD, PLCL, PLKNN, PLLEAF
from gmpll.methods import METHODS
from problems import random_problem

ESTIMATORS = [Method(random_state=0) for Method in METHODS.values()]
VARIANTS = [
    IPAL(n_neighbors=3, alpha=0.5),
    LSBCMM(components_per_label=1, max_iter=20),
    M3PL(C_max=0.1, growth=4.0),
    PLKNN(weights="rank", n_neighbors=3),
    PLLEAF(n_neighbors=3, transductive="model"),
    PLCL(n_neighbors=3, complementary=0.0, unit_rows=True),
    GMPLL(random_state=0),
    GMPLL(alpha=0.1, random_state=0),
    GMPLL("local", prediction="joint", random_state=0, balance=0.5),
]


def case(seed=0, m=60, d=4, q=4):
    X, mask, _ = random_problem(seed, m=m, d=d, q=q)
    return X, mask


@parametrize_with_checks([*ESTIMATORS, *VARIANTS])
def test_scikit_learn(estimator, check):
    check(estimator)


every_method = pytest.mark.parametrize("method", ESTIMATORS, ids=lambda m: type(m).__name__)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@every_method
def test_confidences_live_on_the_candidates(method):
    X, mask = case()
    model = clone(method).fit(X, mask)
    confidences = model.label_confidences_
    assert confidences.shape == mask.shape
    assert (confidences[~mask] == 0).all()
    assert (confidences >= 0).all()
    np.testing.assert_allclose(confidences.sum(axis=1), 1.0)
    assert mask[np.arange(len(mask)), model.labels_].all()
    np.testing.assert_array_equal(
        confidences[np.arange(len(mask)), model.labels_], confidences.max(axis=1)
    )


@every_method
def test_repeated_fits_agree_and_copies_predict_alike(method):
    X, mask = case()
    first, second = clone(method).fit(X, mask), clone(method).fit(X, mask)
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.label_confidences_, second.label_confidences_)
    revived = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(first.predict(X), revived.predict(X))
    np.testing.assert_array_equal(first.fit_predict(X, mask), second.labels_)
    if hasattr(first, "predict_proba"):
        labels, shares = first.predict_both(X)
        np.testing.assert_array_equal(labels, first.predict(X))
        np.testing.assert_array_equal(shares, first.predict_proba(X))


@every_method
def test_all_forms_of_candidates_are_one(method):
    X, mask = case()
    reference = clone(method).fit(X, mask)
    names = np.array(["a", "b", "c", "d"])
    forms = {
        "integers": (mask.astype(int), np.arange(4)),
        "sparse": (sp.csr_matrix(mask.astype(int)), np.arange(4)),
        "frame": (pd.DataFrame(mask.astype(int), columns=names), names),
        "sets": ([set(names[row]) for row in mask], names),
        "lists": ([names[row].tolist() for row in mask], names),
    }
    for form, (y, labels) in forms.items():
        model = clone(method).fit(X, y)
        np.testing.assert_array_equal(model.classes_, labels, err_msg=form)
        np.testing.assert_array_equal(model.labels_, labels[reference.labels_], err_msg=form)
        np.testing.assert_array_equal(model.predict(X), labels[reference.predict(X)], form)


@every_method
def test_sparse_and_frame_features(method):
    X, mask = case()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    reference = clone(method).fit(X, mask)
    sparse = clone(method).fit(sp.csr_matrix(X), mask)
    np.testing.assert_array_equal(reference.labels_, sparse.labels_)
    np.testing.assert_array_equal(reference.predict(X), sparse.predict(sp.csr_matrix(X)))
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = clone(method).fit(frame, mask)
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(reference.predict(X), model.predict(frame))


@every_method
def test_scikit_learn_tools_work_with_candidate_matrices(method):
    X, mask = case()
    pipeline = make_pipeline(StandardScaler(), clone(method))
    result = cross_validate(pipeline, X, mask, cv=3, error_score="raise")
    assert (result["test_score"] > 0.2).all()
    lists = [np.flatnonzero(row).tolist() for row in mask]
    result = cross_validate(clone(method), X, lists, cv=KFold(3), error_score="raise")
    assert len(result["test_score"]) == 3
    frame = pd.DataFrame(mask, columns=list("wxyz"))
    search = GridSearchCV(clone(method), {"random_state": [0, 1]}, cv=2, error_score="raise")
    search.fit(X, frame)
    assert set(search.predict(X)) <= set("wxyz")


@every_method
def test_truth_is_found_where_it_is_easy(method):
    rng = np.random.RandomState(0)
    y = np.repeat(np.arange(4), 30)
    X = 6 * rng.randn(4, 6)[y] + rng.randn(120, 6)
    mask = np.eye(4, dtype=bool)[y]
    partial = rng.random_sample(120) < 0.6
    mask[partial, rng.randint(4, size=partial.sum())] = True
    order = rng.permutation(120)
    X, y, mask = X[order], y[order], mask[order]
    model = clone(method).fit(X[:90], mask[:90])
    assert (model.labels_ == y[:90]).mean() > 0.9
    assert model.score(X[90:], y[90:]) > 0.9


@every_method
def test_a_wrong_parameter_is_one_sentence(method):
    X, mask = case()
    with pytest.raises(ValueError, match="The 'random_state' parameter of"):
        clone(method).set_params(random_state="seven").fit(X, mask)


@every_method
def test_unseen_labels_keep_their_place(method):
    X, mask = case()
    wide = np.zeros((60, 6), dtype=bool)
    wide[:, [0, 2, 3, 5]] = mask
    model, reference = clone(method).fit(X, wide), clone(method).fit(X, mask)
    assert len(model.classes_) == 6
    np.testing.assert_array_equal(model.labels_, np.array([0, 2, 3, 5])[reference.labels_])
    assert not np.isin(model.predict(X), [1, 4]).any()


def test_parameter_tables_cover_the_constructors():
    for Method in METHODS.values():
        assert set(Method._parameter_constraints) == set(Method().get_params()), Method


@pytest.mark.parametrize("Method", [PLKNN, IPAL, PLLEAF, LALO, PLAGGD, PLCL])
def test_no_more_rows_than_neighbours(Method):
    X, mask, _ = random_problem(0, m=8)
    with pytest.warns(UserWarning, match="n_samples=8 rows and n_neighbors=8, so that every row"):
        Method(n_neighbors=8, random_state=0).fit(X, mask)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Method(n_neighbors=7, random_state=0).fit(X, mask)
