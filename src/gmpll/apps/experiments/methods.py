"""Which methods an experiment can name, and how a name becomes an estimator."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gmpll.apps.experiments.crowd import CROWD_METHODS
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.grids import GRIDS
from gmpll.apps.experiments.upper_bound import FULL_SUPERVISION
from gmpll.methods import METHODS
from gmpll.methods.baselines import AnyCandidate, MostFrequentCandidate, RandomCandidate

#: Floors, by their printed names.
BASELINES: dict[str, type] = {
    "Random candidate": RandomCandidate,
    "Most frequent candidate": MostFrequentCandidate,
    "Any candidate": AnyCandidate,
}


@dataclass(frozen=True)
class Method:
    """A named way to learn from candidates."""

    name: str  #: printed
    estimator: str  #: a registered estimator, or ``"package.module:Class"`` for any other
    #: Constructor parameters that differ from the defaults.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Parameter -> values to choose from where an experiment tunes.
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


#: Settings in which a registered method is compared: unseen rows are matched as in the paper.
VARIANTS: dict[str, Method] = {
    "GM-PLL": Method("GM-PLL", "GM-PLL", {"prediction": "joint"}, GRIDS["GM-PLL"]),
}


def known_methods(
    extra: Mapping[str, Method] | None = None, *, kind: str = ""
) -> dict[str, Method]:
    """Return every method that can be named, in the order in which they are printed.

    Parameters
    ----------
    extra : mapping from name to Method, default=None
        Variants that a declaration adds.
    kind : str, default=""
        Kind of the experiment; "crowd" has methods of its own.

    Examples
    --------
    >>> from gmpll.apps.experiments.methods import known_methods
    >>> "Random candidate" in known_methods()
    True
    """
    if kind == "crowd":
        return {name: Method(name, name) for name in CROWD_METHODS} | dict(extra or {})
    known = {name: Method(name, name, {}, GRIDS.get(name, {})) for name in METHODS}
    known |= VARIANTS | dict(extra or {})
    known |= {name: Method(name, name) for name in (*BASELINES, FULL_SUPERVISION)}
    return known


def find_method(name: str, known: Mapping[str, Method]) -> Method:
    """Return the method of a name among the known ones, upper or lower case alike."""
    by_lower_case = {key.lower(): method for key, method in known.items()}
    try:
        return by_lower_case[name.strip().lower()]
    except KeyError:
        raise ExperimentError(
            f"There is no method {name[:60]!r}; the methods are {', '.join(known)}."
        ) from None


def make_estimator(estimator: str, settings: Mapping[str, Any], random_state: int) -> Any:
    """Build an estimator from what a job says about it."""
    built = _class_of(estimator)()
    parameters = built.get_params()
    unknown = [name for name in settings if name not in parameters]
    if unknown:
        raise ExperimentError(
            f"{estimator} has no parameter {unknown[0]!r}; it has {', '.join(sorted(parameters))}."
        )
    seed = {"random_state": random_state} if "random_state" in parameters else {}
    return built.set_params(**(seed | dict(settings)))


def _class_of(estimator: str) -> type:
    if ":" in estimator:
        module, _, name = estimator.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ExperimentError(
                f"The estimator {estimator!r} cannot be imported ({error})."
            ) from error
    return (METHODS | BASELINES)[estimator]
