"""Matrices as sums of half-precision ones, the numbers that tensor cores multiply fastest."""

from __future__ import annotations

import torch

__all__ = ["ROW_SCALE", "padded", "split"]

#: Rows are scaled to about this length, so that the second parts of their entries are no subnormal
#: numbers and their inner products stay far from overflow.
ROW_SCALE = 64.0


def split(values: torch.Tensor, n_parts: int) -> list[torch.Tensor]:
    """Write values as a sum of half-precision numbers, the largest first."""
    parts = []
    for _ in range(n_parts):
        parts.append(values.to(torch.float16))
        values = values - parts[-1].to(values.dtype)
    return parts


def padded(values: torch.Tensor, n_rows: int, n_columns: int) -> torch.Tensor:
    """Add rows and columns of zeros."""
    if values.shape == (n_rows, n_columns):
        return values
    larger = values.new_zeros((n_rows, n_columns))
    larger[: values.shape[0], : values.shape[1]] = values
    return larger
