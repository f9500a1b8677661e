"""Matrices as sums of half-precision ones, the numbers that tensor cores multiply fastest."""

from __future__ import annotations

import torch

__all__ = ["ROW_SCALE", "padded", "split"]

#: Rows are scaled to about this length, so that the second parts of their entries are no subnormal
#: numbers and their inner products stay far from overflow.
ROW_SCALE = 64.0


def split(values: torch.Tensor, n_parts: int) -> list[torch.Tensor]:
    """Write values as a sum of half-precision numbers, the largest first.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from gmpll.engines.halves import split
    >>> third = torch.tensor(1 / 3)
    >>> first, second = split(third, 2)
    >>> bool((third - first.float()).abs() < 1e-7)
    False
    >>> bool((third - first.float() - second.float()).abs() < 1e-7)
    True
    """
    parts = []
    for _ in range(n_parts):
        parts.append(values.to(torch.float16))
        values = values - parts[-1].to(values.dtype)
    return parts


def padded(values: torch.Tensor, n_rows: int, n_columns: int) -> torch.Tensor:
    """Add rows and columns of zeros.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from gmpll.engines.halves import padded
    >>> padded(torch.ones(1, 2), 2, 3)
    tensor([[1., 1., 0.],
            [0., 0., 0.]])
    """
    if values.shape == (n_rows, n_columns):
        return values
    larger = values.new_zeros((n_rows, n_columns))
    larger[: values.shape[0], : values.shape[1]] = values
    return larger
