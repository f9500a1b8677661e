"""Confidences as a quadratic problem over simplices: the projection, and one accelerated solver."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmpll._typing import Floats, Mask, Places
from gmpll.engines import engine_of
from gmpll.graph.reconstruction import reconstruction_weights


def project_on_simplex(values: Floats, mask: Mask) -> Floats:
    """Nearest non-negative rows that sum to one and are zero outside the mask."""
    inside = np.where(mask, values, -np.inf)
    # The projection does not feel a shift of the row; this one keeps the sums below exact.
    inside -= inside.max(axis=1, keepdims=True)
    falling = -np.sort(-inside, axis=1)
    # If the s largest are the positive ones, subtracting this threshold makes them sum to one.
    thresholds = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, falling.shape[1] + 1)
    n_positive = np.count_nonzero(falling > thresholds, axis=1)
    threshold = np.take_along_axis(thresholds, n_positive[:, None] - 1, axis=1)
    return np.maximum(inside - threshold, 0.0)


def deviation_from_neighbors(rows: Floats, near: Places) -> sp.csr_array:
    """Matrix I - W that turns values of the rows into deviations from their reconstruction."""
    weights = reconstruction_weights(rows, rows, near, sum_to_one=True)
    graph: Any = engine_of(rows).query_weights(near, weights, len(rows))
    return sp.eye_array(len(rows), format="csr") - graph


def confidence_step(
    deviation: sp.csr_array, mask: Mask, weight: float = 0.0, target: Any = 0.0
) -> Callable[[Floats], Floats]:
    """Return the projected gradient step of ``|A P|^2 + weight |P - target|^2``."""
    adjoint = deviation.T.tocsr()
    # diag(|A|' |A| 1) - A'A is diagonally dominant. So these curvatures, one per row, are a safe
    # step; a single one for all would be dictated by the row with most followers.
    size_of = abs(deviation)
    curvature = (size_of.T @ size_of.sum(axis=1))[:, None] + weight

    def step(confidences: Floats) -> Floats:
        half_gradient = adjoint @ (deviation @ confidences)
        half_gradient += weight * (confidences - target)
        return project_on_simplex(confidences - half_gradient / curvature, mask)

    return step


class Solution(NamedTuple):
    """Where an iteration ended."""

    point: Floats
    n_iter: int
    change: float
    converged: bool


def accelerated(
    step: Callable[[Floats], Floats], start: Floats, *, max_iter: int = 5000, tol: float = 1e-10
) -> Solution:
    """Repeat projected gradient steps, with momentum that restarts when it points uphill."""
    point = ahead = start
    momentum = 1.0
    for n_iter in range(1, max_iter + 1):
        new = step(ahead)
        change = float(np.abs(new - ahead).max())
        if change <= tol:
            return Solution(new, n_iter, change, True)
        if np.vdot(ahead - new, new - point) > 0:
            momentum, ahead = 1.0, new
        else:
            grown = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            ahead = new + (momentum - 1.0) / grown * (new - point)
            momentum = grown
        point = new
    return Solution(point, max_iter, change, False)
