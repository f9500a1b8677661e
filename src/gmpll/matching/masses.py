r"""Keeping the masses of the labels in check.

The mass of a label is the sum of its probabilities over all instances. Two things correct it:

* *Balance* divides the support of a label by a power of its mass, which keeps frequent labels from
  snowballing.
* *Capacities*: if label l is known to be right for a share :math:`\pi_l` of n instances, its mass
  is to be :math:`n \pi_l`. In every iteration labels are scaled to these masses and instances to
  sum to one, in turn (Sinkhorn steps). It is the many-to-one constraint of the paper with the ones
  counted, and takes the place of the balance.

All steps together multiply every label by one number and divide every instance by another, and
each of these numbers follows from products of the probabilities before the steps with vectors:
they are rewritten only once.
"""

from contextlib import nullcontext
from typing import Any

import numpy as np

from gmpll._threads import one_blas_thread
from gmpll.arrays import Array, array_namespace, device
from gmpll.matching.affinity import DenseLayout

#: Sinkhorn steps in an iteration.
N_STEPS = 5
#: Added to both masses, in instances: a label that is not expected at all stays possible.
HALF_AN_INSTANCE = 0.5
#: Added to the sums of instances, for those that have no probabilities at all: less than rounding.
TINY = 2.0**-126


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
    return new if expected_mass is None else _drawn(layout, new, expected_mass)


def _drawn(layout: DenseLayout, p: Array, expected_mass: Array) -> Array:
    """Draw the masses of probabilities towards those that are expected."""
    mass = layout.class_mass(p)
    xp = array_namespace(mass)
    wanted = xp.asarray(expected_mass, dtype=mass.dtype, device=device(mass)) + HALF_AN_INSTANCE
    wanted = xp.reshape(wanted, (-1,)) if mass.ndim == 1 else wanted
    fixed = layout.fixed_mass(p) + HALF_AN_INSTANCE
    matrix = layout.matrix(p)
    by_label = matrix.T if matrix.ndim == 2 else matrix.mT
    with one_blas_thread() if isinstance(matrix, np.ndarray) else nullcontext():
        factor = wanted / (mass + HALF_AN_INSTANCE)  # of every label
        total = _times(matrix, factor) + TINY  # of every instance
        for _ in range(N_STEPS - 1):
            # The mass is factor * (by_label @ (1 / total)); the next factor is this one times
            # wanted / (mass + fixed).
            factor = wanted / (_times(by_label, 1.0 / total) + fixed / factor)
            total = _times(matrix, factor) + TINY
    new = p * layout.per_label(factor)
    new /= layout.per_instance(total)
    return new


def _times(matrix: Any, vector: Array) -> Array:
    """Return the product of a matrix and a vector, or those of several."""
    return matrix @ vector if vector.ndim == 1 else (matrix @ vector[..., None])[..., 0]
