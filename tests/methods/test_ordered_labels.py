"""Grades: numbers as labels, and candidates that lie beside the true one."""

import numpy as np
import pytest

from gmpll import GMPLL
from gmpll.methods._learner import ordered_labels
from gmpll.metrics import mean_absolute_label_error

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
    model = GMPLL(scaling="standard", forest=0.0, random_state=0, **params)
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
    assert ordered_labels(grades, mask)
    assert ordered_labels(grades * 2.5, mask)
    shuffled = np.random.RandomState(seed).permutation(grades)
    assert not ordered_labels(shuffled, mask)
    assert not ordered_labels(grades.astype(str), mask)
