import copy
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from sklearn.preprocessing import QuantileTransformer, StandardScaler, normalize

from gmpll.arrays import to_host
from gmpll.engines import engine_of
from gmpll.graph import views as module
from gmpll.graph.views import (
    CosineView,
    EuclideanView,
    OutlierCompression,
    RankView,
    Scaling,
    TreeView,
    unit_rows,
    views_of,
)
from problems import problems


def literal_z_scores(X, unseen):
    """Scikit-learn's z-scores; rows that are the mean up to rounding become zero."""
    scaler = StandardScaler().fit(X)
    found = []
    for rows in (X, unseen):
        scaled = scaler.transform(rows)
        scaled[np.linalg.norm(scaled, axis=1) < 1e-10] = 0.0
        found.append(scaled)
    return found


def literal_normal_scores(X, unseen):
    ranks = QuantileTransformer(n_quantiles=min(200, len(X)), output_distribution="normal").fit(X)
    return [np.clip(ranks.transform(rows), -3.0, 3.0) for rows in (X, unseen)]


def literal_view(name, X, unseen):
    if name == "rank":
        X, unseen = literal_normal_scores(X, unseen)
    scaled = literal_z_scores(X, unseen)
    return scaled if name == "euclidean" else [normalize(rows) for rows in scaled]


@pytest.mark.parametrize("name", ["cosine", "rank", "euclidean"])
@pytest.mark.parametrize("n_samples", [300, 7])
def test_every_library_maps_rows_like_scikit_learn(library, name, n_samples, monkeypatch):
    monkeypatch.setattr("gmpll.engines.numpy.MAP_BYTES", 1600)
    rng = np.random.RandomState(5)
    X = np.c_[rng.randn(300) + 1e5, rng.poisson(1.0, 300), rng.rand(300), np.full(300, 0.1)]
    X[:20, 2] = X[:, 2].min() + 1e-8 * rng.rand(20)  # the smallest up to rounding
    X = X[-n_samples:]
    unseen = np.c_[3 * rng.randn(40) + 1e5, rng.poisson(2.0, 40), 2 * rng.rand(40), rng.rand(40)]
    (view,) = views_of(library.array(X), (name,), np.random.RandomState(0))
    rows, mapped = literal_view(name, X, unseen)
    assert engine_of(view.rows).name == library.name
    np.testing.assert_allclose(to_host(view.rows), rows, atol=1e-9)
    np.testing.assert_allclose(to_host(view.transform(library.array(unseen))), mapped, atol=1e-9)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(problem=problems())
def test_directions_of_awkward_rows(library, problem):
    X, _, _ = problem
    X = np.column_stack([X, np.full(len(X), 3.0)])  # a constant feature
    unseen = X[:3] + 0.5
    rows, mapped = literal_view("cosine", X, unseen)
    view = CosineView(library.array(X))
    np.testing.assert_allclose(to_host(view.rows), rows, atol=1e-9)
    np.testing.assert_allclose(to_host(view.transform(library.array(unseen))), mapped, atol=1e-9)


def test_views_come_in_the_order_of_their_names():
    views = views_of(np.eye(4), ("euclidean", "cosine"), np.random.RandomState(0))
    assert [type(view) for view in views] == [EuclideanView, CosineView]
    with pytest.raises(ValueError, match="no view 'polar': choose from cosine, rank, euclidean"):
        views_of(np.eye(4), ("polar",), np.random.RandomState(0))


@pytest.mark.parametrize("name", ["cosine", "rank", "euclidean"])
def test_a_feature_that_is_constant_up_to_rounding_counts_for_nothing(library, name):
    X = np.random.RandomState(0).randn(60, 3)
    X[:, 1] = 0.1
    X[7, 1] = np.nextafter(0.1, 1)
    rng = np.random.RandomState(0)
    rows = to_host(views_of(library.array(X), (name,), rng)[0].rows)
    if name != "rank":  # ranks cannot tell rounding from a value
        without = views_of(library.array(np.delete(X, 1, axis=1)), (name,), rng)[0].rows
        np.testing.assert_allclose(np.delete(rows, 1, axis=1), to_host(without), atol=1e-12)
        np.testing.assert_allclose(rows[:, 1], 0.0, atol=1e-12)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("scale", [1e-320, 1e-250, 1e250, 1e307])
def test_scales_whose_squares_are_no_numbers(library, scale):
    X = np.random.RandomState(0).randn(30, 2)
    tolerance = 1e-2 if scale == 1e-320 else 1e-9  # such numbers have few digits
    for view in (EuclideanView, CosineView):
        found = view(library.array(X * scale))
        np.testing.assert_allclose(to_host(found.rows), view(X).rows, atol=tolerance)
        far = found.transform(library.array(np.full((2, 2), 1e308)))
        assert np.isfinite(to_host(far)).all()


def test_single_precision_stays_single(library):
    X = np.random.RandomState(1).randn(30, 3).astype(np.float32)
    for view in views_of(library.array(X), module.VIEWS, np.random.RandomState(0)):
        assert to_host(view.rows).dtype == np.float32
        double = type(view)(X.astype(np.float64)).rows
        np.testing.assert_allclose(to_host(view.rows), double, atol=1e-4)


def test_positions_are_z_scores_and_directions_forget_their_length():
    X = np.random.RandomState(1).randn(40, 3) * [1.0, 5.0, 0.1] + 2.0
    positions = EuclideanView(X)
    np.testing.assert_allclose(positions.rows.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(positions.rows.std(axis=0), 1.0)
    lengths = np.linalg.norm(positions.rows, axis=1, keepdims=True)
    np.testing.assert_allclose(CosineView(X).rows, positions.rows / lengths)
    np.testing.assert_allclose(positions.transform(X[:3]), Scaling(X).transform(X[:3]))


def test_unit_rows(library):
    found = to_host(unit_rows(library.array(np.array([[3.0, 4.0], [0.0, 0.0]]))))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 0.0]])


@pytest.mark.parametrize("far", [1e10, -1e45, 1e308])
def test_compression_keeps_the_order_and_the_other_features(far):
    X = np.random.RandomState(2).randn(50, 3)
    X[4, 1] = far
    X[5, 1] = -far
    compressed = OutlierCompression(X)(X)
    np.testing.assert_array_equal(np.argsort(compressed, axis=0), np.argsort(X, axis=0))
    np.testing.assert_array_equal(compressed[:, [0, 2]], X[:, [0, 2]])
    others = np.delete(compressed[:, 1], [4, 5])
    assert np.unique(others.astype(np.float32)).size == 48
    assert np.abs(compressed).max() <= 1e3
    assert X[4, 1] == far  # X itself stays


def test_usual_features_are_not_compressed():
    rng = np.random.RandomState(3)
    X = np.c_[rng.randn(200), np.exp(3 * rng.randn(200)), rng.poisson(0.05, 200), np.ones(200)]
    assert OutlierCompression(X)(X) is X
    np.testing.assert_array_equal(TreeView(X).rows, EuclideanView(X).rows)


def test_one_value_far_out_hides_no_order(library):
    """Ranks, and trees, see the same whether the largest value is large or enormous."""
    X = np.random.RandomState(4).randn(60, 2)
    X[0] = 50.0
    enormous = X.copy()
    enormous[0, 1] = 1e12
    ranks, trees = RankView(library.array(enormous)), TreeView(library.array(enormous))
    np.testing.assert_allclose(to_host(ranks.rows), RankView(X).rows, atol=1e-6)
    rows = trees.rows.astype(np.float32)
    np.testing.assert_array_equal(np.argsort(rows, axis=0), np.argsort(X, axis=0))
    unseen = library.array(np.array([[0.1, 1e300], [0.2, -1e300]]))
    assert np.isfinite(to_host(ranks.transform(unseen))).all()
    assert np.isfinite(trees.transform(unseen)).all()


def test_trees_look_at_rows_on_the_host(library):
    X = np.random.RandomState(6).randn(30, 3)
    view = TreeView(library.array(X))
    assert isinstance(view.rows, np.ndarray)
    np.testing.assert_array_equal(view.rows, TreeView(X).rows)
    assert isinstance(view.transform(library.array(X[:4])), np.ndarray)


def test_ranks_of_very_many_rows_are_taken_from_some(library, monkeypatch):
    monkeypatch.setattr(module, "RANK_SAMPLE", 250)
    X = np.random.RandomState(7).randn(400, 2)
    sampled = to_host(RankView(library.array(X), random_state=3).rows)
    ranks = QuantileTransformer(
        n_quantiles=200, subsample=250, output_distribution="normal", random_state=3
    )
    expected = CosineView(np.clip(ranks.fit_transform(X), -3.0, 3.0)).rows
    np.testing.assert_allclose(sampled, expected, atol=1e-9)


@pytest.mark.parametrize("name", ["cosine", "rank", "euclidean", "tree"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_files_hold_single_precision_rows_once_and_what_is_read_is_the_same(name, dtype):
    rng = np.random.RandomState(0)
    X = (rng.randn(300, 20) * 3.0**-9).astype(np.float32).astype(dtype)
    unseen = rng.randn(9, 20).astype(dtype)
    if name == "tree":
        views = [TreeView(X)]
    else:
        views = views_of(X, ("cosine", name), np.random.RandomState(0))
    dumped = pickle.dumps(views)
    assert len(dumped) < 4 * X.size + 6000
    X[:] = 0.0  # what is kept is a copy
    for view, read in zip(views, pickle.loads(dumped), strict=True):
        np.testing.assert_array_equal(read.rows, view.rows)
        assert read.rows.dtype == view.rows.dtype
        np.testing.assert_array_equal(read.transform(unseen), view.transform(unseen))


def test_rows_of_double_precision_and_added_rows_are_stored_as_they_are():
    X = np.random.RandomState(0).randn(30, 4)
    view = CosineView(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(view)).rows, view.rows)
    view = CosineView(X.astype(np.float32).astype(np.float64))
    twin = copy.copy(view)
    assert twin.rows is view.rows
    twin.rows = np.vstack([view.rows, view.transform(X[:3])])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(twin)).rows, twin.rows)
    assert module.in_single_precision(np.array([[0.1]])) is None
    assert module.in_single_precision(np.array([[1e300]])) is None


def test_variances_are_those_before_scaling():
    X = np.random.RandomState(0).randn(50, 3) * [1.0, 1e150, 3e150]
    found = EuclideanView(X).variances
    np.testing.assert_allclose(found / found[2], (X.std(axis=0) / X[:, 2].std()) ** 2, rtol=1e-9)
    np.testing.assert_array_equal(EuclideanView(X * 2.0**-700).variances, found)


def test_few_rows_have_the_ranks_of_many(monkeypatch):
    """Comparing with all quantiles at once is searching them."""
    rng = np.random.RandomState(0)
    X = np.hstack([rng.randn(300, 3), rng.randint(4, size=(300, 2))])
    view = RankView(X)
    at_once = view.transform(X[:40])
    monkeypatch.setattr(module, "COMPARED_AT_ONCE", 0)
    np.testing.assert_array_equal(view.transform(X[:40]), at_once)
