import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesRegressor

from gmpll.evidence import forest as module
from gmpll.evidence.forest import GrownForest, is_forest_feasible


def confident(n=150, q=4, d=5, seed=0):
    rng = np.random.RandomState(seed)
    rows = rng.randn(n, d)
    return rows, rng.dirichlet(np.ones(q), size=n)


def grow_forest(rows, confidences, seed):
    return GrownForest.of(rows, confidences, seed).forest


def oob_prediction(rows, confidences, seed):
    return GrownForest.of(rows, confidences, seed).out_of_bag(confidences)


def scikit_learn_forest(rows, confidences, seed, n_trees):
    forest = ExtraTreesRegressor(
        n_trees,
        min_samples_leaf=module.LEAF_ROWS,
        bootstrap=True,
        max_samples=min(module.TREE_ROWS, len(rows)),
        oob_score=True,
        random_state=seed,
    )
    return forest.fit(rows, confidences)


@pytest.mark.parametrize("q", [2, 7])
def test_packed_trees_say_what_scikit_learns_say(q):
    rows, confidences = confident(q=q)
    confidences = confidences.round(module.TARGET_DECIMALS)
    forest = grow_forest(rows, confidences, seed=3)
    prediction = oob_prediction(rows, confidences, seed=3)
    reference = scikit_learn_forest(rows, confidences, 3, module.N_TREES)
    unseen = np.random.RandomState(1).randn(40, rows.shape[1])
    for asked in (unseen, rows):
        np.testing.assert_allclose(forest(asked), reference.predict(asked), atol=1e-6)
    np.testing.assert_allclose(prediction, reference.oob_prediction_, atol=1e-12)


@pytest.mark.parametrize("q", [1, 4])
def test_leaves_get_the_values_of_other_confidences(q):
    """Row by row and tree by tree: the mean over the rows of the leaf that the tree drew."""
    rows, confidences = confident(n=50, q=q)
    other = confident(q=q, n=50, seed=1)[1]
    grown = GrownForest.of(rows, confidences, seed=0)
    trees = ExtraTreesRegressor(
        module.N_TREES, min_samples_leaf=module.LEAF_ROWS, bootstrap=True, max_samples=len(rows),
        random_state=0,
    ).fit(rows, module._target(confidences))  # fmt: skip
    left_out = [[] for _ in rows]
    for tree, drawn in zip(trees.estimators_, trees.estimators_samples_, strict=True):
        leaf = tree.apply(rows[drawn])
        for i in set(range(len(rows))) - set(drawn):
            place = tree.apply(rows[i : i + 1])
            left_out[i].append(other[drawn[leaf == place]].mean(axis=0))
    expected = [np.mean(of_row, axis=0) for of_row in left_out]
    np.testing.assert_allclose(grown.out_of_bag(other), expected, atol=1e-12)


def test_a_row_that_every_tree_drew_is_told_nothing():
    rows, confidences = confident(n=40)
    found = GrownForest.of(rows, confidences, 0, n_trees=1).out_of_bag(confidences)
    drawn = np.isclose(found.sum(axis=1), 0.0)
    assert 0 < drawn.sum() < 40


def test_the_prediction_of_a_row_does_not_know_its_own_label():
    rows, confidences = confident(n=60)
    before = oob_prediction(rows, confidences, seed=0)
    changed = confidences.copy()
    changed[7] = changed[7][::-1]
    # The trees that did not draw row 7 are the same, whatever its label.
    after = oob_prediction(rows, changed, seed=0)
    np.testing.assert_allclose(before[7], after[7], atol=1e-12)
    assert not np.allclose(before, after)


def test_blocks_and_threads_change_nothing(monkeypatch):
    rows, confidences = confident()
    whole = grow_forest(rows, confidences, seed=0)(rows)
    prediction = oob_prediction(rows, confidences, seed=0)
    one = grow_forest(rows, confidences, seed=0)(rows[:1])
    np.testing.assert_array_equal(one, whole[:1])  # all trees at once
    monkeypatch.setattr(module, "ONE_THREAD_SIZE", 0)
    monkeypatch.setattr(module, "BLOCK_ROWS", 7)
    np.testing.assert_array_equal(grow_forest(rows, confidences, seed=0)(rows), whole)
    np.testing.assert_array_equal(grow_forest(rows, confidences, seed=0)(rows[:1]), whole[:1])
    np.testing.assert_array_equal(oob_prediction(rows, confidences, seed=0), prediction)


def test_rows_of_any_size_are_scored():
    rows, confidences = confident()
    forest = grow_forest(rows, confidences, seed=0)
    far = forest(np.array([[1e300] * 5, [-1e300] * 5]))
    np.testing.assert_allclose(far.sum(axis=1), 1.0, atol=1e-3)
    rows[:2] *= 1e45
    assert np.isfinite(grow_forest(rows, confidences, seed=0)(rows)).all()
    assert np.isfinite(oob_prediction(rows, confidences, seed=0)).all()


@pytest.mark.parametrize(("n_features", "searched"), [(1, 1), (10, 10), (64, 64), (4000, 64)])
def test_a_split_looks_at_a_part_of_many_features(n_features, searched):
    rows, _ = confident(d=n_features)
    assert module._trees(rows, seed=0).max_features == searched


def test_first_trees_are_not_grown_again():
    rows, confidences = confident(n=60)
    first = GrownForest.of(rows, confidences, 0, n_trees=7)
    assert len(first.forest.roots) == 7
    both = GrownForest.of(rows, confidences, 0, n_trees=20, first=first)
    at_once = GrownForest.of(rows, confidences, 0, n_trees=20)
    np.testing.assert_array_equal(both.forest(rows), at_once.forest(rows))
    np.testing.assert_allclose(
        both.out_of_bag(confidences), at_once.out_of_bag(confidences), atol=1e-12
    )
    np.testing.assert_array_equal(both.forest.threshold[: len(first.forest.threshold)],
                                  first.forest.threshold)  # fmt: skip


def test_constant_features_and_one_label_do_no_harm():
    rows, sure = np.zeros((10, 2)), np.ones((10, 1))
    np.testing.assert_allclose(grow_forest(rows, sure, seed=0)(rows[:3]), 1.0)
    np.testing.assert_allclose(oob_prediction(rows, sure, seed=0), 1.0)


def test_trees_see_a_part_of_many_rows(monkeypatch):
    monkeypatch.setattr(module, "TREE_ROWS", 40)
    rows, confidences = confident(n=400)
    forest = grow_forest(rows, confidences, seed=0)
    assert len(forest.feature) < module.N_TREES * 2 * 40
    prediction = oob_prediction(rows, confidences, seed=0)
    assert (prediction.sum(axis=1) > 0.99).all()


def test_it_learns():
    X, y = load_iris(return_X_y=True)
    forest = grow_forest(X[::2], np.eye(3)[y[::2]], seed=0)
    prediction = oob_prediction(X[::2], np.eye(3)[y[::2]], seed=0)
    assert (forest(X[1::2]).argmax(axis=1) == y[1::2]).mean() > 0.9
    assert (prediction.argmax(axis=1) == y[::2]).mean() > 0.9


def test_it_is_smaller_than_scikit_learns():
    rows, confidences = confident(n=300, q=10)
    forest = grow_forest(rows, confidences, seed=0)
    theirs = scikit_learn_forest(rows, confidences, 0, module.N_TREES)
    assert 3 * len(pickle.dumps(forest)) < len(pickle.dumps(theirs))


@pytest.mark.parametrize(
    ("n_samples", "n_classes", "expected"),
    [
        (39, 2, False),
        (100, 1, False),
        (40, 2, True),
        (5000, 40, True),
        (5000, 41, False),
        (10**6, 40, True),
    ],
)
def test_what_is_forest_feasible(n_samples, n_classes, expected):
    assert is_forest_feasible(n_samples, n_classes) == expected
