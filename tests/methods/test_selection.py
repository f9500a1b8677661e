import numpy as np
import pytest
from sklearn.datasets import load_iris

from gmpll import GMPLL
from gmpll.datasets import random_candidates
from gmpll.methods._learner import Setting, cooccurrence_similarity, ordered_labels
from gmpll.methods._selection import alternatives, select


class Known:
    """A learner whose predictions are right for one setting only."""

    def __init__(self, truth, mask, rows):
        self.truth, self.mask, self.rows = truth, mask, rows

    def confidences(self, setting):
        return self.mask / self.mask.sum(axis=1, keepdims=True)

    def predictor(self, setting, confidences):
        def rate(X):
            labels = X[:, 0].astype(int)
            wrong = (labels + 1) % self.mask.shape[1]
            return np.eye(self.mask.shape[1])[labels if setting.width == 1.5 else wrong]

        return rate


def test_the_setting_with_the_largest_lift_is_chosen():
    rng = np.random.RandomState(0)
    truth = rng.randint(5, size=200)
    mask = random_candidates(truth, 0.7, 1, n_classes=5, random_state=0)
    X = truth[:, None].astype(float)
    found = select(
        lambda rows, seen, scaling: Known(truth[rows], mask[rows][:, seen], rows),
        X,
        mask,
        alternatives(0.5),
        rng,
    )
    assert found.setting.width == 1.5
    assert [score for _, score in found.scores] == sorted(
        [score for _, score in found.scores], reverse=True
    )
    assert found.scores[0][1] == 1.0


def test_truth_plays_no_part_in_fitting():
    """Whatever is chosen depends on X and the candidate sets; there is nothing else to see."""
    X, y = load_iris(return_X_y=True)
    mask = random_candidates(y, 0.7, 1, random_state=0)
    model = GMPLL(random_state=0).fit(X, mask)
    assert set(model.selected_) == {"balance", "width", "ridge", "scaling"}
    assert len(model.selection_.scores) == len(alternatives(0.5))
    again = GMPLL(random_state=0).fit(X, mask)
    assert again.selected_ == model.selected_
    np.testing.assert_array_equal(again.label_confidences_, model.label_confidences_)


def test_few_rows_and_fixed_predictions_choose_nothing():
    X, y = load_iris(return_X_y=True)
    small = GMPLL(random_state=0).fit(X[::10], y[::10])
    assert len(small.selection_.scores) == 1
    fixed = GMPLL(prediction="independent", balance=0.3, random_state=0).fit(X, y)
    assert fixed.selection_.setting == Setting(0.3, scaling="standard")
    given = GMPLL(scaling="rank", random_state=0).fit(X, y)
    assert {setting.scaling for setting, _ in given.selection_.scores} == {"rank"}


class TestOrderedLabels:
    AGES = np.arange(30)

    def test_guesses_around_an_age_are_ordered(self):
        rng = np.random.RandomState(0)
        mask = np.zeros((200, 30), dtype=bool)
        for row in mask:
            row[np.clip(rng.randint(30) + rng.randint(-3, 4, size=5), 0, 29)] = True
        assert ordered_labels(self.AGES, mask)
        assert ordered_labels(self.AGES * 2.5, mask)
        assert not ordered_labels(rng.permutation(30), mask)
        assert not ordered_labels(self.AGES.astype(str), mask)

    @pytest.mark.parametrize("r", [1, 3])
    def test_random_candidates_are_not(self, r):
        y = np.random.RandomState(0).randint(30, size=500)
        assert not ordered_labels(self.AGES, random_candidates(y, 0.9, r, random_state=0))

    def test_singletons_tell_nothing(self):
        assert not ordered_labels(self.AGES, np.eye(30, dtype=bool))

    def test_ordered_labels_use_their_neighbours(self):
        rng = np.random.RandomState(0)
        age = rng.uniform(0, 29, size=300)
        X = np.column_stack([age + rng.randn(300), np.sin(age / 5) + 0.1 * rng.randn(300)])
        truth = np.rint(age).astype(int)
        mask = np.zeros((300, 30), dtype=bool)
        for row, label in zip(mask, truth, strict=True):
            row[np.clip(label + rng.randint(-4, 5, size=4), 0, 29)] = True
            row[label] = True
        auto = GMPLL(random_state=0).fit(X, mask)
        plain = GMPLL(label_similarity=None, random_state=0).fit(X, mask)
        assert np.abs(auto.labels_ - truth).mean() < np.abs(plain.labels_ - truth).mean()


def test_cooccurrence_is_a_similarity():
    mask = np.random.RandomState(0).random_sample((50, 6)) < 0.4
    similarity = cooccurrence_similarity(mask)
    np.testing.assert_allclose(similarity, similarity.T)
    np.testing.assert_allclose(similarity.diagonal(), 1.0)
    assert similarity.min() >= 0
    assert similarity.max() <= 1
