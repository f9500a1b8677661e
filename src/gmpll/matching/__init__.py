"""Graph matching between instances and labels.

The affinity between assignments is an *operator*: it can be applied to matching probabilities, but
the u x u matrix of the paper is never built. Everything here runs on NumPy arrays, PyTorch tensors
on any device, and Dask arrays.
"""

from gmpll.matching.affinity import (
    Affinity,
    AffinityStatistics,
    DenseLayout,
    Standardization,
)
from gmpll.matching.assignments import AssignmentAffinity
from gmpll.matching.full import FullAffinity, full_affinity
from gmpll.matching.local import LocalAffinity
from gmpll.matching.loop import Matching, match, support_of, uniform_start

__all__ = [
    "Affinity",
    "AffinityStatistics",
    "AssignmentAffinity",
    "DenseLayout",
    "FullAffinity",
    "LocalAffinity",
    "Matching",
    "Standardization",
    "full_affinity",
    "match",
    "support_of",
    "uniform_start",
]
