"""Cutting a declaration to what is wanted and to what is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gmpll.apps.experiments.declaration import Declaration, Experiment
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.methods import Method, find_method, known_methods
from gmpll.datasets import get_data_home, is_available, list_datasets


@dataclass(frozen=True)
class Skipped:
    """A data set that is left out, and why."""

    dataset: str
    reason: str


def named_in_full(declaration: Declaration) -> Declaration:
    """Check all names, spell them as printed, and replace "all" by the methods that exist."""
    variants = declaration.variants

    def named(experiment: Experiment) -> Experiment:
        known = known_methods(variants, kind=experiment.kind)
        wanted = tuple(known) if experiment.methods == ("all",) else experiment.methods
        methods = tuple(find_method(name, known).name for name in wanted)
        datasets = tuple(_dataset_name(name) for name in experiment.datasets)
        return replace(experiment, methods=methods, datasets=datasets)

    return declaration.change(named)


def restricted(
    declaration: Declaration,
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
) -> Declaration:
    """Keep only the data sets and methods that are named; None keeps all.

    It is an error if a name is unknown, or nothing of the run would be left.
    """
    declaration = named_in_full(declaration)
    if datasets is not None:
        kept = [_dataset_name(name) for name in datasets]
        _refuse_absent("data set", kept, [e.datasets for e in declaration.experiments])
        declaration = _cut(declaration, datasets=kept.__contains__)
    if methods is not None:
        known: dict[str, Method] = {}
        for experiment in declaration.experiments:
            known |= known_methods(declaration.variants, kind=experiment.kind)
        kept = [find_method(name, known).name for name in methods]
        _refuse_absent("method", kept, [e.methods for e in declaration.experiments])
        declaration = _cut(declaration, methods=kept.__contains__)
    if not declaration.experiments:
        raise ExperimentError("No experiment has both these data sets and these methods.")
    return declaration


def available_part(
    declaration: Declaration, data_home: str | os.PathLike[str] | None = None
) -> tuple[Declaration, list[Skipped]]:
    """Leave out the data sets that are not at hand; say which and why.

    The declaration that is returned has no experiments if nothing is at hand.
    """
    declaration = named_in_full(declaration)
    wanted = dict.fromkeys(name for item in declaration.experiments for name in item.datasets)
    missing = [name for name in wanted if not is_available(name, data_home)]
    reason = f"not found in {get_data_home(data_home)}"
    left = _cut(declaration, datasets=lambda name: name not in missing)
    return left, [Skipped(name, reason) for name in missing]


def _refuse_absent(noun: str, kept: Sequence[str], of_experiments: list[tuple[str, ...]]) -> None:
    present = dict.fromkeys(name for names in of_experiments for name in names)
    absent = [name for name in kept if name not in present]
    if absent:
        raise ExperimentError(
            f"The {noun} {absent[0]!r} is not part of this run, which has {', '.join(present)}."
        )


def _cut(
    declaration: Declaration,
    datasets: Callable[[str], bool] = lambda _: True,
    methods: Callable[[str], bool] = lambda _: True,
) -> Declaration:
    """Keep the data sets and methods that pass, and the experiments that still have both."""
    cut = declaration.change(
        lambda item: replace(
            item,
            datasets=tuple(filter(datasets, item.datasets)),
            methods=tuple(filter(methods, item.methods)),
        )
    )
    full = tuple(item for item in cut.experiments if item.datasets and item.methods)
    return replace(cut, experiments=full)


def _dataset_name(name: str) -> str:
    known = [info.name for info in list_datasets()]
    if name.strip().lower() not in known:
        raise ExperimentError(
            f"There is no data set {name!r}; the data sets are {', '.join(known)}."
        )
    return name.strip().lower()
