"""Partial label learning: graph matching (GM-PLL) and the methods it is compared with."""

from gmpll.candidates import (
    CandidateSets,
    CandidateStatistics,
    VotedCandidates,
    as_candidates,
    candidates_from_votes,
)
from gmpll.disambiguation import disambiguate
from gmpll.explanation import explain
from gmpll.methods import CLPL, GMPLL, IPAL, LSBCMM, M3PL, PLECOC, PLKNN, PLLEAF, PLSVM

__version__ = "0.1.0.dev0"

__all__ = [
    "CLPL",
    "GMPLL",
    "IPAL",
    "LSBCMM",
    "M3PL",
    "PLECOC",
    "PLKNN",
    "PLLEAF",
    "PLSVM",
    "CandidateSets",
    "CandidateStatistics",
    "VotedCandidates",
    "__version__",
    "as_candidates",
    "candidates_from_votes",
    "disambiguate",
    "explain",
]
