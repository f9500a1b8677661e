import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from gmpll.methods.plknn import PLKNN
from problems import random_problem


@parametrize_with_checks([PLKNN(), PLKNN(weights="rank", n_neighbors=3)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def literal_votes(rows, mask, query, k, scheme, leave_out=None):
    """The published rule, one neighbour after the other."""
    distance = np.sqrt(((rows - query) ** 2).sum(axis=1))
    order = [j for j in np.argsort(distance, kind="stable") if j != leave_out][:k]
    votes = np.zeros(mask.shape[1])
    for rank, j in enumerate(order):
        weight = {
            "uniform": 1.0,
            "rank": k - rank,
            "distance": 1.0 - distance[j] / distance[order].sum(),
        }[scheme]
        for label in np.flatnonzero(mask[j]):
            votes[label] += weight
    return votes


@pytest.mark.parametrize("scheme", ["distance", "uniform", "rank"])
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_the_rule_written_out(scheme, seed):
    X, mask, _ = random_problem(seed, m=40, d=5, q=6)
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    model = PLKNN(n_neighbors=7, weights=scheme, random_state=0).fit(X, mask)

    for i in range(40):
        votes = literal_votes(rows, mask, rows[i], 7, scheme, leave_out=i) * mask[i]
        if votes.any():
            np.testing.assert_allclose(model.label_confidences_[i], votes / votes.sum())
            assert votes[model.labels_[i]] == pytest.approx(votes.max())

    unseen = np.random.RandomState(seed).randn(15, 5)
    shares = model.predict_proba(unseen)
    for share, query, label in zip(shares, unseen, model.predict(unseen), strict=True):
        scaled = (query - X.mean(axis=0)) / X.std(axis=0)
        votes = literal_votes(rows, mask, scaled, 7, scheme)
        np.testing.assert_allclose(share, votes / votes.sum())
        assert votes[label] == pytest.approx(votes.max())


def test_votes_count_whole_however_large_the_set():
    X = np.array([[0.0], [0.1], [5.0]])
    mask = np.array([[1, 1, 1], [0, 1, 0], [1, 0, 0]])
    model = PLKNN(n_neighbors=2, weights="uniform", random_state=0).fit(X, mask)
    np.testing.assert_allclose(model.predict_proba([[0.0]]), [[1 / 4, 2 / 4, 1 / 4]])


def test_an_unseen_row_keeps_its_nearest_neighbour():
    # A variant in circulation drops the nearest one, as one must for training rows only.
    X = np.arange(8.0)[:, None]
    model = PLKNN(n_neighbors=1, random_state=0).fit(X, np.eye(8, dtype=int))
    assert model.predict(X).tolist() == list(range(8))


def test_rows_are_not_scaled_to_length_one():
    X = np.array([[1.0, 1.0], [10.0, 10.0], [1.0, 0.9], [10.0, 9.9]])
    y = ["near", "far", "near", "far"]
    model = PLKNN(n_neighbors=2, standardize=False, random_state=0).fit(X, y)
    assert model.predict([[1.1, 1.1], [9.0, 9.0]]).tolist() == ["near", "far"]


@pytest.mark.parametrize("d", [2, 40])
def test_neighbours_that_coincide_with_the_query_count_alike(d):
    # 40 features are searched by matrix products, whose distances of duplicates are not exact.
    point = np.random.RandomState(0).randn(d)
    X = np.vstack([np.tile(point, (4, 1)), point + 9 + np.random.RandomState(1).randn(6, d)])
    mask = np.zeros((10, 3), dtype=int)
    mask[[0, 1, 2], 0] = 1
    mask[3, 1] = 1
    mask[4:, 2] = 1
    model = PLKNN(n_neighbors=4, random_state=0).fit(X, mask)
    np.testing.assert_allclose(model.predict_proba([point]), [[0.75, 0.25, 0.0]])


def test_without_a_shared_label_the_frequency_decides():
    X = np.array([[0.0], [0.1], [0.2], [9.0], [9.1]])
    candidates = [{"a", "b"}, {"c"}, {"c"}, {"b"}, {"b"}]
    model = PLKNN(n_neighbors=2, random_state=0).fit(X, candidates)
    # Masses: a 1/2, b 1/2 + 2.
    np.testing.assert_allclose(model.label_confidences_[0], [0.5 / 3, 2.5 / 3, 0.0])
    assert model.labels_[0] == "b"


def test_a_single_neighbour_votes():
    # By the formula its weight would be 1 - d/d = 0.
    model = PLKNN(n_neighbors=1, random_state=0).fit([[0.0], [1.0]], ["a", "b"])
    np.testing.assert_allclose(model.predict_proba([[0.2], [0.9]]), [[1, 0], [0, 1]])


def test_more_neighbours_than_rows():
    X, mask, _ = random_problem(3, m=8)
    few = PLKNN(n_neighbors=7, random_state=0).fit(X, mask)
    many = PLKNN(n_neighbors=500, random_state=0).fit(X, mask)
    np.testing.assert_array_equal(few.label_confidences_, many.label_confidences_)
    everybody = many.predict_proba(X[:1])
    assert np.all(everybody[0][mask.any(axis=0)] > 0)


def test_permuting_rows_and_labels_permutes_the_answer():
    X, mask, _ = random_problem(5, m=60, d=4, q=5)
    rng = np.random.RandomState(0)
    rows, columns = rng.permutation(60), rng.permutation(5)
    model = PLKNN(random_state=0).fit(X, mask)
    permuted = PLKNN(random_state=0).fit(X[rows], mask[rows][:, columns])
    expected = model.label_confidences_[rows][:, columns]
    np.testing.assert_allclose(permuted.label_confidences_, expected)
    unseen = rng.randn(20, 4)
    np.testing.assert_allclose(
        permuted.predict_proba(unseen), model.predict_proba(unseen)[:, columns]
    )


DEGENERATE = {
    "one row": ([[1.0, 2.0]], [[1, 1, 0]]),
    "one label": (np.random.RandomState(0).randn(5, 2), np.ones((5, 1), dtype=bool)),
    "full sets": (np.random.RandomState(0).randn(12, 2), np.ones((12, 3), dtype=int)),
    "singletons": (np.random.RandomState(0).randn(12, 2), np.eye(3, dtype=int)[np.arange(12) % 3]),
    "duplicates": (np.ones((12, 3)), np.tile([[1, 1, 0], [0, 1, 1]], (6, 1))),
    "zero rows": (np.zeros((4, 3)), [[1, 0], [1, 1], [0, 1], [1, 1]]),
    "constant feature": (
        np.c_[np.ones(12), np.arange(12)],
        np.eye(4, dtype=int)[np.arange(12) // 3],
    ),
    "unseen label": (np.random.RandomState(0).randn(6, 2), np.tile([1, 1, 0], (6, 1))),
}


@pytest.mark.parametrize("weights", ["distance", "uniform", "rank"])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_data(name, weights):
    X, mask = np.asarray(DEGENERATE[name][0]), np.asarray(DEGENERATE[name][1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".* n_neighbors=10, so that")  # few rows
        model = PLKNN(weights=weights, random_state=0).fit(X, mask)
        shares = model.predict_proba(X)
        labels = model.predict(X)
    confidences = model.label_confidences_
    np.testing.assert_allclose(confidences.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.all(confidences[~mask.astype(bool)] == 0)
    assert mask[np.arange(len(X)), model.labels_].all()
    assert mask.any(axis=0)[labels].all()


@pytest.mark.parametrize(
    ("name", "inductive", "transductive"), [("lost", 0.398, 0.615), ("MSRCv2", 0.445, 0.616)]
)
def test_accuracy_on_real_data_is_as_expected(name, inductive, transductive):
    folder = os.environ.get("GMPLL_DATA")
    if not folder or not (Path(folder) / "realworld" / f"{name}.mat").exists():
        pytest.skip(f"GMPLL_DATA names no folder with realworld/{name}.mat")
    content = scipy.io.loadmat(Path(folder) / "realworld" / f"{name}.mat")
    X, mask = content["data"], content["partial_target"].toarray().T > 0
    truth = content["target"].toarray().argmax(axis=0)
    unseen, seen = [], []
    for train, test in KFold(10, shuffle=True, random_state=0).split(X):
        model = PLKNN(random_state=0).fit(X[train], mask[train])
        unseen.append(np.mean(model.predict(X[test]) == truth[test]))
        seen.append(np.mean(model.labels_ == truth[train]))
    # Expected: an independent implementation (unseen rows), the GM-PLL article (training rows).
    assert np.mean(unseen) == pytest.approx(inductive, abs=0.04)
    assert np.mean(seen) == pytest.approx(transductive, abs=0.04)
