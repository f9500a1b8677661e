from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gmpll.apps.review.ordering import Similarity, doubt, propose_order


def test_doubt_is_half_of_one_minus_the_margin():
    confidence = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [1.0, 0.0, 0.0]])
    labels = np.array([0, 2, 0])
    np.testing.assert_allclose(doubt(confidence, labels), [0.25, 0.65, 0.0])


def test_doubt_with_one_class_is_none():
    np.testing.assert_array_equal(doubt(np.ones((3, 1)), np.zeros(3, dtype=int)), 0.0)


def _two_clusters():
    """Twenty doubtful rows close together, and one just as doubtful on its own."""
    rng = np.random.RandomState(0)
    crowd = [5.0, 0.0, 0.0] + 0.3 * rng.normal(size=(20, 3))
    lonely = [[0.0, -5.0, 0.0]]
    sure = [0.0, 0.0, 5.0] + 0.3 * rng.normal(size=(20, 3))
    doubts = np.r_[np.full(20, 0.5), 0.5, np.zeros(20)]
    return np.vstack([crowd, lonely, sure]), doubts


def test_a_row_that_speaks_for_many_comes_before_an_equally_doubtful_loner():
    X, doubts = _two_clusters()
    order = propose_order(doubts, doubts > 0, Similarity(X, n_neighbors=10))
    assert order[0] < 20


def test_near_duplicates_do_not_follow_each_other():
    rng = np.random.RandomState(0)
    different = rng.normal(size=(30, 5))
    X = np.vstack([different, different + 1e-3 * rng.normal(size=(30, 5))])
    doubts = np.tile(np.linspace(0.4, 0.5, 30), 2)
    order = propose_order(doubts, np.ones(60, bool), Similarity(X, n_neighbors=10))
    assert len(set(order[:30] % 30)) == 30  # one of every pair before any second one
    by_doubt = np.argsort(-doubts, kind="stable")
    assert len(set(by_doubt[:30] % 30)) == 15


def test_decided_rows_are_left_out_and_every_open_row_comes_once():
    rng = np.random.RandomState(0)
    X, doubts, open_rows = (
        rng.normal(size=(80, 3)),
        rng.uniform(size=80),
        rng.uniform(size=80) < 0.5,
    )
    order = propose_order(doubts, open_rows, Similarity(X), pool=15)
    np.testing.assert_array_equal(np.sort(order), np.flatnonzero(open_rows))
    assert (np.diff(doubts[order[15:]]) <= 0).all()  # behind the pool by doubt alone
    assert doubts[order[:15]].min() >= doubts[order[15:]].max()


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 25), seed=st.integers(0, 2**16))
def test_greedy_agrees_with_its_definition(n, seed):
    rng = np.random.RandomState(seed)
    X, doubts = rng.normal(size=(n, 2)), rng.uniform(0.1, 1.0, size=n)
    similarity = Similarity(X, n_neighbors=4)
    similar, weights = similarity.to(np.arange(n))
    around = [list(zip(similar[i], weights[i], strict=True)) for i in range(n)]
    remaining, waiting, expected = doubts.copy(), set(range(n)), []
    while waiting:
        worth = {
            i: remaining[i] * (1 + sum(w * remaining[j] for j, w in around[i])) for i in waiting
        }
        best = max(worth, key=worth.__getitem__)
        expected.append(worth[best])
        waiting.remove(best)
        for j, w in around[best]:
            remaining[j] *= 1 - w
        remaining[best] = 0.0
    order = propose_order(doubts, np.ones(n, bool), similarity)
    assert sorted(order) == list(range(n))
    # Replaying the order found reaches the same worth at every step.
    remaining, reached = doubts.copy(), []
    for i in order:
        reached.append(remaining[i] * (1 + (weights[i] * remaining[similar[i]]).sum()))
        remaining[similar[i]] *= 1 - weights[i]
        remaining[i] = 0.0
    np.testing.assert_allclose(reached, expected)
