import numpy as np
import pytest
from sklearn.datasets import load_iris

from gmpll import PartialLabelClassifier
from gmpll.datasets import random_candidates
from gmpll.engines import inputs
from gmpll.evidence import selection
from gmpll.evidence.forest import GrownForest
from gmpll.evidence.pipeline import CandidateRows, Hyperparameters
from gmpll.evidence.selection import (
    FOREST_SHARES,
    MIN_FOREST_GAIN,
    RIDGES,
    STACKING,
    Search,
    select,
)
from gmpll.evidence.stacking import fit_stacker
from gmpll.metrics import chance_of_covering, row_lifts
from gmpll.side_information import Prior


def test_the_setting_with_the_largest_lift_is_chosen(monkeypatch):
    """Predictions are right for one ridge only."""
    rng = np.random.RandomState(0)
    truth = rng.randint(5, size=200)
    mask = random_candidates(truth, 0.7, 1, n_classes=5, random_state=0)
    rows = CandidateRows(truth[:, None].astype(float), mask, np.arange(5), Prior())
    pipeline = (
        PartialLabelClassifier(random_state=0).fit(rows.X, mask)._pipeline(rows, ("euclidean",), 0)
    )

    def scores(fold, setting, P):
        labels = (truth[fold.held_out] + (setting.ridge != 0.03)) % 5
        return np.eye(5)[labels]

    monkeypatch.setattr(selection._Fold, "scores", scores)
    search = Search(Hyperparameters(), taus=(0.5,), stacking=STACKING)
    found = select(pipeline, pipeline, search, rng)
    assert found.chosen.ridge == 0.03
    assert [score for _, score in found.scores] == sorted(
        [score for _, score in found.scores], reverse=True
    )
    assert found.scores[0][1] == 1.0


def test_the_stiffest_ridge_is_taken_that_is_not_surely_behind(monkeypatch):
    """Of 201 rows one ridge is wrong on 30, another on 31, partly others, a third on 60."""
    rng = np.random.RandomState(0)
    truth = rng.randint(5, size=201)
    rows = CandidateRows(
        truth[:, None].astype(float), np.eye(5, dtype=bool)[truth], np.arange(5), Prior()
    )
    pipeline = (
        PartialLabelClassifier(random_state=0)
        .fit(rows.X, rows.mask)
        ._pipeline(rows, ("euclidean",), 0)
    )
    wrong_on = {0.01: (0, 31), 0.03: (0, 30), 0.1: (3, 34), 0.3: (0, 60)}

    def scores(fold, setting, P):
        first, last = wrong_on[setting.ridge]
        wrong = (first <= fold.held_out) & (fold.held_out < last)
        return np.eye(5)[(truth[fold.held_out] + wrong) % 5]

    monkeypatch.setattr(selection._Fold, "scores", scores)
    search = Search(Hyperparameters(), feedback=(False, True), taus=(0.5,))
    found = select(pipeline, pipeline, search, rng)
    scores = {setting.ridge: score for setting, score in found.scores}
    assert scores[0.03] > scores[0.1] > scores[0.3]
    assert found.chosen.ridge == 0.1


def test_all_folds_at_once_choose_as_one_after_the_other(monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    X, y = load_iris(return_X_y=True)
    mask = random_candidates(y, 0.7, 1, random_state=0)
    model = PartialLabelClassifier(random_state=0).fit(X, mask)
    tensors = [torch.as_tensor(each) for each in (X, mask)]
    monkeypatch.setattr(inputs, "get_config", lambda: {"array_api_dispatch": True})
    there = PartialLabelClassifier(random_state=0).fit(*tensors)
    ours, theirs = model.selection_, there.selection_
    assert theirs.chosen == ours.chosen
    assert [setting for setting, _ in theirs.scores] == [setting for setting, _ in ours.scores]
    np.testing.assert_allclose(
        [score for _, score in theirs.scores], [score for _, score in ours.scores], atol=1e-9
    )
    np.testing.assert_array_equal(theirs.rows, ours.rows)
    np.testing.assert_allclose(theirs.held_out, ours.held_out, atol=1e-6)


def test_truth_plays_no_part_in_fitting():
    """Whatever is chosen depends on X and the candidate sets; there is nothing else to see."""
    X, y = load_iris(return_X_y=True)
    mask = random_candidates(y, 0.7, 1, random_state=0)
    model = PartialLabelClassifier(random_state=0).fit(X, mask)
    assert set(model.selected_) == {
        "views", "ridge", "stacking", "forest", "feedback", "tau", "weight_exponent",
    }  # fmt: skip
    settings = [setting for setting, _ in model.selection_.scores]
    assert {setting.stacking for setting in settings} == set(STACKING)
    assert {setting.forest for setting in settings} == set(FOREST_SHARES)
    ridges = {setting.ridge for setting in settings}  # the best one has been between others
    place = RIDGES.index(model.selected_["ridge"])
    assert set(RIDGES[max(place - 1, 0) : place + 2]) | set(RIDGES[1:3]) == ridges
    again = PartialLabelClassifier(random_state=0).fit(X, mask)
    assert again.selected_ == model.selected_
    np.testing.assert_array_equal(again.label_confidences_, model.label_confidences_)


def test_more_rows_stiffen_the_ridge_where_labels_are_noise():
    """Two noisy classes in many dimensions; the ridge per row does not grow."""
    rng = np.random.RandomState(0)
    y = rng.randint(2, size=2000)
    X = rng.normal(size=(2000, 30)) + 0.3 * y[:, None]
    mask = random_candidates(y, 0.5, 1, n_classes=3, random_state=0)
    fixed = {"stacking": 0.0, "forest": 0.0, "tau": 0.5}
    model = PartialLabelClassifier(hyperparameters=fixed | {"ridge": 0.3}, random_state=0)
    pipeline = model.fit(X[:50], mask[:50])._pipeline(
        CandidateRows(X, mask, np.arange(3), Prior()), ("cosine", "rank", "euclidean"), 0
    )
    start = Hyperparameters(ridge=0.3, tau=0.5)
    assert pipeline.stiffened(start, 2000) is start
    assert pipeline.stiffened(start, 1000) is start
    assert 0.3 < pipeline.stiffened(start, 200).ridge <= 3.0


def test_few_rows_see_every_view():
    """The direction of a row of one feature is its sign: intervals need its place."""
    rng = np.random.RandomState(0)
    X = rng.uniform(0, 6, size=(225, 1))
    truth = X[:, 0].astype(int) // 2
    mask = random_candidates(truth[:25], 0.5, 1, n_classes=3, random_state=0)
    model = PartialLabelClassifier(random_state=0).fit(X[:25], mask)
    assert model.selected_["views"] == ("cosine", "rank", "euclidean")
    assert (model.predict(X[25:]) == truth[25:]).mean() > 0.85


def test_few_rows_and_fixed_predictions_choose_nothing():
    X, y = load_iris(return_X_y=True)
    small = PartialLabelClassifier(random_state=0).fit(X[::10], y[::10])
    assert len(small.selection_.scores) == 1
    all_fixed = {
        "views": ("rank",), "ridge": 0.2, "stacking": 0.0, "forest": 0.0, "tau": 0.5,
    }  # fmt: skip
    fixed = PartialLabelClassifier(hyperparameters=all_fixed, random_state=0).fit(X, y)
    assert len(fixed.selection_.scores) == 1
    assert all_fixed.items() <= fixed.selected_.items()
    given = PartialLabelClassifier(hyperparameters={"views": ("rank",)}, random_state=0).fit(X, y)
    assert {setting.views for setting, _ in given.selection_.scores} == {("rank",)}


def test_what_is_hardly_more_than_luck_or_not_worth_its_time_is_no_gain():
    assert selection.Gain(0.02, 0.01).excess(0.005) == pytest.approx(0.01)
    assert selection.Gain(0.02, 0.03).excess(0.005) < 0
    assert selection.Gain(0.004, 0.001).excess(0.005) < 0 < selection.Gain(0.004, 0.001).excess(0)
    gains = {0.0: selection.Gain(0.0, 0.0), 1.0: selection.Gain(0.004, 0.001)}
    assert selection._one_standard_error_rule(gains) == 1.0
    assert selection._one_standard_error_rule(gains, 0.005) == 0.0


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
        model = PartialLabelClassifier(random_state=0).fit(X[:60], mask)
        alone = PartialLabelClassifier(hyperparameters={"forest": 0.0}, random_state=0).fit(
            X[:60], mask
        )
        assert model.selected_["forest"] > 0
        assert model.score(X[60:], y[60:]) > alone.score(X[60:], y[60:]) + 0.1

    @pytest.mark.parametrize("n", [400, 800])
    def test_trees_get_a_share_where_they_are_better(self, n):
        X, mask, y = self.problem(n=n)
        unseen, _, truth = self.problem(seed=1)
        model = PartialLabelClassifier(random_state=0).fit(X, mask)
        alone = PartialLabelClassifier(hyperparameters={"forest": 0.0}, random_state=0).fit(X, mask)
        assert model.selected_["forest"] > 0
        assert alone.selected_["forest"] == 0
        assert (model.predict(unseen) == truth).mean() > (alone.predict(unseen) == truth).mean()
        assert (model.labels_ == y).mean() >= (alone.labels_ == y).mean()
        gains = model.selection_.forest_gains
        assert gains[0.0] == (0.0, 0.0)
        surest = max(gains, key=lambda share: gains[share].excess(MIN_FOREST_GAIN) if share else 0)
        assert model.selected_["forest"] == surest
        assert alone.selection_.forest_gains == {}

    def test_shares_are_compared_on_rows_that_neither_has_seen(self, monkeypatch):
        """Regressions and trees without the row, on the confidences of the matching."""
        given = []

        def remembered(pipeline, *others):
            given.append(pipeline)
            return select(pipeline, *others)

        monkeypatch.setattr("gmpll.methods.classifier.select", remembered)
        X, mask, _ = self.problem(n=120)
        fixed = {"stacking": 0.0, "ridge": 0.1, "tau": 0.5}
        model = PartialLabelClassifier(hyperparameters=fixed, random_state=0).fit(X, mask)
        (pipeline,) = given
        P = pipeline.disambiguated.probabilities(0.5)
        ridge = pipeline.regression(Hyperparameters(ridge=0.1))
        A = np.linalg.inv(ridge.between(np.arange(120), np.arange(120)) + 0.1 * np.eye(120))
        scores = np.maximum(P - A @ P / np.diag(A)[:, None], 0.0)
        trees = GrownForest.of(pipeline.table.rows, P, pipeline._seed).out_of_bag(P)
        chance = chance_of_covering(mask.mean(axis=0), P.mean(axis=0))
        plain = row_lifts(mask, scores.argmax(axis=1), chance)
        for share, gain in model.selection_.forest_gains.items():
            both = (1 - share) * scores + share * trees
            difference = row_lifts(mask, both.argmax(axis=1), chance) - plain
            expected = difference.mean(), difference.std() / np.sqrt(120)
            np.testing.assert_allclose(gain, expected if share else 0.0, atol=1e-10)

    @pytest.mark.parametrize("far", [1e10, 1e60])
    def test_one_row_far_out_does_not_blind_the_model(self, far):
        X, mask, _ = self.problem(n=200)
        unseen, _, truth = self.problem(seed=1)
        X[0, :2] = far
        model = PartialLabelClassifier(random_state=0).fit(X, mask)
        assert (model.predict(unseen) == truth).mean() > 0.75

    def test_trees_get_none_where_they_are_worse(self):
        """The sides of an oblique plane: no single feature tells them apart."""
        rng = np.random.RandomState(0)
        X = rng.randn(300, 30)
        y = (X.sum(axis=1) > 0).astype(int)
        mask = random_candidates(y, 0.3, 1, n_classes=3, random_state=0)
        assert PartialLabelClassifier(random_state=0).fit(X, mask).selected_["forest"] == 0

    @pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
    def test_a_given_share_is_taken(self, share):
        X, mask, _ = self.problem(n=100)
        model = PartialLabelClassifier(hyperparameters={"forest": share}, random_state=0).fit(
            X, mask
        )
        assert model.selected_["forest"] == share
        assert len(model.selection_.held_out) > 0
        few = PartialLabelClassifier(hyperparameters={"forest": share}, random_state=0).fit(
            X[:20], mask[:20]
        )
        assert few.selected_["forest"] == share
        assert few.predict_proba(X).shape == (100, 4)

    def test_prediction_is_the_blend_of_regression_and_trees(self):
        X, mask, _ = self.problem(n=120)
        model = PartialLabelClassifier(
            hyperparameters={"forest": 0.3}, random_state=0, calibrate=False
        ).fit(X, mask)
        rater = model.predictor_
        expected = 0.7 * np.maximum(rater.regression(X), 0.0) + 0.3 * rater.trees(X)
        np.testing.assert_allclose(rater(X), expected)

    def test_rows_that_come_later_reach_the_trees(self):
        X, mask, y = self.problem()
        model = PartialLabelClassifier(hyperparameters={"forest": 0.5}, random_state=0).fit(
            X[:200], mask[:200]
        )
        before = model.predictor_.trees.forest
        model.partial_fit(X[200:], mask[200:])
        assert model.n_samples_seen_ == 400
        assert len(model.predictor_.trees.table.rows) == 400
        assert model.predictor_.trees.forest is not before
        assert (model.labels_ == y).mean() > 0.9

    def test_no_forest_where_it_would_take_long(self, monkeypatch):
        X, mask, _ = self.problem()
        monkeypatch.setattr("gmpll.evidence.forest.MAX_VALUES", 399)
        model = PartialLabelClassifier(random_state=0).fit(X, mask)
        assert model.selected_["forest"] == 0
        assert {setting.forest for setting, _ in model.selection_.scores} == {0.0}


class TestStacking:
    """Rings: a regression scores those that lie between others too low."""

    @staticmethod
    def problem(seed=0, n=300):
        rng = np.random.RandomState(seed)
        X = rng.normal(size=(n, 2))
        y = np.digitize(np.hypot(*X.T), [0.6, 0.9, 1.2, 1.6])
        return X, random_candidates(y, 0.5, 1, n_classes=5, random_state=seed), y

    def test_it_is_taken_where_it_is_better(self):
        X, mask, _ = self.problem()
        unseen, _, truth = self.problem(seed=1)
        model = PartialLabelClassifier(hyperparameters={"forest": 0.0}, random_state=0)
        model.fit(X, mask)
        plain = PartialLabelClassifier(
            hyperparameters={"forest": 0.0, "stacking": 0.0}, random_state=0
        ).fit(X, mask)
        assert model.selected_["stacking"] > 0
        assert plain.selected_["stacking"] == 0
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        assert model.score(unseen, truth) > plain.score(unseen, truth) + 0.02
        gains = model.selection_.stacking_gains
        assert gains[0.0] == (0.0, 0.0)
        surest = max(STACKING, key=lambda penalty: gains[penalty].mean - gains[penalty].error)
        assert model.selected_["stacking"] == surest
        assert plain.selection_.stacking_gains == {}

    @pytest.mark.parametrize("penalty", [0.0, 3.0])
    def test_a_given_penalty_is_taken(self, penalty):
        X, mask, _ = self.problem(n=100)
        for rows in (100, 20):
            model = PartialLabelClassifier(hyperparameters={"stacking": penalty}, random_state=0)
            model.fit(X[:rows], mask[:rows])
            assert model.selected_["stacking"] == penalty
            assert model.predict_proba(X).shape == (100, 5)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"stacking": -1.0}, "stacking=-1.0: it must be a number that is not negative"),
            ({"ridge": "a"}, "ridge='a': it must be a number"),
            ({"ridge": np.nan}, "ridge=nan: it must be a number"),
            ({"forest": 1.5}, "it is at most 1"),
            ({"tau": 1.5}, "it is at most 1"),
            ({"tau": None}, "must be a number"),
            ({"views": ("sideways",)}, "name at least one of cosine, rank, euclidean"),
            ({"trees": 3}, "'trees', which is none of them"),
        ],
    )
    def test_wrong_hyperparameters_are_named(self, wrong, message):
        X, mask, _ = self.problem(n=40)
        with pytest.raises(ValueError, match=message):
            PartialLabelClassifier(hyperparameters=wrong).fit(X, mask)

    def test_rows_that_come_later_are_stacked_too(self):
        X, mask, _ = self.problem()
        model = PartialLabelClassifier(
            hyperparameters={"forest": 0.0, "stacking": 1.0}, random_state=0
        ).fit(X[:150], mask[:150])
        before = model.predictor_.stacker
        model.partial_fit(X[150:], mask[150:])
        assert not np.array_equal(model.predictor_.stacker.weights, before.weights)
        assert model.predict_proba(X).shape == (300, 5)

    def test_it_is_fitted_to_what_the_regression_says_of_rows_it_has_not_seen(self):
        X, mask, _ = self.problem(n=60)
        model = PartialLabelClassifier(
            hyperparameters={"forest": 0.0, "stacking": 2.0}, random_state=0, calibrate=False
        ).fit(X, mask)
        predictor, P = model.predictor_, model.label_confidences_
        K = predictor.regression.kernel(*predictor.regression.kernel.landmarks)
        A = np.linalg.inv(K + model.selected_["ridge"] * np.eye(60))
        left_out = []
        for row in range(60):  # the regression without the row, fitted anew
            others = np.arange(60) != row
            inner = np.linalg.inv(np.linalg.inv(A)[np.ix_(others, others)])
            left_out.append(K[row, others] @ inner @ P[others])
        expected = fit_stacker(np.array(left_out), P, 2.0)
        found = predictor.stacker
        np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-3, atol=1e-3)
        plain = predictor.regression([view.transform(X) for view in predictor.views])
        np.testing.assert_allclose(predictor(X), found(plain))

    def test_none_for_a_single_label_or_very_many(self, monkeypatch):
        X, mask, _ = self.problem(n=50)
        assert (
            PartialLabelClassifier(random_state=0).fit(X, np.zeros(50)).selected_["stacking"] == 0
        )
        monkeypatch.setattr("gmpll.evidence.stacking.MAX_LABELS", 4)
        model = PartialLabelClassifier(random_state=0).fit(X, mask)
        assert model.selected_["stacking"] == 0
        assert {setting.stacking for setting, _ in model.selection_.scores} == {0.0}
