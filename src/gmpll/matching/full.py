r"""The paper's affinity between all pairs of assignments, Eqs. (5) and (6), never built.

With :math:`A` the instance similarity and :math:`v = A^2_{l l'}` the label similarity,

.. math:: K_{ab} = v A_{ij} + (1 - v)(1 - A_{ij})

which is the paper's rule for :math:`v \in \{0, 1\}`. K is then standardised and thresholded
entry by entry. So an entry depends on the instances through :math:`A_{ij}` and on the labels
through the *level* :math:`v` alone; with :math:`F_v` the m x m matrix of the final affinities at
level v, and :math:`B_v` the 0/1 matrix of the label pairs at that level,

.. math:: K p \;=\; \sum_v F_v P B_v
          \;=\; F_{v_0} \mathbf 1 + \sum_{v \ne v_0} (F_v - F_{v_0}) P B_v

because the :math:`B_v` sum to the matrix of ones and the rows of P to one. The first term is the
same in every turn. Without a prior on the labels there are two levels, and of the second term's
:math:`(F_1 - F_0) P` only the entries of the candidates are asked for: pairs of instances that
share a candidate are all that a turn looks at (:class:`gmpll.matching.full_tiles.LabelBlocks`).

Mean and deviation need no K either: :math:`K - \tfrac12 = (2v - 1)\,c/2` with c the cosine, sums of
c over groups of pairs are inner products of sums of rows, and sums of :math:`c^2` those of sums of
outer products :math:`x_i x_i^\top`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gmpll.arrays import is_torch_array
from gmpll.graph.cosine import row_blocks, upper_triangle
from gmpll.matching.affinity import AffinityStatistics, check_label_similarity
from gmpll.matching.assignments import AssignmentAffinity
from gmpll.matching.full_tiles import (
    FinalAffinity,
    LabelBlocks,
    LevelTiles,
    affinity_sums,
    difference_matrix,
)
from gmpll.matching.packed import Assignments, PackedAffinity

__all__ = ["FullAffinity", "full_affinity"]

#: Rows and columns of a tile: large enough for fast products, small enough for the caches.
TILE = 512
#: Tiles are kept in memory if all of them take no more than this, else made anew every turn.
STORE_BYTES = 3 * 2**29
#: More pairs of assignments with the same label than this are kept in single precision, which
#: halves the time of a turn: fewer fit into the caches anyway.
DOUBLE_PAIRS = 2**18
#: More rows than this are compared in single precision, too, which takes half the time,
DOUBLE_ROWS = 10_000
#: unless standardised affinities would be less exact than this.
SINGLE_ROUNDING = 1e-4
#: An elementwise operation on an assignment pair costs about as much as this many
#: multiply-adds of a matrix product; decides how a label similarity of many levels is handled.
ELEMENTWISE_COST = 40
#: An entry of a product with a vector costs about as much as this many multiply-adds of a
#: product of matrices; decides whether a turn goes label by label.
VECTOR_COST = 5
#: Looking up an inner product costs about as much as this many multiply-adds,
LOOKUP_COST = 150
#: if all of them together are no larger than this.
GRAM_BYTES = 2**25


def full_affinity(
    rows: NDArray[np.floating],
    mask: NDArray[np.bool_],
    *,
    alpha: float = 0.0,
    beta: float = 0.6,
    label_similarity: NDArray[np.floating] | None = None,
) -> Any:
    """Return the paper's affinity as the operator that suits its parameters.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Instances as rows of length one (or zero), see :class:`gmpll.graph.views.DirectionSpace`.
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
    if is_torch_array(rows):
        from gmpll.matching.tensors import tensor_full_affinity

        return tensor_full_affinity(
            rows, mask, alpha=alpha, beta=beta, label_similarity=label_similarity
        )
    n_samples, n_classes = mask.shape
    similarity = check_label_similarity(label_similarity, n_classes)
    by_level = (len(np.unique(similarity)) - 1) * n_samples**2 * n_classes
    by_pair = ELEMENTWISE_COST * int(mask.sum()) ** 2
    if alpha > 0 or (by_level > by_pair and not _only_equal(similarity)):
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
    dtype : {float64, float32}, default=None
        Precision of the affinities. By default they are made in double precision up to
        ``DOUBLE_ROWS`` rows and then, if they are many, rounded to single, which moves matching
        probabilities by about 1e-7. For more rows they are made in single precision, unless they
        deviate so little that it could not tell them apart: then one that lies on the threshold
        may fall to either side of it, and ``benchmarks/full_graph.py`` counts the labels that
        this changes. Mean, deviation and matching probabilities are double always.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.matching import FullAffinity
    >>> rows = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> mask = np.array([[True, False], [True, True], [False, True]])
    >>> affinity = FullAffinity(rows, mask, beta=0.3)
    >>> support = affinity.apply(mask / mask.sum(axis=1, keepdims=True))
    >>> np.where(mask, support, 0.0).round(2)
    array([[1.55, 0.  ],
           [1.43, 1.17],
           [0.  , 1.43]])
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
        self.beta = beta
        self.tile = tile
        self.store_bytes = store_bytes
        self.similarity = check_label_similarity(label_similarity, mask.shape[1])
        values, counts = np.unique(self.similarity, return_counts=True)
        self._base_level = float(values[np.argmax(counts)])
        self._levels = [float(v) for v in values if v != self._base_level]

        # Pairs of assignments with the same label.
        self._label_pairs = float(np.square(mask.sum(axis=0, dtype=np.float64)).sum())
        self._exact = dtype is not None
        self._statistics = affinity_statistics(rows, mask, self.similarity, tile)
        if dtype is None:
            dtype = _sufficient_precision(len(rows), self._statistics)
        self._final = FinalAffinity.from_statistics(
            self._statistics, beta, float(np.finfo(dtype).eps)
        )
        # Scaled, so that their inner products are standardised affinities but for the offset.
        self.rows = self._final.scale(np.ascontiguousarray(rows, dtype=dtype))
        self._base: NDArray[np.float64] | None = None
        self._assignments: Assignments | None = None
        self._blocks: LabelBlocks | None = None
        self._tiles: LevelTiles | None = None

    def apply(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return K p."""
        return np.maximum(self._product(P) + self.base_support()[:, None], 0.0)

    def base_support(self) -> NDArray[np.float64]:
        """Return F_v0 1: the support of an instance if all labels were at the base level."""
        if self._base is None:
            self._base = self._times_base(np.ones(len(self.rows)))
        return self._base

    def row_sums(self) -> NDArray[np.floating]:
        """Return the sum of the affinities of every assignment."""
        sets = self.mask.astype(np.float64)
        base = self._times_base(sets.sum(axis=1))
        return np.where(self.mask, self._product(sets) + base[:, None], 0.0)

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
        dtype = self.rows.dtype
        queries = self._final.scale(np.ascontiguousarray(queries, dtype=dtype))
        support = np.zeros((queries.shape[0], P.shape[1]))
        spread = {
            level: (P @ (self.similarity == level)).astype(dtype)
            for level in [self._base_level, *self._levels]
        }
        for first in row_blocks(len(queries), self.tile):
            for second in row_blocks(len(self.rows), self.tile):
                products = queries[first] @ self.rows[second].T
                for level, weights in spread.items():
                    support[first] += self._final.at_level(products, level) @ weights[second]
        return support

    def packed(self, mask: NDArray[np.bool_]) -> PackedAffinity | None:
        """Return the same affinity on packed probabilities, None where that would gain nothing.

        Parameters
        ----------
        mask : ndarray of shape (n_samples, n_classes), bool
            Candidates of the matching; packed they must be those of the affinity.
        """
        if not self._by_label() or not np.array_equal(mask, self.mask):
            return None
        blocks, assignments = self._label_blocks()
        return PackedAffinity(self, blocks, assignments)

    def _by_label(self) -> bool:
        """Whether a turn goes label by label instead of over all pairs of instances."""
        n_samples, n_classes = self.mask.shape
        if n_classes == 1 or not _only_equal(self.similarity):
            return False
        return VECTOR_COST * self._label_pairs <= float(n_samples) ** 2 * n_classes

    def _product(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the sum over the levels of (F_v - F_v0) P B_v at the candidates."""
        if not self._by_label():
            return self._level_tiles().product(P)
        blocks, assignments = self._label_blocks()
        where = (assignments.instance, assignments.label)
        padded = np.zeros(len(blocks.instance))
        padded[blocks.position] = P[where]
        result = np.zeros(P.shape)
        result[where] = blocks.product(padded)[blocks.position]
        return result

    def _label_blocks(self) -> tuple[LabelBlocks, Assignments]:
        if self._blocks is None or self._assignments is None:
            single = not self._exact and self._label_pairs > DOUBLE_PAIRS
            dtype = np.dtype(np.float32) if single else self.rows.dtype
            gram = self._gram()
            if self._base is None:
                self._base = self._times_base(np.ones(len(self.rows)), gram)
            self._assignments = Assignments(self.mask)
            self._blocks = LabelBlocks(
                self.rows,
                self._assignments,
                self._final,
                tile=self.tile,
                store_bytes=self.store_bytes,
                differences=None if gram is None else difference_matrix(gram, self._final, dtype),
                dtype=dtype,
            )
        return self._blocks, self._assignments

    def _level_tiles(self) -> LevelTiles:
        if self._tiles is None:
            self._tiles = LevelTiles(
                self.rows,
                self.similarity,
                self._base_level,
                self._levels,
                self._final,
                tile=self.tile,
                store_bytes=self.store_bytes,
            )
        return self._tiles

    def _times_base(
        self, weights: NDArray[np.floating], gram: NDArray[np.floating] | None = None
    ) -> NDArray[np.float64]:
        return affinity_sums(self.rows, weights, self._final, self._base_level, self.tile, gram)

    def _gram(self) -> NDArray[np.floating] | None:
        """Return all inner products, if looking them up is cheaper than making some anew."""
        n_samples, n_features = self.rows.shape
        size = self.rows.itemsize * n_samples**2
        if n_features < LOOKUP_COST or size > min(GRAM_BYTES, self.store_bytes):
            return None
        gram = self.rows @ self.rows.T
        np.fill_diagonal(gram, self._final.steepness)
        return gram


def affinity_statistics(
    rows: NDArray[np.floating],
    mask: NDArray[np.bool_],
    similarity: NDArray[np.float64],
    tile: int = TILE,
) -> AffinityStatistics:
    """Return mean and deviation of K over all pairs of assignments, in double precision.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Instances as rows of length one (or zero).
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.
    similarity : ndarray of shape (n_classes, n_classes)
        Label similarity.
    tile : int, default=TILE
        Rows and columns of the tiles in which cosines are looked at where there is no closed form.
    """
    wide = np.asarray(rows, dtype=np.float64)
    sets = mask.astype(np.float64)
    signs = 2.0 * similarity - 1.0
    by_label = sets.T @ wide
    total = float(np.vdot(signs @ by_label, by_label))
    if np.all(np.abs(signs) == 1.0):
        # Then every entry is as far from one half as any other of the same two instances.
        squares = _weighted_squares(wide, sets.sum(axis=1))
    else:
        squares = _squares_in_tiles(wide, sets, signs**2, tile)
    # A zero row is fully similar to itself, although its inner product is not one.
    without_length = sets[~wide.any(axis=1)]
    total += float(np.vdot(without_length @ signs, without_length))
    squares += float(np.vdot(without_length @ signs**2, without_length))
    u = int(mask.sum())
    around_half = AffinityStatistics.from_sums(u, 0.5 * total, 0.25 * squares)
    return AffinityStatistics(u, around_half.mean + 0.5, around_half.std)


def _weighted_squares(rows: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the sum of w_i w_j c_ij^2 over all pairs, by the smaller of two Gram matrices."""
    weighted = rows * np.sqrt(weights)[:, None]
    gram = weighted.T @ weighted if rows.shape[1] <= len(rows) else weighted @ weighted.T
    return float(np.vdot(gram, gram))


def _squares_in_tiles(
    rows: NDArray[np.float64],
    sets: NDArray[np.float64],
    weights: NDArray[np.float64],
    tile: int,
) -> float:
    """Return the sum of c_ij^2 over all pairs of assignments, weighted by their labels."""
    weighted_sets = sets @ weights
    total = 0.0
    for first, second in upper_triangle(len(rows), tile):
        cosines = rows[first] @ rows[second].T
        cosines *= cosines
        part = float(np.vdot(cosines, weighted_sets[first] @ sets[second].T))
        total += part if first == second else 2.0 * part
    return total


def _sufficient_precision(n_samples: int, statistics: AffinityStatistics) -> DTypeLike:
    if n_samples <= DOUBLE_ROWS:
        return np.float64
    rounding = float(np.finfo(np.float32).eps) / max(statistics.std, np.finfo(np.float64).tiny)
    return np.float32 if rounding <= SINGLE_ROUNDING else np.float64


def _only_equal(similarity: NDArray[np.float64]) -> bool:
    """Whether labels are equal or different, and nothing in between."""
    return np.array_equal(similarity, np.eye(len(similarity)))
