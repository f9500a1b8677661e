import numpy as np
import pytest

from gmpll.methods.plknn import PLKNN
from problems import random_problem


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
