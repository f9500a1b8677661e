import numpy as np
import pytest

from gmpll.graph.views import unit_rows
from gmpll.matching import FullAffinity, match
from gmpll.matching.packed import Assignments
from problems import random_problem


class Unpacked:
    """An affinity without its packed form."""

    def __init__(self, affinity):
        self.apply = affinity.apply


def sparse_problem(seed):
    """Many labels, few candidates: worth packing."""
    X, mask, _ = random_problem(seed, m=60, d=5, q=3)
    rng = np.random.RandomState(seed)
    wide = np.zeros((60, 24), dtype=bool)
    for row, candidates in enumerate(mask):
        wide[row, 3 * rng.randint(8) + np.flatnonzero(candidates)] = True
    return unit_rows(X), wide


def test_assignments_are_sorted_by_label():
    _, mask = sparse_problem(0)
    found = Assignments(mask)
    assert (np.diff(found.label) >= 0).all()
    assert set(zip(found.instance, found.label, strict=True)) == set(
        zip(*np.nonzero(mask), strict=True)
    )
    slots = np.cumsum(mask, axis=1) - 1
    np.testing.assert_array_equal(found.slot, slots[found.instance, found.label])
    np.testing.assert_array_equal(found.counts, mask.sum(axis=0))


def test_packing_and_back():
    rows, mask = sparse_problem(1)
    packed = FullAffinity(rows, mask).packed(mask)
    P = np.where(mask, np.random.RandomState(0).random_sample(mask.shape), 0.0)
    assert packed.mask.shape == (60, mask.sum(axis=1).max())
    np.testing.assert_array_equal(packed.unpack(packed.pack(P)), P)
    for values, dense in zip(packed.pack(P), P, strict=True):
        np.testing.assert_array_equal(values[values > 0], dense[dense > 0])


def test_the_packed_affinity_is_the_affinity():
    rows, mask = sparse_problem(2)
    affinity = FullAffinity(rows, mask, beta=0.3)
    packed = affinity.packed(mask)
    P = np.where(mask, np.random.RandomState(0).random_sample(mask.shape), 0.0)
    P /= P.sum(axis=1, keepdims=True)
    found = packed.unpack(packed.apply(packed.pack(P)))
    np.testing.assert_allclose(found, np.where(mask, affinity.apply(P), 0.0))
    in_rows = np.ascontiguousarray(packed.pack(P))
    np.testing.assert_array_equal(packed.unpack(packed.apply(in_rows)), found)
    np.testing.assert_allclose(packed.unpack(packed.row_sums()), affinity.row_sums())
    assert packed.statistics() == affinity.statistics()
    mass = packed.unpack(packed.class_mass(packed.pack(P)))
    np.testing.assert_allclose(mass, mask * P.sum(axis=0))


@pytest.mark.parametrize("balance", [0.0, 0.5])
@pytest.mark.parametrize("with_prior", [False, True])
def test_packed_turns_equal_unpacked_ones(balance, with_prior):
    rows, mask = sparse_problem(3)
    affinity = FullAffinity(rows, mask, beta=0.3)
    prior = {}
    if with_prior:
        rng = np.random.RandomState(0)
        start = np.where(mask, rng.random_sample(mask.shape), 0.0)
        prior = {
            "start": start / start.sum(axis=1, keepdims=True),
            "unary": rng.random_sample((1, mask.shape[1])),
        }
    assert affinity.packed(mask) is not None
    found = match(affinity, mask, balance=balance, max_iter=30, **prior)
    expected = match(Unpacked(affinity), mask, balance=balance, max_iter=30, **prior)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-10)
    np.testing.assert_allclose(found.objective_path, expected.objective_path)
    assert found[1:3] == expected[1:3]


def test_an_instance_without_support_keeps_its_probabilities():
    rows, mask = sparse_problem(6)
    packed = FullAffinity(rows, mask).packed(mask)
    P = packed.pack(mask / mask.sum(axis=1, keepdims=True))
    support = P * np.random.RandomState(0).random_sample(P.shape)
    expected = support / support.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(packed.normalise(support, P), expected)
    support[3] = 0.0
    expected[3] = P[3]
    np.testing.assert_allclose(packed.normalise(support, P), expected)


def test_other_candidates_than_the_affinitys_are_not_packed():
    rows, mask = sparse_problem(4)
    affinity = FullAffinity(rows, mask)
    fewer = mask.copy()
    fewer[np.flatnonzero(mask.sum(axis=1) > 1)[0], np.argmax(mask[mask.sum(axis=1) > 1][0])] = False
    assert affinity.packed(fewer) is None
    found = match(affinity, fewer, max_iter=5).probabilities
    assert (found[~fewer] == 0).all()


def test_dense_candidates_are_not_packed():
    rows, _ = sparse_problem(5)
    mask = np.ones((60, 3), dtype=bool)
    assert FullAffinity(rows, mask).packed(mask) is None


def test_packing_keeps_the_precision_and_repeats_a_single_row():
    rows, mask = sparse_problem(7)
    packed = FullAffinity(rows, mask).packed(mask)
    P = np.where(mask, np.random.RandomState(0).random_sample(mask.shape), 0.0).astype(np.float32)
    assert packed.pack(P).dtype == packed.unpack(packed.pack(P)).dtype == np.float32
    of_labels = np.arange(1.0, mask.shape[1] + 1)[None, :]
    np.testing.assert_array_equal(packed.unpack(packed.pack(of_labels)), mask * of_labels)
    np.testing.assert_array_equal(packed.mask.sum(axis=1), mask.sum(axis=1))


def test_normalising_divides_nothing_by_zero():
    rows, mask = sparse_problem(8)
    packed = FullAffinity(rows, mask).packed(mask)
    P = packed.pack(mask / mask.sum(axis=1, keepdims=True))
    support = P.copy()
    support[2] = 0.0
    with np.errstate(all="raise"):
        np.testing.assert_allclose(packed.normalise(support, P), P)
