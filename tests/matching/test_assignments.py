import numpy as np
import pytest

from gmpll.graph.views import unit_rows
from gmpll.matching import AssignmentAffinity, FullAffinity, assignments, uniform_start
from literal import affinity, standardize_features
from problems import random_label_similarity, random_problem


def problem(seed=0, m=15):
    X, mask, _ = random_problem(seed, m=m, zero_rows=True, duplicates=True)
    return standardize_features(X), mask


@pytest.mark.parametrize("alpha", [0.0, 0.2])
@pytest.mark.parametrize("n_rows", [1, 4, 1000])
def test_blocks_do_not_change_anything(alpha, n_rows, monkeypatch):
    Z, mask = problem()
    u = int(mask.sum())
    monkeypatch.setattr(assignments, "BLOCK_BYTES", 8 * u * n_rows)
    A2 = random_label_similarity(np.random.RandomState(1), mask.shape[1])
    operator = AssignmentAffinity(unit_rows(Z), mask, alpha=alpha, beta=0.3, label_similarity=A2)
    dense = affinity(Z, mask, alpha, 0.3, A2)
    P = uniform_start(mask)
    for _ in range(2):  # the second time from what was kept
        found = operator.layout.unpack(operator.apply(operator.layout.pack(P)))
        np.testing.assert_allclose(found[mask], dense @ P[mask], atol=1e-9)
    assert [len(block) for block in operator._final_blocks()] == [
        min(n_rows, u - start) for start in range(0, u, n_rows)
    ]


def test_affinities_are_kept_if_they_fit_and_made_anew_if_not(monkeypatch):
    Z, mask = problem()
    needed = 8 * int(mask.sum()) ** 2
    for store_bytes, kept in ((needed, True), (needed - 1, False)):
        monkeypatch.setattr(assignments, "STORE_BYTES", store_bytes)
        operator = AssignmentAffinity(unit_rows(Z), mask, alpha=0.1)
        p = operator.layout.pack(uniform_start(mask))
        first, second = operator.apply(p), operator.apply(p)
        np.testing.assert_array_equal(first, second)
        assert (sum(block.nbytes for block in operator._kept) == needed) == kept


def test_statistics_with_the_bias_are_those_of_the_dense_affinity():
    Z, mask = problem(2)
    operator = AssignmentAffinity(unit_rows(Z), mask, alpha=0.2)
    rows = unit_rows(Z)
    A = (1 + rows @ rows.T) / 2
    np.fill_diagonal(A, 1.0)
    instance, label = np.nonzero(mask)
    A = A[np.ix_(instance, instance)]
    K = np.where(label[:, None] == label, A, 1 - A)
    K[np.isclose(K, 0, rtol=0, atol=1e-12)] = 0
    n = (K > 0).sum(axis=1)
    K = K * (1 + 0.2 * np.log2(n[:, None] + n))
    found = operator.statistics
    assert found.n_assignments == mask.sum()
    assert found.mean == pytest.approx(K.mean())
    assert found.std == pytest.approx(K.std())


@pytest.mark.parametrize("n_bytes", [1, 2**26])
@pytest.mark.parametrize("with_similarity", [False, True])
def test_queries_without_bias_get_what_the_full_affinity_gives(
    n_bytes, with_similarity, monkeypatch
):
    monkeypatch.setattr(assignments, "BLOCK_BYTES", n_bytes)
    X, mask, _ = random_problem(3, m=20)
    queries = unit_rows(random_problem(4, m=7)[0])
    A2 = random_label_similarity(np.random.RandomState(1), 4) if with_similarity else None
    kinds = (AssignmentAffinity, FullAffinity)
    found, expected = (
        kind(unit_rows(X), mask, beta=0.3, label_similarity=A2).to_queries(
            queries, uniform_start(mask)
        )
        for kind in kinds
    )
    assert found.shape == (7, 4)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_queries_are_biased_by_the_support_of_both_sides():
    X, mask, _ = random_problem(3, m=20)
    # An opposite row and an equal one: an affinity of zero supports nothing.
    rows = unit_rows(X)
    queries = np.vstack([rows[0], -rows[0], unit_rows(random_problem(4, m=3)[0])])
    operator = AssignmentAffinity(rows, mask, alpha=0.3, beta=0.2)
    instance, label = np.nonzero(mask)
    P = uniform_start(mask)

    def raw(first, labels):
        A = np.clip((1 + first @ rows[instance].T) / 2, 0, 1)
        A[np.isclose(A, 1, rtol=0, atol=1e-12)] = 1.0
        A[np.isclose(A, 0, rtol=0, atol=1e-12)] = 0.0
        return np.where(labels[:, None] == label, A, 1 - A)

    supporters = (raw(rows[instance], label) > 0).sum(axis=1)
    statistics = operator.statistics
    expected = np.zeros((len(queries), 4))
    for of in range(4):
        K = raw(queries, np.full(len(queries), of))
        n = (K > 0).sum(axis=1)
        K = K * (1 + 0.3 * np.log2(n[:, None] + supporters))
        K = (K - statistics.mean) / statistics.std
        expected[:, of] = np.where(K >= 0.2, K, 0.0) @ P[mask]
    np.testing.assert_allclose(operator.to_queries(queries, P), expected, atol=1e-9)
