r"""The full graph tile by tile, in any array library.

With c the cosine of two instances and v the similarity of two labels, Eq. (5) is
:math:`K = \tfrac12 + (2v - 1)\,c/2`. Standardising keeps it a line over c, so rows that are scaled
once by the root of the steepness give standardised affinities by their inner products, and all
that is left to do for every pair of instances is the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmpll.arrays import Array, array_namespace, device, is_dask_array
from gmpll.graph.cosine import row_blocks, upper_triangle
from gmpll.matching.affinity import ZERO_AFFINITY, AffinityStatistics, DenseLayout, Layout

__all__ = ["FinalAffinity", "KeptTiles", "LabelLevels", "TiledProduct", "affinity_product"]

#: Makes the affinities of a tile at every level from its rows, its columns and whether they are
#: the same: :meth:`FinalAffinity.tiles` of some levels.
Tiles = Callable[[Array, Array, bool], Iterator[Array]]
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
    ) -> FinalAffinity:
        """Make it from mean and deviation of K; with deviation zero K is left as it is.

        ``resolution`` is the relative spacing of the numbers that cosines are computed in.
        """
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


class LabelLevels:
    """The values of the label similarity: ``base`` is the most frequent one.

    ``only_equal`` says whether labels are equal or different, and nothing in between.
    """

    def __init__(self, similarity: NDArray[np.float64]) -> None:
        self.similarity = similarity
        values, counts = np.unique(similarity, return_counts=True)
        self.base = float(values[np.argmax(counts)])
        self.others = [float(v) for v in values if v != self.base]
        self.all = [self.base, *self.others]
        self.only_equal = np.array_equal(similarity, np.eye(len(similarity)))

    def spread(self, P: Array) -> list[Array]:
        """Return P B_v for all levels but the base: what each label has at that level."""
        xp = array_namespace(P)
        spread = []
        for level in self.others:
            pairs = self.similarity == level
            if np.array_equal(pairs, np.eye(len(pairs), dtype=bool)):
                spread.append(P)
            else:
                spread.append(P @ xp.asarray(pairs, dtype=P.dtype, device=device(P)))
        return spread


class KeptTiles:
    """Tiles that are made where they are first needed, and kept from then on if they fit."""

    def __init__(self, fit: bool) -> None:
        self._fit = fit
        self._kept: list[Any] = []

    def or_made(self, made: Iterator[Any]) -> Iterator[Any]:
        """Yield the tiles that are kept, or those that are made."""
        if self._kept:
            yield from self._kept
            return
        kept = []
        for tile in made:
            if self._fit:
                kept.append(tile)
            yield tile
        self._kept = kept


class TiledProduct:
    """K p of the full graph, tile by tile.

    A tile has ``tile`` rows and columns. Tiles are kept between iterations if all of them take no
    more than ``store_bytes``. Those of Dask arrays are their chunks, and are made anew in every
    iteration. Precision "high" is single precision, else that of the rows is kept.
    """

    def __init__(
        self,
        rows: Array,
        mask: Array,
        levels: LabelLevels,
        statistics: AffinityStatistics,
        *,
        beta: float,
        precision: str | None,
        tile: int = TILE,
        store_bytes: int = STORE_BYTES,
    ) -> None:
        if precision == "half":
            raise ValueError(
                "precision='half' needs PyTorch tensors on a CUDA device, and Triton: choose "
                "'highest' or 'high'."
            )
        xp = array_namespace(rows)
        dtype = self._dtype(rows, statistics, precision)
        self.unit_rows = xp.astype(rows, dtype, copy=False)
        self.mask = mask
        self.levels = levels
        self.tile = tile
        self.store_bytes = store_bytes
        self.final = FinalAffinity.from_statistics(statistics, beta, float(xp.finfo(dtype).eps))

    @cached_property
    def layout(self) -> Layout:
        """Where the probabilities stand."""
        return DenseLayout()

    @cached_property
    def rows(self) -> Array:
        """The rows, scaled so that their inner products are affinities but for the offset."""
        return self.final.scale(self.unit_rows)

    @cached_property
    def base_support(self) -> Array:
        """F_v0 1: the support of an instance if all labels were at the base level."""
        xp = array_namespace(self.rows)
        ones = xp.ones((len(self.rows), 1), dtype=self.rows.dtype, device=device(self.rows))
        tiles = partial(self.final.tiles, [self.levels.base])
        return _tiled(tiles, self.rows, self.rows, [ones], True, self.tile)[:, 0]

    def __call__(self, p: Array) -> Array:
        """Return K p."""
        if is_dask_array(p):
            return self._of(self.rows, p, same=True)
        xp = array_namespace(p)
        spread = [xp.astype(part, self.rows.dtype, copy=False) for part in self.levels.spread(p)]
        product = xp.zeros(p.shape, dtype=self.rows.dtype, device=device(p))
        for (first, second), tiles in zip(self._places, self._differences(), strict=True):
            for tile, weights in zip(tiles, spread, strict=True):
                product[first, :] += tile @ weights[second, :]
                if first != second:
                    product[second, :] += tile.T @ weights[first, :]
        # Affinities are not negative; where they cancel, rounding errors are.
        return xp.clip(xp.astype(product + self.base_support[:, None], p.dtype), min=0.0)

    def to_queries(self, queries: Array, P: Array) -> Array:
        """Return the support of unseen rows by these, (n_queries, n_classes)."""
        queries = array_namespace(queries).astype(queries, self.unit_rows.dtype, copy=False)
        return self._of(self.final.scale(queries), P, same=False)

    def _of(self, left: Array, P: Array, same: bool) -> Array:
        # Several tiles are at work at a time: together they should be as large as one.
        tile = max(1, self.tile // 2)
        return affinity_product(left, self.rows, P, self.levels, self.final, same=same, tile=tile)

    @cached_property
    def _places(self) -> list[tuple[slice, slice]]:
        return list(upper_triangle(len(self.rows), self.tile))

    @cached_property
    def _kept(self) -> KeptTiles:
        entries = sum((a.stop - a.start) * (b.stop - b.start) for a, b in self._places)
        n_bytes = array_namespace(self.rows).finfo(self.rows.dtype).bits // 8
        return KeptTiles(len(self.levels.others) * entries * n_bytes <= self.store_bytes)

    def _differences(self) -> Iterator[list[Array]]:
        """Yield the tiles of F_v - F_v0 on and above the diagonal, for every level but v0."""
        return self._kept.or_made(
            list(self.final.tiles(self.levels.all, self.rows[a, :], self.rows[b, :], a == b))[1:]
            for a, b in self._places
        )

    def _dtype(self, rows: Array, statistics: AffinityStatistics, precision: str | None) -> Any:
        return array_namespace(rows).float32 if precision == "high" else rows.dtype


def affinity_product(
    left: Array,
    right: Array,
    P: Array,
    levels: LabelLevels,
    final: FinalAffinity,
    *,
    same: bool,
    tile: int,
) -> Array:
    """Return the sum of F_v P B_v over all levels, between scaled rows.

    ``same`` says whether left and right are the same instances, fully similar to themselves.
    """
    xp = array_namespace(P)
    weights = [xp.sum(P, axis=1, keepdims=True), *levels.spread(P)]
    weights = [xp.astype(part, right.dtype, copy=False) for part in weights]
    tiles = partial(final.tiles, levels.all)
    if is_dask_array(left):
        product = _product_of_chunks(tiles, left, right, weights, same)
    else:
        product = _tiled(tiles, left, right, weights, same, tile)
    product = xp.clip(xp.astype(product, P.dtype, copy=False), min=0.0)
    return xp.broadcast_to(product, (left.shape[0], P.shape[1]))


def _tiled(
    tiles: Tiles, left: Array, right: Array, weights: Sequence[Array], same: bool, tile: int
) -> Array:
    """Return F_v0 W_0 plus the sum of (F_v - F_v0) W_v over all other levels."""

    def of_tile(first: slice, second: slice) -> Array:
        parts = [part[second, :] for part in weights]
        return _tile_product(
            tiles, left[first, :], right[second, :], parts, same and first == second
        )

    columns = row_blocks(right.shape[0], tile)
    strips = [
        sum(of_tile(rows, second) for second in columns) for rows in row_blocks(left.shape[0], tile)
    ]
    return array_namespace(left).concat(strips)


def _tile_product(
    tiles: Tiles, left: Array, right: Array, weights: Sequence[Array], same: bool
) -> Array:
    made = tiles(left, right, same)
    return sum(tile @ part for tile, part in zip(made, weights, strict=True))


def _product_of_chunks(
    tiles: Tiles, left: Array, right: Array, weights: Sequence[Array], same: bool
) -> Array:
    """Return the sum over the tiles of chunk x chunk, each a task of its own."""
    import dask.array as da

    left, right = left.rechunk({1: -1}), right.rechunk({1: -1})
    n_columns = max(part.shape[1] for part in weights)
    parts: list[Any] = []
    for axis, rows in (("left", left), ("right", right)):
        numbers = da.arange(rows.shape[0], chunks=(rows.chunks[0],))  # which rows a chunk holds
        parts += [rows, (axis, "feature"), numbers, (axis,)]
    for number, part in enumerate(weights):
        parts += [part.rechunk((right.chunks[0], -1)), ("right", f"column {number}")]

    def product(left: Any, left_rows: Any, right: Any, right_rows: Any, *weights: Any) -> Any:
        """Return a tile's part of the product with an axis for the sum over the tiles."""
        itself = same and left_rows[0] == right_rows[0]
        found = _tile_product(tiles, left, right, weights, itself)
        return np.broadcast_to(found[:, None, :], (len(left), 1, n_columns))

    found = da.blockwise(
        product,
        ("left", "right", "column"),
        *parts,
        new_axes={"column": n_columns},
        adjust_chunks={"right": 1},
        concatenate=True,
        meta=np.empty((0, 0, 0), dtype=right.dtype),
    )
    return found.sum(axis=1)
