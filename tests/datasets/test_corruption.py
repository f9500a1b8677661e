from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.neighbors import KNeighborsClassifier

from gmpll.datasets import corruption as module
from gmpll.datasets import make_partial_label_problem
from gmpll.datasets.corruption import (
    class_dependent_candidates,
    cooccurring_candidates,
    instance_dependent_candidates,
    random_candidates,
)

#: A fair draw fails a test this rarely; the seeds are fixed, so a test that passes stays passing.
SIGNIFICANCE = 1e-4


def true_entries(mask, y):
    return mask[np.arange(len(y)), y]


def rows(mask):
    return ["".join("01"[int(entry)] for entry in row) for row in mask]


@st.composite
def corruptions(draw):
    q = draw(st.integers(2, 8))
    y = np.array(draw(st.lists(st.integers(0, q - 1), min_size=1, max_size=40)))
    return y, q, draw(st.floats(0, 1)), draw(st.integers(0, q - 1)), draw(st.integers(0, 99))


@given(corruptions())
@settings(max_examples=150, deadline=None)
def test_random_gives_exactly_the_share_exactly_r_labels(case):
    y, q, p, r, seed = case
    mask = random_candidates(y, p, r, n_classes=q, random_state=seed)
    assert mask.shape == (len(y), q)
    assert mask.dtype == bool
    assert true_entries(mask, y).all()
    sizes = mask.sum(axis=1)
    expected = round(p * len(y)) if r else 0
    assert (sizes == 1).sum() == len(y) - expected
    assert (sizes[sizes > 1] == 1 + r).all()


@pytest.mark.parametrize("r", [1, 2, 3])
def test_random_sets_are_equally_probable(r):
    y = np.repeat([0, 2, 4], 10000)
    mask = random_candidates(y, 1.0, r, n_classes=5, random_state=r)
    for label in (0, 2, 4):
        _, counts = np.unique(mask[y == label], axis=0, return_counts=True)
        assert len(counts) == comb(4, r)
        assert stats.chisquare(counts).pvalue > SIGNIFICANCE


def test_random_rows_are_equally_probable():
    chosen = sum(
        random_candidates(np.zeros(10, dtype=int), 0.3, 1, n_classes=2, random_state=seed)[:, 1]
        for seed in range(2000)
    )
    assert chosen.sum() == 6000
    assert stats.chisquare(chosen).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7, 1.0])
def test_the_companion_comes_with_probability_epsilon_the_others_uniformly(epsilon):
    q, companions = 5, np.array([1, 2, 3, 4, 0])
    y = np.random.RandomState(0).randint(q, size=40000)
    mask = cooccurring_candidates(y, 0.5, epsilon=epsilon, companions=companions, random_state=1)
    assert true_entries(mask, y).all()
    partial = mask.sum(axis=1) == 2
    assert partial.sum() == 20000
    assert (mask[~partial].sum(axis=1) == 1).all()
    hits = int(true_entries(mask, companions[y])[partial].sum())
    assert stats.binomtest(hits, 20000, epsilon).pvalue > SIGNIFICANCE
    if epsilon < 1:
        other = partial & ~true_entries(mask, companions[y])
        extra = mask[other]
        extra[np.arange(len(extra)), y[other]] = False
        distance = (extra.argmax(axis=1) - y[other]) % q
        counts = np.bincount(distance, minlength=q)
        assert counts[[0, 1]].tolist() == [0, 0]  # neither the truth nor its companion
        assert stats.chisquare(counts[2:]).pvalue > SIGNIFICANCE


def test_drawn_companions_are_fixed_and_every_label_is_one():
    q = 6
    y = np.tile(np.arange(q), 50)
    mask = cooccurring_candidates(y, 1.0, epsilon=1.0, random_state=3)
    companion = []
    for label in range(q):
        together = mask[y == label].all(axis=0)
        together[label] = False
        companion.append(int(np.flatnonzero(together)[0]))
        assert together.sum() == 1
    assert sorted(companion) == list(range(q))
    other_seed = cooccurring_candidates(y, 1.0, epsilon=1.0, random_state=4)
    assert (mask != other_seed).any()


@given(corruptions(), st.floats(0, 1))
@settings(max_examples=100, deadline=None)
def test_cooccurring_gives_exactly_r_labels(case, epsilon):
    y, q, p, r, seed = case
    if r > (q - 2 if epsilon < 1 else q - 1):
        with pytest.raises(ValueError, match="labels cannot be added"):
            cooccurring_candidates(y, p, r, epsilon=epsilon, n_classes=q, random_state=seed)
        return
    mask = cooccurring_candidates(y, p, r, epsilon=epsilon, n_classes=q, random_state=seed)
    assert true_entries(mask, y).all()
    sizes = mask.sum(axis=1)
    assert set(sizes) <= {1, 1 + r}
    assert sizes.sum() == len(y) + r * round(p * len(y))


def test_class_dependent_follows_the_matrix():
    rng = np.random.RandomState(0)
    transition = rng.random_sample((4, 4))
    transition[0, 1], transition[1, 0] = 0.0, 1.0
    np.fill_diagonal(transition, 1.0)
    y = np.repeat(np.arange(4), 20000)
    mask = class_dependent_candidates(y, transition, random_state=1)
    for label in range(4):
        for other in range(4):
            hits = int(mask[y == label, other].sum())
            expected = transition[label, other]
            assert stats.binomtest(hits, 20000, expected).pvalue > SIGNIFICANCE
    # Labels come independently of each other.
    both = (mask[y == 2, 0] & mask[y == 2, 1]).sum()
    expected = transition[2, 0] * transition[2, 1]
    assert stats.binomtest(int(both), 20000, expected).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("mean", [1.0, 1.4, 2.5, 4.0, 6.0])
def test_instance_dependent_has_the_mean_size_asked_for(mean):
    problem = make_partial_label_problem(3000, 4, 6, separation=2.0, random_state=0)
    mask = instance_dependent_candidates(
        problem.data, problem.target, mean_candidates=mean, random_state=0
    )
    assert true_entries(mask, problem.target).all()
    assert mask.sum() / 3000 == pytest.approx(mean, abs=0.06)


def test_instance_dependent_adds_what_is_near():
    rng = np.random.RandomState(0)
    y = rng.randint(3, size=3000)
    # The first two classes overlap, the third is far away.
    X = rng.standard_normal((3000, 2)) + np.array([[0, 0], [1, 0], [9, 0]])[y]
    mask = instance_dependent_candidates(X, y, mean_candidates=1.2, random_state=0)
    share = np.array([mask[y == label].mean(axis=0) for label in range(3)])
    assert share[0, 1] > 10 * share[0, 2]
    assert share[1, 0] > 10 * share[1, 2]
    hard = np.abs(X[:, 0] - 0.5) < 0.25  # at the border between the two
    assert mask[hard & (y < 2)].sum(axis=1).mean() > mask[~hard & (y < 2)].sum(axis=1).mean()


def test_instance_dependent_probabilities_are_out_of_fold():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((2000, 2)), rng.randint(5, size=2000)
    nearest = KNeighborsClassifier(1)
    mask = instance_dependent_candidates(
        X, y, classifier=nearest, mean_candidates=1.5, random_state=rng
    )
    # The neighbour is certain of one label, mostly a wrong one, which alone is added. Had it
    # seen the row itself, it would always be right, and all other labels would be added alike.
    sizes = mask.sum(axis=1)
    assert sizes.max() == 2
    assert sizes.mean() == pytest.approx(1.5, abs=0.05)


def test_instance_dependent_copes_with_a_label_of_one_row():
    y = np.array([0] * 20 + [1] * 20 + [2])
    X = np.linspace(0, 1, 41)[:, None]
    mask = instance_dependent_candidates(X, y, n_classes=5, mean_candidates=2.0, random_state=0)
    assert mask.shape == (41, 5)
    assert true_entries(mask, y).all()


# The stream of RandomState is frozen: these sets must never change.
Y = np.array([0, 1, 2, 3, 4, 0, 1, 2])


def test_pinned_random():
    assert rows(random_candidates(Y, 0.5, 2, random_state=42)) == [
        "10101", "01000", "00100", "00010", "10101", "11001", "11010", "00100",
    ]  # fmt: skip


def test_pinned_cooccurring():
    assert rows(cooccurring_candidates(Y, 0.75, 1, epsilon=0.6, random_state=42)) == [
        "10010", "01001", "00100", "00110", "10001", "10010", "01000", "01100",
    ]  # fmt: skip


def test_pinned_class_dependent():
    transition = np.full((5, 5), 0.3)
    np.fill_diagonal(transition, 1.0)
    assert rows(class_dependent_candidates(Y, transition, random_state=42)) == [
        "10001", "11000", "10111", "10011", "01101", "11001", "01100", "00100",
    ]  # fmt: skip


def test_pinned_instance_dependent():
    X, y = np.arange(24.0)[:, None] % 8, np.arange(24) % 8 // 3
    mask = instance_dependent_candidates(
        X, y, mean_candidates=1.5, classifier=KNeighborsClassifier(3), n_folds=3, random_state=42
    )
    assert rows(mask) == [
        "100", "100", "100", "110", "010", "011", "011", "011",
        "101", "100", "100", "110", "010", "010", "111", "001",
        "100", "100", "111", "110", "010", "011", "001", "011",
    ]  # fmt: skip


def test_blocks_do_not_change_the_sets(monkeypatch):
    transition = np.full((5, 5), 0.3)
    np.fill_diagonal(transition, 1.0)
    whole = class_dependent_candidates(Y, transition, random_state=0)
    monkeypatch.setattr(module, "BLOCK_BYTES", 8 * 5 * 3)
    np.testing.assert_array_equal(whole, class_dependent_candidates(Y, transition, random_state=0))


@pytest.mark.parametrize("seed", [0, np.random.RandomState(0)])
def test_seeds_and_states(seed):
    expected = random_candidates(Y, 0.5, 1, random_state=np.random.RandomState(0))
    np.testing.assert_array_equal(random_candidates(Y, 0.5, 1, random_state=seed), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_candidates(Y, 1.1, 1), "p must be between 0 and 1, not 1.1"),
        (lambda: random_candidates(Y, np.nan, 1), "p must be between 0 and 1, not nan"),
        (lambda: random_candidates(Y, 0.5, 5), "r=5 labels cannot be added: 5 labels leave only 4"),
        (lambda: random_candidates(Y, 0.5, -1), "r must be a non-negative integer"),
        (lambda: random_candidates(Y, 0.5, 1.5), "r must be a non-negative integer"),
        (lambda: random_candidates(["a"], 0.5, 1), "y must hold the codes"),
        (lambda: random_candidates([[0]], 0.5, 1), r"a vector of labels, not of shape \(1, 1\)"),
        (lambda: random_candidates([0, -1], 0.5, 1), "between 0 and 0 but spans -1 to 0"),
        (lambda: random_candidates(Y, 0.5, 1, n_classes=4), "between 0 and 3 but spans 0 to 4"),
        (lambda: cooccurring_candidates(Y, 0.5, epsilon=2), "epsilon must be between 0 and 1"),
        (
            lambda: cooccurring_candidates([0, 1], 0.5, epsilon=0.5),
            "with epsilon=0.5 and 2 labels, only 0 can be added",
        ),
        (
            lambda: cooccurring_candidates([0, 1, 2], 0.5, epsilon=0.5, companions=[0, 2, 1]),
            "companions must name another label for each of the 3 labels",
        ),
        (lambda: class_dependent_candidates([0], [[1, 0]]), "must be a square matrix"),
        (lambda: class_dependent_candidates([0], [[1, 2], [0, 1]]), "between 0 and 1"),
        (lambda: class_dependent_candidates([0], [[0.9]]), "ones on its diagonal"),
        (lambda: class_dependent_candidates([2], np.eye(2)), "between 0 and 1 but spans 2 to 2"),
        (
            lambda: instance_dependent_candidates([[0.0]], [0, 1]),
            "X has 1 rows but y has 2",
        ),
        (
            lambda: instance_dependent_candidates([[0.0]] * 2, [0, 1], mean_candidates=3),
            "mean_candidates must be between 1 and 2",
        ),
    ],
)  # fmt: skip
def test_refuses_impossible_requests(call, message):
    with pytest.raises(ValueError, match=message):
        call()
