r"""The full graph tile by tile, in any array library.

With c the cosine of two instances and v the similarity of two labels, Eq. (5) is
:math:`K = \tfrac12 + (2v - 1)\,c/2`. Standardising keeps it a line over c, so rows that are scaled
once by the root of the steepness give standardised affinities by their inner products, and all
that is left to do for every pair of instances is the threshold.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from sklearn.utils import gen_batches

from gmpll._typing import Floats
from gmpll.arrays import (
    Array,
    array_namespace,
    beside,
    device,
    evaluated,
    is_dask_array,
    is_torch_array,
)
from gmpll.graph.cosine import upper_triangle
from gmpll.matching.affinity import (
    ZERO_AFFINITY,
    AffinityStatistics,
    DenseLayout,
    check_label_similarity,
)

#: See gmpll.matching.full.
PRECISIONS = ("highest", "high", "half")

#: A standardised affinity is exact up to about this many units of its rounding.
ROUNDING_UNITS = 8
#: Rows and columns of a tile: large enough for fast products, small enough for the caches.
TILE = 512
#: Tiles are kept in memory if all of them take no more than this, else made anew every iteration.
STORE_BYTES = 3 * 2**29


@dataclass(frozen=True)
class FinalAffinity:
    r"""The final affinity of two assignments over the cosine of their instances.

    It is :math:`f_v(c) = (2v - 1)\,s\,c + o` with steepness s and offset o where that reaches the
    threshold, else zero. The threshold is beta, less what rounding may have taken from a value that
    equals beta, and never so small that rounding errors of zero would be kept.
    """

    steepness: float
    offset: float
    threshold: float

    @classmethod
    def from_statistics(
        cls, statistics: AffinityStatistics, beta: float, resolution: float
    ) -> Self:
        """Make it from mean and deviation of K; with deviation zero K is left as it is."""
        mean, std = (statistics.mean, statistics.std) if statistics.std > 0 else (0.0, 1.0)
        steepness, offset = 0.5 / std, (0.5 - mean) / std
        rounding = ROUNDING_UNITS * resolution * (steepness + abs(offset))
        return cls(steepness, offset, max(beta - rounding, rounding, ZERO_AFFINITY))

    def scale(self, rows: Array) -> Array:
        """Scale unit rows so that their inner products are ``steepness`` times the cosine."""
        return rows * float(np.sqrt(self.steepness))

    def at_level(self, products: Array, level: float) -> Array:
        """Return the affinities at a label similarity from inner products of scaled rows."""
        values = products * (2.0 * level - 1.0)
        values += self.offset
        # A product, for processors cannot foresee which side of the threshold a value is on.
        values *= values >= self.threshold
        return values

    def tiles(
        self, levels: Sequence[float], left: Array, right: Array, same: bool
    ) -> Iterator[Array]:
        """Yield F_v0, then F_v - F_v0 for all other levels, of one tile between scaled rows."""
        products = left @ right.T
        if same:
            xp = array_namespace(products)
            itself = xp.eye(products.shape[0], dtype=xp.bool, device=device(products))
            products = xp.where(itself, self.steepness, products)
        base = self.at_level(products, levels[0])
        yield base
        for level in levels[1:]:
            tile = self.at_level(products, level)
            tile -= base
            yield tile

    def add_tile(
        self,
        levels: Sequence[float],
        left: Array,
        right: Array,
        weights: Sequence[Array],
        same: bool,
        total: Any,
    ) -> Array:
        """Add F_v0 W_0 and all (F_v - F_v0) W_v of one tile to what earlier tiles gave."""
        tiles = zip(self.tiles(levels, left, right, same), weights, strict=True)
        return sum((tile @ part for tile, part in tiles), start=total)


class LabelLevels:
    """The values of the label similarity: ``base`` is the most frequent one.

    ``only_equal`` says whether labels are equal or different, and nothing in between.
    """

    def __init__(self, similarity: Floats) -> None:
        self.similarity = similarity
        values, counts = np.unique(similarity, return_counts=True)
        self.base = float(values[np.argmax(counts)])
        self.others = [float(v) for v in values if v != self.base]
        self.all = [self.base, *self.others]
        self.only_equal = np.array_equal(similarity, np.eye(len(similarity)))

    def spread(self, P: Array) -> list[Array]:
        """Return P B_v for all levels but the base: what each label has at that level."""
        if self.only_equal:
            return [P] * len(self.others)
        pairs = [(self.similarity == level).astype(np.float64) for level in self.others]
        return [P @ beside(of_level, P) for of_level in pairs]


class FullAffinity:
    """All-pairs affinity by levels of the label similarity (no imbalance bias), tile by tile.

    A tile has ``tile`` rows and columns. Tiles are kept between iterations if all of them take no
    more than ``store_bytes``. Those of Dask arrays are their chunks, and are made anew in every
    iteration. Precision "high" is single precision, else that of the rows is kept. The other
    parameters are those of :func:`gmpll.matching.full_affinity`, which chooses what suits the array
    library; ``statistics`` are mean and deviation over all pairs of assignments.

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
        rows: Array,
        mask: Array,
        *,
        beta: float = 0.6,
        label_similarity: Array | None = None,
        precision: str | None = None,
        tile: int = TILE,
        store_bytes: int = STORE_BYTES,
    ) -> None:
        if precision not in (None, *PRECISIONS):
            raise ValueError(
                f"precision={precision!r} is unknown: choose one of {', '.join(PRECISIONS)}."
            )
        if precision == "half":
            raise ValueError(
                "precision='half' needs PyTorch tensors on a CUDA device, and Triton: choose "
                "'highest' or 'high'."
            )
        xp = array_namespace(rows)
        self.levels = LabelLevels(check_label_similarity(label_similarity, mask.shape[1]))
        self.statistics = affinity_statistics(rows, mask, self.levels.similarity)
        dtype = self._dtype(rows, precision)
        self.unit_rows = xp.astype(rows, dtype, copy=False)
        self.mask = mask
        self.tile = tile
        self.store_bytes = store_bytes
        resolution = float(xp.finfo(dtype).eps)
        self.final = FinalAffinity.from_statistics(self.statistics, beta, resolution)

    @cached_property
    def layout(self) -> DenseLayout:
        """Where the probabilities stand."""
        return DenseLayout()

    @cached_property
    def rows(self) -> Array:
        """The rows, scaled so that their inner products are affinities but for the offset."""
        return self.final.scale(self.unit_rows)

    @cached_property
    def base_support(self) -> Array:
        """F_v0 1: the support of an instance if all labels were at the base level."""
        return affinity_sums(self.rows, self.final, self.levels.base, self.tile)

    def apply(self, p: Array) -> Array:
        """Return K p."""
        if is_dask_array(p):
            return self._of(self.rows, p, same=True)
        xp = array_namespace(p)
        spread = [xp.astype(part, self.rows.dtype, copy=False) for part in self.levels.spread(p)]
        product = xp.zeros(p.shape, dtype=self.rows.dtype, device=device(p))
        for (first, second), tiles in zip(self._places, self._kept or self._made(), strict=True):
            for tile, weights in zip(tiles, spread, strict=True):
                product[first, :] += tile @ weights[second, :]
                if first != second:
                    product[second, :] += tile.T @ weights[first, :]
        # Affinities are not negative; where they cancel, rounding errors are.
        return xp.clip(xp.astype(product + self.base_support[:, None], p.dtype), min=0.0)

    def to_queries(self, queries: Array, P: Array) -> Array:
        """Return the support of unseen rows of length one or zero, (n_queries, n_classes)."""
        queries = array_namespace(queries).astype(queries, self.unit_rows.dtype, copy=False)
        return self._of(self.final.scale(queries), P, same=False)

    def _of(self, left: Array, P: Array, *, same: bool) -> Array:
        """Return the sum of F_v P B_v over all levels, between scaled rows and those of this."""
        xp = array_namespace(P)
        right = self.rows
        weights = [xp.sum(P, axis=1, keepdims=True), *self.levels.spread(P)]
        weights = [xp.astype(part, right.dtype, copy=False) for part in weights]
        of_tile: Any = partial(self.final.add_tile, self.levels.all)
        if is_dask_array(left):
            import dask

            from gmpll.engines.dask_blocks import cut_like, from_blocks, row_blocks_of

            weights = [cut_like(part, right) for part in weights]
            of_tile = dask.delayed(of_tile, pure=False)
            join = partial(from_blocks, sizes=left.chunks[0], like=weights[-1])
            lefts, *columns = [row_blocks_of(array) for array in (left, right, *weights)]
        else:
            # Several tiles are at work at a time: together they should be as large as one.
            tile = max(1, self.tile // 2)
            arrays = (left, right, *weights)
            lefts, *columns = [
                [array[rows, :] for rows in gen_batches(array.shape[0], tile)] for array in arrays
            ]
            join = xp.concat
        strips = []
        for number, block in enumerate(lefts):
            total: Any = 0.0
            for place, (others, *parts) in enumerate(zip(*columns, strict=True)):
                total = of_tile(block, others, parts, same and place == number, total)
            strips.append(total)
        product = join(strips)
        product = xp.clip(xp.astype(product, P.dtype, copy=False), min=0.0)
        return xp.broadcast_to(product, (left.shape[0], P.shape[1]))

    @cached_property
    def _places(self) -> list[tuple[slice, slice]]:
        return list(upper_triangle(len(self.rows), self.tile))

    @cached_property
    def _kept(self) -> list[list[Array]]:
        """All tiles if they fit, else none."""
        entries = sum((a.stop - a.start) * (b.stop - b.start) for a, b in self._places)
        n_bytes = array_namespace(self.rows).finfo(self.rows.dtype).bits // 8
        fit = len(self.levels.others) * entries * n_bytes <= self.store_bytes
        return list(self._made()) if fit else []

    def _made(self) -> Iterator[list[Array]]:
        """Yield the tiles of F_v - F_v0 on and above the diagonal, for every level but v0."""
        for a, b in self._places:
            left, right = self.rows[a, :], self.rows[b, :]
            yield list(self.final.tiles(self.levels.all, left, right, a == b))[1:]

    def _dtype(self, rows: Array, precision: str | None) -> Any:
        return array_namespace(rows).float32 if precision == "high" else rows.dtype


def affinity_sums(
    rows: Array, affinity: FinalAffinity, level: float, tile: int, gram: Array | None = None
) -> Array:
    """Return the row sums of F_v of scaled rows; ``gram`` are their products if at hand."""
    xp = array_namespace(rows)
    n_samples = rows.shape[0]
    sign = 2.0 * level - 1.0
    weights = xp.ones(n_samples, dtype=rows.dtype, device=device(rows))
    # A feature more on either side, and the product adds the offset, too.
    right = xp.concat([rows, weights[:, None]], axis=1)
    left = xp.concat([sign * rows, affinity.offset * weights[:, None]], axis=1)
    itself = sign * affinity.steepness + affinity.offset
    sums = xp.zeros(n_samples, dtype=widest(rows), device=device(rows))
    for first, second in upper_triangle(n_samples, tile):
        if gram is None:
            block = left[first, :] @ right[second, :].T
        else:
            block = gram[first, second] * sign
            block += affinity.offset
        if first == second:
            diagonal = xp.arange(block.shape[0], device=device(rows))
            block[diagonal, diagonal] = itself
        block *= block >= affinity.threshold
        sums[first] += block @ weights[second]
        if first != second:
            sums[second] += weights[first] @ block
    return sums


def widest(rows: Array) -> Any:
    """Return double precision where the device has it."""
    on_mps = is_torch_array(rows) and rows.device.type == "mps"
    return rows.dtype if on_mps else array_namespace(rows).float64


def affinity_statistics(rows: Array, mask: Array, similarity: Floats) -> AffinityStatistics:
    """Return mean and deviation of K over all pairs of assignments, in double precision."""
    xp = array_namespace(rows)
    wide = xp.astype(rows, widest(rows))
    sets = xp.astype(mask, wide.dtype)
    signs = beside(2.0 * similarity - 1.0, wide)
    by_label = sets.T @ wide
    # A zero row is fully similar to itself, although its inner product is not one.
    alone = sets[~xp.any(wide != 0, axis=1)]
    total = xp.sum((signs @ by_label) * by_label) + xp.sum((alone @ signs) * alone)
    squares = _sum_of_squares(wide, sets, (2.0 * similarity - 1.0) ** 2)
    squares = squares + xp.sum((alone @ signs**2) * alone)
    found = evaluated(total, squares, xp.sum(xp.astype(mask, xp.int64)))
    total, squares, u = (float(value) for value in found)
    around_half = AffinityStatistics.from_sums(int(u), 0.5 * total, 0.25 * squares)
    return AffinityStatistics(int(u), around_half.mean + 0.5, around_half.std)


def _sum_of_squares(rows: Array, sets: Array, weights: Floats) -> Array:
    """Return the sum of c_ij^2 over all pairs of assignments, weighted by their labels."""
    xp = array_namespace(rows)
    n_samples, n_features = rows.shape
    if np.all(weights == 1.0):
        # Then every entry is as far from one half as any other of the same two instances.
        weighted = rows * xp.sqrt(xp.sum(sets, axis=1, keepdims=True))
        few_features = n_features <= n_samples
        gram = weighted.T @ weighted if few_features else weighted @ weighted.T
        return xp.sum(gram**2)
    if n_features > n_samples:
        return xp.sum(((rows @ rows.T) ** 2 @ sets) * (sets @ beside(weights, sets)))
    # The weights as a sum of outer products: each needs sums of outer products of rows only.
    strengths, vectors = np.linalg.eigh(weights)
    sides = sets @ beside(vectors, sets)
    total = 0.0
    for number, strength in enumerate(strengths.tolist()):
        moment = (rows * sides[:, number, None]).T @ rows
        total = total + strength * xp.sum(moment**2)
    return total
