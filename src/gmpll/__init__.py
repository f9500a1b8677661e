"""Partial label learning: graph matching (GM-PLL) and the methods it is compared with."""

from gmpll.calibration import CalibratedPartialClassifier
from gmpll.candidates import (
    CandidateSets,
    CandidateStatistics,
    VotedCandidates,
    as_candidates,
    candidates_from_votes,
)
from gmpll.conformal import ConformalPartialClassifier
from gmpll.disambiguation import disambiguate
from gmpll.explanation import explain
from gmpll.learner import ConfidenceClassifier
from gmpll.methods import CLPL, GMPLL, IPAL, LSBCMM, M3PL, PLECOC, PLKNN, PLLEAF, PLSVM
from gmpll.rejection import RejectingClassifier

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
    "CalibratedPartialClassifier",
    "CandidateSets",
    "CandidateStatistics",
    "ConfidenceClassifier",
    "ConformalPartialClassifier",
    "RejectingClassifier",
    "VotedCandidates",
    "__version__",
    "as_candidates",
    "candidates_from_votes",
    "disambiguate",
    "explain",
]
