"""The order and the spelling of methods and data sets, and the words of the page."""

import tomllib
from collections.abc import Iterable
from importlib import resources
from typing import Any

from gmpll.apps.experiments.methods import BASELINES as FLOORS
from gmpll.apps.experiments.methods import FULL_SUPERVISION
from gmpll.apps.report import paper

#: ``sections`` with their titles and paragraphs, ``notes`` of tables.
TEXTS: dict[str, dict[str, Any]] = tomllib.loads(
    (resources.files("gmpll.apps.report") / "texts.toml").read_text(encoding="utf-8")
)
#: The method that the paper proposes and that the others are compared with.
OURS = "GM-PLL"
#: The classifier of this library, which the paper has not.
DEFAULT = "gmpll"
#: The compared methods in the order of the paper's accuracy tables.
COMPARED = tuple(dict.fromkeys(m for m, _ in paper.ACCURACY["inductive"] if m != OURS))
#: Floors and ceilings: never in bold type, never ranked, never compared by a test.
BASELINES = (*FLOORS, FULL_SUPERVISION)


def data_set_name(data_set: str) -> str:
    """Return the printed name of a data set; an unknown one keeps its own."""
    return paper.PRINTED_NAMES.get(data_set, data_set)


def ordered_methods(methods: Iterable[str]) -> list[str]:
    """Sort methods: our own, the paper's order, unknown ones by name, baselines last."""
    return _ordered(set(methods), (DEFAULT, OURS, *COMPARED), BASELINES)


def ordered_data_sets(data_sets: Iterable[str]) -> list[str]:
    """Sort data sets in the paper's order, unknown ones after them by name."""
    return _ordered(set(data_sets), paper.PRINTED_NAMES)


def _ordered(found: set[str], first: Iterable[str], last: Iterable[str] = ()) -> list[str]:
    unknown = sorted(found.difference(first, last))
    return [name for name in (*first, *unknown, *last) if name in found]
