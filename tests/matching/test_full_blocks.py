import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmpll.graph.views import unit_rows
from gmpll.matching import full_blocks
from gmpll.matching.affinity import PackedLayout
from gmpll.matching.full_blocks import (
    PADDING,
    Batch,
    LabelBlocks,
    difference_matrix,
    same_less_different,
)
from gmpll.matching.full_tiles import FinalAffinity, affinity_sums
from literal import similarity, standardize_features
from problems import problems, random_problem

finals = st.builds(
    FinalAffinity,
    steepness=st.floats(0.1, 20),
    offset=st.floats(-3, 3),
    threshold=st.sampled_from([1e-10, 0.3, 0.6, 2.0]),
)


def dense_at_level(final, Z, level):
    """F_v from the literal similarities."""
    values = (2 * level - 1) * final.steepness * (2 * similarity(Z) - 1) + final.offset
    return np.where(values >= final.threshold, values, 0.0)


def rows_of(X):
    Z = standardize_features(X)
    return Z, unit_rows(Z)


def apart_from_the_threshold(final, Z, levels):
    """Whether no affinity is so close to the threshold that rounding decides."""
    cosine = 2 * similarity(Z) - 1
    values = [(2 * v - 1) * final.steepness * cosine + final.offset for v in levels]
    return all((np.abs(value - final.threshold) > 1e-9).all() for value in values)


@settings(deadline=None)
@given(
    final=finals,
    cosines=st.lists(st.floats(-1, 1), min_size=1, max_size=20),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_the_shortcut_for_two_levels_is_their_difference(final, cosines, dtype):
    products = (final.steepness * np.array(cosines)).astype(dtype)
    cut = final.threshold - final.offset
    products = products[np.abs(np.abs(products) - abs(cut)) > 1e-4]
    expected = final.at_level(products, 1.0) - final.at_level(products, 0.0)
    rounded = same_less_different(final, products.copy(), np.float32)
    found = same_less_different(final, products)
    assert found is products
    assert found.dtype == dtype
    assert rounded.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5 if dtype == np.float32 else 1e-12)
    np.testing.assert_allclose(rounded, found, atol=1e-5)


def test_thresholds_are_decided_before_rounding():
    final = FinalAffinity(1.0, 0.0, 0.5)
    just_below = np.array([0.5 - 1e-12, 1e-12 - 0.5])
    np.testing.assert_array_equal(same_less_different(final, just_below, np.float32), [0, 0])


def gram_of(final, rows):
    scaled = final.scale(rows)
    gram = scaled @ scaled.T
    np.fill_diagonal(gram, final.steepness)
    return gram


@settings(max_examples=40, deadline=None)
@given(
    problem=problems(),
    final=finals,
    level=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    tile=st.sampled_from([3, 5, 100]),
    with_gram=st.booleans(),
)
def test_sums_equal_those_of_the_dense_affinities(problem, final, level, tile, with_gram):
    Z, rows = rows_of(problem[0])
    if not apart_from_the_threshold(final, Z, [level]):
        return
    gram = gram_of(final, rows) if with_gram else None
    found = affinity_sums(final.scale(rows), final, level, tile, gram)
    np.testing.assert_allclose(found, dense_at_level(final, Z, level).sum(axis=1), atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    problem=problems(),
    final=finals,
    tile=st.sampled_from([2, 5, 100]),
    store_bytes=st.sampled_from([0, 10**9]),
    with_gram=st.booleans(),
)
def test_label_blocks_equal_the_dense_product(problem, final, tile, store_bytes, with_gram):
    X, mask, _ = problem
    Z, rows = rows_of(X)
    if not apart_from_the_threshold(final, Z, [0.0, 1.0]):
        return
    P = np.where(mask, np.random.RandomState(0).random_sample(mask.shape), 0.0)
    dense = (dense_at_level(final, Z, 1.0) - dense_at_level(final, Z, 0.0)) @ P
    layout = PackedLayout(mask)
    blocks = LabelBlocks(
        final.scale(rows),
        layout,
        final,
        tile=tile,
        store_bytes=store_bytes,
        differences=(
            difference_matrix(gram_of(final, rows), final, np.float64) if with_gram else None
        ),
    )
    for _ in range(2):  # the second time from what was kept
        found = blocks.product(layout.pack(P))
        np.testing.assert_allclose(found, layout.pack(dense), atol=1e-9)


def test_blocks_are_kept_if_they_fit_and_made_anew_if_not():
    X, mask, _ = random_problem(0, m=30)
    final = FinalAffinity(3.0, 0.0, 0.6)
    rows = final.scale(unit_rows(X))
    layout = PackedLayout(mask)
    padded = np.ceil(mask.sum(axis=0) / PADDING) * PADDING
    needed = 8 * int(np.square(padded).sum())
    for store_bytes, kept in ((needed, True), (needed - 1, False)):
        blocks = LabelBlocks(rows, layout, final, tile=100, store_bytes=store_bytes)
        first, second = list(blocks.blocks()), list(blocks.blocks())
        assert (first[0] is second[0]) == kept
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("tile", [4, 10, 16, 100])
def test_blocks_relate_just_the_instances_that_share_a_label(tile):
    _, mask, _ = random_problem(0, m=30, q=6)
    layout = PackedLayout(mask)
    final = FinalAffinity(1.0, 0.0, 0.5)
    blocks = LabelBlocks(np.zeros((30, 2)), layout, final, tile=tile, store_bytes=0)
    assignment = np.full(len(blocks.instance), -1)
    assignment[blocks.position] = np.arange(len(layout.label))
    pairs = np.zeros((len(layout.label),) * 2, dtype=int)
    for first, second, n_blocks in blocks.batches:
        rows = assignment[first].reshape(n_blocks, -1)
        columns = assignment[second].reshape(n_blocks, -1)
        for i, j in zip(rows, columns, strict=True):
            assert len(i) <= max(tile, PADDING)
            i, j = i[i >= 0], j[j >= 0]
            pairs[np.ix_(i, j)] += 1
            if first != second:
                pairs[np.ix_(j, i)] += 1
    np.testing.assert_array_equal(pairs, layout.label[:, None] == layout.label[None, :])


def test_what_equals_the_threshold_is_kept():
    final = FinalAffinity(1.0, 0.25, 0.5)
    products = np.array([0.25, -0.25, 0.125, -0.125])
    np.testing.assert_array_equal(final.at_level(products, 1.0), [0.5, 0, 0, 0])
    np.testing.assert_array_equal(final.at_level(products, 0.0), [0, 0.5, 0, 0])
    np.testing.assert_array_equal(same_less_different(final, products), [0.5, -0.5, 0, 0])
    itself = affinity_sums(np.array([[0.5]]), FinalAffinity(0.25, 0.25, 0.5), 1.0, 4)
    np.testing.assert_array_equal(itself, [0.5])


@pytest.mark.parametrize("cached", [1, 30, 10**6])
def test_differences_are_made_in_blocks_of_rows(cached, monkeypatch):
    monkeypatch.setattr(full_blocks, "CACHED_ENTRIES", cached)
    final = FinalAffinity(2.0, 0.1, 0.6)
    gram = gram_of(final, unit_rows(random_problem(0)[0]))
    expected = same_less_different(final, gram.copy(), np.float32)
    found = difference_matrix(gram, final, np.float32)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    assert difference_matrix(np.empty((0, 0)), final, np.float64).shape == (0, 0)


def test_differences_are_let_go_once_blocks_are_kept():
    X, mask, _ = random_problem(0)
    final = FinalAffinity(2.0, 0.1, 0.6)
    rows = unit_rows(X)
    for store_bytes in (0, 10**9):
        differences = difference_matrix(gram_of(final, rows), final, np.float64)
        blocks = LabelBlocks(
            final.scale(rows),
            PackedLayout(mask),
            final,
            tile=100,
            store_bytes=store_bytes,
            differences=differences,
        )
        list(blocks.blocks())
        assert (blocks.differences is None) == (store_bytes > 0)


def test_labels_of_one_size_are_handled_together():
    found = list(full_blocks._batches([0, 0, 8, 8, 8, 20, 20], 16))
    assert found == [
        Batch(slice(0, 16), slice(0, 16), 2),  # half a tile of entries
        Batch(slice(16, 24), slice(16, 24), 1),
        *(
            Batch(slice(start + a, start + b), slice(start + c, start + d), 1)
            for start in (24, 44)
            for a, b, c, d in ((0, 16, 0, 16), (0, 16, 16, 20), (16, 20, 16, 20))
        ),
    ]
    assert [batch.size() for batch in found] == [128, 64, *[256, 64, 16] * 2]
    assert list(full_blocks._batches([16], 16)) == [Batch(slice(0, 16), slice(0, 16), 1)]


def test_only_labels_within_a_tile_are_padded():
    mask = np.zeros((20, 3), dtype=bool)
    mask[:11, 0] = mask[:17, 1] = mask[:16, 2] = True
    final = FinalAffinity(1.0, 0.0, 0.5)
    blocks = LabelBlocks(np.zeros((20, 2)), PackedLayout(mask), final, tile=16, store_bytes=0)
    assert len(blocks.instance) == 16 + 17 + 16
    starts = blocks.position[[0, 11, 28]]
    np.testing.assert_array_equal(starts, [0, 32, 16])
