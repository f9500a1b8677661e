r"""Keeping the masses of the labels in check.

The mass of a label is the sum of its probabilities over all instances. Two things correct it:

* *Balance* divides the support of a label by a power of its mass, which keeps frequent labels from
  snowballing.
* *Capacities*: if label l is known to be right for a share :math:`\pi_l` of n instances, its mass
  is to be :math:`n \pi_l`. In every iteration labels are scaled to these masses and instances to
  sum to one, in turn (Sinkhorn steps). It is the many-to-one constraint of the paper with the ones
  counted, and takes the place of the balance.
"""

from gmpll.arrays import Array, array_namespace, device
from gmpll.matching.affinity import DenseLayout

#: Sinkhorn steps in an iteration.
N_STEPS = 5
#: Added to both masses, in instances: a label that is not expected at all stays possible.
HALF_AN_INSTANCE = 0.5


def normalise_masses(
    layout: DenseLayout,
    support: Array,
    p: Array,
    *,
    balance: float = 0.0,
    expected_mass: Array | None = None,
) -> Array:
    """Turn support into probabilities inside every instance, with the labels' masses corrected.

    ``p`` are the probabilities so far, which an instance without support keeps.
    """
    if balance and expected_mass is None:
        mass = layout.class_mass(p)
        mass = array_namespace(mass).where(mass > 0, mass, 1.0)
        support = support / layout.per_label(mass**balance)
    new = layout.normalise(support, fallback=p)
    if expected_mass is None:
        return new
    for _ in range(N_STEPS):
        mass = layout.class_mass(new)
        xp = array_namespace(mass)
        wanted = xp.reshape(xp.asarray(expected_mass, dtype=mass.dtype, device=device(mass)), (-1,))
        scale = (wanted + HALF_AN_INSTANCE) / (mass + HALF_AN_INSTANCE)
        new = layout.normalise(new * layout.per_label(scale), fallback=new)
    return new
