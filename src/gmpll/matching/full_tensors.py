"""The full graph on PyTorch tensors, on any device.

On CUDA, where Triton is there, kernels (``gmpll/matching/_triton.py``) make the difference matrices
:math:`F_v - F_{v_0}` of :mod:`gmpll.matching.full`: as sums of half-precision matrices that are
kept where the device has room for them, else tile by tile in registers. Without the kernels the
tiles are made by PyTorch as by any other array library.

Kept matrices are rounded to their parts once; what they are made from has 22 bits, so "half" loses
less where it can keep them.
"""

import math
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from gmpll.engines.torch import ROW_SCALE, padded, split
from gmpll.matching.full_tiles import STORE_BYTES, TILE, FullAffinity

#: Half-precision numbers that a factor is the sum of.
PARTS = {"high": 2, "half": 1}
#: On CUDA tiles are kept in up to this share of the memory that is free, but in no more than this
#: where the fused kernel is there, which is about as fast and takes hardly any.
STORE_SHARE = 0.5
CUDA_STORE_BYTES = 8 * 2**30
#: Rows and columns of a tile on CUDA.
CUDA_TILE = 2**13
#: Columns of kept matrices and of probabilities come in multiples of these: tensor cores like it.
KEPT_ALIGNMENT = 128
LABEL_ALIGNMENT = 16


def tensor_affinity(
    rows: Tensor,
    mask: Tensor,
    *,
    precision: str | None = None,
    tile: int | None = None,
    store_bytes: int | None = None,
    fused: bool | None = None,
    **options: Any,
) -> FullAffinity:
    """Return the affinity of tensors: by the Triton kernels if ``fused``, as on CUDA by default."""
    if precision is None:
        precision = "high" if rows.is_cuda and rows.dtype == torch.float32 else "highest"
    if fused is None:
        fused = rows.is_cuda and precision in PARTS and find_spec("triton") is not None
    options["store_bytes"] = _store_bytes(rows, fused) if store_bytes is None else store_bytes
    options["tile"] = tile or (CUDA_TILE if rows.is_cuda else TILE)
    if not fused:
        return FullAffinity(rows.contiguous(), mask, precision=precision, **options)
    n_parts = PARTS[precision]
    return KernelAffinity(rows.contiguous(), mask, n_parts=n_parts, **options)


class KernelAffinity(FullAffinity):
    """The full graph by kernels whose factors are sums of half-precision numbers."""

    def __init__(self, rows: Tensor, mask: Tensor, *, n_parts: int, **options: Any) -> None:
        super().__init__(rows, mask, precision="high", **options)
        self._n_parts = n_parts
        entries = _aligned(len(self.unit_rows), KEPT_ALIGNMENT) ** 2
        self.stored = 2 * n_parts * len(self.levels.others) * entries <= self.store_bytes
        self._base: Tensor | None = None

    def apply(self, p: Tensor) -> Tensor:
        """Return K p."""
        if self.stored:
            product, base = self._stored_product(p), self._matrices[1]
        elif self._base is None:
            ones = self.unit_rows.new_ones(len(self.unit_rows))
            product, self._base = self._fused_product(self._halves, p, ones, same=True)
            base = self._base
        else:
            product, base = self._fused_product(self._halves, p, None, same=True)[0], self._base
        n = len(self.unit_rows)
        # Affinities are not negative; where they cancel, rounding errors are.
        return (product[:n] + base[:n, None]).clamp_(min=0.0).to(p.dtype)

    def to_queries(self, queries: Tensor, P: Tensor) -> Tensor:
        """Return the support of unseen rows by these, (n_queries, n_classes)."""
        left = self._half(queries.to(self.unit_rows), self._n_parts)
        product, base = self._fused_product(left, P, P.sum(dim=1), same=False)
        return (product + base[:, None]).clamp_(min=0.0)[: len(queries)].to(P.dtype)

    @cached_property
    def _matrices(self) -> tuple[list[list[Tensor]], Tensor]:
        """The parts of F_v - F_v0 for every level but the base, and the row sums of F_v0."""
        from gmpll.matching._triton import difference_matrix

        rows = self._half(self.unit_rows, 2)
        kept = []
        for level in self.levels.others or [self.levels.base]:
            parts, base_sums = difference_matrix(
                rows, len(self.unit_rows), self._n_parts, self._affinities(level)
            )
            kept.append(parts)
        return kept[: len(self.levels.others)], base_sums

    def _stored_product(self, P: Tensor) -> Tensor:
        n, n_classes = P.shape
        product = self.unit_rows.new_zeros((n, n_classes))
        spread = self.levels.spread(P.to(self.unit_rows.dtype))
        for kept, weights in zip(self._matrices[0], spread, strict=True):
            weights = padded(weights, kept[0].shape[1], _aligned(n_classes, LABEL_ALIGNMENT))
            found = _product_of_parts(kept, split(weights, len(kept)))
            product += found[:n, :n_classes]
        return product

    def _fused_product(
        self, left: list[Tensor], P: Tensor, base_weights: Tensor | None, *, same: bool
    ) -> tuple[Tensor, Tensor]:
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
                self._affinities(level),
                same=same,
            )
            product += found[:, :n_classes]
            if base is not None:
                base_product += base
        return product, base_product

    @cached_property
    def _halves(self) -> list[Tensor]:
        return self._half(self.unit_rows, self._n_parts)

    def _half(self, rows: Tensor, n_parts: int) -> list[Tensor]:
        from gmpll.engines.triton_products import BLOCK, feature_width

        width, _ = feature_width(rows.shape[1])
        return split(ROW_SCALE * padded(rows, _aligned(len(rows), BLOCK), width), n_parts)

    def _affinities(self, level: float) -> Any:
        """Return affinities at a level and at the base as the kernels take them."""
        from gmpll.matching._triton import Affinities

        def line(level: float) -> tuple[float, float]:
            """Over the similarity (1 + c) / 2, not over the cosine."""
            slope = (2.0 * level - 1.0) * 2.0 * self.final.steepness
            return slope, self.final.offset - 0.5 * slope

        lines = (*line(level), *line(self.levels.base))
        return Affinities(0.5 / ROW_SCALE**2, *lines, self.final.threshold)


def _store_bytes(rows: Tensor, fused: bool) -> int:
    if not rows.is_cuda:
        return STORE_BYTES
    free, _ = torch.cuda.mem_get_info(rows.device)
    # What PyTorch holds back for later use is free, too.
    held = torch.cuda.memory_reserved(rows.device) - torch.cuda.memory_allocated(rows.device)
    share = int(STORE_SHARE * (free + held))
    return min(share, CUDA_STORE_BYTES) if fused else share


def _aligned(n: int, alignment: int) -> int:
    return math.ceil(n / alignment) * alignment


def _product_of_parts(left: list[Tensor], right: list[Tensor]) -> Tensor:
    """Multiply sums of half-precision matrices; the products of rests do not matter."""
    width = right[0].shape[1]
    pieces: list[Tensor] = []
    for place, part in enumerate(left):
        factors = torch.cat(right[: len(left) - place], dim=1)
        if part.is_cuda:
            products = torch.mm(part, factors, out_dtype=torch.float32)
        else:
            products = part.float() @ factors.float()
        pieces.extend(products.split(width, dim=1))
    return sum(pieces[1:], start=pieces[0])
