"""Inner products of all pairs of rows on the chip: what the kernels for tensors share.

Operands are half-precision numbers, or sums of two of them (:mod:`gmpll.engines.halves`), and
products are accumulated in single precision.

:func:`group_maxima` serves the exact search for nearest neighbours. The k best columns of a row
lie in the k groups of columns with the largest maxima, so it is enough to write one number per
group to memory and to look into a few groups afterwards.
"""

# Triton reads the signatures of kernels itself, and comes only where CUDA is.
# mypy: disable-error-code="no-untyped-def, import-not-found"

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources

__all__ = ["BLOCK", "GROUP", "Launch", "feature_width", "group_maxima", "run_first_that_fits"]

#: Operands are padded to multiples of this many rows, so that no tile needs a border.
BLOCK = 128
#: Columns of a group.
GROUP = 32
#: Rows of up to this many features stay on the chip for all columns.
RESIDENT_FEATURES = 128
#: Features of a step through longer rows.
FEATURE_STEP = 64
#: Programs that share the columns of a block of rows.
COLUMN_SHARES = 8


class Launch(NamedTuple):
    """How the work is cut for a chip."""

    rows: int
    columns: int
    warps: int
    stages: int


#: Tried in this order, by the number of parts; a chip with less shared memory takes a later one.
LAUNCHES = {
    1: [Launch(128, 128, 8, 2), Launch(128, 64, 8, 2), Launch(64, 32, 4, 1)],
    2: [Launch(128, 64, 8, 3), Launch(128, 64, 8, 2), Launch(64, 32, 4, 1)],
}
#: The first that worked, by what decides over its needs.
_working: dict[tuple[Any, ...], Launch] = {}


@triton.jit
def _added_products(left, left_rest, right, right_rest, products, PARTS: tl.constexpr):
    products = tl.dot(left, tl.trans(right), products)
    if PARTS == 2:  # the product of the two rests is below single precision
        products = tl.dot(left, tl.trans(right_rest), products)
        products = tl.dot(left_rest, tl.trans(right), products)
    return products


@triton.jit
def inner_products(
    left,
    left_rest,
    left_at,
    left_rest_at,
    right_at,
    right_rest_at,
    PARTS: tl.constexpr,
    STEPS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Inner products of a block of rows, of which the first step is loaded, with columns."""
    products = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    if STEPS == 1:
        right = tl.load(right_at)
        right_rest = right
        if PARTS == 2:
            right_rest = tl.load(right_rest_at)
        products = _added_products(left, left_rest, right, right_rest, products, PARTS)
    else:
        for step in range(STEPS):
            left_piece = tl.load(left_at + step * FEATURES)
            right_piece = tl.load(right_at + step * FEATURES)
            left_piece_rest = left_piece
            right_piece_rest = right_piece
            if PARTS == 2:
                left_piece_rest = tl.load(left_rest_at + step * FEATURES)
                right_piece_rest = tl.load(right_rest_at + step * FEATURES)
            products = _added_products(
                left_piece, left_piece_rest, right_piece, right_piece_rest, products, PARTS
            )
    return products


@triton.jit
def _group_maxima_kernel(
    left_ptr,
    left_rest_ptr,
    right_ptr,
    right_rest_ptr,
    handicap_ptr,
    maxima_ptr,
    n_columns,
    n_features,
    n_groups,
    columns_per_program,
    PARTS: tl.constexpr,
    STEPS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    FEATURES: tl.constexpr,
    GROUP: tl.constexpr,
):
    GROUPS: tl.constexpr = COLUMNS // GROUP
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    features = tl.arange(0, FEATURES)
    at = rows.to(tl.int64)[:, None] * n_features + features[None, :]
    left = tl.load(left_ptr + at)
    left_rest = left
    if PARTS == 2:
        left_rest = tl.load(left_rest_ptr + at)
    first = tl.program_id(1) * columns_per_program
    for start in range(first, min(first + columns_per_program, n_columns), COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        right_at = columns.to(tl.int64)[:, None] * n_features + features[None, :]
        scores = inner_products(
            left,
            left_rest,
            left_ptr + at,
            left_rest_ptr + at,
            right_ptr + right_at,
            right_rest_ptr + right_at,
            PARTS,
            STEPS,
            ROWS,
            COLUMNS,
            FEATURES,
        )
        scores -= tl.load(handicap_ptr + columns)[None, :]
        maxima = tl.max(tl.reshape(scores, (ROWS, GROUPS, GROUP)), axis=2)
        groups = start // GROUP + tl.arange(0, GROUPS)
        tl.store(maxima_ptr + rows.to(tl.int64)[:, None] * n_groups + groups[None, :], maxima)


def feature_width(n_features: int) -> tuple[int, int]:
    """Return the padded number of features and how many of them a step takes."""
    if n_features <= RESIDENT_FEATURES:
        width = max(16, triton.next_power_of_2(n_features))
        return width, width
    return triton.cdiv(n_features, FEATURE_STEP) * FEATURE_STEP, FEATURE_STEP


def group_maxima(
    left: list[torch.Tensor],
    right: list[torch.Tensor],
    handicap: torch.Tensor,
    launch: Launch | None = None,
) -> torch.Tensor:
    """Largest inner product, less the column's handicap, of every row with a group of columns.

    Parameters
    ----------
    left, right : lists of float16 tensors of shape (multiple of BLOCK, feature_width)
        One or two parts whose sum are the rows; zero where padded.
    handicap : float32 tensor of shape (len(right),)
        What is subtracted from the products with a column.
    launch : Launch, default=None
        How to cut the work; chosen by default.

    Returns
    -------
    float32 tensor of shape (len(left), len(right) // GROUP)
    """
    n_rows, n_features = left[0].shape
    n_columns = right[0].shape[0]
    _, step = feature_width(n_features)
    shape = (n_rows, n_columns // GROUP)
    maxima = torch.empty(shape, dtype=torch.float32, device=left[0].device)
    share = triton.cdiv(triton.cdiv(n_columns, BLOCK), COLUMN_SHARES) * BLOCK

    def run(chosen: Launch) -> None:
        _group_maxima_kernel[(n_rows // chosen.rows, triton.cdiv(n_columns, share))](
            left[0],
            left[-1],
            right[0],
            right[-1],
            handicap,
            maxima,
            n_columns,
            n_features,
            shape[1],
            share,
            PARTS=len(left),
            STEPS=n_features // step,
            ROWS=chosen.rows,
            COLUMNS=chosen.columns,
            FEATURES=step,
            GROUP=GROUP,
            num_warps=chosen.warps,
            num_stages=chosen.stages,
        )

    if launch is None:
        run_first_that_fits(
            run, LAUNCHES[len(left)], ("maxima", left[0].device, len(left), n_features)
        )
    else:
        run(launch)
    return maxima


def run_first_that_fits(
    run: Callable[[Launch], None], launches: list[Launch], key: tuple[Any, ...]
) -> None:
    """Launch a kernel as well as the chip allows, and remember how."""
    if key in _working:
        run(_working[key])
        return
    for launch in launches:
        try:
            run(launch)
        except OutOfResources:
            if launch is launches[-1]:
                raise
        else:
            _working[key] = launch
            return
