r"""The paper's affinity between all pairs of assignments, Eqs. (5) and (6), never built.

With :math:`A` the instance similarity and :math:`v = A^2_{l l'}` the label similarity,

.. math:: K_{ab} = v A_{ij} + (1 - v)(1 - A_{ij})

which is the paper's rule for :math:`v \in \{0, 1\}`. K is then standardised and thresholded
entry by entry. So an entry depends on the instances through :math:`A_{ij}` and on the labels
through the *level* :math:`v` alone; with :math:`F_v` the m x m matrix of the final affinities at
level v, and :math:`B_v` the 0/1 matrix of the label pairs at that level,

.. math:: K p \;=\; \sum_v F_v P B_v
          \;=\; F_{v_0} \mathbf 1 + \sum_{v \ne v_0} (F_v - F_{v_0}) P B_v

because the :math:`B_v` sum to the matrix of ones and the rows of P to one. Without a prior on the
labels there are two levels, and a turn is one product of an m x m matrix with P. That matrix is
symmetric: only tiles of its upper triangle are computed, and they are kept or made anew for every
turn, whatever memory allows. Its mean and deviation need no K either: similarity :math:`A_{ij}`
occurs :math:`|S_i \cap S_j|` times as "same" and :math:`|S_i||S_j| - |S_i \cap S_j|` times as
"different", and correspondingly for other levels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gmpll.graph.cosine import cosine_similarity_tile, row_blocks, upper_triangle
from gmpll.matching.affinity import (
    AffinityStatistics,
    Standardization,
    check_label_similarity,
)
from gmpll.matching.assignments import AssignmentAffinity

__all__ = ["FullAffinity", "full_affinity"]

#: Rows and columns of a tile: large enough for fast products, small enough for the caches.
TILE = 1024
#: Tiles are kept in memory if all of them take no more than this, else made anew every turn.
STORE_BYTES = 3 * 2**29
#: Up to this much they are kept in double precision, beyond it in single precision.
DOUBLE_BYTES = 2**29
#: An elementwise operation on an assignment pair costs about as much as this many
#: multiply-adds of a matrix product; decides how a label similarity of many levels is handled.
ELEMENTWISE_COST = 40


def full_affinity(
    rows: NDArray[np.floating],
    mask: NDArray[np.bool_],
    *,
    alpha: float = 0.0,
    beta: float = 0.6,
    label_similarity: NDArray[np.floating] | None = None,
) -> FullAffinity | AssignmentAffinity:
    """Return the paper's affinity as the operator that suits its parameters.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Instances as rows of length one (or zero), see :class:`gmpll.graph.features.DirectionSpace`.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.
    alpha : float, default=0.0
        Weight of the imbalance bias, Eq. (6). The bias depends on both assignments, so with it
        the affinity is evaluated pair by pair.
    beta : float, default=0.6
        Standardised affinities below this are dropped.
    label_similarity : ndarray of shape (n_classes, n_classes), default=None
        Prior label similarity in [0, 1], Eq. (2); the identity by default.

    Returns
    -------
    FullAffinity or AssignmentAffinity
    """
    n_samples, n_classes = mask.shape
    similarity = check_label_similarity(label_similarity, n_classes)
    by_level = (len(np.unique(similarity)) - 1) * n_samples**2 * n_classes
    by_pair = ELEMENTWISE_COST * int(mask.sum()) ** 2
    if alpha > 0 or by_level > by_pair:
        return AssignmentAffinity(
            rows, mask, alpha=alpha, beta=beta, label_similarity=label_similarity
        )
    return FullAffinity(rows, mask, beta=beta, label_similarity=label_similarity)


class FullAffinity:
    """All-pairs affinity by levels of the label similarity (no imbalance bias).

    Parameters
    ----------
    rows, mask, beta, label_similarity
        As in :func:`full_affinity`.
    store_bytes : int, default=STORE_BYTES
        Memory in which tiles may be kept between turns; 0 makes them anew every time.
    tile : int, default=TILE
        Rows of a tile.
    dtype : dtype, default=None
        Precision of the tiles. By default double where the tiles can be kept in
        ``DOUBLE_BYTES``, else single.
    """

    def __init__(
        self,
        rows: NDArray[np.floating],
        mask: NDArray[np.bool_],
        *,
        beta: float = 0.6,
        label_similarity: NDArray[np.floating] | None = None,
        store_bytes: int = STORE_BYTES,
        tile: int = TILE,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.mask = mask
        self.tile = tile
        self.similarity = check_label_similarity(label_similarity, mask.shape[1])
        values, counts = np.unique(self.similarity, return_counts=True)
        self._base_level = float(values[np.argmax(counts)])
        self._levels = [float(v) for v in values if v != self._base_level]

        entries = len(self._levels) * mask.shape[0] * (mask.shape[0] + tile) // 2
        if dtype is None:
            dtype = np.float64 if 8 * entries <= DOUBLE_BYTES else np.float32
        self.rows = np.ascontiguousarray(rows, dtype=dtype)
        self._statistics = self._pass_over_statistics()
        self._standardize = Standardization(self._statistics, beta)
        self._base: NDArray[np.floating] | None = None
        self._keep = entries * self.rows.itemsize <= store_bytes
        self._tiles: list[list[NDArray[np.floating]]] = []

    def apply(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return K p."""
        spread = [
            np.ascontiguousarray(P @ (self.similarity == level), dtype=self.rows.dtype)
            for level in self._levels
        ]
        product = np.zeros(P.shape, dtype=self.rows.dtype)
        for (first, second), tiles in self._difference_tiles():
            for tile, weights in zip(tiles, spread, strict=True):
                product[first] += tile @ weights[second]
                if first != second:
                    product[second] += tile.T @ weights[first]
        return product + self._base_sums()[:, None]

    def row_sums(self) -> NDArray[np.floating]:
        """Return the sum of the affinities of every assignment."""
        sums = np.zeros(self.mask.shape)
        for first, second in upper_triangle(len(self.rows), self.tile):
            similarity = self._similarity_tile(first, second)
            for level in self._all_levels():
                partners = self.mask @ (self.similarity == level).astype(np.float64)
                affinity = self._at_level(similarity, level)
                sums[first] += affinity @ partners[second]
                if first != second:
                    sums[second] += affinity.T @ partners[first]
        return np.where(self.mask, sums, 0.0)

    def statistics(self) -> AffinityStatistics:
        """Return mean and deviation over all pairs of assignments."""
        return self._statistics

    def to_queries(
        self, queries: NDArray[np.floating], P: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Return the support of unseen instances by these, (n_queries, n_classes).

        Parameters
        ----------
        queries : ndarray of shape (n_queries, n_features)
            Unseen rows of length one or zero. They do not support each other.
        P : ndarray of shape (n_samples, n_classes)
            Probabilities of the instances of this affinity.
        """
        queries = np.ascontiguousarray(queries, dtype=self.rows.dtype)
        support = np.zeros((queries.shape[0], P.shape[1]))
        spread = {level: P @ (self.similarity == level) for level in self._all_levels()}
        for first in row_blocks(len(queries), self.tile):
            for second in row_blocks(len(self.rows), self.tile):
                similarity = cosine_similarity_tile(queries[first], self.rows[second])
                for level, weights in spread.items():
                    support[first] += self._at_level(similarity, level) @ weights[second]
        return support

    def _all_levels(self) -> list[float]:
        return [self._base_level, *self._levels]

    def _similarity_tile(self, first: slice, second: slice) -> NDArray[np.floating]:
        return cosine_similarity_tile(self.rows[first], self.rows[second], same=first == second)

    def _at_level(self, similarity: NDArray[np.floating], level: float) -> NDArray[np.floating]:
        # v A + (1 - v)(1 - A) = (1 - v) + (2 v - 1) A
        values = similarity * (2.0 * level - 1.0)
        values += 1.0 - level
        return self._standardize(values)

    def _difference_tiles(
        self,
    ) -> Iterator[tuple[tuple[slice, slice], list[NDArray[np.floating]]]]:
        """Tiles of F_v - F_v0 for every level v; also sums F_v0 on the way the first time."""
        places = upper_triangle(len(self.rows), self.tile)
        if self._tiles:
            yield from zip(places, self._tiles, strict=True)
            return
        kept = []
        base_sums = np.zeros(len(self.rows))
        for first, second in places:
            similarity = self._similarity_tile(first, second)
            base = self._at_level(similarity, self._base_level)
            base_sums[first] += base.sum(axis=1)
            if first != second:
                base_sums[second] += base.sum(axis=0)
            tiles = [self._at_level(similarity, level) for level in self._levels]
            for tile in tiles:
                tile -= base
            if self._keep:
                kept.append(tiles)
            yield (first, second), tiles
        self._base = base_sums
        self._tiles = kept

    def _base_sums(self) -> NDArray[np.floating]:
        if self._base is None:
            for _ in self._difference_tiles():
                pass
        assert self._base is not None
        return self._base

    def _pass_over_statistics(self) -> AffinityStatistics:
        sets = self.mask.astype(self.rows.dtype)
        similar = sets @ self.similarity.astype(self.rows.dtype)
        similar2 = sets @ np.square(self.similarity).astype(self.rows.dtype)
        binary = not self._levels or set(self._all_levels()) == {0.0, 1.0}
        sizes = sets.sum(axis=1)
        total = squares = 0.0
        for first, second in upper_triangle(len(self.rows), self.tile):
            twice = 1.0 if first == second else 2.0
            A = self._similarity_tile(first, second)
            pairs = np.outer(sizes[first], sizes[second])
            # Sums of v and of v^2 over the label pairs of two instances; |S_i n S_j| both, if
            # labels are only equal or different.
            v = similar[first] @ sets[second].T
            v2 = v if binary else similar2[first] @ sets[second].T
            B = 1.0 - A
            total += twice * float(np.sum(v * A + (pairs - v) * B, dtype=np.float64))
            squared = v2 * A * A + 2.0 * (v - v2) * A * B + (pairs - 2.0 * v + v2) * B * B
            squares += twice * float(np.sum(squared, dtype=np.float64))
        return AffinityStatistics.from_sums(int(self.mask.sum()), total, squares)
