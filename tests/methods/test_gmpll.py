import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.datasets import load_iris

from gmpll import GMPLL
from gmpll.datasets import make_partial_label_problem
from gmpll.methods.gmpll import assigned_set_size
from literal import affinity, algorithm_1, standardize_features
from problems import problems, random_label_similarity, random_problem

PAPER = {"prediction": "joint"}


def unit(Z):
    length = np.linalg.norm(Z, axis=1, keepdims=True)
    return Z / np.where(length > 0, length, 1.0)


@settings(max_examples=30, deadline=None)
@given(
    problem=problems(),
    alpha=st.sampled_from([0.0, 0.1, 0.2]),
    beta=st.sampled_from([0.3, 0.6, 0.8]),
    with_similarity=st.booleans(),
)
def test_confidences_are_those_of_algorithm_1(problem, alpha, beta, with_similarity):
    X, mask, _ = problem
    similarity = None
    if with_similarity:
        similarity = random_label_similarity(np.random.RandomState(1), mask.shape[1])
    model = GMPLL(alpha=alpha, beta=beta, label_similarity=similarity, max_iter=30).fit(X, mask)
    expected = algorithm_1(standardize_features(X), mask, alpha, beta, similarity, max_iter=30)
    np.testing.assert_allclose(model.label_confidences_, expected, atol=1e-8)
    assert mask[np.arange(len(mask)), np.searchsorted(model.classes_, model.labels_)].all()


def literal_candidates(U, Q, labels, k, r, q):
    """OP (4) by a loop over nnls, then the r labels with the largest vote."""
    mask = np.zeros((len(Q), q), dtype=bool)
    for i, x in enumerate(Q):
        near = np.argsort(np.linalg.norm(U - x, axis=1))[:k]
        system = np.vstack([U[near].T, 1e5 * np.ones(k)])
        weights = nnls(system, np.append(x, 1e5))[0]
        vote = np.bincount(labels[near], weights, minlength=q)
        mask[i, np.argsort(-vote)[:r]] = True
        mask[i] &= vote > 1e-9
    return mask


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_joint_prediction_is_the_paper_construction(seed, alpha):
    # More features than neighbours, so that the reconstruction weights are unique.
    X, mask, _ = random_problem(seed, m=40, d=12, q=4)
    train, test = X[:30], X[30:]
    model = GMPLL(**PAPER, alpha=alpha, beta=0.3, n_neighbors=6, r=3, max_iter=30)
    model.fit(train, mask[:30])

    Z, Zt = standardize_features(train), standardize_features(test, reference=train)
    candidates = literal_candidates(unit(Z), unit(Zt), model.labels_, 6, 3, 4)
    single = np.eye(4, dtype=bool)[model.labels_]
    expected = algorithm_1(
        np.vstack([Z, Zt]), np.vstack([single, candidates]), alpha, 0.3, max_iter=30
    )
    np.testing.assert_allclose(model.predict_proba(test), expected[30:], atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_independent_prediction_is_one_turn_from_the_vote(alpha):
    X, mask, _ = random_problem(5, m=40, d=12, q=4)
    train, query = X[:39], X[39:]
    model = GMPLL(
        graph="full", balance=0.5, alpha=alpha, beta=0.3, r=4, n_neighbors=6, random_state=0
    ).fit(train, mask[:39])
    model_r1 = GMPLL(**{**model.get_params(), "r": 1}).fit(train, mask[:39])
    vote = model_r1.predict_proba(query)[0]

    # Affinity of the query's assignments to the matched training rows, with their statistics.
    Z = standardize_features(train)
    zq = standardize_features(query, reference=train)
    single = np.eye(4, dtype=bool)[model.labels_]
    U, uq = unit(Z), unit(zq)
    A = (1 + U @ U.T) / 2
    same = model.labels_[:, None] == model.labels_[None, :]
    K = np.where(same, A, 1 - A)
    np.fill_diagonal(K, 1.0)
    counts = (K > 1e-12).sum(axis=1)
    K = K * (1 + alpha * np.log2(counts[:, None] + counts[None, :]))
    a = (1 + U @ uq[0]) / 2
    support = np.zeros(4)
    for label in range(4):
        k = np.where(model.labels_ == label, a, 1 - a)
        k = k * (1 + alpha * np.log2((k > 0).sum() + counts))
        k = (k - K.mean()) / K.std()
        support[label] = k[k >= 0.3].sum()
    expected = vote * support / np.maximum(single.sum(axis=0), 1) ** 0.5
    expected = np.where(vote > 0, expected, 0)
    np.testing.assert_allclose(model.predict_proba(query)[0], expected / expected.sum(), atol=1e-8)


def test_r_is_the_formula_of_the_paper():
    # Table 5 prints 3 for Lost (2.23 candidates, 16 labels) and 2 for Soccer Player (2.09, 171).
    def sets(mean, q):
        mask = np.zeros((100, q), dtype=bool)
        mask[:, : int(mean)] = True
        mask[: round(100 * (mean - int(mean))), int(mean) :][:, :1] = True
        return mask

    assert assigned_set_size(sets(2.23, 16)) == 3
    assert assigned_set_size(sets(2.09, 171)) == 2
    assert assigned_set_size(sets(1.0, 1)) == 1
    X, y = load_iris(return_X_y=True)
    assert GMPLL(r=2).fit(X, y).r_ == 2


@pytest.mark.parametrize("graph", ["local", "full"])
def test_independent_answers_do_not_depend_on_the_batch_but_joint_ones_do(graph):
    X, mask, _ = random_problem(3, m=80, d=5, q=5)
    independent = GMPLL(graph=graph, random_state=0).fit(X[:60], mask[:60])
    together = independent.predict_proba(X[60:])
    alone = np.vstack([independent.predict_proba(row[None]) for row in X[60:]])
    np.testing.assert_allclose(together, alone, atol=1e-10)
    joint = GMPLL(graph=graph, prediction="joint", random_state=0).fit(X[:60], mask[:60])
    together = joint.predict_proba(X[60:])
    alone = np.vstack([joint.predict_proba(row[None]) for row in X[60:]])
    assert np.abs(together - alone).max() > 1e-6


def test_balance_frees_rare_labels():
    """A label in every set must not swallow the rest."""
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1, 2], [60, 20, 20])
    X = rng.randn(3, 5)[y] * 3 + rng.randn(100, 5)
    mask = np.eye(3, dtype=bool)[y]
    mask[:, 0] = True
    snowball = (GMPLL("local", random_state=0).fit(X, mask).labels_ == y).mean()
    balanced = (GMPLL("local", balance=0.5, random_state=0).fit(X, mask).labels_ == y).mean()
    assert balanced > snowball


def test_label_similarity_lets_neighbouring_labels_support_each_other():
    # The middle row's neighbours say 1 and 3; with ordered labels both support 2, not 9.
    X = np.array([[0.0, 1.0], [0.1, 1.0], [0.2, 1.0], [5.0, -3.0], [5.1, -3.0]])
    y = [{1}, {2, 9}, {3}, {9}, {9}]
    labels = np.array([1, 2, 3, 9])
    similarity = np.exp(-np.abs(labels[:, None] - labels[None, :]))
    model = GMPLL("local", n_graph_neighbors=2, label_similarity=similarity, random_state=0)
    assert model.fit(X, y).labels_[1] == 2


def test_no_information_gives_uniform_confidences_and_random_labels():
    """The tie-breaking trap: with an empty graph no label order may show in the labels."""
    rng = np.random.RandomState(0)
    mask = np.ones((600, 4), dtype=bool)
    model = GMPLL(beta=1e6, random_state=0).fit(rng.randn(600, 3), mask)
    np.testing.assert_array_equal(model.label_confidences_, np.full((600, 4), 0.25))
    counts = np.bincount(model.labels_, minlength=4)
    assert counts.min() > 100
    assert (
        GMPLL(beta=1e6, random_state=1).fit(rng.randn(600, 3), mask).labels_ != model.labels_
    ).any()


@pytest.mark.parametrize(
    "params", [{}, PAPER, {"graph": "local"}, {"graph": "local", "prediction": "joint"}]
)
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((1, 2)), [{0, 1}]),
        (np.ones((2, 1)), [{0}, {1}]),
        (np.zeros((5, 3)), [{0, 1}] * 5),
        (np.arange(6.0)[:, None], [{"a"}] * 6),
        (np.vstack([np.ones((5, 2)), np.zeros((5, 2))]), [{0, 1}, {1}] * 5),
        (np.arange(20.0).reshape(10, 2), [set(range(10))] * 10),
        (np.arange(20.0).reshape(10, 2) * 1e150, [{0}, {1}] * 5),
        (np.arange(20.0).reshape(10, 2) * 1e-150, [{0}, {1}] * 5),
    ],
)
def test_edges(params, X, y):
    model = GMPLL(**params).fit(X, y)
    assert np.isfinite(model.label_confidences_).all()
    np.testing.assert_allclose(model.label_confidences_.sum(axis=1), 1.0)
    probabilities = model.predict_proba(X)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert set(model.predict(X)) <= set(model.classes_)


def test_a_label_that_no_row_contains_is_never_predicted():
    X, y = load_iris(return_X_y=True)
    mask = np.zeros((150, 5), dtype=bool)
    mask[np.arange(150), np.array([0, 2, 4])[y]] = True
    similarity = np.eye(5)
    model = GMPLL(random_state=0, label_similarity=similarity).fit(X, mask)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    assert (model.predict_proba(X)[:, [1, 3]] == 0).all()
    assert model.label_confidences_.shape == (150, 5)
    assert model.score(X, np.array([0, 2, 4])[y]) > 0.9


def test_the_dense_affinity_of_the_tests_is_the_paper_rule():
    """Two instances at cosine 0 (A = 1/2): same label 1/2, different 1/2, self 1, own other 0."""
    K = affinity(np.eye(2), np.array([[True, True], [True, False]]), beta=-np.inf)
    assert K.shape == (3, 3)
    mean, std = (
        np.mean([1, 0, 0.5, 0, 1, 0.5, 0.5, 0.5, 1]),
        np.std([1, 0, 0.5, 0, 1, 0.5, 0.5, 0.5, 1]),
    )
    assert K[0, 0] == pytest.approx((1 - mean) / std)


@pytest.mark.parametrize("graph", ["full", "local"])
def test_a_model_of_single_precision_rows_holds_them_once(graph):
    problem = make_partial_label_problem(200, 120, 4, 2.0, random_state=0)
    X = problem.data.astype(np.float32)
    model = GMPLL(graph, n_graph_neighbors=10, random_state=0).fit(X, problem.candidates)
    model.predict(X)
    dumped = pickle.dumps(model)
    assert len(dumped) < 4 * X.size + 120_000
    np.testing.assert_array_equal(pickle.loads(dumped).predict_proba(X), model.predict_proba(X))
