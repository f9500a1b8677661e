"""Partial label learning: graph matching (GM-PLL) and the methods it is compared with."""

from gmpll.candidates import (
    CandidateSets,
    CandidateStatistics,
    VotedCandidates,
    as_candidates,
    candidates_from_votes,
)
from gmpll.methods.gmpll import GMPLL

__version__ = "0.1.0.dev0"

__all__ = [
    "GMPLL",
    "CandidateSets",
    "CandidateStatistics",
    "VotedCandidates",
    "__version__",
    "as_candidates",
    "candidates_from_votes",
]
