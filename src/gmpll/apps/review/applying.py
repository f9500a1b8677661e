"""Decisions reach the results: table, report and model are made again with them as known labels."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gmpll._progress import begin, plan, revise
from gmpll.apps.decisions.errors import ConflictError, ReviewError
from gmpll.apps.decisions.store import Rows
from gmpll.apps.tables import InputError, read_matching
from gmpll.apps.tables.errors import counted
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.output import decisions_in, keeping, write_folder
from gmpll.apps.tables.resolving import Prepared, prepare, resolve_decided
from gmpll.apps.tables.steps import READING, disambiguation_steps, reading_steps
from gmpll.apps.tables.tables import read_table

NO_DECISION = "Decide a row first: without a decision nothing would change."


class Applied(NamedTuple):
    """What applying did: rows decided, other labels that changed, where the old results are."""

    decisions: int
    changed: int
    kept: Path
    files: list[Path]

    def __str__(self) -> str:
        """Say it in two sentences."""
        return (
            f"{counted(self.decisions, 'decision', 'is')} in the results now, and "
            f"{counted(self.changed, 'other label')} changed by them. The results before are in "
            f"{self.kept}."
        )


def _prepare_again(source: str, settings: Mapping[str, Any]) -> tuple[Prepared, bool]:
    """Read the input of a run as it was read then, and tell whether formulas are escaped."""
    try:
        given = settings["input"]
        said: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given["options"].items()
        }
        options, reading, escape = Options(**said), dict(given["reading"]), bool(given["escape"])
        table = read_table(source, **reading)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError("The folder does not say how its input was read") from error
    return prepare(table, guess_roles(table, options), options), escape


def apply_decisions(folder: Path) -> Applied:
    """Fit again with the decisions in a folder as known labels, and replace the results in it.

    The results before are kept in a folder of their own. An input that is gone or has changed, or
    a folder without decisions, is a ReviewError; nothing is written then.
    """
    before = read_matching(folder)
    again = f"run gmpll disambiguate on the input with --out {folder} --force instead, which "
    again += "takes decisions along"
    with plan({**reading_steps(Path(before.source)), **disambiguation_steps(0, 0)}):
        begin(READING)
        try:
            prepared, escape = _prepare_again(before.source, json.loads(before.settings))
        except InputError as error:
            raise ReviewError(f"{str(error).rstrip('.')}: {again}.") from error
        sets = prepared.sets
        rows = Rows(prepared.ids, sets.classes, sets.mask, before.display)
        if rows.key() != before.rows.key():
            raise ReviewError(f"{before.source} has changed since it was resolved: {again}.")
        held = decisions_in(folder, prepared, before.rows)
        if not held:
            raise ConflictError(NO_DECISION)
        revise(disambiguation_steps(*prepared.table.frame.shape))
        resolution = resolve_decided(prepared, held)
        with keeping(folder) as kept:
            files, _ = write_folder(resolution, folder, escape=escape, held=held)
    found = resolution.prepared.sets.classes[resolution.verdicts.labels]
    changed = np.flatnonzero(found != before.classes[before.labels])
    return Applied(len(held), len(np.setdiff1d(changed, list(held))), kept, files)
