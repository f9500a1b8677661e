r"""The full graph on NumPy arrays: blocks of the final affinities, and their products.

Where labels are only equal or different, just the candidates' entries of :math:`(F_1 - F_0) P` are
asked for: pairs of instances that share a candidate are all that an iteration looks at
(:class:`LabelBlocks`). Otherwise, or where nearly all labels are candidates, it looks at all pairs
of instances, tile by tile.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import gen_batches

from gmpll._threads import balanced_blocks
from gmpll._typing import AnyFloats, Floats, Mask
from gmpll.graph.cosine import upper_triangle
from gmpll.matching.affinity import DenseLayout, PackedLayout
from gmpll.matching.full_tiles import FinalAffinity, FullAffinity, affinity_sums

#: More pairs of assignments with the same label than this are kept in single precision, which
#: halves the time of an iteration: fewer fit into the caches anyway.
DOUBLE_PAIRS = 2**18
#: More rows than this are compared in single precision, too, which takes half the time,
DOUBLE_ROWS = 10_000
#: unless standardised affinities would be less exact than this.
SINGLE_ROUNDING = 1e-4
#: An entry of a product with a vector costs about as much as this many multiply-adds of a
#: product of matrices; decides whether an iteration goes label by label.
VECTOR_COST = 5
#: Looking up an inner product costs about as much as this many multiply-adds,
LOOKUP_COST = 150
#: if all of them together are no larger than this.
GRAM_BYTES = 2**25
#: An elementwise pass over this many entries finds them in the cache again.
CACHED_ENTRIES = 2**16
#: Labels are padded to multiples of this many instances, to be handled together.
PADDING = 8


class BlockAffinity(FullAffinity):
    """The full graph on NumPy arrays.

    By default affinities are made in double precision up to ``DOUBLE_ROWS`` rows and then, if they
    are many, rounded to single, which moves matching probabilities by about 1e-7. For more rows
    they are made in single precision, unless they deviate so little that it could not tell them
    apart: then one that lies on the threshold may fall to either side of it, and
    ``benchmarks/full_graph.py`` counts the labels that this changes. Matching probabilities are
    double always. ``precision`` "highest" is double and "high" single precision throughout.

    Blocks are kept between iterations if they take no more than ``store_bytes``.
    """

    def __init__(self, rows: Any, mask: Mask, **options: Any) -> None:
        super().__init__(rows, mask, **options)
        self._rounded = options.get("precision") is None
        # Pairs of assignments with the same label.
        self._label_pairs = float(np.square(mask.sum(axis=0, dtype=np.float64)).sum())

    @cached_property
    def layout(self) -> DenseLayout:
        """Where the probabilities stand: packed if an iteration goes label by label."""
        return PackedLayout(self.mask) if self.by_label else DenseLayout()

    @property
    def by_label(self) -> bool:
        """Whether an iteration goes label by label instead of over all pairs of instances."""
        n_samples, n_classes = self.mask.shape
        if n_classes == 1 or not self.levels.only_equal:
            return False
        return VECTOR_COST * self._label_pairs <= float(n_samples) ** 2 * n_classes

    def apply(self, p: AnyFloats) -> AnyFloats:
        """Return K p."""
        if not self.by_label:
            return super().apply(p)
        support = self.blocks.product(p) + self._base_of_assignments
        return np.maximum(support, 0.0, out=support)

    @cached_property
    def blocks(self) -> "LabelBlocks":
        """What a label gets by products with the probabilities of that label."""
        assert isinstance(self.layout, PackedLayout)
        single = self._rounded and self._label_pairs > DOUBLE_PAIRS
        dtype = np.dtype(np.float32) if single else self.rows.dtype
        gram, differences = self.gram(), None
        if gram is not None:
            base = self.levels.base
            self.base_support = affinity_sums(self.rows, self.final, base, self.tile, gram)
            differences = difference_matrix(gram, self.final, dtype)
        return LabelBlocks(
            self.rows,
            self.layout,
            self.final,
            tile=self.tile,
            store_bytes=self.store_bytes,
            differences=differences,
            dtype=dtype,
        )

    @cached_property
    def _base_of_assignments(self) -> Floats:
        assert isinstance(self.layout, PackedLayout)
        return self.base_support[self.layout.instance]

    def gram(self) -> AnyFloats | None:
        """Return all inner products, if looking them up is cheaper than making some anew."""
        n_samples, n_features = self.rows.shape
        size = self.rows.itemsize * n_samples**2
        if n_features < LOOKUP_COST or size > min(GRAM_BYTES, self.store_bytes):
            return None
        gram = self.rows @ self.rows.T
        np.fill_diagonal(gram, self.final.steepness)
        return gram

    def _dtype(self, rows: AnyFloats, precision: str | None) -> DTypeLike:
        if precision is not None:
            return np.dtype(np.float64 if precision == "highest" else np.float32)
        deviation = max(self.statistics.std, np.finfo(np.float64).tiny)
        rounding = float(np.finfo(np.float32).eps) / deviation
        single = len(rows) > DOUBLE_ROWS and rounding <= SINGLE_ROUNDING
        return np.dtype(np.float32 if single else np.float64)


def same_less_different(
    affinity: FinalAffinity, products: AnyFloats, dtype: DTypeLike | None = None
) -> AnyFloats:
    """Return f_1 - f_0 from inner products of scaled rows, which are overwritten."""
    # Thresholds are decided before anything is rounded to the given type.
    cut = affinity.threshold - affinity.offset
    same = (products >= cut).view(np.int8)
    different = (products <= -cut).view(np.int8)
    products = products.astype(dtype or products.dtype, copy=False)
    products *= same + different
    products += np.multiply(same - different, affinity.offset, dtype=products.dtype)
    return products


class Batch(NamedTuple):
    """Blocks of equal shape: the padded assignments of all their rows, and of their columns."""

    first: slice
    second: slice
    n_blocks: int

    def size(self) -> int:
        """Return the number of entries."""
        first, second = (place.stop - place.start for place in (self.first, self.second))
        return first * second // self.n_blocks


def difference_matrix(gram: AnyFloats, affinity: FinalAffinity, dtype: DTypeLike) -> AnyFloats:
    """Return F_1 - F_0, rounded, from all inner products of scaled rows, which are overwritten."""
    differences = np.empty(gram.shape, dtype=dtype)
    for rows in balanced_blocks(len(gram), max(1, CACHED_ENTRIES // max(len(gram), 1))):
        differences[rows] = same_less_different(affinity, gram[rows], dtype)
    return differences


class LabelBlocks:
    r"""Products with F_1 - F_0 where labels are only equal or different.

    Only the candidates' entries of :math:`(F_1 - F_0) P` are asked for, and P is zero outside the
    candidates: label l needs the pairs of those :math:`n_l` instances alone that may have it,
    :math:`\sum_l n_l^2` entries instead of :math:`m^2`. Labels of about the same size are padded to
    the same size and handled together; larger ones than a tile have several blocks. Padding is an
    instance with probability zero.

    Blocks are made from ``differences``, F_1 - F_0, where that is at hand, rounded to ``dtype``
    once they are made, and kept between products if they take no more than ``store_bytes``.
    """

    def __init__(
        self,
        rows: AnyFloats,
        layout: PackedLayout,
        affinity: FinalAffinity,
        *,
        tile: int,
        store_bytes: int,
        differences: AnyFloats | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.rows = rows
        self.affinity = affinity
        self.differences = differences
        self.dtype = np.dtype(dtype or rows.dtype)
        counts, label = layout.counts, layout.label
        by_size = np.argsort(counts, kind="stable")
        padded = np.where(counts <= tile, -(-counts // PADDING) * PADDING, counts)[by_size]
        self.batches = list(_batches(padded.tolist(), tile))
        # The labels with several blocks are the last ones.
        self._large = slice(int(padded[padded <= tile].sum()), None)
        starts = np.empty_like(counts)
        starts[by_size] = np.cumsum(padded) - padded
        # Assignments are sorted by label: their place is the label's start and their rank in it.
        self.position = np.arange(len(label)) + (starts - np.cumsum(counts) + counts)[label]
        self.instance = np.zeros(int(padded.sum()), dtype=np.intp)
        self.instance[self.position] = layout.instance
        # Padding takes its zero from behind the probabilities.
        self._values = np.zeros(len(label) + 1, dtype=self.dtype)
        self._source = np.full(len(self.instance), len(label))
        self._source[self.position] = np.arange(len(label))
        entries = sum(batch.size() for batch in self.batches)
        self._fit = self.dtype.itemsize * entries <= store_bytes

    def product(self, p: AnyFloats) -> AnyFloats:
        """Return the product with packed probabilities, in double precision."""
        self._values[:-1] = p
        padded = self._values.take(self._source)
        result = np.empty_like(padded)
        result[self._large] = 0.0  # what several blocks add to
        for (first, second, n_blocks), blocks in zip(self.batches, self.blocks(), strict=True):
            if first.start < self._large.start:
                shape = (n_blocks, -1, 1)
                np.matmul(blocks, padded[second].reshape(shape), out=result[first].reshape(shape))
                continue
            result[first] += blocks[0] @ padded[second]
            if first != second:
                result[second] += padded[first] @ blocks[0]
        return result.take(self.position).astype(np.float64, copy=False)

    def blocks(self) -> Iterable[AnyFloats]:
        """Return the blocks of every batch."""
        return self._kept or map(self._made, self.batches)

    @cached_property
    def _kept(self) -> list[AnyFloats]:
        """All blocks if they fit, else none."""
        if not self._fit:
            return []
        kept = list(map(self._made, self.batches))
        self.differences = None
        return kept

    def _made(self, batch: Batch) -> AnyFloats:
        left = self.instance[batch.first].reshape(batch.n_blocks, -1)
        right = self.instance[batch.second].reshape(batch.n_blocks, -1)
        if self.differences is not None:
            places = left[:, :, None] * len(self.rows) + right[:, None, :]
            return self.differences.reshape(-1).take(places)
        left_rows = self.rows[left]
        if batch.first == batch.second:
            products = left_rows @ left_rows.transpose(0, 2, 1)
            diagonal = products.reshape(batch.n_blocks, -1)[:, :: left.shape[1] + 1]
            diagonal[:] = self.affinity.steepness
        else:
            products = left_rows @ self.rows[right].transpose(0, 2, 1)
        return same_less_different(self.affinity, products, self.dtype)


def _batches(sizes: Sequence[int], tile: int) -> Iterator[Batch]:
    """Divide the pairs of assignments with the same label, given the labels' ascending sizes."""
    end = 0
    for size, group in groupby(sizes):
        n_labels = len(list(group))
        if size > tile:
            for start in range(end, end + n_labels * size, size):
                for places in upper_triangle(size, tile):
                    first, second = (slice(p.start + start, p.stop + start) for p in places)
                    yield Batch(first, second, 1)
        elif size > 0:
            for labels in gen_batches(n_labels, max(1, tile**2 // (2 * size**2))):
                place = slice(end + labels.start * size, end + labels.stop * size)
                yield Batch(place, place, labels.stop - labels.start)
        end += n_labels * size
