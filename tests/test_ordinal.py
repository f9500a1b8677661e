"""Grades: numbers as labels, and candidates that lie beside the true one."""

import numpy as np
import pytest

from gmpll import PartialLabelClassifier
from gmpll.datasets import random_candidates
from gmpll.metrics import mean_absolute_label_error
from gmpll.ordinal import (
    cooccurrence_similarity,
    features_vary_with_label,
    labels_look_ordinal,
)

N_GRADES = 20
N_TRAIN = 300
SEEDS = range(4)


def grades_and_their_neighbours(seed, m=1000, d=20):
    """Features turn smoothly with the grade; candidates are at most three grades off."""
    rng = np.random.RandomState(seed)
    grade = rng.randint(N_GRADES, size=m)
    turns = np.outer(grade / N_GRADES, rng.normal(scale=3.0, size=d))
    X = np.cos(turns + rng.uniform(0, 2 * np.pi, d)) + rng.normal(scale=0.5, size=(m, d))
    gap = np.abs(grade[:, None] - np.arange(N_GRADES))
    mask = (gap == 0) | (gap <= 3) & (rng.random_sample(gap.shape) < 0.6)
    return X, mask, grade


def errors(seed, **params):
    """Mean absolute errors on unseen and on training rows, in one given space."""
    X, mask, grade = grades_and_their_neighbours(seed)
    # Choosing space and forest would let more things differ between the models that are compared.
    model = PartialLabelClassifier(
        hyperparameters={"forest": 0.0, "views": ("cosine",)}, random_state=0, **params
    )
    model.fit(X[:N_TRAIN], mask[:N_TRAIN])
    return (
        mean_absolute_label_error(grade[N_TRAIN:], model.predict(X[N_TRAIN:])),
        mean_absolute_label_error(grade[:N_TRAIN], model.labels_),
    )


def test_knowing_the_order_brings_labels_closer_to_the_truth():
    aware = np.array([errors(seed) for seed in SEEDS])
    unaware = np.array([errors(seed, label_similarity=None) for seed in SEEDS])
    assert (aware < unaware).all()
    unseen, training = aware.mean(axis=0) / unaware.mean(axis=0)
    assert unseen < 0.95
    assert training < 0.95


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_is_seen_in_the_candidates_alone(seed):
    _, mask, _ = grades_and_their_neighbours(seed)
    grades = np.arange(N_GRADES)
    assert labels_look_ordinal(grades, mask)
    assert labels_look_ordinal(grades * 2.5, mask)
    shuffled = np.random.RandomState(seed).permutation(grades)
    assert not labels_look_ordinal(shuffled, mask)
    assert not labels_look_ordinal(grades.astype(str), mask)


def guessed_ages(seed, m=500, oldest=77):
    """Many are young, few are old; guesses are far off, and more so for the old."""
    rng = np.random.RandomState(seed)
    age = np.minimum(rng.exponential(16, size=m), oldest)
    spread = 2 + age[:, None] / 8
    guesses = np.rint(age[:, None] + spread * rng.normal(size=(m, 8))).clip(0, oldest)
    mask = np.zeros((m, oldest + 1), dtype=bool)
    mask[np.arange(m)[:, None], guesses.astype(int)] = True
    mask[np.arange(m), np.rint(age).astype(int)] = True
    X = np.column_stack([np.sqrt(age), np.sin(age / 15), rng.normal(size=(m, 6))])
    return X + 0.4 * rng.normal(size=X.shape), mask


def confusable_groups(seed, sizes, stray=0.0, m=300, d=10):
    """Labels of a group look alike and are candidates together; the groups are in no order."""
    rng = np.random.RandomState(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    centres = rng.normal(scale=1.5, size=(len(sizes), d))[group]
    centres += rng.normal(scale=0.5, size=centres.shape)
    truth = rng.randint(len(group), size=m)
    mask = (group[truth][:, None] == group) & (rng.random_sample((m, len(group))) < 0.6)
    strays = np.flatnonzero(rng.random_sample(m) < stray)
    mask[strays, rng.randint(len(group), size=len(strays))] = True
    mask[np.arange(m), truth] = True
    return centres[truth] + rng.normal(size=(m, d)), mask, truth


def neighbours_that_look_different(seed, q=20, m=300, d=10):
    """Candidates are at most two numbers off, but no label looks like its neighbours."""
    rng = np.random.RandomState(seed)
    truth = rng.randint(q, size=m)
    X = rng.normal(size=(q, d))[truth] + rng.normal(size=(m, d))
    gap = np.abs(truth[:, None] - np.arange(q))
    return X, (gap == 0) | (gap <= 2) & (rng.random_sample(gap.shape) < 0.6), truth


@pytest.mark.parametrize("share", [0.6, 0.9, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_guessed_ages_are_ordered_though_some_are_rare(seed, share):
    X, mask = guessed_ages(seed)
    rows = np.random.RandomState(seed).permutation(len(X))[: int(share * len(X))]
    seen = np.flatnonzero(mask[rows].any(axis=0))
    few = mask[np.ix_(rows, seen)]
    assert few.sum(axis=0).min() < 3
    assert labels_look_ordinal(seen, few)
    assert features_vary_with_label(X[rows], seen, few)


@pytest.mark.parametrize("stray", [0.0, 0.3])
@pytest.mark.parametrize("sizes", [(3, 3, 3, 3), (5, 2, 4, 3, 6), (2,) * 6, (5,) * 8])
@pytest.mark.parametrize("seed", SEEDS)
def test_groups_numbered_one_after_the_other_are_not_an_order(seed, sizes, stray):
    _, mask, _ = confusable_groups(seed, sizes, stray)
    assert not labels_look_ordinal(np.arange(sum(sizes)), mask)


def test_the_columns_need_not_be_in_order():
    _, ages, _ = grades_and_their_neighbours(0)
    _, groups, _ = confusable_groups(0, (5,) * 4)
    mixed = np.random.RandomState(0).permutation(N_GRADES)
    assert labels_look_ordinal(mixed, ages[:, mixed])
    assert not labels_look_ordinal(mixed, groups[:, mixed])


@pytest.mark.parametrize("seed", SEEDS)
def test_features_vary_with_label_an_order_only(seed):
    labels = np.arange(20)
    X, mask, _ = grades_and_their_neighbours(seed, m=300)
    assert features_vary_with_label(X, labels, mask)
    assert features_vary_with_label(1e6 + 1e-3 * X, 2.5 * labels - 7, mask)
    X, mask, _ = neighbours_that_look_different(seed)
    assert labels_look_ordinal(labels, mask)  # the candidates alone do not tell
    assert not features_vary_with_label(X, labels, mask)


def test_nothing_speaks_against_an_order_where_all_rows_share_candidates():
    X = np.random.RandomState(0).normal(size=(6, 2))
    assert features_vary_with_label(X, np.arange(3), np.ones((6, 3), dtype=bool))


def test_many_rows_are_judged_by_some_of_them(monkeypatch):
    X, mask, _ = grades_and_their_neighbours(0)
    monkeypatch.setattr("gmpll.ordinal.MAX_COMPARED_ROWS", 200)
    assert features_vary_with_label(X, np.arange(N_GRADES), mask)


def on_the_graph(**params):
    """Return a model without a regression, for which nothing is to be chosen."""
    return PartialLabelClassifier(hyperparameters={"views": ("cosine",)}, random_state=0, **params)


def test_groups_are_matched_as_labels_that_differ():
    X, mask, _ = confusable_groups(0, (5, 2, 4, 3, 6))
    found = on_the_graph().fit(X, mask).label_confidences_
    apart = on_the_graph(label_similarity=None).fit(X, mask).label_confidences_
    np.testing.assert_array_equal(found, apart)


@pytest.mark.parametrize("seed", SEEDS)
def test_neighbours_that_look_different_are_told_apart(seed):
    X, mask, truth = neighbours_that_look_different(seed)
    found = on_the_graph().fit(X, mask).labels_
    apart = on_the_graph(label_similarity=None).fit(X, mask).labels_
    together = on_the_graph(label_similarity=cooccurrence_similarity(mask)).fit(X, mask).labels_
    np.testing.assert_array_equal(found, apart)
    assert (apart == truth).mean() > (together == truth).mean()


@pytest.mark.parametrize(
    ("problem", "follow"),
    [(neighbours_that_look_different, False), (grades_and_their_neighbours, True)],
)
def test_later_rows_do_not_change_what_the_features_said(problem, follow):
    X, mask, _ = problem(0, m=300)
    model, apart = on_the_graph(), on_the_graph(label_similarity=None)
    for rows in (slice(200), slice(200, None)):
        model.partial_fit(X[rows], mask[rows])
        apart.partial_fit(X[rows], mask[rows])
    assert np.array_equal(model.label_confidences_, apart.label_confidences_) != follow


class TestOrderedLabels:
    AGES = np.arange(30)

    def test_guesses_around_an_age_are_ordered(self):
        rng = np.random.RandomState(0)
        mask = np.zeros((200, 30), dtype=bool)
        for row in mask:
            row[np.clip(rng.randint(30) + rng.randint(-3, 4, size=5), 0, 29)] = True
        assert labels_look_ordinal(self.AGES, mask)
        assert labels_look_ordinal(self.AGES * 2.5, mask)
        assert not labels_look_ordinal(rng.permutation(30), mask)
        assert not labels_look_ordinal(self.AGES.astype(str), mask)

    @pytest.mark.parametrize("r", [1, 3])
    def test_random_candidates_are_not(self, r):
        y = np.random.RandomState(0).randint(30, size=500)
        assert not labels_look_ordinal(self.AGES, random_candidates(y, 0.9, r, random_state=0))

    def test_singletons_tell_nothing(self):
        assert not labels_look_ordinal(self.AGES, np.eye(30, dtype=bool))

    def test_ordered_labels_use_their_neighbours(self):
        errors = np.zeros(2)
        for seed in range(3):
            rng = np.random.RandomState(seed)
            age = rng.uniform(0, 29, size=300)
            X = np.column_stack([age + rng.randn(300), np.sin(age / 5) + 0.1 * rng.randn(300)])
            truth = np.rint(age).astype(int)
            mask = np.zeros((300, 30), dtype=bool)
            for row, label in zip(mask, truth, strict=True):
                row[np.clip(label + rng.randint(-4, 5, size=4), 0, 29)] = True
                row[label] = True
            for number, similarity in enumerate(("auto", None)):
                model = PartialLabelClassifier(label_similarity=similarity, random_state=0)
                errors[number] += np.abs(model.fit(X, mask).labels_ - truth).mean()
        assert errors[0] < errors[1]


def test_cooccurrence_is_a_similarity():
    mask = np.random.RandomState(0).random_sample((50, 6)) < 0.4
    similarity = cooccurrence_similarity(mask)
    np.testing.assert_allclose(similarity, similarity.T)
    np.testing.assert_allclose(similarity.diagonal(), 1.0)
    assert similarity.min() >= 0
    assert similarity.max() <= 1
