"""Cutting a declaration to what is wanted and to what is there."""

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gmpll.apps.experiments.declaration import Declaration, Experiment, methods_of
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.methods import Method, find_method, known_methods
from gmpll.apps.experiments.own_data import SUFFIX, names_a_file
from gmpll.datasets import is_available, list_datasets


def named_in_full(declaration: Declaration, own: Path | None = None) -> Declaration:
    """Check all names, spell them as printed, and replace "all" by the methods that exist.

    ``own`` is the folder of data sets that a run holds itself.
    """

    def named(experiment: Experiment) -> Experiment:
        methods = tuple(method.name for method in methods_of(experiment, declaration.variants))
        datasets = tuple(_dataset_name(name, own) for name in experiment.datasets)
        return replace(experiment, methods=methods, datasets=datasets)

    return declaration.change(named)


def restricted(
    declaration: Declaration,
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
) -> Declaration:
    """Keep only the data sets and methods that are named; None keeps all.

    An experiment with all methods has whichever method is named, also one that "all" leaves out.
    It is an error if a name is unknown, or nothing of the run would be left.
    """
    known: dict[str, Method] = {}

    def with_any_method(experiment: Experiment) -> Experiment:
        of_kind = known_methods(declaration.variants, kind=experiment.kind)
        known.update(of_kind)
        is_open = methods is not None and experiment.methods == ("all",)
        return replace(experiment, methods=tuple(of_kind)) if is_open else experiment

    declaration = named_in_full(declaration.change(with_any_method))
    for noun, part, wanted, full_name in (
        ("data set", "datasets", datasets, _dataset_name),
        ("method", "methods", methods, lambda name: find_method(name, known).name),
    ):
        present = _named(declaration, part)
        kept = present if wanted is None else list(map(full_name, wanted))
        for absent in (name for name in kept if name not in present):
            raise ExperimentError(
                f"The {noun} {absent!r} is not part of this run, which has {', '.join(present)}."
            )
        declaration = _cut(declaration, part, kept)
    if not declaration.experiments:
        raise ExperimentError("No experiment has both these data sets and these methods.")
    return declaration


def available_part(
    declaration: Declaration, data_home: str | os.PathLike[str] | None = None
) -> tuple[Declaration, list[str]]:
    """Leave out the data sets that are not at hand; return what is left, and their names.

    The declaration that is returned has no experiments if nothing is at hand.
    """
    declaration = named_in_full(declaration)
    named = _named(declaration, "datasets")
    kept = [name for name in named if names_a_file(name) or is_available(name, data_home)]
    return _cut(declaration, "datasets", kept), [name for name in named if name not in kept]


def _named(declaration: Declaration, part: str) -> list[str]:
    """Return the data sets, or methods, of all experiments."""
    names = [name for item in declaration.experiments for name in getattr(item, part)]
    return list(dict.fromkeys(names))


def _cut(declaration: Declaration, part: str, kept: Collection[str]) -> Declaration:
    """Keep some data sets, or methods, and the experiments that still have any."""
    experiments = []
    for item in declaration.experiments:
        names: Any = tuple(name for name in getattr(item, part) if name in kept)
        if names:
            experiments.append(replace(item, **{part: names}))
    return replace(declaration, experiments=tuple(experiments))


def _dataset_name(name: str, own: Path | None = None) -> str:
    if own is not None and (own / f"{name}{SUFFIX}").is_file():
        return name
    if names_a_file(name):
        if not Path(name).is_file():
            raise ExperimentError(f"There is no data file {name}.")
        return name
    known = [info.name for info in list_datasets()]
    if name.strip().lower() not in known:
        raise ExperimentError(
            f"There is no data set {name!r}; the data sets are {', '.join(known)}, and files: "
            f"archives ({SUFFIX}) and tables."
        )
    return name.strip().lower()
