"""The full graph in one kernel: similarities are made, thresholded, multiplied and forgotten.

A program owns a block of rows. It walks over the blocks of columns and, as in flash attention,
makes the inner products of a tile, turns them into affinities in registers and multiplies these
with the probabilities of the columns. No similarity is ever written to memory, so an iteration
over m rows moves O(m (d + q)) numbers through it where a product with a stored matrix moves m^2.

Where there is room for that matrix, :func:`difference_matrix` writes it in one go.
"""

# Triton reads the signatures of kernels itself, and comes only where CUDA is.
# mypy: disable-error-code="no-untyped-def, import-not-found"

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from gmpll.engines.triton_products import (
    BLOCK,
    COLUMN_SHARES,
    LAUNCHES,
    feature_width,
    inner_products,
    loaded,
    places_of,
    run_first_that_fits,
)

#: Columns of the probabilities that a program handles.
LARGEST_LABEL_BLOCK = 128


class Affinities(NamedTuple):
    """Two standardised affinities as lines over the similarity, dropped below the threshold."""

    half_scale: float  # half the factor that turns inner products of rows into cosines
    slope: float
    shift: float
    base_slope: float
    base_shift: float
    threshold: float


@triton.jit
def _kept(similarity, slope, shift, threshold):
    affinity = similarity * slope + shift
    return tl.where(affinity >= threshold, affinity, 0.0)


@triton.jit
def _tile_affinities(cosine, rows, columns, affinities, SAME: tl.constexpr):
    half_scale, slope, shift, base_slope, base_shift, threshold = affinities
    similarity = tl.minimum(tl.maximum(cosine * half_scale + 0.5, 0.0), 1.0)
    if SAME:
        similarity = tl.where(rows[:, None] == columns[None, :], 1.0, similarity)
    base = _kept(similarity, base_slope, base_shift, threshold)
    return _kept(similarity, slope, shift, threshold) - base, base


@triton.jit
def _affinity_product_kernel(
    left_ptr,
    left_rest_ptr,
    right_ptr,
    right_rest_ptr,
    weights_ptr,
    weights_rest_ptr,
    base_weights_ptr,
    product_ptr,
    base_product_ptr,
    n_columns,
    n_features,
    n_labels,
    half_scale,
    slope,
    shift,
    base_slope,
    base_shift,
    threshold,
    PARTS: tl.constexpr,
    SAME: tl.constexpr,
    WITH_BASE: tl.constexpr,
    STEPS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    FEATURES: tl.constexpr,
    LABELS: tl.constexpr,
):
    affinities = (half_scale, slope, shift, base_slope, base_shift, threshold)
    left_parts, right_parts = (left_ptr, left_rest_ptr), (right_ptr, right_rest_ptr)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    labels = tl.program_id(1) * LABELS + tl.arange(0, LABELS)
    at = places_of(rows, n_features, FEATURES)
    left = loaded(left_parts, at, PARTS)
    product = tl.zeros((ROWS, LABELS), dtype=tl.float32)
    base_product = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(0, n_columns, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        right_at = places_of(columns, n_features, FEATURES)
        cosine = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        cosine = inner_products(
            left, left_parts, at, right_parts, right_at, cosine, PARTS, STEPS, FEATURES
        )
        difference, base = _tile_affinities(cosine, rows, columns, affinities, SAME)
        if WITH_BASE:
            base_weights = tl.load(base_weights_ptr + columns)
            base_product += tl.sum(base * base_weights[None, :], axis=1)

        weights_at = columns.to(tl.int64)[:, None] * n_labels + labels[None, :]
        weights = tl.load(weights_ptr + weights_at)
        main = difference.to(tl.float16)
        if PARTS == 1:
            product = tl.dot(main, weights, product)
        else:
            rest = (difference - main.to(tl.float32)).to(tl.float16)
            piece = tl.dot(rest, weights)
            piece = tl.dot(main, tl.load(weights_rest_ptr + weights_at), piece)
            # Tensor cores cut off what they cannot hold: over many columns that adds up to more
            # than the second parts are worth, so the long sum is made outside of them.
            product += tl.dot(main, weights, piece)

    tl.store(product_ptr + rows.to(tl.int64)[:, None] * n_labels + labels[None, :], product)
    if WITH_BASE and tl.program_id(1) == 0:
        tl.store(base_product_ptr + rows, base_product)


@triton.jit
def _difference_matrix_kernel(
    rows_ptr,
    rows_rest_ptr,
    inside_ptr,
    matrix_ptr,
    matrix_rest_ptr,
    base_ptr,
    n_rows,
    n_features,
    columns_per_program,
    half_scale,
    slope,
    shift,
    base_slope,
    base_shift,
    threshold,
    KEPT_PARTS: tl.constexpr,
    STEPS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    affinities = (half_scale, slope, shift, base_slope, base_shift, threshold)
    parts = (rows_ptr, rows_rest_ptr)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = places_of(rows, n_features, FEATURES)
    left = loaded(parts, at, 2)
    sums = tl.zeros((ROWS,), dtype=tl.float32)
    first = tl.program_id(1) * columns_per_program
    for start in range(first, min(first + columns_per_program, n_rows), COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        right_at = places_of(columns, n_features, FEATURES)
        cosine = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        cosine = inner_products(left, parts, at, parts, right_at, cosine, 2, STEPS, FEATURES)
        difference, base = _tile_affinities(cosine, rows, columns, affinities, True)
        sums += tl.sum(base * tl.load(inside_ptr + columns)[None, :], axis=1)
        place = rows.to(tl.int64)[:, None] * n_rows + columns[None, :]
        main = difference.to(tl.float16)
        tl.store(matrix_ptr + place, main)
        if KEPT_PARTS == 2:
            tl.store(matrix_rest_ptr + place, (difference - main.to(tl.float32)).to(tl.float16))
    tl.store(base_ptr + tl.program_id(1) * n_rows + rows, sums)


def label_width(n_labels: int) -> tuple[int, int]:
    """Return the padded number of labels and how many of them a program takes."""
    block = min(max(16, triton.next_power_of_2(n_labels)), LARGEST_LABEL_BLOCK)
    return triton.cdiv(n_labels, block) * block, block


def affinity_product(
    left: list[Tensor],
    right: list[Tensor],
    weights: list[Tensor],
    base_weights: Tensor | None,
    affinities: Affinities,
    *,
    same: bool,
) -> tuple[Tensor, Tensor | None]:
    """Multiply the difference of two affinities between rows with weights of the columns.

    Rows and weights are sums of one or two half-precision parts, padded with zeros to a multiple of
    ``BLOCK`` rows, ``feature_width`` and ``label_width`` columns. ``same`` rows are fully similar
    to themselves. The second product is that of the base with ``base_weights``, if there are any.
    """
    n_rows, n_features = left[0].shape
    n_labels = weights[0].shape[1]
    _, step = feature_width(n_features)
    _, label_block = label_width(n_labels)
    product = torch.empty((n_rows, n_labels), dtype=torch.float32, device=left[0].device)
    base_product = torch.empty(n_rows, dtype=torch.float32, device=left[0].device)
    of_base = (base_product if base_weights is None else base_weights, product, base_product)
    operands = (left[0], left[-1], right[0], right[-1], weights[0], weights[-1], *of_base)
    run_first_that_fits(
        "affinity",
        _affinity_product_kernel,
        (n_rows, n_labels // label_block),
        (*operands, right[0].shape[0], n_features, n_labels, *affinities),
        LAUNCHES[2],
        PARTS=len(left),
        SAME=same,
        WITH_BASE=base_weights is not None,
        STEPS=n_features // step,
        FEATURES=step,
        LABELS=label_block,
    )
    return product, None if base_weights is None else base_product


def difference_matrix(
    rows: list[Tensor], n_inside: int, n_parts: int, affinities: Affinities
) -> tuple[list[Tensor], Tensor]:
    """Make the difference of two affinities between all rows, and the row sums of the second.

    ``n_inside`` of the rows are no padding; the difference is the sum of ``n_parts`` matrices.
    """
    n_rows, n_features = rows[0].shape
    device = rows[0].device
    _, step = feature_width(n_features)
    shape = (n_rows, n_rows)
    parts = [torch.empty(shape, dtype=torch.float16, device=device) for _ in range(n_parts)]
    inside = (torch.arange(n_rows, device=device) < n_inside).float()
    share = triton.cdiv(n_rows // BLOCK, COLUMN_SHARES) * BLOCK
    n_shares = triton.cdiv(n_rows, share)
    sums = torch.empty((n_shares, n_rows), dtype=torch.float32, device=device)
    run_first_that_fits(
        "difference",
        _difference_matrix_kernel,
        (n_rows, n_shares),
        (*rows, inside, parts[0], parts[-1], sums, n_rows, n_features, share, *affinities),
        LAUNCHES[2],
        KEPT_PARTS=n_parts,
        STEPS=n_features // step,
        FEATURES=step,
    )
    return parts, sums.sum(dim=0)
