"""Inner products of all pairs of rows on the chip: what the kernels for tensors share.

Operands are half-precision numbers, or sums of two of them (:mod:`gmpll.engines.torch`), and
products are accumulated in single precision.

:func:`group_maxima` serves the exact search for nearest neighbours. The k best columns of a row
lie in the k groups of columns with the largest maxima, so it is enough to write one number per
group to memory and to look into a few groups afterwards.
"""

# Triton reads the signatures of kernels itself, and comes only where CUDA is.
# mypy: disable-error-code="no-untyped-def, import-not-found"

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime.errors import OutOfResources

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
def places_of(rows, n_features, FEATURES: tl.constexpr):
    """Where the first features of some rows lie."""
    return rows.to(tl.int64)[:, None] * n_features + tl.arange(0, FEATURES)[None, :]


@triton.jit
def loaded(parts, at, PARTS: tl.constexpr):
    """Load the two parts of some rows; a single one stands for both."""
    main = tl.load(parts[0] + at)
    rest = main
    if PARTS == 2:
        rest = tl.load(parts[1] + at)
    return main, rest


@triton.jit
def _added_products(left, right, products, PARTS: tl.constexpr):
    products = tl.dot(left[0], tl.trans(right[0]), products)
    if PARTS == 2:  # the product of the two rests is below single precision
        products = tl.dot(left[0], tl.trans(right[1]), products)
        products = tl.dot(left[1], tl.trans(right[0]), products)
    return products


@triton.jit
def inner_products(
    left,
    left_parts,
    left_at,
    right_parts,
    right_at,
    products,
    PARTS: tl.constexpr,
    STEPS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Add to zeros the inner products of rows, of which the first step is loaded, and columns."""
    if STEPS == 1:
        return _added_products(left, loaded(right_parts, right_at, PARTS), products, PARTS)
    for step in range(STEPS):
        at = step * FEATURES
        left_piece = loaded(left_parts, left_at + at, PARTS)
        right_piece = loaded(right_parts, right_at + at, PARTS)
        products = _added_products(left_piece, right_piece, products, PARTS)
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
    left_parts, right_parts = (left_ptr, left_rest_ptr), (right_ptr, right_rest_ptr)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = places_of(rows, n_features, FEATURES)
    left = loaded(left_parts, at, PARTS)
    first = tl.program_id(1) * columns_per_program
    for start in range(first, min(first + columns_per_program, n_columns), COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        right_at = places_of(columns, n_features, FEATURES)
        scores = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        scores = inner_products(
            left, left_parts, at, right_parts, right_at, scores, PARTS, STEPS, FEATURES
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


def group_maxima(left: list[Tensor], right: list[Tensor], handicap: Tensor) -> Tensor:
    """Largest inner product, less the column's handicap, of every row with a group of columns.

    Rows are sums of one or two float16 parts, padded with zeros.
    """
    n_rows, n_features = left[0].shape
    n_columns = right[0].shape[0]
    _, step = feature_width(n_features)
    n_groups = n_columns // GROUP
    maxima = torch.empty((n_rows, n_groups), dtype=torch.float32, device=left[0].device)
    share = triton.cdiv(triton.cdiv(n_columns, BLOCK), COLUMN_SHARES) * BLOCK
    operands = (left[0], left[-1], right[0], right[-1], handicap, maxima)
    run_first_that_fits(
        "maxima",
        _group_maxima_kernel,
        (n_rows, triton.cdiv(n_columns, share)),
        (*operands, n_columns, n_features, n_groups, share),
        LAUNCHES[len(left)],
        PARTS=len(left),
        STEPS=n_features // step,
        FEATURES=step,
        GROUP=GROUP,
    )
    return maxima


@triton.jit
def _group_scores_kernel(
    queries_ptr,
    rows_ptr,
    handicap_ptr,
    groups_ptr,
    scores_ptr,
    n_features,
    n_chosen,
    STEPS: tl.constexpr,
    FEATURES: tl.constexpr,
    GROUP: tl.constexpr,
):
    query = tl.program_id(0).to(tl.int64)
    for place in range(n_chosen):
        group = tl.load(groups_ptr + query * n_chosen + place)
        columns = group * GROUP + tl.arange(0, GROUP)
        products = tl.zeros((GROUP, FEATURES), dtype=rows_ptr.dtype.element_ty)
        for step in range(STEPS):
            features = step * FEATURES + tl.arange(0, FEATURES)
            inside = features < n_features
            left = tl.load(queries_ptr + query * n_features + features, mask=inside, other=0.0)
            at = columns.to(tl.int64)[:, None] * n_features + features[None, :]
            products += tl.load(rows_ptr + at, mask=inside[None, :], other=0.0) * left[None, :]
        scores = tl.sum(products, axis=1) - tl.load(handicap_ptr + columns)
        to = (query * n_chosen + place) * GROUP + tl.arange(0, GROUP)
        tl.store(scores_ptr + to, scores)


def group_scores(queries: Tensor, rows: Tensor, handicap: Tensor, groups: Tensor) -> Tensor:
    """Inner products, less the columns' handicaps, of queries with the rows of some groups each.

    In the precision of the rows, (n_queries, n_chosen * GROUP); the gathered rows are never
    written to memory.
    """
    n_queries, n_chosen = groups.shape
    n_features = rows.shape[1]
    step = min(RESIDENT_FEATURES, triton.next_power_of_2(n_features))
    scores = rows.new_empty((n_queries, n_chosen * GROUP))
    _group_scores_kernel[(n_queries,)](
        queries.contiguous(),
        rows,
        handicap,
        groups.contiguous(),
        scores,
        n_features,
        n_chosen,
        STEPS=triton.cdiv(n_features, step),
        FEATURES=step,
        GROUP=GROUP,
        num_warps=4,
    )
    return scores


def run_first_that_fits(
    name: str,
    kernel: Any,
    grid: tuple[int, int],
    arguments: tuple[Any, ...],
    launches: list[Launch],
    **constants: Any,
) -> None:
    """Launch a kernel, on a grid of rows and shares, as well as the chip allows; remember how."""
    key = (name, arguments[0].device, *constants.values())
    launches = [_working[key]] if key in _working else launches
    for launch in launches:
        try:
            kernel[(grid[0] // launch.rows, grid[1])](
                *arguments,
                **constants,
                ROWS=launch.rows,
                COLUMNS=launch.columns,
                num_warps=launch.warps,
                num_stages=launch.stages,
            )
        except OutOfResources:
            if launch is launches[-1]:
                raise
        else:
            _working[key] = launch
            return
