r"""Tiles of the final affinities of the full graph, and their products.

With c the cosine of two instances and v the similarity of two labels, Eq. (5) is
:math:`K = \tfrac12 + (2v - 1)\,c/2`. Standardising keeps it a line over c, so rows that are scaled
once by the root of the steepness give standardised affinities by their inner products, and all
that is left to do for every pair of instances is the threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gmpll.graph.cosine import row_blocks, upper_triangle
from gmpll.matching.affinity import ZERO_AFFINITY, AffinityStatistics
from gmpll.matching.packed import Assignments

__all__ = ["FinalAffinity", "LabelBlocks", "LevelTiles", "affinity_sums", "difference_matrix"]

#: A standardised affinity is exact up to about this many units of its rounding.
ROUNDING_UNITS = 8
#: An elementwise pass over this many entries finds them in the cache again.
CACHED_ENTRIES = 2**16
#: Labels are padded to multiples of this many instances, to be handled together.
PADDING = 8


@dataclass(frozen=True)
class FinalAffinity:
    r"""The final affinity of two assignments over the cosine of their instances.

    It is :math:`f_v(c) = (2v - 1)\,s\,c + o` where that reaches the threshold, else zero.

    Attributes
    ----------
    steepness : float
        s.
    offset : float
        o.
    threshold : float
        Smaller values are dropped. It is beta, less what rounding may have taken from a value
        that equals beta, and never so small that rounding errors of zero would be kept.
    """

    steepness: float
    offset: float
    threshold: float

    @classmethod
    def from_statistics(
        cls, statistics: AffinityStatistics, beta: float, resolution: float
    ) -> FinalAffinity:
        """Make it from mean and deviation of K.

        Parameters
        ----------
        statistics : AffinityStatistics
            Mean and deviation; with deviation zero K is left as it is.
        beta : float
            Threshold of the standardised affinities.
        resolution : float
            Relative spacing of the numbers that cosines are computed in.

        Examples
        --------
        >>> from gmpll.matching.affinity import AffinityStatistics
        >>> from gmpll.matching.full_tiles import FinalAffinity
        >>> FinalAffinity.from_statistics(AffinityStatistics(9, 0.75, 0.25), 2.0, 0.0)
        FinalAffinity(steepness=2.0, offset=-1.0, threshold=2.0)
        """
        mean, std = (statistics.mean, statistics.std) if statistics.std > 0 else (0.0, 1.0)
        steepness, offset = 0.5 / std, (0.5 - mean) / std
        rounding = ROUNDING_UNITS * resolution * (steepness + abs(offset))
        return cls(steepness, offset, max(beta - rounding, rounding, ZERO_AFFINITY))

    def scale(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """Scale unit rows so that their inner products are ``steepness`` times the cosine."""
        return rows * rows.dtype.type(np.sqrt(self.steepness))

    def at_level(self, products: NDArray[np.floating], level: float) -> NDArray[np.floating]:
        """Return the affinities at a label similarity from inner products of scaled rows."""
        values = products * (2.0 * level - 1.0)
        values += self.offset
        values *= values >= self.threshold
        return values

    def same_less_different(
        self, products: NDArray[np.floating], dtype: DTypeLike | None = None
    ) -> NDArray[np.floating]:
        """Return f_1 - f_0 from inner products of scaled rows, which are overwritten.

        Thresholds are decided before anything is rounded to the given type, by default that of
        the products.
        """
        cut = self.threshold - self.offset
        same = (products >= cut).view(np.int8)
        different = (products <= -cut).view(np.int8)
        products = products.astype(dtype or products.dtype, copy=False)
        products *= same + different
        products += np.multiply(same - different, self.offset, dtype=products.dtype)
        return products


def affinity_sums(
    rows: NDArray[np.floating],
    weights: NDArray[np.floating],
    affinity: FinalAffinity,
    level: float,
    tile: int,
    gram: NDArray[np.floating] | None = None,
) -> NDArray[np.float64]:
    """Return F_v times a vector without keeping F_v.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Scaled rows, see :meth:`FinalAffinity.scale`.
    weights : ndarray of shape (n_samples,)
        The vector.
    affinity : FinalAffinity
        Makes affinities from cosines.
    level : float
        The label similarity v.
    tile : int
        Rows and columns of a tile.
    gram : ndarray of shape (n_samples, n_samples), default=None
        Inner products of the rows, where they are at hand.
    """
    n_samples = len(rows)
    sign = 2.0 * level - 1.0
    if gram is None:
        # A feature more on either side, and the product adds the offset, too.
        right = np.hstack([rows, np.ones((n_samples, 1), dtype=rows.dtype)])
        left = right * np.append(np.full(rows.shape[1], sign), affinity.offset).astype(rows.dtype)
    itself = sign * affinity.steepness + affinity.offset
    weights = weights.astype(rows.dtype)
    sums = np.zeros(n_samples)
    values = np.empty(min(tile, n_samples) ** 2, dtype=rows.dtype)
    kept = np.empty(values.shape, dtype=bool)
    for first, second in upper_triangle(n_samples, tile):
        shape = (first.stop - first.start, second.stop - second.start)
        size = shape[0] * shape[1]
        block, keep = values[:size].reshape(shape), kept[:size].reshape(shape)
        if gram is None:
            np.matmul(left[first], right[second].T, out=block)
        else:
            np.multiply(gram[first, second], sign, out=block)
            block += affinity.offset
        if first == second:
            np.fill_diagonal(block, itself)
        np.greater_equal(block, affinity.threshold, out=keep)
        np.multiply(block, keep, out=block)
        sums[first] += block @ weights[second]
        if first != second:
            sums[second] += weights[first] @ block
    return sums


class Batch(NamedTuple):
    """Blocks of equal shape, and where their rows and columns are in the padded order.

    Attributes
    ----------
    first, second : slice
        Padded assignments of all rows, and of all columns, of the blocks.
    n_blocks : int
        How many blocks they are divided into.
    """

    first: slice
    second: slice
    n_blocks: int

    def size(self) -> int:
        """Return the number of entries."""
        return _area(self.first, self.second) // self.n_blocks


def difference_matrix(
    gram: NDArray[np.floating], affinity: FinalAffinity, dtype: DTypeLike
) -> NDArray[np.floating]:
    """Return F_1 - F_0 from all inner products of scaled rows, which are overwritten.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        Inner products.
    affinity : FinalAffinity
        Makes affinities from cosines.
    dtype : dtype
        What the differences are rounded to once they are made.
    """
    differences = np.empty(gram.shape, dtype=dtype)
    for rows in row_blocks(len(gram), max(1, CACHED_ENTRIES // max(len(gram), 1))):
        differences[rows] = affinity.same_less_different(gram[rows], dtype)
    return differences


class LabelBlocks:
    r"""Products with F_1 - F_0 where labels are only equal or different.

    Only the candidates' entries of :math:`(F_1 - F_0) P` are asked for, and P is zero outside the
    candidates. So label l needs the pairs of those :math:`n_l` instances alone that have l among
    their candidates: :math:`\sum_l n_l^2` entries instead of :math:`m^2`, and a product with a
    vector for every label instead of one with a matrix of all labels. Labels of about the same
    size are padded to the same size and handled together.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Scaled rows, see :meth:`FinalAffinity.scale`.
    assignments : Assignments
        The candidates.
    affinity : FinalAffinity
        Makes affinities from cosines.
    tile : int
        Rows and columns of a block; a label with more instances has several, on and above the
        diagonal.
    store_bytes : int
        Memory in which the blocks may be kept between products; else they are made anew.
    differences : ndarray of shape (n_samples, n_samples), default=None
        F_1 - F_0, where it is at hand, see :func:`difference_matrix`.
    dtype : dtype, default=None
        What the blocks are rounded to once they are made; by default they stay in the precision
        of the rows.

    Attributes
    ----------
    batches : list of Batch
        The blocks that are made together.
    instance : ndarray of shape (n_padded,)
        The instance of every padded assignment. Padding has one, too: it is never asked for its
        support, and gives none as its probability is zero.
    position : ndarray of shape (n_assignments,)
        Where the assignments, in the order of :class:`Assignments`, are among the padded ones.
    """

    def __init__(
        self,
        rows: NDArray[np.floating],
        assignments: Assignments,
        affinity: FinalAffinity,
        *,
        tile: int,
        store_bytes: int,
        differences: NDArray[np.floating] | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.rows = rows
        self.affinity = affinity
        self.differences = differences
        self.dtype = np.dtype(dtype or rows.dtype)
        counts, label = assignments.counts, assignments.label
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
        self.instance[self.position] = assignments.instance
        self._keep = (
            self.dtype.itemsize * sum(batch.size() for batch in self.batches) <= store_bytes
        )
        self._kept: list[NDArray[np.floating]] = []

    def product(self, p: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the product with probabilities of the padded assignments.

        Parameters
        ----------
        p : ndarray of shape (n_padded,)
            Zero where nothing but padding is. What is returned there has no meaning.
        """
        p = p.astype(self.dtype, copy=False)
        result = np.empty_like(p)
        result[self._large] = 0.0  # what several blocks add to
        for (first, second, n_blocks), blocks in zip(self.batches, self.blocks(), strict=True):
            if first.start < self._large.start:
                shape = (n_blocks, -1, 1)
                np.matmul(blocks, p[second].reshape(shape), out=result[first].reshape(shape))
                continue
            result[first] += blocks[0] @ p[second]
            if first != second:
                result[second] += p[first] @ blocks[0]
        return result

    def blocks(self) -> Iterator[NDArray[np.floating]]:
        """Yield the blocks of every batch."""
        if self._kept:
            yield from self._kept
            return
        kept = []
        for batch in self.batches:
            blocks = self._made(batch)
            if self._keep:
                kept.append(blocks)
            yield blocks
        self._kept = kept
        if self._keep:
            self.differences = None

    def _made(self, batch: Batch) -> NDArray[np.floating]:
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
        return self.affinity.same_less_different(products, self.dtype)


class LevelTiles:
    r"""Products with :math:`F_v - F_{v_0}` of all instances, for any label similarity.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Scaled rows, see :meth:`FinalAffinity.scale`.
    similarity : ndarray of shape (n_classes, n_classes)
        Label similarity.
    base_level : float
        v0.
    levels : sequence of float
        The other values of the label similarity.
    affinity : FinalAffinity
        Makes affinities from cosines.
    tile : int
        Rows and columns of a tile.
    store_bytes : int
        Memory in which the tiles may be kept between products; else they are made anew.
    """

    def __init__(
        self,
        rows: NDArray[np.floating],
        similarity: NDArray[np.floating],
        base_level: float,
        levels: Sequence[float],
        affinity: FinalAffinity,
        *,
        tile: int,
        store_bytes: int,
    ) -> None:
        self.rows = rows
        self.similarity = similarity
        self.base_level = base_level
        self.levels = levels
        self.affinity = affinity
        self._places = list(upper_triangle(len(rows), tile))
        entries = len(levels) * sum(_area(*place) for place in self._places)
        self._keep = rows.itemsize * entries <= store_bytes
        self._kept: list[list[NDArray[np.floating]]] = []

    def product(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the sum over the levels of (F_v - F_v0) P B_v."""
        spread = [
            np.ascontiguousarray(P @ (self.similarity == level), dtype=self.rows.dtype)
            for level in self.levels
        ]
        result = np.zeros(P.shape, dtype=self.rows.dtype)
        for (first, second), tiles in zip(self._places, self._tiles(), strict=True):
            for tile, weights in zip(tiles, spread, strict=True):
                result[first] += tile @ weights[second]
                if first != second:
                    result[second] += tile.T @ weights[first]
        return result

    def _tiles(self) -> Iterator[list[NDArray[np.floating]]]:
        if self._kept:
            yield from self._kept
            return
        kept = []
        for place in self._places:
            tiles = self._differences(*place)
            if self._keep:
                kept.append(tiles)
            yield tiles
        self._kept = kept

    def _differences(self, first: slice, second: slice) -> list[NDArray[np.floating]]:
        products = self.rows[first] @ self.rows[second].T
        if first == second:
            np.fill_diagonal(products, self.affinity.steepness)
        base = self.affinity.at_level(products, self.base_level)
        return [self.affinity.at_level(products, level) - base for level in self.levels]


def _batches(sizes: Sequence[int], tile: int) -> Iterator[Batch]:
    """Divide the pairs of assignments with the same label, given the labels' ascending sizes."""
    end = 0
    for size, group in groupby(sizes):
        n_labels = len(list(group))
        if size > tile:
            for start in range(end, end + n_labels * size, size):
                for first, second in upper_triangle(size, tile):
                    yield Batch(_shifted(first, start), _shifted(second, start), 1)
        elif size > 0:
            for labels in row_blocks(n_labels, max(1, tile**2 // (2 * size**2))):
                place = slice(end + labels.start * size, end + labels.stop * size)
                yield Batch(place, place, labels.stop - labels.start)
        end += n_labels * size


def _shifted(part: slice, start: int) -> slice:
    return slice(part.start + start, part.stop + start)


def _area(first: slice, second: slice) -> int:
    return (first.stop - first.start) * (second.stop - second.start)
