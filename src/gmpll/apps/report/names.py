"""The order and the spelling of methods and data sets in tables and figures."""

from __future__ import annotations

from collections.abc import Iterable

from gmpll.apps.report import paper

__all__ = [
    "BASELINES",
    "COMPARED",
    "OURS",
    "PAPER_VARIANT",
    "data_set_name",
    "is_baseline",
    "ordered_data_sets",
    "ordered_methods",
    "printed_method",
]

#: The method that the paper proposes and that the others are compared with.
OURS = "GM-PLL"
#: GM-PLL with the settings that the paper describes, where ours are others.
PAPER_VARIANT = "GM-PLL (paper)"
#: The compared methods in the order of the paper's accuracy tables.
COMPARED = ("PL-SVM", "CLPL", "PL-KNN", "LSB-CMM", "M3PL", "PL-LEAF", "IPAL", "PL-ECOC")
#: Floors and ceilings: never in bold type, never ranked, never compared by a test.
BASELINES = ("Random candidate", "Most frequent candidate", "Any candidate", "Full supervision")

_METHOD_ORDER = {name: place for place, name in enumerate((OURS, PAPER_VARIANT, *COMPARED))}
_BASELINE_ORDER = {name: place for place, name in enumerate(BASELINES)}
_DATA_SET_ORDER = {name: place for place, name in enumerate(paper.PRINTED_NAMES)}


def is_baseline(method: str) -> bool:
    """Tell whether a method is a floor or a ceiling instead of a competitor."""
    return method in _BASELINE_ORDER


def printed_method(method: str) -> str:
    """Return the name under which the paper prints figures of a method."""
    return OURS if method == PAPER_VARIANT else method


def data_set_name(data_set: str) -> str:
    """Return the printed name of a data set; an unknown one keeps its own.

    Examples
    --------
    >>> from gmpll.apps.report.names import data_set_name
    >>> data_set_name("fg-net"), data_set_name("my-data")
    ('FG-NET', 'my-data')
    """
    return paper.PRINTED_NAMES.get(data_set, data_set)


def ordered_methods(methods: Iterable[str]) -> list[str]:
    """Sort methods: GM-PLL, the paper's order, unknown ones by name, baselines last."""

    def place(method: str) -> tuple[int, int, str]:
        if is_baseline(method):
            return 2, _BASELINE_ORDER[method], method
        return (0, _METHOD_ORDER[method], method) if method in _METHOD_ORDER else (1, 0, method)

    return sorted(set(methods), key=place)


def ordered_data_sets(data_sets: Iterable[str]) -> list[str]:
    """Sort data sets in the paper's order, unknown ones after them by name."""
    unknown = len(_DATA_SET_ORDER)
    return sorted(set(data_sets), key=lambda name: (_DATA_SET_ORDER.get(name, unknown), name))
