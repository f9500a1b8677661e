r"""What the matching needs to know of the affinity K between assignments.

An assignment is a pair (instance, candidate label). Instead of vectors over the u assignments the
library uses (n_samples, n_classes) arrays that are zero outside the candidates: ``P`` for the
matching probabilities p, and ``apply(P)`` for K p. They are arrays of the library that the affinity
was made from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gmpll.arrays import Array, to_host

__all__ = ["Affinity", "AffinityStatistics", "Standardization", "check_label_similarity"]

#: Standardised affinities below this are rounding errors of zero: whether an instance has any
#: support must not depend on them.
ZERO_AFFINITY = 1e-10


@dataclass(frozen=True)
class AffinityStatistics:
    """Mean and population standard deviation over all u x u entries of an affinity.

    Attributes
    ----------
    n_assignments : int
        u, the number of assignments.
    mean, std : float
        Of the entries before standardisation and threshold.
    """

    n_assignments: int
    mean: float
    std: float

    @classmethod
    def from_sums(cls, n_assignments: int, total: float, squares: float) -> AffinityStatistics:
        """Make the statistics from the sum of all entries and of their squares."""
        entries = float(n_assignments) ** 2
        mean = total / entries
        variance = max(squares / entries - mean**2, 0.0)
        # The difference of two rounded sums: below their rounding errors it is zero.
        if variance <= 64 * np.finfo(np.float64).eps * squares / entries:
            variance = 0.0
        return cls(n_assignments, mean, float(np.sqrt(variance)))


@dataclass(frozen=True)
class Standardization:
    """Step 3 of Algorithm 1: standardise the affinities and drop those below ``beta``."""

    statistics: AffinityStatistics
    beta: float

    @property
    def threshold(self) -> float:
        """The smallest standardised affinity that is kept."""
        return max(self.beta, ZERO_AFFINITY)

    def __call__(self, values: Array) -> Array:
        """Standardise and threshold, in place."""
        if self.statistics.std > 0:
            values -= self.statistics.mean
            values /= self.statistics.std
        values[values < self.threshold] = 0.0
        return values


class Affinity(Protocol):
    """An affinity between assignments, known by what it does to probabilities."""

    def apply(self, P: Array) -> Array:
        """Return K p: support that every assignment gets from all others.

        ``P`` is zero outside the candidates and each of its rows sums to one. What is returned
        outside the candidates has no meaning.
        """
        ...

    def row_sums(self) -> Array:
        """Return the sum of the affinities of every assignment, zero outside the candidates."""
        ...

    def statistics(self) -> AffinityStatistics:
        """Return mean and deviation over all pairs of assignments."""
        ...


def check_label_similarity(label_similarity: Array | None, n_classes: int) -> NDArray[np.float64]:
    """Return the (n_classes, n_classes) label similarity, Eq. (2): the identity by default."""
    if label_similarity is None:
        return np.eye(n_classes)
    similarity = to_host(label_similarity).astype(np.float64)
    if similarity.shape != (n_classes, n_classes):
        raise ValueError(
            f"label_similarity has shape {similarity.shape}, but there are {n_classes} labels: "
            f"it must be ({n_classes}, {n_classes})."
        )
    if not np.isfinite(similarity).all() or similarity.min() < 0 or similarity.max() > 1:
        raise ValueError("label_similarity must have entries between 0 and 1.")
    if not np.allclose(similarity, similarity.T):
        raise ValueError("label_similarity must be symmetric.")
    if not np.allclose(similarity.diagonal(), 1.0):
        raise ValueError("label_similarity must have ones on its diagonal.")
    return similarity
