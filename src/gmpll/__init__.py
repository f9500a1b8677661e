"""Partial label learning: graph matching (GM-PLL) and the methods it is compared with."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gmpll.apps.tables import LoadedModel, disambiguate, load
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
        LALO,
        LSBCMM,
        M3PL,
        PLAGGD,
        PLCL,
        PLECOC,
        PLKNN,
        PLLEAF,
        PLSVM,
        SURE,
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
    "LALO",
    "LSBCMM",
    "M3PL",
    "PLAGGD",
    "PLCL",
    "PLECOC",
    "PLKNN",
    "PLLEAF",
    "PLSVM",
    "SURE",
    "CalibratedPartialClassifier",
    "CandidateSets",
    "CandidateStatistics",
    "ConformalPartialClassifier",
    "LoadedModel",
    "PartialLabelClassifier",
    "RejectingClassifier",
    "VotedCandidates",
    "__version__",
    "as_candidates",
    "candidates_from_votes",
    "disambiguate",
    "explain",
    "label_variants",
    "load",
    "merge_labels",
    "rename_labels",
]

#: Where the names are defined that are no methods. All are loaded when they are asked for: the
#: command line begins at once, and no module loads more than it uses.
_HOMES = {
    "CalibratedPartialClassifier": "gmpll.uncertainty.calibration",
    "CandidateSets": "gmpll.candidates",
    "CandidateStatistics": "gmpll.candidates",
    "ConformalPartialClassifier": "gmpll.uncertainty.conformal",
    "LoadedModel": "gmpll.apps.tables",
    "RejectingClassifier": "gmpll.uncertainty.rejection",
    "VotedCandidates": "gmpll.candidates",
    "as_candidates": "gmpll.candidates",
    "candidates_from_votes": "gmpll.candidates",
    "disambiguate": "gmpll.apps.tables",
    "explain": "gmpll.explanation",
    "label_variants": "gmpll.label_names",
    "load": "gmpll.apps.tables",
    "merge_labels": "gmpll.label_names",
    "rename_labels": "gmpll.label_names",
}
if not all(map(find_spec, ("pandas", "pyarrow", "skops"))):  # the extra of the tables
    __all__ = [name for name in __all__ if _HOMES.get(name) != "gmpll.apps.tables"]


def __getattr__(name: str) -> Any:
    if name in __all__ or name in _HOMES:
        value = globals()[name] = getattr(import_module(_HOMES.get(name, "gmpll.methods")), name)
        return value
    if name.startswith("_") or not name.isidentifier() or find_spec(f"gmpll.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"gmpll.{name}")


def __dir__() -> list[str]:
    from pkgutil import iter_modules

    modules = (module.name for module in iter_modules(__path__))
    return sorted({*globals(), *__all__, *(name for name in modules if name[0] != "_")})
