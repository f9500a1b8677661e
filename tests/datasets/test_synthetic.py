import tracemalloc

import numpy as np
import pytest
from scipy import stats
from sklearn.neighbors import NearestCentroid

from gmpll.datasets import corruption, make_partial_label_problem, synthetic


def test_clusters_are_standard_normal_around_their_centres():
    problem = make_partial_label_problem(6000, 3, 4, separation=5.0, random_state=0)
    residual = problem.data - problem.centers[problem.target]
    assert stats.kstest(residual.ravel(), "norm").pvalue > 1e-3
    assert np.abs(np.cov(residual.T) - np.eye(3)).max() < 0.08


def test_separation_is_the_typical_distance_of_centres_in_any_dimension():
    for d in (2, 300):
        centers = np.vstack(
            [
                make_partial_label_problem(2, d, 2, separation=4.0, random_state=seed).centers[None]
                for seed in range(400)
            ]
        )
        squared = ((centers[:, 0] - centers[:, 1]) ** 2).sum(axis=1)
        assert squared.mean() == pytest.approx(16, rel=0.2)


def test_more_separation_is_easier():
    accuracy = []
    for separation in (0.0, 2.0, 8.0):
        problem = make_partial_label_problem(1000, 10, 4, separation=separation, random_state=0)
        model = NearestCentroid().fit(problem.data[::2], problem.target[::2])
        accuracy.append(model.score(problem.data[1::2], problem.target[1::2]))
    assert accuracy[0] < 0.35 < accuracy[1] < accuracy[2]
    assert accuracy[2] > 0.95


@pytest.mark.parametrize("mean", [1.0, 1.7, 3.5, 5.0])
def test_candidates_have_the_mean_size_asked_for(mean):
    problem = make_partial_label_problem(20000, 2, 5, mean, random_state=1)
    assert problem.candidates[np.arange(20000), problem.target].all()
    assert problem.candidates.sum() / 20000 == pytest.approx(mean, abs=0.04)


@pytest.mark.parametrize("imbalance", [0.0, 1.0, 2.5])
def test_class_sizes_follow_zipfs_law(imbalance):
    problem = make_partial_label_problem(10000, 2, 8, imbalance=imbalance, random_state=0)
    share = np.arange(1.0, 9.0) ** -imbalance
    expected = 10000 * share / share.sum()
    sizes = np.bincount(problem.target, minlength=8)
    assert sizes.sum() == 10000
    assert np.abs(sizes - expected).max() <= 1


@pytest.mark.parametrize(("n", "q"), [(5, 5), (50, 40), (3, 7)])
def test_every_class_occurs_where_there_are_rows_enough(n, q):
    problem = make_partial_label_problem(n, 2, q, imbalance=3.0, random_state=0)
    assert problem.data.shape == (n, 2)
    if n >= q:
        assert len(np.unique(problem.target)) == q


def test_pinned():
    problem = make_partial_label_problem(6, 2, 3, 2.0, imbalance=1.0, random_state=42)
    assert problem.target.tolist() == [0, 0, 2, 0, 1, 1]
    expected = [[1, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0], [1, 1, 1], [1, 1, 1]]
    assert problem.candidates.astype(int).tolist() == expected
    np.testing.assert_allclose(
        problem.data[:2],
        [[-2.239200342824522, -0.4457295607130298], [-4.280369189763982, 1.4287229594309783]],
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_do_not_change_the_problem(monkeypatch, dtype):
    whole = make_partial_label_problem(101, 3, 4, random_state=0, dtype=dtype)
    for module in (synthetic, corruption):
        monkeypatch.setattr(module, "BLOCK_BYTES", 16 * 3 * 7)
    parts = make_partial_label_problem(101, 3, 4, random_state=0, dtype=dtype)
    assert whole.data.dtype == dtype
    np.testing.assert_array_equal(whole.data, parts.data)
    np.testing.assert_array_equal(whole.candidates, parts.candidates)


def test_memory_is_that_of_the_result_and_a_block(monkeypatch):
    for module in (synthetic, corruption):
        monkeypatch.setattr(module, "BLOCK_BYTES", 2**18)
    tracemalloc.start()
    problem = make_partial_label_problem(100_000, 40, 10, random_state=0, dtype=np.float32)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = problem.data.nbytes + problem.candidates.nbytes + problem.target.nbytes
    # One vector of row numbers comes in addition; a float64 copy of the data would be 32 MB.
    assert peak < result + 8 * 100_000 + 2 * 2**20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_samples": 0}, "n_samples must be at least 1"),
        ({"n_features": 0}, "n_features must be at least 1"),
        ({"n_classes": 1}, "n_classes must be at least 2"),
        ({"mean_candidates": 0.5}, "mean_candidates must be between 1 and 5"),
        ({"mean_candidates": 5.5}, "mean_candidates must be between 1 and 5"),
        ({"imbalance": -1}, "imbalance must be at least 0"),
        ({"separation": np.inf}, "separation must be at least 0 and finite"),
        ({"dtype": int}, "dtype must be float64 or float32"),
    ],
)
def test_refuses_impossible_requests(change, message):
    with pytest.raises(ValueError, match=message):
        make_partial_label_problem(**change)
