"""Votes joined with features, and sets that lack the right label."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from gmpll import PartialLabelClassifier, candidates_from_votes
from gmpll.datasets import random_candidates

QUICK = {"views": ("cosine",), "ridge": 0.1, "stacking": 0.0, "forest": 0.0}


def model(**parameters):
    return PartialLabelClassifier(hyperparameters=QUICK, random_state=0, **parameters)


def crowd(truth, q, accuracy, per_item=3, seed=0):
    """Votes of annotators of different skill, in the order of the items."""
    rng = np.random.RandomState(seed)
    items = np.repeat(np.arange(len(truth)), per_item)
    who = np.concatenate(
        [rng.choice(len(accuracy), per_item, replace=False) for _ in range(len(truth))]
    )
    right = rng.random_sample(len(items)) < np.asarray(accuracy)[who]
    labels = np.where(right, truth[items], (truth[items] + rng.randint(1, q, len(items))) % q)
    return candidates_from_votes(items, labels, who)


def majority(votes):
    noise = 1e-6 * np.random.RandomState(0).random_sample(votes.weights.shape)
    return votes.candidates.classes[(votes.weights + noise).argmax(axis=1)]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:500], y[:500]


def test_features_help_votes_and_annotators_are_judged(digits):
    X, y = digits
    accuracy = [0.9, 0.8, 0.6, 0.3, 0.2]
    votes = crowd(y, 10, accuracy)
    fitted = model().fit(X, votes)
    assert (fitted.labels_ == y).mean() > (majority(votes) == y).mean() + 0.1
    frame = fitted.annotators_.to_frame()
    assert frame["accuracy"].sort_index().rank().tolist() == [5, 4, 3, 2, 1]
    outside = ~votes.candidates.mask[np.arange(len(y)), y]
    assert (fitted.labels_ == y)[outside].mean() > 0.5  # nobody voted for these
    assert roc_auc_score(outside, fitted.outside_probability_) > 0.9


def test_features_that_say_nothing_fade(digits):
    _, y = digits
    votes = crowd(y, 10, [0.9, 0.8, 0.7, 0.6], seed=1)
    noise = np.random.RandomState(0).randn(len(y), 20)
    found = (model().fit(noise, votes).labels_ == y).mean()
    assert found > (majority(votes) == y).mean() - 0.005


def test_known_labels_count_more_than_votes(digits):
    X, y = digits
    votes = crowd(y, 10, [0.5, 0.5, 0.5])
    gold = np.where(np.arange(len(y)) % 5 == 0, y, -1)
    fitted = model().fit(X, votes, gold=gold)
    assert (fitted.labels_ == y)[gold >= 0].all()


def test_labels_stay_among_the_votes_if_they_must(digits):
    X, y = digits
    votes = crowd(y, 10, [0.5, 0.5, 0.5])
    fitted = model(outside="never").fit(X, votes)
    assert votes.candidates.mask[np.arange(len(y)), fitted.labels_].all()


@pytest.mark.parametrize("votes_are_given", [True, False])
def test_what_is_impossible_is_never_found(digits, votes_are_given):
    X, y = digits
    sets = crowd(y, 10, [0.5, 0.5, 0.5]) if votes_are_given else missing(y, 0.3)[0]
    free = model(outside="allow").fit(X, sets)
    mask = sets.candidates.mask if votes_are_given else sets
    beyond = ~mask[np.arange(len(y)), free.labels_]
    assert beyond.any()
    impossible = np.zeros((len(y), 10), dtype=bool)
    impossible[beyond, free.labels_[beyond]] = True
    fitted = model(outside="allow").fit(X, sets, impossible=impossible)
    assert not impossible[np.arange(len(y)), fitted.labels_].any()
    assert not impossible[np.arange(len(y)), fitted.suggested_labels_].any()


def missing(y, rate, seed=0):
    """Random candidates of which a share of the sets lacks the truth."""
    mask = random_candidates(y, p=0.7, r=2, random_state=seed).copy()
    lacks = np.random.RandomState(seed).random_sample(len(y)) < rate
    mask[lacks, y[lacks]] = False
    empty = ~mask.any(axis=1)
    mask[empty, (y[empty] + 1) % 10] = True
    return mask, lacks


def test_sets_that_lack_the_truth_are_found(digits):
    X, y = digits
    mask, lacks = missing(y, 0.1)
    fitted = model().fit(X, mask)
    assert mask[np.arange(len(y)), fitted.labels_].all()
    assert roc_auc_score(lacks, fitted.outside_probability_) > 0.95
    wrong = mask.copy()
    wrong[lacks] = np.eye(10, dtype=bool)[(y[lacks] + 1) % 10]  # sets of one wrong label
    alone = model().fit(X, wrong)
    single = wrong.sum(axis=1) == 1
    assert roc_auc_score(lacks[single], alone.outside_probability_[single]) > 0.95
    assert (fitted.suggested_labels_ == y)[lacks].mean() > 0.8
    free = model(outside="allow").fit(X, mask)
    assert (free.labels_ == y).mean() > (fitted.labels_ == y).mean() + 0.05


def test_nothing_is_lost_where_nothing_is_missing(digits):
    X, y = digits
    mask, _ = missing(y, 0.0)
    fitted = model().fit(X, mask)
    assert fitted.outside_probability_.mean() < 0.01
    free = model(outside="allow").fit(X, mask)
    assert (free.labels_ == y).mean() > (fitted.labels_ == y).mean() - 0.01


def test_rows_may_come_after_votes(digits):
    X, y = digits
    votes = crowd(y[:300], 10, [0.9, 0.8, 0.7])
    fitted = model().fit(X[:300], votes)
    mask = random_candidates(y[300:400], p=0.7, r=1, n_classes=10, random_state=0)
    assert (fitted.resolve(X[300:400], mask).labels == y[300:400]).mean() > 0.9
    fitted.partial_fit(X[300:400], mask)
    assert fitted.n_samples_seen_ == 400
    assert (fitted.labels_[300:] == y[300:400]).mean() > 0.9
