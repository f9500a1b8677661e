import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
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


def shares(key, numbers):
    """What is drawn for the features of a node, from 0 to 1."""
    mixed = module._mixed(np.uint32(key) + module.STEP * (numbers + 1).astype(np.uint32))
    return (mixed >> np.uint32(8)).astype(np.float32) / np.float32(2**24)


def child(key, side):
    return module._mixed(np.array([key], dtype=np.uint32) + module.SIDES[side])[0]


def grow_literally(table, whole, drawn, times, key):
    """Return a function from a row to the drawn rows of its leaf: one node after the other."""
    w, best = times[drawn], (-1.0, None)
    if len(np.unique(whole[drawn], axis=0)) > 1:
        low, high = table[drawn].min(axis=0), table[drawn].max(axis=0)
        u = shares(key, np.arange(table.shape[1]))
        for f, threshold in enumerate((1 - u) * low + u * high):
            right = table[drawn, f] > threshold
            sides = [(w * right) @ whole[drawn], (w * ~right) @ whole[drawn]]
            if min(right.sum(), (~right).sum()) >= module.LEAF_ROWS:
                weights = [(w * right).sum(), (w * ~right).sum()]
                gain = sum((s**2).sum() / n for s, n in zip(sides, weights, strict=True))
                best = max(best, (gain, (f, threshold)), key=lambda found: found[0])
    if best[1] is None:
        return lambda row: drawn
    f, threshold = best[1]
    is_right = table[drawn, f] > threshold
    parts = [
        grow_literally(table, whole, drawn[is_right == side], times, child(key, side))
        for side in (0, 1)
    ]
    return lambda row: parts[int(row[f] > threshold)](row)


@pytest.mark.parametrize("q", [1, 2, 7])
def test_trees_and_their_values_node_by_node(q):
    """Values are means over the drawn rows of a leaf, also those of other confidences."""
    rows, confidences = confident(n=60, q=q)
    other = confident(n=60, q=q, seed=1)[1]
    table, unseen = rows.astype(np.float32), np.random.RandomState(1).randn(20, 5).astype("f4")
    times = module._times_drawn(60, 9, seed=3)
    np.testing.assert_array_equal(times.sum(axis=1), 60)
    keys = module._mixed(np.uint32(3) + module.STEP * np.arange(9, dtype=np.uint32))
    expected, left_out = np.zeros((20, q)), [[] for _ in rows]
    for w, key in zip(times, keys, strict=True):
        tree = grow_literally(table, np.rint(1000 * confidences), np.flatnonzero(w), w, key)
        found = [tree(row) for row in unseen]
        expected += [w[leaf] @ confidences[leaf].round(3) / w[leaf].sum() / 9 for leaf in found]
        for i in np.flatnonzero(w == 0):
            leaf = tree(table[i])
            left_out[i].append(w[leaf] @ other[leaf] / w[leaf].sum())
    grown = GrownForest.of(rows, confidences, 3, n_trees=9)
    np.testing.assert_allclose(grown.forest(unseen), expected, atol=1e-6)
    means = [np.mean(of_row, axis=0) if of_row else np.zeros(q) for of_row in left_out]
    np.testing.assert_allclose(grown.out_of_bag(other), means, atol=1e-12)


def test_they_are_as_good_as_scikit_learns():
    X, y = load_digits(return_X_y=True)
    confidences = np.eye(10)[y]
    reference = scikit_learn_forest(X, confidences, 0, module.N_TREES).oob_prediction_
    found = oob_prediction(X, confidences, seed=0)
    ours, theirs = ((P.argmax(axis=1) == y).mean() for P in (found, reference))
    assert ours > theirs - 0.01


def test_rows_went_where_the_forest_leads_them():
    rows, confidences = confident(n=200, q=3)
    grown = GrownForest.of(rows, confidences, seed=0)
    of_rows = grown.forest.values[grown.leaves].mean(axis=0)
    np.testing.assert_allclose(grown.forest(rows), of_rows, atol=1e-6)


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


@pytest.mark.parametrize(("n_features", "searched"), [(1, 1), (128, 128), (129, 64), (4000, 64)])
def test_a_split_looks_at_a_part_of_many_features(n_features, searched):
    assert module._n_searched(n_features) == searched


@pytest.mark.parametrize("n_features", [131, 420])
def test_the_only_feature_that_tells_rows_apart_is_found(n_features):
    rows = np.zeros((60, n_features))
    rows[::2, 77] = 1.0
    confidences = np.eye(2)[np.arange(60) % 2]
    forest = grow_forest(rows, confidences, seed=0)
    np.testing.assert_array_equal(forest(rows), confidences)
    assert forest.depth == 1


def test_equal_rows_are_not_split():
    confidences = np.eye(2)[np.arange(60) % 2]
    assert grow_forest(np.ones((60, 300)), confidences, seed=0).depth == 0


def test_neither_threads_nor_sizes_of_blocks_change_trees(monkeypatch):
    rows, confidences = confident(n=200, d=150)
    one = GrownForest.of(rows, confidences, 0, n_jobs=1)
    for n_jobs, name, value in [(3, "BLOCK_VALUES", 500), (100, "SIMILAR", 1.0)]:
        monkeypatch.setattr(module, name, value)
        other = GrownForest.of(rows, confidences, 0, n_jobs=n_jobs)
        np.testing.assert_array_equal(other.forest(rows), one.forest(rows))
        np.testing.assert_array_equal(other.out_of_bag(confidences), one.out_of_bag(confidences))


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
