"""Partial label learning: graph matching (GM-PLL) and the methods it is compared with."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gmpll.apps.tables import disambiguate
    from gmpll.candidates import (
        CandidateSets,
        CandidateStatistics,
        VotedCandidates,
        as_candidates,
        candidates_from_votes,
    )
    from gmpll.explanation import explain
    from gmpll.label_names import label_variants, merge_labels, rename_labels
    from gmpll.methods import (
        CLPL,
        GMPLL,
        IPAL,
        LSBCMM,
        M3PL,
        PLECOC,
        PLKNN,
        PLLEAF,
        PLSVM,
        PartialLabelClassifier,
    )
    from gmpll.uncertainty.calibration import CalibratedPartialClassifier
    from gmpll.uncertainty.conformal import ConformalPartialClassifier
    from gmpll.uncertainty.rejection import RejectingClassifier

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
    "ConformalPartialClassifier",
    "PartialLabelClassifier",
    "RejectingClassifier",
    "VotedCandidates",
    "__version__",
    "as_candidates",
    "candidates_from_votes",
    "disambiguate",
    "explain",
    "label_variants",
    "merge_labels",
    "rename_labels",
]

#: Where the names are defined. They are loaded when they are asked for: the command line begins at
#: once, and no module loads more than it uses.
_HOMES = {
    "gmpll.uncertainty.calibration": ("CalibratedPartialClassifier",),
    "gmpll.candidates": (
        "CandidateSets",
        "CandidateStatistics",
        "VotedCandidates",
        "as_candidates",
        "candidates_from_votes",
    ),
    "gmpll.uncertainty.conformal": ("ConformalPartialClassifier",),
    "gmpll.apps.tables": ("disambiguate",),
    "gmpll.explanation": ("explain",),
    "gmpll.label_names": ("label_variants", "merge_labels", "rename_labels"),
    "gmpll.methods": (
        "CLPL",
        "GMPLL",
        "IPAL",
        "LSBCMM",
        "M3PL",
        "PLECOC",
        "PLKNN",
        "PLLEAF",
        "PLSVM",
        "PartialLabelClassifier",
    ),
    "gmpll.uncertainty.rejection": ("RejectingClassifier",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
#: Modules that are loaded when they are asked for, after ``import gmpll`` alone.
_MODULES = (
    "apps",
    "arrays",
    "base",
    "candidates",
    "datasets",
    "engines",
    "evidence",
    "explanation",
    "graph",
    "label_names",
    "matching",
    "methods",
    "metrics",
    "model_selection",
    "ordinal",
    "rounding",
    "side_information",
    "uncertainty",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"gmpll.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
