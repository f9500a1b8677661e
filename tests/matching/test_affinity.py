import numpy as np
import pytest

from gmpll.arrays import to_host
from gmpll.matching.affinity import (
    AffinityStatistics,
    DenseLayout,
    PackedLayout,
    Standardization,
    check_label_similarity,
)
from problems import random_problem


def sums(K):
    return len(K), float(K.sum()), float(np.square(K).sum())


def test_statistics_from_sums():
    K = np.random.RandomState(0).random_sample((7, 7))
    found = AffinityStatistics.from_sums(*sums(K))
    assert found.n_assignments == 7
    assert found.mean == pytest.approx(K.mean())
    assert found.std == pytest.approx(K.std())


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 0.7])
def test_equal_affinities_deviate_by_nothing_in_spite_of_rounding(value):
    for u in range(1, 40):
        # A few units of rounding in either direction.
        for error in (-4, 0, 4):
            squares = u**2 * value**2 * (1 + error * np.finfo(float).eps)
            assert AffinityStatistics.from_sums(u, u**2 * value, squares).std == 0.0


def test_a_small_deviation_is_not_taken_for_rounding():
    K = 0.5 + 1e-6 * np.random.RandomState(0).choice([-1.0, 1.0], size=(30, 30))
    found = AffinityStatistics.from_sums(*sums(K))
    assert found.std == pytest.approx(K.std(), rel=1e-2)


def test_standardising_and_dropping_what_is_below_beta(library):
    values = library.array([[0.1, 0.4], [0.5, 0.9]])
    found = Standardization(AffinityStatistics(2, 0.25, 0.5), 0.5)(values)
    np.testing.assert_allclose(to_host(found), [[0.0, 0.0], [0.5, 1.3]])
    np.testing.assert_array_equal(to_host(values), [[0.1, 0.4], [0.5, 0.9]])


def test_without_deviation_only_the_threshold_is_left(library):
    found = Standardization(AffinityStatistics(2, 0.6, 0.0), 0.6)(library.array([0.5, 0.7]))
    np.testing.assert_array_equal(to_host(found), [0.0, 0.7])


def test_rounding_errors_of_zero_are_dropped_whatever_beta_is():
    for beta in (-1.0, 0.0):
        standardize = Standardization(AffinityStatistics(2, 0.0, 1.0), beta)
        found = standardize(np.array([-0.5, 1e-12, 1e-8]))
        np.testing.assert_array_equal(found, [0.0, 0.0, 1e-8])


def test_the_dense_layout_is_the_array_itself(library):
    P = library.array([[0.25, 0.75], [0.0, 1.0]])
    layout = DenseLayout()
    assert layout.pack(P) is P
    assert layout.unpack(P) is P
    np.testing.assert_array_equal(to_host(layout.class_mass(P)), [0.25, 1.75])
    doubled = P * layout.per_label(layout.class_mass(P))
    np.testing.assert_array_equal(to_host(doubled), [[0.0625, 1.3125], [0.0, 1.75]])


def test_rows_without_support_keep_what_they_had(library):
    support = library.array([[1.0, 3.0], [0.0, 0.0]])
    fallback = library.array([[0.5, 0.5], [0.125, 0.875]])
    with np.errstate(all="raise"):
        found = to_host(DenseLayout().normalise(support, fallback))
    np.testing.assert_array_equal(found, [[0.25, 0.75], [0.125, 0.875]])


def test_the_label_similarity_is_the_identity_by_default_and_double(library):
    np.testing.assert_array_equal(check_label_similarity(None, 3), np.eye(3))
    similarity = np.array([[1, 0.25], [0.25, 1]], dtype=np.float32)
    found = check_label_similarity(library.array(similarity), 2)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, similarity)
    np.testing.assert_array_equal(check_label_similarity(np.ones((2, 2), int), 2), 1.0)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan, np.inf])
def test_an_entry_that_is_no_similarity_is_refused(wrong):
    similarity = np.eye(3)
    similarity[0, 1] = similarity[1, 0] = wrong
    with pytest.raises(ValueError, match="entries between 0 and 1"):
        check_label_similarity(similarity, 3)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2, 2), (3,)])
def test_a_label_similarity_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"it must be \(3, 3\)"):
        check_label_similarity(np.ones(shape), 3)


def problem(seed):
    """Many labels, few candidates; one label that nobody has."""
    _, mask, _ = random_problem(seed, m=60, d=5, q=3)
    rng = np.random.RandomState(seed)
    wide = np.zeros((60, 24), dtype=bool)
    for row, candidates in enumerate(mask):
        wide[row, 3 * rng.randint(7) + np.flatnonzero(candidates)] = True
    P = np.where(wide, rng.random_sample(wide.shape), 0.0)
    return wide, P / P.sum(axis=1, keepdims=True)


def test_assignments_are_sorted_by_label():
    mask, _ = problem(0)
    layout = PackedLayout(mask)
    label, instance = np.nonzero(mask.T)
    np.testing.assert_array_equal(layout.label, label)
    np.testing.assert_array_equal(layout.instance, instance)
    np.testing.assert_array_equal(layout.counts, mask.sum(axis=0))


def test_packing_and_back():
    mask, P = problem(1)
    layout = PackedLayout(mask)
    assert layout.pack(P).shape == (mask.sum(),)
    np.testing.assert_array_equal(layout.unpack(layout.pack(P)), P)
    single = P.astype(np.float32)
    assert layout.pack(single).dtype == layout.unpack(layout.pack(single)).dtype == np.float32
    of_labels = np.arange(1.0, mask.shape[1] + 1)[None, :]  # one row for all
    np.testing.assert_array_equal(layout.unpack(layout.pack(of_labels)), mask * of_labels)


def test_masses_and_values_of_labels_are_those_of_the_dense_layout():
    mask, P = problem(2)
    layout = PackedLayout(mask)
    np.testing.assert_allclose(layout.class_mass(layout.pack(P)), P.sum(axis=0))
    values = np.random.RandomState(0).random_sample(mask.shape[1])
    np.testing.assert_array_equal(layout.unpack(layout.per_label(values)), mask * values)
    values = np.random.RandomState(1).random_sample(len(mask))
    of_instances = layout.unpack(layout.per_instance(values))
    np.testing.assert_array_equal(of_instances, mask * values[:, None])
    np.testing.assert_array_equal(layout.matrix(layout.pack(P)).toarray(), P)


@pytest.mark.parametrize("unsupported", [[], [2, 5]])
def test_normalising_is_that_of_the_dense_layout(unsupported):
    mask, P = problem(3)
    layout = PackedLayout(mask)
    support = P * np.random.RandomState(0).random_sample(P.shape)
    support[unsupported] = 0.0
    with np.errstate(all="raise"):
        found = layout.normalise(layout.pack(support), layout.pack(P))
    expected = DenseLayout().normalise(support, P)
    np.testing.assert_allclose(layout.unpack(found), expected)
    np.testing.assert_array_equal(layout.unpack(found)[unsupported], P[unsupported])
