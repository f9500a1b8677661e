r"""Keeping the masses of the labels in check.

The mass of a label is the sum of its probabilities over all instances. Two things correct it:

* *Balance* divides the support of a label by a power of its mass, which keeps frequent labels from
  snowballing.
* *Known class frequencies*: if label l is known to be right for a share :math:`\pi_l` of n
  instances, its mass should be :math:`n \pi_l`. After every iteration the probabilities are
  multiplied with a power of the ratio of what the mass should be to what it has become, and
  normalised again.

The first must not be weakened for the second: dividing by the mass *relative to the prior* would
cancel the correction where the masses are right, and with it what keeps frequent labels in check.
"""

from __future__ import annotations

from gmpll.arrays import Array, array_namespace, device
from gmpll.matching.affinity import Layout

__all__ = ["mass_pull", "normalise_masses"]

#: Power of the ratio: strong enough to move the masses, weak enough that a prior which is
#: somewhat wrong does no harm.
PULL = 0.3
#: Added to both masses, in instances: a label that is not expected at all stays possible.
HALF_AN_INSTANCE = 0.5


def normalise_masses(
    layout: Layout,
    support: Array,
    p: Array,
    *,
    balance: float = 0.0,
    expected_mass: Array | None = None,
) -> Array:
    """Turn support into probabilities inside every instance, with the labels' masses corrected.

    Parameters
    ----------
    layout : Layout
        Where support and probabilities stand.
    support : array
        Support of the assignments.
    p : array
        Their probabilities so far, which an instance without support keeps.
    balance : float, default=0.0
        The support of a label is divided by its mass to this power.
    expected_mass : array of shape (n_classes,), default=None
        Masses that the new ones are drawn towards.
    """
    if balance:
        mass = layout.class_mass(p)
        mass = array_namespace(mass).where(mass > 0, mass, 1.0)
        support = support / layout.per_label(mass**balance)
    new = layout.normalise(support, fallback=p)
    if expected_mass is not None:
        pull = mass_pull(layout.class_mass(new), expected_mass)
        new = layout.normalise(new * layout.per_label(pull), fallback=new)
    return new


def mass_pull(mass: Array, expected: Array) -> Array:
    """Return what the probabilities of labels are to be multiplied with, (n_classes,).

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.matching.masses import mass_pull
    >>> mass_pull(np.array([3.0, 1.0]), np.array([2.0, 2.0])).round(2)
    array([0.9 , 1.17])
    """
    xp = array_namespace(mass)
    expected = xp.asarray(expected, dtype=mass.dtype, device=device(mass))
    ratio = (xp.reshape(expected, (-1,)) + HALF_AN_INSTANCE) / (mass + HALF_AN_INSTANCE)
    return ratio**PULL
