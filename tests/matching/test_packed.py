import numpy as np
import pytest

from gmpll.matching import DenseLayout
from gmpll.matching.affinity import PackedLayout
from problems import random_problem


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
