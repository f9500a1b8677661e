r"""Minimising a smooth function by L-BFGS, of several problems at once, where their arrays live.

SciPy's L-BFGS-B moves the numbers to the host, in whose memory it then walks on one core; for the
30,000 numbers of a stacker of 170 labels this takes longer than the function on a device. Here the
approximate inverse of the Hessian is applied in its compact form [1]_: one product with the last
steps S and changes of the gradient Y, a few small matrices on the host, and one product back.

References
----------
.. [1] R. H. Byrd, J. Nocedal and R. B. Schnabel, "Representations of quasi-Newton matrices and
   their use in limited memory methods", Mathematical Programming 63, 1994.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gmpll.arrays import Array, array_namespace, beside, to_host

__all__ = ["minimised"]

#: Steps that are remembered, and halvings of one.
MEMORY = 10
HALVINGS = 20
#: The part of the promised decrease that a step must bring, and the curvature, relative to the
#: lengths of a step and of the change of the gradient, below which it teaches nothing.
SUFFICIENT = 1e-4
FLAT = 1e-12
#: The walk ends with a step that gains less than this, relative to the value, or where no number's
#: slope is larger.
GAIN = 1e-8
SLOPE = 1e-5


def minimised(
    function: Callable[[Array], tuple[Array, Array]], start: Array, *, max_iter: int
) -> Array:
    """Return where a function is smallest, (..., n_numbers) for each of the problems.

    It returns the values, (...), and the gradients, (..., n_numbers).

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.evidence.lbfgs import minimised
    >>> centres = np.array([[1.0, 2.0], [3.0, -1.0]])
    >>> def function(x):
    ...     return 0.5 * ((x - centres) ** 2).sum(axis=-1), x - centres
    >>> minimised(function, np.zeros((2, 2)), max_iter=20).round(6)
    array([[ 1.,  2.],
           [ 3., -1.]])
    """
    xp, x = array_namespace(start), start
    there, slope = function(x)
    value = to_host(there)
    steps: list[Array] = []
    changes: list[Array] = []
    moves = np.ones(x.shape[:-1], dtype=bool)
    for _ in range(max_iter):
        direction = -_quasi_newton(steps, changes, slope)
        promised = to_host(xp.linalg.vecdot(direction, slope))
        length = np.where(moves, 1.0, 0.0)
        if not steps:
            length = length / np.maximum(to_host(xp.sum(xp.abs(slope), axis=-1)), 1.0)
        for _ in range(HALVINGS):
            new = x + beside(length[..., None], x) * direction
            there, new_slope = function(new)
            new_value = to_host(there)
            short = moves & ~(new_value <= value + SUFFICIENT * length * promised)
            if not short.any():
                break
            length = np.where(short, length / 2.0, length)
        else:  # a problem that no step makes smaller stays where it is
            new = x + beside(np.where(short, 0.0, length)[..., None], x) * direction
            there, new_slope = function(new)
            new_value = to_host(there)
        largest = np.maximum(np.maximum(abs(value), abs(new_value)), 1.0)
        moves = moves & (value - new_value > GAIN * largest)
        steps, changes = (
            [*steps[1 - MEMORY :], new - x],
            [*changes[1 - MEMORY :], new_slope - slope],
        )
        x, value, slope = new, new_value, new_slope
        moves = moves & (to_host(xp.max(xp.abs(slope), axis=-1)) > SLOPE)
        if not moves.any():
            break
    return x


def _quasi_newton(steps: list[Array], changes: list[Array], slope: Array) -> Array:
    """Return the slope times the approximate inverse of the Hessian."""
    if not steps:
        return slope
    xp, k = array_namespace(slope), len(steps)
    known = xp.stack([*steps, *changes], axis=-2)
    with_slope = xp.concat([known, slope[..., None, :]], axis=-2)
    products = to_host(known @ (with_slope.mT if with_slope.ndim > 2 else with_slope.T))
    SY, YY = products[..., :k, k : 2 * k], products[..., k:, k : 2 * k]
    SS = products[..., :k, :k]
    p, r = products[..., :k, -1:], products[..., k:, -1:]
    curvature, lengths = (np.diagonal(each, axis1=-2, axis2=-1) for each in (SY, SS))
    squares = np.diagonal(YY, axis1=-2, axis2=-1)
    tells = curvature > FLAT * np.sqrt(lengths * squares)  # others are left out
    both = tells[..., :, None] & tells[..., None, :]
    R = np.where(both, np.triu(SY), np.eye(k))
    D = np.where(tells, curvature, 0.0)[..., None]
    p, r = (np.where(tells[..., None], each, 0.0) for each in (p, r))
    scale = np.where(tells, curvature / np.where(tells, squares, 1.0), 1.0)[..., -1:, None]
    u = np.linalg.solve(R, p)
    of_steps = np.linalg.solve(
        np.swapaxes(R, -2, -1), D * u + scale * (np.where(both, YY, 0.0) @ u - r)
    )
    factors = np.concatenate([of_steps, -scale * u], axis=-2)[..., 0]
    tells = np.concatenate([tells, tells], axis=-1)
    factors = beside(np.where(tells, factors, 0.0), slope)
    return beside(scale[..., 0], slope) * slope + _times(factors, known)


def _times(factors: Array, rows: Any) -> Array:
    """Return the sum of rows times their factors."""
    return (factors[..., None, :] @ rows)[..., 0, :]
