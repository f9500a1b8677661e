"""The order and the spelling of methods and data sets in tables and figures."""

from __future__ import annotations

from collections.abc import Iterable

from gmpll.apps.experiments.methods import BASELINES as FLOORS
from gmpll.apps.experiments.methods import FULL_SUPERVISION
from gmpll.apps.report import paper

#: The method that the paper proposes and that the others are compared with.
OURS = "GM-PLL"
#: The classifier of this library, which the paper has not.
DEFAULT = "gmpll"
#: The compared methods in the order of the paper's accuracy tables.
COMPARED = tuple(dict.fromkeys(m for m, _ in paper.ACCURACY["inductive"] if m != OURS))
#: Floors and ceilings: never in bold type, never ranked, never compared by a test.
BASELINES = (*FLOORS, FULL_SUPERVISION)

_METHODS = (DEFAULT, OURS, *COMPARED)
_DATA_SETS = tuple(paper.PRINTED_NAMES)


def data_set_name(data_set: str) -> str:
    """Return the printed name of a data set; an unknown one keeps its own."""
    return paper.PRINTED_NAMES.get(data_set, data_set)


def ordered_methods(methods: Iterable[str]) -> list[str]:
    """Sort methods: our own, the paper's order, unknown ones by name, baselines last."""

    def place(method: str) -> tuple[int, int, str]:
        for group, known in ((0, _METHODS), (2, BASELINES)):
            if method in known:
                return group, known.index(method), method
        return 1, 0, method

    return sorted(set(methods), key=place)


def ordered_data_sets(data_sets: Iterable[str]) -> list[str]:
    """Sort data sets in the paper's order, unknown ones after them by name."""
    found = set(data_sets)
    return [name for name in _DATA_SETS if name in found] + sorted(found - set(_DATA_SETS))
