"""Projection of many vectors at once on the probability simplex over their candidates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["project_on_simplex"]


def project_on_simplex(
    values: NDArray[np.floating], mask: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Nearest non-negative rows that sum to one and are zero outside the mask.

    The mask has at least one place in every row; values outside do not matter.
    """
    inside = np.where(mask, values, -np.inf)
    # The projection does not feel a shift of the row; this one keeps the sums below exact.
    inside -= inside.max(axis=1, keepdims=True)
    falling = -np.sort(-inside, axis=1)
    # If the s largest are the positive ones, subtracting this threshold makes them sum to one.
    thresholds = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, falling.shape[1] + 1)
    n_positive = np.count_nonzero(falling > thresholds, axis=1)
    threshold = np.take_along_axis(thresholds, n_positive[:, None] - 1, axis=1)
    return np.maximum(inside - threshold, 0.0)
