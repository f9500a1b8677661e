"""Decisions of reviewers reach the results: as known labels of the next run in their folder."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from gmpll.apps.decisions.store import Entry
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.guesses import EMBEDDING_FILES, guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.resolving import Prepared, Resolution, prepare, resolve
from gmpll.apps.tables.tables import Table, read_table


def resolve_decided(prepared: Prepared, held: Mapping[int, Entry]) -> Resolution:
    """Resolve with decisions as known labels; the candidates stay those of the input.

    Labels that reviewers brought become labels of the run, behind its own.
    """
    names = {e.decision.name for e in held.values() if e.decision.name}
    sets = prepared.sets.with_labels(sorted(names)) if names else prepared.sets
    code_of = {name: code for code, name in enumerate(sets.classes.tolist())}
    mask, gold = sets.mask.copy(), sets.gold.copy()
    for row, entry in held.items():
        code = entry.decision.code
        code = code_of.get(entry.decision.name) if code is None else code
        if code is not None:
            mask[row] = np.arange(len(code_of)) == code
            gold[row] = code
    narrowed = replace(prepared, sets=replace(sets, mask=mask, gold=gold))
    return replace(resolve(narrowed), prepared=replace(prepared, sets=sets))


def input_settings(table: Table, options: Options, *, escape: bool) -> dict[str, Any] | None:
    """Return what is needed to read the same input in the same way; None of data in memory."""
    if table.path is None or not isinstance(options.votes, (str, Path, type(None))):
        return None
    said = {name: _plain(value) for name, value in asdict(options).items()}
    if isinstance(options.rename, (list, tuple)):  # OLD=NEW, or a file
        said["rename"] = [pair if "=" in pair else _plain(Path(pair)) for pair in options.rename]
    reading = {"format": table.format, "encoding": table.encoding}
    if table.format in ("csv", "tsv"):
        reading["delimiter"] = table.delimiter
    return {"options": said, "reading": reading, "escape": escape}


def _plain(value: Any) -> Any:
    """Return an option as JSON takes it; files are named so that they are found from anywhere."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, Path) or (
        isinstance(value, str) and Path(value).suffix in EMBEDDING_FILES and Path(value).is_file()
    ):
        return str(Path(value).absolute())
    return value


def prepare_again(source: str, settings: Mapping[str, Any]) -> tuple[Prepared, bool]:
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
