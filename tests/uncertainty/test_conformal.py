"""Coverage that is promised, and coverage that is not."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.estimator_checks import parametrize_with_checks

from gmpll import PLKNN, ConformalPartialClassifier, as_candidates
from gmpll.datasets import make_partial_label_problem, random_candidates
from gmpll.uncertainty.conformal import conformal_rank
from problems import random_problem


class NearestMean(ClassifierMixin, BaseEstimator):
    """A quick model: softmax of distances to the means of each label's candidates."""

    def fit(self, X, y):
        mask, self.classes_ = as_candidates(y)
        self.means_ = (mask.T @ X) / mask.sum(axis=0)[:, None]
        return self

    def predict_proba(self, X):
        close = np.exp(-((X[:, None, :] - self.means_) ** 2).sum(axis=2))
        return close / close.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def draw(seed, p=0.15, n_samples=600):
    """Rows of three overlapping classes; a share p of them is ambiguous."""
    data = make_partial_label_problem(
        n_samples, n_features=2, n_classes=3, separation=2.5, mean_candidates=1, random_state=seed
    )
    order = np.random.RandomState(seed).permutation(n_samples)
    X, truth = data.data[order], data.target[order]
    return X, random_candidates(truth, p=p, r=1, random_state=seed), truth


def coverage(sets, truth):
    return sets[np.arange(len(truth)), truth].mean()


@parametrize_with_checks(
    [
        ConformalPartialClassifier(PLKNN(), random_state=0),
        ConformalPartialClassifier(PLKNN(), mode="approximate", cv=3, random_state=0),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cv", [None, 5])
@pytest.mark.parametrize("level", [0.8, 0.9])
def test_guaranteed_sets_cover_and_optimistic_ones_do_not(level, cv):
    covered = {mode: [] for mode in ("guaranteed", "approximate", "optimistic")}
    sizes = {mode: [] for mode in covered}
    for seed in range(25):
        X, mask, truth = draw(seed, p=0.6)
        for mode in covered:
            model = ConformalPartialClassifier(
                NearestMean(), level, mode=mode, cv=cv, random_state=seed
            ).fit(X[:300], mask[:300])
            sets = model.predict_set(X[300:])
            covered[mode].append(coverage(sets, truth[300:]))
            sizes[mode].append(sets.sum(axis=1).mean())
    mean = {mode: np.mean(values) for mode, values in covered.items()}
    assert mean["guaranteed"] >= level
    assert abs(mean["approximate"] - level) < 0.04
    assert mean["optimistic"] < level - 0.02
    assert np.mean(sizes["optimistic"]) < np.mean(sizes["approximate"])
    assert np.mean(sizes["approximate"]) < np.mean(sizes["guaranteed"])


def test_the_guarantee_survives_candidates_made_against_it():
    """The truth is the worst candidate wherever the model errs: only the guaranteed mode holds."""
    covered = {"guaranteed": [], "approximate": []}
    for seed in range(20):
        X, _, truth = draw(seed)
        mask = np.eye(3, dtype=bool)[truth]
        guess = NearestMean().fit(X, mask).predict(X)
        mask[np.arange(len(truth)), guess] = True
        for mode, values in covered.items():
            model = ConformalPartialClassifier(NearestMean(), mode=mode, random_state=seed)
            sets = model.fit(X[:300], mask[:300]).predict_set(X[300:])
            values.append(coverage(sets, truth[300:]))
    assert np.mean(covered["guaranteed"]) >= 0.9
    assert np.mean(covered["approximate"]) < 0.88


def test_with_true_labels_all_modes_are_split_conformal():
    X, _, truth = draw(0)
    reference = None
    for mode in ("guaranteed", "approximate", "optimistic"):
        model = ConformalPartialClassifier(NearestMean(), 0.85, mode=mode, random_state=0)
        model.fit(X[:300], truth[:300])
        rows = model.calibration_rows_
        p = model.estimator_.predict_proba(X[rows])
        scores = np.sort(1 - p[np.arange(len(rows)), truth[rows]])
        threshold = scores[int(np.ceil((len(rows) + 1) * 0.85)) - 1]
        literal = 1 - model.estimator_.predict_proba(X[300:]) <= threshold
        np.testing.assert_array_equal(model.predict_set(X[300:]), literal)
        reference = literal if reference is None else reference
        np.testing.assert_array_equal(literal, reference)


def test_worst_candidates_only_enlarge_the_sets_of_the_truth():
    X, mask, truth = draw(1, p=0.5)
    model = ConformalPartialClassifier(NearestMean(), random_state=0).fit(X[:300], mask[:300])
    guaranteed = model.predict_set(X[300:])
    rows = model.calibration_rows_
    exact = model.calibrate(X[rows], truth[rows]).predict_set(X[300:])
    assert (guaranteed >= exact).all()
    assert guaranteed.sum() > exact.sum()


def test_calibration_rows_take_no_part_in_fitting():
    X, mask, _ = draw(2)
    model = ConformalPartialClassifier(NearestMean(), random_state=0).fit(X, mask)
    others = np.setdiff1d(np.arange(len(X)), model.calibration_rows_)
    assert len(others) + model.n_calibration_ == len(X)
    alone = NearestMean().fit(X[others], mask[others])
    np.testing.assert_allclose(model.estimator_.means_, alone.means_)


def test_cross_conformal_equals_its_definition():
    X, mask, _ = draw(3, n_samples=60)
    model = ConformalPartialClassifier(NearestMean(), 0.8, cv=3, random_state=0)
    model.fit(X[:40], mask[:40])
    literal = np.zeros((20, 3))
    for part in model._parts:
        p = part.model.predict_proba(X[40:])
        literal += ((1 - p)[:, :, None] > part.scores + 1e-12).sum(axis=2)
    np.testing.assert_array_equal(model.predict_set(X[40:]), literal < 0.8 * 41)
    assert model.n_calibration_ == 40


def test_too_few_rows_promise_all_labels():
    X, mask, _ = random_problem(0, m=12)
    model = ConformalPartialClassifier(PLKNN(), 0.9, random_state=0).fit(X, mask)
    assert model.predict_set(X).all()
    assert conformal_rank(9, 0.9) == 9
    assert conformal_rank(8, 0.9) == 9


def test_known_candidates_narrow_the_sets():
    X, mask, truth = draw(4)
    model = ConformalPartialClassifier(NearestMean(), random_state=0).fit(X[:300], mask[:300])
    free, narrowed = model.predict_set(X[300:]), model.predict_set(X[300:], mask[300:])
    np.testing.assert_array_equal(narrowed, free & mask[300:])
    assert coverage(narrowed, truth[300:]) == coverage(free, truth[300:])


def test_names_and_unknown_labels():
    X, mask, _ = draw(5, n_samples=80)
    names = np.array(["a", "b", "c"])
    model = ConformalPartialClassifier(NearestMean(), random_state=0)
    model.fit(X, [set(names[row]) for row in mask])
    assert model.predict_set(X[:2], [{"b"}, {"a", "c"}])[:, 1].tolist()[1] is False
    with pytest.raises(ValueError, match="Row 1 has the candidate 'z', which is none of the 3"):
        model.calibrate(X[:2], ["a", "z"])
    with pytest.raises(ValueError, match="4 columns, but there are 3 labels"):
        model.calibrate(X[:2], np.ones((2, 4), dtype=int))


def test_a_row_of_any_label_keeps_its_whole_set():
    X, mask, _ = draw(5, n_samples=80)
    model = ConformalPartialClassifier(NearestMean(), random_state=0).fit(X, mask)
    free = model.predict_set(X[:2])
    np.testing.assert_array_equal(model.predict_set(X[:2], [{0}, None])[1], free[1])
