"""The full graph on PyTorch tensors, on any device.

The difference matrices :math:`F_v - F_{v_0}` of :mod:`gmpll.matching.full` are kept where the
device has room for them, in the precision of the rows or as sums of half-precision matrices. Where
it has not, a fused kernel makes them tile by tile in registers (on CUDA, where Triton is there, see
``gmpll/matching/_triton.py``), or tiles of them are made and dropped by PyTorch.

Kept matrices are rounded to their parts once; what they are made from has 22 bits (or the precision
of the rows, where there is no kernel), so "half" loses less where it can keep them.
"""

from __future__ import annotations

import math
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import torch

from gmpll.engines.halves import ROW_SCALE, padded, split
from gmpll.graph.cosine import row_blocks
from gmpll.matching.affinity import AffinityStatistics
from gmpll.matching.full_tiles import TILE, LabelLevels, TiledProduct

__all__ = ["TensorProduct"]

#: Half-precision numbers that a factor is the sum of.
PARTS = {"highest": 0, "high": 2, "half": 1}
#: Difference matrices are kept off CUDA up to this size.
STORE_BYTES = 3 * 2**29
#: On CUDA they are kept in up to this share of the memory that is free, but in no more than this
#: where the fused kernel is there, which is about as fast and takes hardly any.
STORE_SHARE = 0.5
CUDA_STORE_BYTES = 8 * 2**30
#: Rows and columns of a tile on CUDA.
CUDA_TILE = 2**13
#: Entries of the difference matrices that are made at a time.
STRIP_ENTRIES = 2**26
#: Columns of kept matrices and of probabilities come in multiples of these: tensor cores like it.
KEPT_ALIGNMENT = 128
LABEL_ALIGNMENT = 16


class TensorProduct(TiledProduct):
    """K p of the full graph on tensors.

    The precision is high for single-precision rows on CUDA by default, else highest. Difference
    matrices are kept if they take no more than ``store_bytes``: by default ``STORE_BYTES``, on CUDA
    half of what is free, but not more than ``CUDA_STORE_BYTES`` where the kernels can be used. They
    are ``fused``, by default, on CUDA if Triton is installed and the precision is not "highest",
    which they do not have.
    """

    def __init__(
        self,
        rows: torch.Tensor,
        mask: torch.Tensor,
        levels: LabelLevels,
        statistics: AffinityStatistics,
        *,
        beta: float,
        precision: str | None,
        tile: int | None = None,
        store_bytes: int | None = None,
        fused: bool | None = None,
    ) -> None:
        if tile is None:
            tile = CUDA_TILE if rows.is_cuda else TILE
        super().__init__(
            rows.contiguous(), mask, levels, statistics, beta=beta, precision=precision, tile=tile
        )
        if precision is None:
            precision = "high" if rows.is_cuda and rows.dtype == torch.float32 else "highest"
        self._n_parts = PARTS[precision]
        if fused is None:
            fused = rows.is_cuda and self._n_parts > 0 and find_spec("triton") is not None
        self.fused = fused
        self.stored = self._fits(_store_bytes(rows, fused) if store_bytes is None else store_bytes)
        self._base: torch.Tensor | None = None

    def __call__(self, p: torch.Tensor) -> torch.Tensor:
        """Return K p."""
        if self.stored:
            product, base = self._stored_product(p), self._differences[1]
        elif not self.fused:
            return super().__call__(p)
        elif self._base is None:
            ones = self.unit_rows.new_ones(len(self.unit_rows))
            product, self._base = self._fused_product(self._halves, p, ones, same=True)
            base = self._base
        else:
            product, base = self._fused_product(self._halves, p, None, same=True)[0], self._base
        # Affinities are not negative; where they cancel, rounding errors are.
        return (product + base[:, None]).clamp_(min=0.0).to(p.dtype)

    def to_queries(self, queries: torch.Tensor, P: torch.Tensor) -> torch.Tensor:
        """Return the support of unseen rows by these, (n_queries, n_classes)."""
        if not self.fused:
            return super().to_queries(queries, P)
        left = self._half(queries.to(self.unit_rows), self._n_parts)
        product, base = self._fused_product(left, P, P.sum(dim=1), same=False)
        return (product + base[:, None]).clamp_(min=0.0)[: len(queries)].to(P.dtype)

    def _dtype(self, rows: Any, statistics: AffinityStatistics, precision: str | None) -> Any:
        return rows.dtype

    # Matrices that are kept

    def _fits(self, store_bytes: int) -> bool:
        entry = 2 * self._n_parts if self._n_parts else self.unit_rows.element_size()
        entries = _aligned(len(self.unit_rows), KEPT_ALIGNMENT) ** 2
        return len(self.levels.others) * entries * entry <= store_bytes

    @cached_property
    def _differences(self) -> tuple[list[list[torch.Tensor]], torch.Tensor]:
        """The parts of F_v - F_v0 for every level but the base, and the row sums of F_v0."""
        return self._differences_by_kernel() if self.fused else self._differences_in_strips()

    def _stored_product(self, P: torch.Tensor) -> torch.Tensor:
        n, n_classes = P.shape
        product = self.unit_rows.new_zeros((n, n_classes))
        spread = self.levels.spread(P.to(self.unit_rows.dtype))
        for kept, weights in zip(self._differences[0], spread, strict=True):
            weights = padded(weights, kept[0].shape[1], _aligned(n_classes, LABEL_ALIGNMENT))
            if self._n_parts:
                found = _product_of_parts(kept, split(weights, len(kept)))
            else:
                found = kept[0] @ weights
            product += found[:n, :n_classes]
        return product

    def _differences_in_strips(self) -> tuple[list[list[torch.Tensor]], torch.Tensor]:
        n = len(self.rows)
        dtype = torch.float16 if self._n_parts else self.rows.dtype
        shape = (n, _aligned(n, KEPT_ALIGNMENT))
        kept = [
            [self.rows.new_zeros(shape, dtype=dtype) for _ in range(max(self._n_parts, 1))]
            for _ in self.levels.others
        ]
        base_sums = self.rows.new_zeros(n)
        for strip in row_blocks(n, max(1, STRIP_ENTRIES // n)):
            products = self.rows[strip] @ self.rows.T
            products.diagonal(strip.start).fill_(self.final.steepness)
            base = self.final.at_level(products, self.levels.base)
            base_sums[strip] = base.sum(dim=1)
            for parts, level in zip(kept, self.levels.others, strict=True):
                difference = self.final.at_level(products, level).sub_(base)
                pieces = split(difference, self._n_parts) if self._n_parts else [difference]
                for part, piece in zip(parts, pieces, strict=True):
                    part[strip, :n] = piece
        return kept, base_sums

    # The Triton kernels

    def _differences_by_kernel(self) -> tuple[list[list[torch.Tensor]], torch.Tensor]:
        from gmpll.matching._triton import difference_matrix

        n = len(self.unit_rows)
        rows = self._half(self.unit_rows, 2)
        kept = []
        for level in self.levels.others or [self.levels.base]:
            parts, base_sums = difference_matrix(rows, n, self._n_parts, **self._lines(level))
            kept.append(parts)
        return kept[: len(self.levels.others)], base_sums[:n]

    def _fused_product(
        self,
        left: list[torch.Tensor],
        P: torch.Tensor,
        base_weights: torch.Tensor | None,
        *,
        same: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sum of (F_v - F_v0) P B_v over the levels, and F_v0 times ``base_weights``."""
        from gmpll.matching._triton import affinity_product, label_width

        P = P.to(self.unit_rows.dtype)
        n_classes = P.shape[1]
        n_right = len(self._halves[0])
        width, _ = label_width(n_classes)
        if base_weights is not None:
            base_weights = padded(base_weights[:, None].float(), n_right, 1)[:, 0]
        product = P.new_zeros((len(left[0]), n_classes))
        base_product = P.new_zeros(len(left[0]))
        # Without another level (a single label) the kernel is run for the base alone.
        levels = self.levels.others or [self.levels.base]
        spread = self.levels.spread(P) or [torch.zeros_like(P)]
        for number, (level, weights) in enumerate(zip(levels, spread, strict=True)):
            found, base = affinity_product(
                left,
                self._halves,
                split(padded(weights, n_right, width), self._n_parts),
                base_weights if number == 0 else None,
                same=same,
                **self._lines(level),
            )
            product += found[:, :n_classes]
            if base is not None:
                base_product += base
        if same:
            n = len(self.unit_rows)
            return product[:n], base_product[:n]
        return product, base_product

    @cached_property
    def _halves(self) -> list[torch.Tensor]:
        return self._half(self.unit_rows, self._n_parts)

    def _half(self, rows: torch.Tensor, n_parts: int) -> list[torch.Tensor]:
        from gmpll.matching._triton import BLOCK, feature_width

        width, _ = feature_width(rows.shape[1])
        return split(ROW_SCALE * padded(rows, _aligned(len(rows), BLOCK), width), n_parts)

    def _lines(self, level: float) -> dict[str, Any]:
        """Return affinities at a level and at the base as the kernels take them."""
        from gmpll.matching._triton import AffinityLine

        def line(level: float) -> AffinityLine:
            """Over the similarity (1 + c) / 2, not over the cosine."""
            slope = (2.0 * level - 1.0) * 2.0 * self.final.steepness
            return AffinityLine(slope, self.final.offset - 0.5 * slope)

        return {
            "line": line(level),
            "base_line": line(self.levels.base),
            "threshold": self.final.threshold,
            "half_scale": 0.5 / ROW_SCALE**2,
        }


def _store_bytes(rows: torch.Tensor, fused: bool) -> int:
    if not rows.is_cuda:
        return STORE_BYTES
    free, _ = torch.cuda.mem_get_info(rows.device)
    # What PyTorch holds back for later use is free, too.
    held = torch.cuda.memory_reserved(rows.device) - torch.cuda.memory_allocated(rows.device)
    share = int(STORE_SHARE * (free + held))
    return min(share, CUDA_STORE_BYTES) if fused else share


def _aligned(n: int, alignment: int) -> int:
    return math.ceil(n / alignment) * alignment


def _product_of_parts(left: list[torch.Tensor], right: list[torch.Tensor]) -> torch.Tensor:
    """Multiply sums of half-precision matrices; the products of rests do not matter."""
    width = right[0].shape[1]
    pieces: list[torch.Tensor] = []
    for place, part in enumerate(left):
        factors = torch.cat(right[: len(left) - place], dim=1)
        pieces.extend(_single_precision_product(part, factors).split(width, dim=1))
    total = pieces[0]
    for piece in pieces[1:]:
        total = total + piece
    return total


def _single_precision_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    if left.is_cuda:
        return torch.mm(left, right, out_dtype=torch.float32)
    return left.float() @ right.float()
