r"""Drawing the masses of the labels towards known class frequencies.

The mass of a label is the sum of its probabilities over all instances. If label l is known to be
right for a share :math:`\pi_l` of n instances, its mass should be :math:`n \pi_l`. After every turn
the probabilities are multiplied with a power of the ratio of what the mass should be to what it
has become, and normalised again.

The class-mass correction of :func:`gmpll.matching.match` must not be weakened for it: dividing by
the mass *relative to the prior* would cancel the correction where the masses are right, and with
it what keeps frequent labels from snowballing.
"""

from __future__ import annotations

from gmpll.arrays import Array

__all__ = ["mass_pull"]

#: Power of the ratio: strong enough to move the masses, weak enough that a prior which is
#: somewhat wrong does no harm.
PULL = 0.3
#: Added to both masses, in instances: a label that is not expected at all stays possible.
HALF_AN_INSTANCE = 0.5


def mass_pull(mass: Array, expected: Array) -> Array:
    """Return what probabilities are to be multiplied with.

    Parameters
    ----------
    mass : array
        Mass of labels after a turn.
    expected : array
        Their known masses, of a shape that goes with it.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.matching.masses import mass_pull
    >>> mass_pull(np.array([3.0, 1.0]), np.array([2.0, 2.0])).round(2)
    array([0.9 , 1.17])
    """
    return ((expected + HALF_AN_INSTANCE) / (mass + HALF_AN_INSTANCE)) ** PULL
