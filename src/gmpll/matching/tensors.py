r"""Affinities between assignments on PyTorch tensors, on any device.

The operators of :mod:`gmpll.matching.full` and :mod:`gmpll.matching.local` for tensors: they take
and return tensors on the device of the rows, and :func:`gmpll.matching.match` runs there.

A turn on the full graph is a product with the m x m matrices :math:`F_v - F_{v_0}` of
:mod:`gmpll.matching.full`. They are kept where the device has room for them. Where it has not, a
fused kernel makes them tile by tile in registers (on CUDA, where Triton is there, see
``gmpll/matching/_triton.py``), or tiles of them are made and dropped by PyTorch.

Precisions
----------
``"highest"``
    Everything in the precision of the rows, single or double, by PyTorch's own products (which
    ``torch.set_float32_matmul_precision`` rules). The only one off CUDA.
``"high"``
    Every factor of a product is the sum of two half-precision numbers, together 22 bits, and
    products are accumulated in single precision: about single precision, on the tensor cores.
    The default for single-precision rows on CUDA.
``"half"``
    Every factor is rounded to half precision (11 bits), products are accumulated in single
    precision. Rounded to nearest, it is no less exact than TF32, and twice as fast.

Below double precision an affinity next to the threshold may fall on its other side, where it jumps
from beta to 0: in single precision, where that happens, probabilities differ from those of double
precision by up to about 1e-3, elsewhere by about 1e-7.

Kept matrices are rounded to their parts once; what they are made from has 22 bits (or the precision
of the rows, where there is no kernel), so "half" loses less where it can keep them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

try:
    import torch
except ImportError as error:
    raise ImportError(
        "Tensors need PyTorch, which is not installed: pip install 'gmpll[torch]'."
    ) from error

from gmpll.graph._halves import ROW_SCALE, padded, split
from gmpll.matching.affinity import AffinityStatistics, Standardization, check_label_similarity

__all__ = ["TensorFullAffinity", "TensorLocalAffinity", "tensor_full_affinity"]

#: Half-precision numbers that a factor is the sum of.
PARTS = {"highest": 0, "high": 2, "half": 1}
#: Difference matrices are kept off CUDA up to this size.
STORE_BYTES = 3 * 2**29
#: On CUDA they are kept in up to this share of the memory that is free, but in no more than this
#: where the fused kernel is there, which is about as fast and takes hardly any.
STORE_SHARE = 0.5
CUDA_STORE_BYTES = 8 * 2**30
#: Size of a tile of similarities, off and on CUDA.
TILE_BYTES = 2**26
CUDA_TILE_BYTES = 2**30
#: Columns of kept matrices and of probabilities come in multiples of these: tensor cores like it.
KEPT_ALIGNMENT = 128
LABEL_ALIGNMENT = 16
#: Similarities closer to 0 or 1 than this many resolutions are 0 or 1, see `gmpll.graph.cosine`.
SNAP_RESOLUTIONS = 4.0
SNAP = 1e-12


def tensor_full_affinity(
    rows: torch.Tensor,
    mask: torch.Tensor,
    *,
    alpha: float = 0.0,
    beta: float = 0.6,
    label_similarity: Any = None,
    precision: str | None = None,
) -> TensorFullAffinity:
    """Return the paper's affinity between all pairs of assignments, on tensors.

    Parameters
    ----------
    rows : tensor of shape (n_samples, n_features)
        Instances as rows of length one (or zero), see
        :class:`gmpll.graph.tensors.TensorDirectionSpace`.
    mask : tensor of shape (n_samples, n_classes), bool
        Candidates, on the same device.
    alpha : float, default=0.0
        Must be 0: the imbalance bias of Eq. (6) is there for NumPy arrays only.
    beta : float, default=0.6
        Standardised affinities below this are dropped.
    label_similarity : array of shape (n_classes, n_classes), default=None
        Prior label similarity in [0, 1], Eq. (2); the identity by default.
    precision : {"highest", "high", "half"}, default=None
        See the module. By default high for single-precision rows on CUDA, else highest.

    Returns
    -------
    TensorFullAffinity

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from gmpll.matching import match
    >>> from gmpll.matching.tensors import tensor_full_affinity
    >>> rows = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> mask = torch.tensor([[True, False], [True, True], [False, True]])
    >>> match(tensor_full_affinity(rows, mask, beta=0.3), mask).probabilities.round(decimals=2)
    tensor([[1., 0.],
            [1., 0.],
            [0., 1.]])
    """
    if alpha != 0:
        raise ValueError(
            f"alpha={alpha} is not available for tensors: use alpha=0, or pass NumPy arrays."
        )
    return TensorFullAffinity(
        rows, mask, beta=beta, label_similarity=label_similarity, precision=precision
    )


class TensorFullAffinity:
    """All-pairs affinity by levels of the label similarity, on tensors (no imbalance bias).

    Parameters
    ----------
    rows, mask, beta, label_similarity, precision
        As in :func:`tensor_full_affinity`.
    store_bytes : int, default=None
        Memory in which the difference matrices may be kept; 0 makes them anew in every turn. By
        default ``STORE_BYTES``, on CUDA half of what is free, but not more than
        ``CUDA_STORE_BYTES`` where the fused kernel can be used.
    fused : bool, default=None
        Whether to use the Triton kernels. By default on CUDA if Triton is installed
        and the precision is not "highest", which they do not have.
    """

    def __init__(
        self,
        rows: torch.Tensor,
        mask: torch.Tensor,
        *,
        beta: float = 0.6,
        label_similarity: Any = None,
        precision: str | None = None,
        store_bytes: int | None = None,
        fused: bool | None = None,
    ) -> None:
        self.rows = rows.contiguous()
        self.mask = mask
        self.precision = _checked_precision(precision, rows)
        self.similarity = check_label_similarity(label_similarity, mask.shape[1])
        values, counts = np.unique(self.similarity, return_counts=True)
        self._base_level = float(values[np.argmax(counts)])
        self._levels = [float(v) for v in values if v != self._base_level]
        self._statistics = _statistics(self.rows, mask, self.similarity)
        self._standardize = Standardization(self._statistics, beta)
        self.fused = _fusible(rows, self.precision) if fused is None else fused
        if store_bytes is None:
            store_bytes = _store_bytes(rows, self.fused)
        self.stored = self._fits(store_bytes)
        self._kept: list[list[torch.Tensor]] = []
        self._base: torch.Tensor | None = None
        self._halves: list[torch.Tensor] = []

    def apply(self, P: torch.Tensor) -> torch.Tensor:
        """Return K p."""
        if self._base is None and not self.stored:
            ones = torch.ones(len(self.rows), dtype=self.rows.dtype, device=self.rows.device)
            product, self._base = self._product(self.rows, P, ones, same=True)
        elif self.stored:
            product = self._stored_product(P)
        else:
            product, _ = self._product(self.rows, P, None, same=True)
        assert self._base is not None
        # Affinities are not negative; where they cancel, rounding errors are.
        return (product + self._base[:, None]).clamp_(min=0.0).to(P.dtype)

    def row_sums(self) -> torch.Tensor:
        """Return the sum of the affinities of every assignment."""
        sets = self.mask.to(self.rows.dtype)
        product, base = self._product(self.rows, sets, sets.sum(dim=1), same=True)
        return torch.where(self.mask, product + base[:, None], 0.0)

    def statistics(self) -> AffinityStatistics:
        """Return mean and deviation over all pairs of assignments."""
        return self._statistics

    def to_queries(self, queries: torch.Tensor, P: torch.Tensor) -> torch.Tensor:
        """Return the support of unseen instances by these, (n_queries, n_classes).

        Parameters
        ----------
        queries : tensor of shape (n_queries, n_features)
            Unseen rows of length one or zero. They do not support each other.
        P : tensor of shape (n_samples, n_classes)
            Probabilities of the instances of this affinity.
        """
        P = P.to(self.rows.dtype)
        product, base = self._product(queries.to(self.rows), P, P.sum(dim=1), same=False)
        return (product + base[:, None]).clamp_(min=0.0)

    def _product(
        self,
        left: torch.Tensor,
        P: torch.Tensor,
        base_weights: torch.Tensor | None,
        *,
        same: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sum of (F_v - F_v0) P B_v over the levels, and F_v0 times ``base_weights``."""
        make = self._fused_product if self.fused else self._tiled_product
        spread = [self._spread(P.to(self.rows.dtype), level) for level in self._levels]
        return make(left, spread, base_weights, same)

    def _spread(self, P: torch.Tensor, level: float) -> torch.Tensor:
        """Return P B_v: the probabilities of the labels at that level to each label."""
        at_level = self.similarity == level
        if np.array_equal(at_level, np.eye(len(at_level), dtype=bool)):
            return P
        return P @ torch.from_numpy(at_level).to(P)

    # Tiles made by PyTorch

    def _tiled_product(
        self,
        left: torch.Tensor,
        spread: list[torch.Tensor],
        base_weights: torch.Tensor | None,
        same: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        product = left.new_zeros((len(left), self.mask.shape[1]))
        base_product = left.new_zeros(len(left))
        for block, base, differences in self._tiles(left, same):
            for difference, weights in zip(differences, spread, strict=True):
                product[block] += difference @ weights
            if base_weights is not None:
                base_product[block] = base @ base_weights
        return product, base_product

    def _tiles(
        self, left: torch.Tensor, same: bool
    ) -> Iterator[tuple[slice, torch.Tensor, Iterator[torch.Tensor]]]:
        """Rows of F_v0, and of F_v - F_v0 for every other level v."""
        n_bytes = CUDA_TILE_BYTES if left.is_cuda else TILE_BYTES
        height = max(1, n_bytes // (left.element_size() * max(len(self.rows), 1)))
        for start in range(0, len(left), height):
            block = slice(start, min(start + height, len(left)))
            similarity = _similarities(left[block], self.rows, start if same else None)
            base = self._at_level(similarity, self._base_level)
            yield block, base, self._differences(similarity, base)

    def _differences(self, similarity: torch.Tensor, base: torch.Tensor) -> Iterator[torch.Tensor]:
        for level in self._levels:
            yield self._at_level(similarity, level).sub_(base)

    def _at_level(self, similarity: torch.Tensor, level: float) -> torch.Tensor:
        # v A + (1 - v)(1 - A) = (1 - v) + (2 v - 1) A
        values = similarity * (2.0 * level - 1.0)
        values += 1.0 - level
        return self._standardize(values)

    # Matrices that are kept

    def _fits(self, store_bytes: int) -> bool:
        n_parts = PARTS[self.precision]
        entry = 2 * n_parts if n_parts else self.rows.element_size()
        return (
            len(self._levels) * _aligned(len(self.rows), KEPT_ALIGNMENT) ** 2 * entry <= store_bytes
        )

    def _stored_product(self, P: torch.Tensor) -> torch.Tensor:
        if self._base is None:
            make = self._make_differences if self.fused else self._keep_tiles
            self._kept, self._base = make()
        n, n_classes = P.shape
        product = self.rows.new_zeros((n, n_classes))
        for kept, level in zip(self._kept, self._levels, strict=True):
            weights = padded(
                self._spread(P.to(self.rows.dtype), level),
                kept[0].shape[1],
                _aligned(n_classes, LABEL_ALIGNMENT),
            )
            if PARTS[self.precision]:
                found = _product_of_parts(kept, split(weights, len(kept)))
            else:
                found = kept[0] @ weights
            product += found[:n, :n_classes]
        return product

    def _keep_tiles(self) -> tuple[list[list[torch.Tensor]], torch.Tensor]:
        """Fill the difference matrices tile by tile; return their parts and the base sums."""
        n = len(self.rows)
        n_parts = PARTS[self.precision]
        dtype = torch.float16 if n_parts else self.rows.dtype
        shape = (n, _aligned(n, KEPT_ALIGNMENT))
        kept = [
            [
                torch.zeros(shape, dtype=dtype, device=self.rows.device)
                for _ in range(max(n_parts, 1))
            ]
            for _ in self._levels
        ]
        base_sums = self.rows.new_zeros(n)
        for block, base, differences in self._tiles(self.rows, same=True):
            base_sums[block] = base.sum(dim=1)
            for parts, difference in zip(kept, differences, strict=True):
                pieces = split(difference, n_parts) if n_parts else [difference]
                for part, piece in zip(parts, pieces, strict=True):
                    part[block, :n] = piece
        return kept, base_sums

    # The Triton kernels

    def _make_differences(self) -> tuple[list[list[torch.Tensor]], torch.Tensor]:
        """Return the parts of the difference matrices and the base sums, made by the kernel."""
        from gmpll.matching._triton import difference_matrix

        rows = self._half(self.rows, 2)
        kept = []
        for level in self._levels or [self._base_level]:
            parts, base_sums = difference_matrix(
                rows,
                len(self.rows),
                PARTS[self.precision],
                line=self._line(level),
                base_line=self._line(self._base_level),
                threshold=self._standardize.threshold,
                half_scale=0.5 / ROW_SCALE**2,
            )
            kept.append(parts)
        return kept[: len(self._levels)], base_sums[: len(self.rows)]

    def _fused_product(
        self,
        left: torch.Tensor,
        spread: list[torch.Tensor],
        base_weights: torch.Tensor | None,
        same: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        from gmpll.matching._triton import affinity_product, label_width

        right = self._half_rows()
        width, _ = label_width(self.mask.shape[1])
        if base_weights is not None:
            base_weights = padded(base_weights[:, None].float(), len(right[0]), 1)[:, 0]
        product = left.new_zeros((len(left), self.mask.shape[1]))
        base_product = left.new_zeros(len(left))
        # Without another level (a single label) the kernel is run for the base alone.
        levels = self._levels or [self._base_level]
        spread = spread or [left.new_zeros((len(self.rows), self.mask.shape[1]))]
        for number, (level, weights) in enumerate(zip(levels, spread, strict=True)):
            found, base = affinity_product(
                right if same else self._half(left, PARTS[self.precision]),
                right,
                split(padded(weights, len(right[0]), width), PARTS[self.precision]),
                base_weights if number == 0 else None,
                line=self._line(level),
                base_line=self._line(self._base_level),
                threshold=self._standardize.threshold,
                half_scale=0.5 / ROW_SCALE**2,
                same=same,
            )
            product += found[: len(left), : product.shape[1]]
            if base is not None:
                base_product += base[: len(left)]
        return product, base_product

    def _half_rows(self) -> list[torch.Tensor]:
        if not self._halves:
            self._halves = self._half(self.rows, PARTS[self.precision])
        return self._halves

    def _half(self, rows: torch.Tensor, n_parts: int) -> list[torch.Tensor]:
        from gmpll.matching._triton import BLOCK, feature_width

        width, _ = feature_width(rows.shape[1])
        return split(ROW_SCALE * padded(rows, _aligned(len(rows), BLOCK), width), n_parts)

    def _line(self, level: float) -> Any:
        """Return the standardised affinity at a level as a line over the similarity."""
        from gmpll.matching._triton import AffinityLine

        slope, shift = 2.0 * level - 1.0, 1.0 - level
        if self._statistics.std > 0:
            slope /= self._statistics.std
            shift = (shift - self._statistics.mean) / self._statistics.std
        return AffinityLine(slope, shift)


class TensorLocalAffinity:
    r"""``K_ab = A2_ll' W_ij`` on tensors: a neighbour's equal (or similar) label is support.

    Parameters
    ----------
    weights : sparse CSR tensor of shape (n_samples, n_samples)
        Symmetric weights, see :class:`gmpll.graph.tensors.TensorLocalGraph`.
    mask : tensor of shape (n_samples, n_classes), bool
        Candidates.
    label_similarity : array of shape (n_classes, n_classes), default=None
        The identity by default.
    """

    def __init__(
        self, weights: torch.Tensor, mask: torch.Tensor, label_similarity: Any = None
    ) -> None:
        self.weights = weights
        self.mask = mask
        self.similarity: torch.Tensor | None = None
        if label_similarity is not None:
            checked = check_label_similarity(label_similarity, mask.shape[1])
            self.similarity = torch.from_numpy(checked).to(weights.values())

    def apply(self, P: torch.Tensor) -> torch.Tensor:
        """Return K p."""
        support = (self.weights @ P.to(self.weights.dtype)).to(P.dtype)
        return support if self.similarity is None else support @ self.similarity.to(P.dtype)

    def row_sums(self) -> torch.Tensor:
        """Return the sum of the affinities of every assignment."""
        return torch.where(self.mask, self.apply(self.mask.to(self.weights.dtype)), 0.0)

    def statistics(self) -> AffinityStatistics:
        """Return mean and deviation over all pairs of assignments."""
        sets = self.mask.to(self.weights.dtype)
        squares = _csr_like(self.weights, self.weights.values().square()) @ sets
        if self.similarity is not None:
            squares = squares @ self.similarity.square()
        return AffinityStatistics.from_sums(
            int(self.mask.sum()),
            float(self.row_sums().sum(dtype=_widest(sets))),
            float((squares * sets).sum(dtype=_widest(sets))),
        )


def _checked_precision(precision: str | None, rows: torch.Tensor) -> str:
    if precision is None:
        return "high" if rows.is_cuda and rows.dtype == torch.float32 else "highest"
    if precision not in PARTS:
        raise ValueError(f"precision={precision!r} is unknown: choose one of {', '.join(PARTS)}.")
    return precision


def _fusible(rows: torch.Tensor, precision: str) -> bool:
    return rows.is_cuda and PARTS[precision] > 0 and find_spec("triton") is not None


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


def _similarities(left: torch.Tensor, right: torch.Tensor, diagonal: int | None) -> torch.Tensor:
    """Similarity in [0, 1] of unit rows; ``diagonal`` is the place of left's first row in right."""
    tile = left @ right.T
    tile.add_(1.0).mul_(0.5)
    snap = max(SNAP, SNAP_RESOLUTIONS * torch.finfo(tile.dtype).eps)
    tile.masked_fill_(tile < snap, 0.0)
    tile.masked_fill_(tile > 1.0 - snap, 1.0)
    if diagonal is not None:
        tile.diagonal(diagonal).fill_(1.0)
    return tile


def _widest(values: torch.Tensor) -> torch.dtype:
    """Double precision where the device has it."""
    return values.dtype if values.device.type == "mps" else torch.float64


def _statistics(
    rows: torch.Tensor, mask: torch.Tensor, similarity: np.ndarray
) -> AffinityStatistics:
    r"""Mean and deviation of K over all pairs of assignments, in O(m d^2) instead of O(m^2 d).

    With c the cosine and v the label similarity, :math:`K - 1/2 = (2v - 1) c / 2`. Sums of c over
    groups of pairs are inner products of sums of rows, and sums of :math:`c^2` those of sums of
    outer products :math:`x_i x_i^\top`. Where labels are only equal or different,
    :math:`(2v - 1)^2 = 1`, and one such sum is enough.
    """
    wide = rows.to(_widest(rows))
    sets = mask.to(wide)
    signs = torch.from_numpy(2.0 * similarity - 1.0).to(wide)
    by_label = sets.T @ wide
    total = 0.5 * float((signs * (by_label @ by_label.T)).sum())
    squares = 0.0
    for strength, weights in _square_terms(sets, signs):
        moment = (wide * weights[:, None]).T @ wide
        squares += 0.25 * strength * float(moment.square().sum())
    # A zero row is fully similar to itself although its inner product is not one.
    without = sets[~wide.any(dim=1)]
    if len(without):
        total += 0.5 * float(((without @ signs) * without).sum())
        squares += 0.25 * float(((without @ signs.square()) * without).sum())
    n_assignments = int(mask.sum())
    return _around_one_half(n_assignments, total, squares)


def _square_terms(sets: torch.Tensor, signs: torch.Tensor) -> Iterator[tuple[float, torch.Tensor]]:
    """Factors of the sum of squares: signs^2 as a sum of outer products."""
    squared = signs.square()
    if bool((squared == 1.0).all()):
        yield 1.0, sets.sum(dim=1)
        return
    strengths, vectors = torch.linalg.eigh(squared)
    for strength, vector in zip(strengths.tolist(), vectors.T, strict=True):
        yield strength, sets @ vector


def _around_one_half(n_assignments: int, total: float, squares: float) -> AffinityStatistics:
    """Make statistics of K from the sums of K - 1/2 and of its square."""
    shifted = AffinityStatistics.from_sums(n_assignments, total, squares)
    return AffinityStatistics(n_assignments, shifted.mean + 0.5, shifted.std)


def _csr_like(matrix: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return torch.sparse_csr_tensor(
        matrix.crow_indices(),
        matrix.col_indices(),
        values,
        size=matrix.shape,
        check_invariants=False,
    )
