import numpy as np
import pytest

from gmpll.arrays import to_host
from gmpll.graph.views import unit_rows
from gmpll.matching.affinity import AffinityStatistics
from gmpll.matching.full_tiles import FinalAffinity, FullAffinity, LabelLevels
from literal import similarity, standardize_features
from problems import random_label_similarity, random_problem


def dense_at_level(final, A, level):
    values = (2 * level - 1) * final.steepness * (2 * A - 1) + final.offset
    return np.where(values >= final.threshold, values, 0.0)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("values", [None, (0.0,), (0.0, 0.5), (1.0,)])
@pytest.mark.parametrize("tile", [3, 100])
def test_the_product_equals_that_of_dense_affinities(library, seed, values, tile):
    X, mask, _ = random_problem(seed, m=14, zero_rows=True, duplicates=True)
    Z = standardize_features(X)
    A = similarity(Z)
    final = FinalAffinity(2.1, 0.13, 0.6)
    rng = np.random.RandomState(seed)
    A2 = random_label_similarity(rng, 4, values)
    P = np.where(mask, rng.random_sample(mask.shape), 0.0)  # rows need not sum to one
    rows, sets = library.array(unit_rows(Z)), library.array(mask)
    affinity = FullAffinity(rows, sets, label_similarity=A2, tile=2 * tile)
    affinity.final = final

    def expected(A):
        return sum(dense_at_level(final, A, v) @ P @ (v == A2) for v in np.unique(A2))

    found = affinity._of(affinity.rows, library.array(P), same=True)
    np.testing.assert_allclose(to_host(found), expected(A), atol=1e-9)
    zero = ~Z.any(axis=1)
    A[zero, zero] = 0.5  # a zero row is like itself only where it is known to be itself
    found = affinity.to_queries(library.array(unit_rows(Z)[5:]), library.array(P))
    np.testing.assert_allclose(to_host(found), expected(A)[5:], atol=1e-9)


def test_no_task_on_dask_arrays_makes_more_than_a_tile(monkeypatch):
    da = pytest.importorskip("dask.array")
    X, mask, _ = random_problem(0, m=40)
    shapes = set()
    at_level = FinalAffinity.at_level

    def watched(self, products, level):
        shapes.add(products.shape)
        return at_level(self, products, level)

    monkeypatch.setattr(FinalAffinity, "at_level", watched)
    rows = da.from_array(unit_rows(X), chunks=(8, 2))
    affinity = FullAffinity(rows, da.from_array(mask, chunks=(13, 4)))
    P = da.from_array(mask / mask.sum(axis=1, keepdims=True), chunks=(13, 4))
    affinity.apply(P).compute(scheduler="synchronous")
    assert shapes == {(8, 8)}


def test_the_most_frequent_level_is_the_base():
    A2 = np.array(
        [[1.0, 0.5, 0.5, 0.5], [0.5, 1.0, 0.5, 0.0], [0.5, 0.5, 1.0, 0.5], [0.5, 0.0, 0.5, 1.0]]
    )
    levels = LabelLevels(A2)
    assert (levels.base, levels.others) == (0.5, [0.0, 1.0])
    assert not levels.only_equal
    assert LabelLevels(np.eye(3)).only_equal
    assert LabelLevels(np.eye(3)).others == [1.0]


def test_labels_get_what_others_have_at_a_level(library):
    A2 = random_label_similarity(np.random.RandomState(0), 5, (0.0, 0.5))
    P = np.random.RandomState(1).random_sample((6, 5))
    levels = LabelLevels(A2)
    for level, found in zip(levels.others, levels.spread(library.array(P)), strict=True):
        np.testing.assert_allclose(to_host(found), P @ (level == A2))


def test_a_value_that_equals_beta_is_kept_whatever_its_rounding():
    statistics = AffinityStatistics(10, 0.4, 0.2)
    final = FinalAffinity.from_statistics(statistics, 0.7, np.finfo(np.float64).eps)
    equal = (0.7 - final.offset) / final.steepness * final.steepness
    for value in (np.nextafter(equal, 0), equal, np.nextafter(equal, 9)):
        assert final.at_level(np.array([value]), 1.0)[0] > 0
    assert final.at_level(np.array([equal - 1e-9]), 1.0)[0] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_rounding_error_of_zero_is_dropped(dtype):
    eps = float(np.finfo(dtype).eps)
    final = FinalAffinity.from_statistics(AffinityStatistics(10, 0.5, 0.1), 0.0, eps)
    assert final.at_level(np.array([4 * eps], dtype=dtype), 1.0)[0] == 0
    assert final.at_level(np.array([1e-4], dtype=dtype), 1.0)[0] > 0


def test_the_threshold_is_beta_less_rounding():
    def threshold(beta, resolution, mean=0.4):
        statistics = AffinityStatistics(10, mean, 0.2)
        return FinalAffinity.from_statistics(statistics, beta, resolution).threshold

    # Steepness 2.5 and offset 0.5 or -0.5, of which eight units are 24 times the resolution.
    for mean in (0.4, 0.6):
        assert threshold(0.7, 1e-3, mean) == pytest.approx(0.7 - 0.024)
        assert threshold(0.04, 1e-3, mean) == pytest.approx(0.024)
    assert threshold(0.0, 0.0) == 1e-10
    unstandardised = FinalAffinity.from_statistics(AffinityStatistics(10, 0.4, 0.0), 0.7, 0.0)
    assert unstandardised == FinalAffinity(0.5, 0.5, 0.7)


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_tiles_are_kept_if_they_fit_and_made_anew_if_not(name):
    X, mask, _ = random_problem(0, m=10)
    A2 = random_label_similarity(np.random.RandomState(1), mask.shape[1], (0.0, 0.5))
    rows = unit_rows(X)
    if name == "torch":
        torch = pytest.importorskip("torch")
        rows, mask = torch.from_numpy(rows), torch.from_numpy(mask)
    upper = 4 * 4 + 4 * 4 + 4 * 2 + 4 * 4 + 4 * 2 + 2 * 2
    needed = 8 * 2 * upper
    for store_bytes, kept in ((needed, True), (needed - 1, False)):
        product = FullAffinity(
            rows, mask, beta=0.3, label_similarity=A2, tile=4, store_bytes=store_bytes
        )
        assert len(list(product._made())) == 6
        assert len(product._kept) == (6 if kept else 0)
