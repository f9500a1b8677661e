"""Cutting a declaration to what is wanted and to what is there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gmpll.apps.experiments.declaration import Declaration, Experiment
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.methods import find_method, known_methods

__all__ = ["Skipped", "available_part", "named_in_full", "restricted"]


@dataclass(frozen=True)
class Skipped:
    """A data set that is left out, and why."""

    dataset: str
    reason: str


def named_in_full(declaration: Declaration) -> Declaration:
    """Check all names, spell them as printed, and replace "all" by the methods that exist.

    Examples
    --------
    >>> from gmpll.apps.experiments.declaration import Declaration, Experiment
    >>> from gmpll.apps.experiments.selection import named_in_full
    >>> iris = Experiment("controlled", ("Iris",), ("any candidate",), p=(0.5,), r=(1,))
    >>> named_in_full(Declaration((iris,))).experiments[0].methods
    ('Any candidate',)
    """

    def named(experiment: Experiment) -> Experiment:
        wanted: Iterable[str] = experiment.methods
        if experiment.methods == ("all",):
            wanted = known_methods(declaration.variants)
        methods = tuple(find_method(name, declaration.variants).name for name in wanted)
        datasets = tuple(_dataset_name(name) for name in experiment.datasets)
        return replace(experiment, methods=methods, datasets=datasets)

    return declaration.change(named)


def restricted(
    declaration: Declaration,
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
) -> Declaration:
    """Keep only some data sets and methods.

    Parameters
    ----------
    declaration : Declaration
    datasets, methods : sequence of str, default=None
        Names to keep; None keeps all.

    Raises
    ------
    ExperimentError
        If a name is unknown, or nothing of the run would be left of it.
    """
    declaration = named_in_full(declaration)
    if datasets is not None:
        kept = [_dataset_name(name) for name in datasets]
        declaration = _keep(declaration, "datasets", kept, "data set")
    if methods is not None:
        kept = [find_method(name, declaration.variants).name for name in methods]
        declaration = _keep(declaration, "methods", kept, "method")
    if not declaration.experiments:
        raise ExperimentError("No experiment has both these data sets and these methods.")
    return declaration


def available_part(
    declaration: Declaration, data_home: str | os.PathLike[str] | None = None
) -> tuple[Declaration, list[Skipped]]:
    """Leave out the data sets that are not at hand; say which and why.

    The declaration that is returned has no experiments if nothing is at hand.
    """
    from gmpll.datasets import get_data_home, is_available

    declaration = named_in_full(declaration)
    wanted = dict.fromkeys(name for item in declaration.experiments for name in item.datasets)
    missing = [name for name in wanted if not is_available(name, data_home)]
    reason = f"not found in {get_data_home(data_home)}"
    left = _without_empty(
        declaration.change(
            lambda item: replace(
                item, datasets=tuple(name for name in item.datasets if name not in missing)
            )
        )
    )
    return left, [Skipped(name, reason) for name in missing]


def _keep(declaration: Declaration, field: str, kept: Sequence[str], noun: str) -> Declaration:
    present = dict.fromkeys(
        name for item in declaration.experiments for name in getattr(item, field)
    )
    absent = [name for name in kept if name not in present]
    if absent:
        raise ExperimentError(
            f"The {noun} {absent[0]!r} is not part of this run, which has {', '.join(present)}."
        )

    def cut(experiment: Experiment) -> Experiment:
        left = tuple(name for name in getattr(experiment, field) if name in kept)
        return (
            replace(experiment, datasets=left)
            if field == "datasets"
            else replace(experiment, methods=left)
        )

    return _without_empty(declaration.change(cut))


def _without_empty(declaration: Declaration) -> Declaration:
    full = tuple(item for item in declaration.experiments if item.datasets and item.methods)
    return replace(declaration, experiments=full)


def _dataset_name(name: str) -> str:
    from gmpll.datasets import list_datasets

    known = [info.name for info in list_datasets()]
    if name.strip().lower() not in known:
        raise ExperimentError(
            f"There is no data set {name!r}; the data sets are {', '.join(known)}."
        )
    return name.strip().lower()
