from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from gmpll import GMPLL
from gmpll.datasets import random_candidates
from gmpll.evidence.stacking import fit_readout
from gmpll.methods._learner import Setting, cooccurrence_similarity, ordered_labels
from gmpll.methods._selection import (
    ERRORS_LESS,
    ERRORS_LESS_OF_FEW,
    FOREST_SHARES,
    READOUTS,
    alternatives,
    select,
)


class Known:
    """A learner whose predictions are right for one setting only."""

    views = (SimpleNamespace(transform=lambda X: X),)

    def __init__(self, truth, mask, rows):
        self.truth, self.mask, self.rows = truth, mask, rows

    def confidences(self, setting):
        return self.mask / self.mask.sum(axis=1, keepdims=True)

    def regression(self, setting, confidences):
        def rate(rows):
            labels = rows[0][:, 0].astype(int)
            wrong = (labels + 1) % self.mask.shape[1]
            return np.eye(self.mask.shape[1])[labels if setting.width == 1.5 else wrong]

        return SimpleNamespace(of_views=rate)


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
    assert set(model.selected_) == {
        "balance", "width", "ridge", "scaling", "forest", "readout", "linear",
    }  # fmt: skip
    beside = len(READOUTS) - 1 + len(FOREST_SHARES) - 1
    assert len(model.selection_.scores) == len(alternatives(0.5)) + beside
    again = GMPLL(random_state=0).fit(X, mask)
    assert again.selected_ == model.selected_
    np.testing.assert_array_equal(again.label_confidences_, model.label_confidences_)


def test_few_rows_see_every_view():
    """The direction of a row of one feature is its sign: intervals need its place."""
    rng = np.random.RandomState(0)
    X = rng.uniform(0, 6, size=(225, 1))
    truth = X[:, 0].astype(int) // 2
    mask = random_candidates(truth[:25], 0.5, 1, n_classes=3, random_state=0)
    model = GMPLL(random_state=0).fit(X[:25], mask)
    assert model.selected_["scaling"] == "all"
    assert (model.predict(X[25:]) == truth[25:]).mean() > 0.85


def test_few_rows_and_fixed_predictions_choose_nothing():
    X, y = load_iris(return_X_y=True)
    small = GMPLL(random_state=0).fit(X[::10], y[::10])
    assert len(small.selection_.scores) == 1
    fixed = GMPLL(prediction="independent", balance=0.3, random_state=0).fit(X, y)
    assert fixed.selection_.setting == Setting(0.3, scaling="standard")
    given = GMPLL(scaling="rank", random_state=0).fit(X, y)
    assert {setting.scaling for setting, _ in given.selection_.scores} == {"rank"}


class TestForestShare:
    """A checkerboard of two features among noise: the work of trees, not of kernels."""

    @staticmethod
    def problem(seed=0, n=400):
        rng = np.random.RandomState(seed)
        X = rng.uniform(-1, 1, size=(n, 12))
        y = (X[:, 0] > 0.2) + 2 * (X[:, 1] > -0.1)
        return X, random_candidates(y, 0.5, 1, n_classes=4, random_state=seed), y

    def test_a_few_dozen_rows_are_enough_for_trees(self):
        rng = np.random.RandomState(0)
        X = rng.normal(size=(860, 20))
        y = np.digitize(X[:, 0], [-0.5, 0.5])
        mask = random_candidates(y[:60], 0.5, 1, n_classes=3, random_state=0)
        model = GMPLL(random_state=0).fit(X[:60], mask)
        alone = GMPLL(forest=0.0, random_state=0).fit(X[:60], mask)
        assert model.selected_["forest"] > 0
        assert model.score(X[60:], y[60:]) > alone.score(X[60:], y[60:]) + 0.1

    @pytest.mark.parametrize(("n", "errors"), [(400, ERRORS_LESS_OF_FEW), (800, ERRORS_LESS)])
    def test_trees_get_a_share_where_they_are_better(self, n, errors):
        X, mask, y = self.problem(n=n)
        unseen, _, truth = self.problem(seed=1)
        model = GMPLL(random_state=0).fit(X, mask)
        alone = GMPLL(forest=0.0, random_state=0).fit(X, mask)
        assert model.selected_["forest"] > 0
        assert alone.selected_["forest"] == 0
        assert (model.predict(unseen) == truth).mean() > (alone.predict(unseen) == truth).mean()
        assert (model.labels_ == y).mean() >= (alone.labels_ == y).mean()
        gains = model.selection_.gains
        assert gains[0.0] == (0.0, 0.0)
        surest = max(gains, key=lambda share: gains[share].mean - errors * gains[share].error)
        assert model.selected_["forest"] == surest
        assert alone.selection_.gains == {}

    @pytest.mark.parametrize("far", [1e10, 1e60])
    def test_one_row_far_out_does_not_blind_the_model(self, far):
        X, mask, _ = self.problem(n=200)
        unseen, _, truth = self.problem(seed=1)
        X[0, :2] = far
        model = GMPLL(random_state=0).fit(X, mask)
        assert (model.predict(unseen) == truth).mean() > 0.75

    def test_trees_get_none_where_they_are_worse(self):
        """The sides of an oblique plane: no single feature tells them apart."""
        rng = np.random.RandomState(0)
        X = rng.randn(300, 30)
        y = (X.sum(axis=1) > 0).astype(int)
        mask = random_candidates(y, 0.3, 1, n_classes=3, random_state=0)
        assert GMPLL(random_state=0).fit(X, mask).selected_["forest"] == 0

    @pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
    def test_a_given_share_is_taken(self, share):
        X, mask, _ = self.problem(n=100)
        model = GMPLL(forest=share, random_state=0).fit(X, mask)
        assert model.selected_["forest"] == share
        assert len(model.selection_.held_out) > 0
        few = GMPLL(forest=share, random_state=0).fit(X[:20], mask[:20])
        assert few.selected_["forest"] == share
        assert few.predict_proba(X).shape == (100, 4)

    def test_prediction_is_the_blend_of_regression_and_trees(self):
        X, mask, _ = self.problem(n=120)
        model = GMPLL(forest=0.3, random_state=0, calibrate=False).fit(X, mask)
        rater = model._predictor
        expected = 0.7 * np.maximum(rater.regression(X), 0.0) + 0.3 * rater.trees(X)
        np.testing.assert_allclose(rater(X), expected)

    def test_rows_that_come_later_reach_the_trees(self):
        X, mask, y = self.problem()
        model = GMPLL(forest=0.5, random_state=0).fit(X[:200], mask[:200])
        before = model._predictor.trees.forest
        model.partial_fit(X[200:], mask[200:])
        assert model.n_samples_seen_ == 400
        assert len(model._predictor.trees.table.rows) == 400
        assert model._predictor.trees.forest is not before
        assert (model.labels_ == y).mean() > 0.9

    def test_no_forest_where_it_would_take_long(self, monkeypatch):
        X, mask, _ = self.problem()
        monkeypatch.setattr("gmpll.evidence.forest.MOST_ROWS", 399)
        model = GMPLL(random_state=0).fit(X, mask)
        assert model.selected_["forest"] == 0
        assert {setting.forest for setting, _ in model.selection_.scores} == {0.0}


class TestReadout:
    """Rings: a regression rates those that lie between others too low."""

    @staticmethod
    def problem(seed=0, n=300):
        rng = np.random.RandomState(seed)
        X = rng.normal(size=(n, 2))
        y = np.digitize(np.hypot(*X.T), [0.6, 0.9, 1.2, 1.6])
        return X, random_candidates(y, 0.5, 1, n_classes=5, random_state=seed), y

    def test_it_is_taken_where_it_is_better(self):
        X, mask, _ = self.problem()
        unseen, _, truth = self.problem(seed=1)
        params = {"forest": 0.0, "random_state": 0}
        model = GMPLL(**params).fit(X, mask)
        plain = GMPLL(readout=0.0, **params).fit(X, mask)
        assert model.selected_["readout"] > 0
        assert plain.selected_["readout"] == 0
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        assert model.score(unseen, truth) > plain.score(unseen, truth) + 0.02
        gains = dict(model.selection_.readout_gains)
        assert gains[0.0, 0.0] == (0.0, 0.0)
        surest = max(READOUTS[:3], key=lambda pair: gains[pair].mean - gains[pair].error)
        assert model.selected_["readout"] == surest[0]
        assert plain.selection_.readout_gains == []

    def test_features_are_asked_where_planes_lie_between_labels(self):
        rng = np.random.RandomState(0)
        X = rng.normal(size=(900, 30))
        y = (X @ np.random.RandomState(1).normal(size=(30, 4))).argmax(axis=1)
        mask = random_candidates(y[:300], 0.6, 1, n_classes=4, random_state=0)
        model = GMPLL(random_state=0).fit(X[:300], mask)
        blind = GMPLL(readout=1.0, random_state=0).fit(X[:300], mask)
        assert model.selected_["linear"] > 0
        assert blind.selected_["linear"] == 0
        assert model.score(X[300:], y[300:]) > blind.score(X[300:], y[300:]) + 0.03
        gains = dict(model.selection_.readout_gains)
        penalties = (model.selected_["readout"], model.selected_["linear"])
        assert gains[penalties].mean > gains[penalties].error > 0

    @pytest.mark.parametrize("given", [0.0, 3.0, (2.0, 5.0), [2, 0]])
    def test_given_penalties_are_taken(self, given):
        X, mask, _ = self.problem(n=100)
        readout, linear = given if np.ndim(given) else (given, 0.0)
        for rows in (100, 20):
            model = GMPLL(readout=given, random_state=0).fit(X[:rows], mask[:rows])
            assert (model.selected_["readout"], model.selected_["linear"]) == (readout, linear)
            assert model.predict_proba(X).shape == (100, 5)

    @pytest.mark.parametrize("wrong", [(1.0,) * 3, (1.0, -1.0), ("a", 1), (np.nan, 1.0)])
    def test_what_is_no_penalty_is_refused(self, wrong):
        X, mask, _ = self.problem(n=40)
        with pytest.raises(ValueError, match="is neither 'auto' nor one or two numbers"):
            GMPLL(readout=wrong).fit(X, mask)
        with pytest.raises(ValueError, match="the first number must be positive"):
            GMPLL(readout=(0.0, 1.0)).fit(X, mask)

    def test_rows_that_come_later_are_read_too(self):
        X, mask, _ = self.problem()
        model = GMPLL(readout=(1.0, 1.0), forest=0.0, random_state=0).fit(X[:150], mask[:150])
        before = model._predictor.reader
        model.partial_fit(X[150:], mask[150:])
        after = model._predictor.reader
        assert len(after.table.rows) == 300
        assert not np.array_equal(after.readout.of_features, before.readout.of_features)
        assert model.predict_proba(X).shape == (300, 5)

    def test_it_reads_what_the_regression_says_of_rows_it_has_not_seen(self):
        X, mask, _ = self.problem(n=60)
        model = GMPLL(readout=2.0, forest=0.0, random_state=0, calibrate=False).fit(X, mask)
        rater, P = model._predictor, model.label_confidences_
        K = rater.regression.kernel(rater.regression.kernel.landmarks)
        A = np.linalg.inv(K + model.selected_["ridge"] * np.eye(60))
        left_out = []
        for row in range(60):  # the regression without the row, fitted anew
            others = np.arange(60) != row
            inner = np.linalg.inv(np.linalg.inv(A)[np.ix_(others, others)])
            left_out.append(K[row, others] @ inner @ P[others])
        readout = fit_readout(np.array(left_out), P, 2.0)
        found = rater.reader.readout
        np.testing.assert_allclose(found.weights, readout.weights, rtol=1e-3, atol=1e-3)
        plain = rater.regression([view.transform(X) for view in rater.views])
        np.testing.assert_allclose(rater(X), found(plain))

    def test_none_for_a_single_label_or_very_many(self, monkeypatch):
        X, mask, _ = self.problem(n=50)
        assert GMPLL(random_state=0).fit(X, np.zeros(50)).selected_["readout"] == 0
        monkeypatch.setattr("gmpll.evidence.stacking.MOST_LABELS", 4)
        model = GMPLL(random_state=0).fit(X, mask)
        assert model.selected_["readout"] == 0
        assert {setting.readout for setting, _ in model.selection_.scores} == {0.0}

    def test_very_many_features_are_not_asked(self, monkeypatch):
        X, mask, _ = self.problem(n=50)
        monkeypatch.setattr("gmpll.evidence.stacking.MOST_FEATURES", 1)
        model = GMPLL(random_state=0).fit(X, mask)
        assert {setting.linear for setting, _ in model.selection_.scores} == {0.0}
        assert len({setting.readout for setting, _ in model.selection_.scores}) > 1


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
