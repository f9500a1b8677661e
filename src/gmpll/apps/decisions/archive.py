"""Decisions outlive the matching that they were made about.

A run that replaces the results in a folder leaves the decisions where they are if they speak of the
same rows, labels and candidates. Otherwise they move to a folder of their own, together with the
matching that gives them their meaning, and those about a row that is still there are carried over.
"""

import itertools
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gmpll._atomic_io import sync_folder
from gmpll.apps.decisions.errors import ReviewError
from gmpll.apps.decisions.store import FILE_NAME, Decision, Entry, Rows, Store

#: Folder of decisions about earlier results; a number follows.
EARLIER = "earlier-review"
_WAIT_SECONDS = 1.0
_CARRIED = ("at", "reviewer", "found", "margin")


class Archived(NamedTuple):
    """Decisions that had to make room: their folder, their rows, and how many still hold."""

    folder: Path
    rows: int
    carried_over: int = 0


def check_not_under_review(folder: Path) -> None:
    """Refuse, by a ReviewError, a folder whose decisions somebody has open."""
    path = folder / FILE_NAME
    if not path.is_file():
        return
    try:
        # Works only for whoever is alone with the file, and changes nothing in it.
        with _connected(path) as connection:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        raise ReviewError(
            f"{folder} is under review ({error}): stop gmpll review there, then try again."
        ) from error
    except sqlite3.Error:  # damaged: nobody can have it open
        pass


def next_folder(folder: Path, name: str) -> Path:
    """Return the first numbered folder of a name that is not there yet."""
    return next(p for n in itertools.count(1) if not (p := folder / f"{name}-{n}").exists())


@contextmanager
def archiving(folder: Path, matching_file: str) -> Iterator[Callable[[Rows], Archived | None]]:
    """Give a function that moves decisions out of the way that do not fit the new rows.

    A copy of the ``matching_file`` goes with them. If the block fails, they are moved back.
    """
    moved: list[Path] = []

    def make_room(after: Rows) -> Archived | None:
        path = folder / FILE_NAME
        if not path.is_file() or _content(path)[0] == after.key():
            return None
        check_not_under_review(folder)
        key, rows = _content(path)
        if key and not rows:  # a review that was opened and closed
            path.unlink()
            return None
        earlier = next_folder(folder, EARLIER)
        earlier.mkdir()
        moved.append(earlier)
        if (folder / matching_file).is_file():
            shutil.copy2(folder / matching_file, earlier / matching_file)
        _move_decisions(folder, earlier)
        return Archived(earlier, rows)

    try:
        yield make_room
    except BaseException:
        for earlier in moved:
            _move_decisions(earlier, folder)
            shutil.rmtree(earlier, ignore_errors=True)
        raise


def carry_over(
    archived: Archived, before: Rows, folder: Path, after: Rows, id_column: str
) -> Archived:
    """Write to the folder of the new rows those of the archived decisions that hold for them.

    A row is recognised by its id, where both runs had that column of ids; row numbers tell nothing.
    """
    try:
        held = decisions_about(archived.folder, before, after, id_column)
        with closing(Store(folder / FILE_NAME, after.key())) as store:
            for row, entry in held.items():
                more = {name: getattr(entry, name) for name in _CARRIED}
                store.decide(row, entry.decision, seen_version=0, tab=entry.tab, **more)
    except ReviewError:  # they can be read where they are, or not at all
        return archived
    return archived._replace(carried_over=len(held))


def decisions_about(folder: Path, before: Rows, after: Rows, id_column: str) -> dict[int, Entry]:
    """Return, by row and in the codes of ``after``, what holds of decisions about other rows."""
    if not (folder / FILE_NAME).is_file():
        return {}
    with closing(Store(folder / FILE_NAME, before.key())) as store:
        held = sorted(store.decisions().values(), key=lambda entry: entry.number)
    if before.key() == after.key():
        return {entry.row: entry for entry in held if entry.decision.action != "skip"}
    rows = {str(identity): row for row, identity in enumerate(after.ids)}
    places = {str(name): code for code, name in enumerate(after.classes)}
    about = {}
    for entry in held:
        row = rows.get(_identity(before, entry.row, id_column))
        decision = None if row is None else _translated(entry, row, before, after)
        if row is not None and decision is not None:
            found = None if entry.found is None else places.get(str(before.classes[entry.found]))
            about[row] = entry._replace(row=row, decision=decision, found=found)
    return about


def _identity(rows: Rows, row: int, id_column: str) -> str:
    """Return the id of a row if it stands in the column of ids, else "": a row number is none."""
    identity = str(rows.ids[row])
    try:
        cells = json.loads(str(rows.display[row]))
        return identity if str(cells[id_column]) == identity else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def _translated(entry: Entry, row: int, before: Rows, after: Rows) -> Decision | None:
    """Return a decision in the codes of the new matching, None if it holds no longer."""
    decision = entry.decision
    if decision.action == "skip":
        return None
    if decision.action == "none":
        old, new = before.classes[before.mask[entry.row]], after.classes[after.mask[row]]
        return decision if set(old) == set(new) else None
    name = decision.name if decision.code is None else str(before.classes[decision.code])
    known = np.flatnonzero(after.classes == name)
    return Decision("label", code=int(known[0])) if known.size else Decision("other", name=name)


def _content(path: Path) -> tuple[str, int]:
    """Return the key and the number of the rows that decisions are about; "" if damaged."""
    try:
        with _connected(path) as connection:
            (key,) = connection.execute("SELECT value FROM facts WHERE name = 'rows'").fetchone()
            (rows,) = connection.execute("SELECT COUNT(DISTINCT item) FROM log").fetchone()
    except (sqlite3.Error, TypeError, ValueError) as error:
        # A disk that is full or fails says nothing about the file; one without its tables does.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
            raise ReviewError(
                f"The decisions in {path} cannot be read ({error}): free space on its disk, or "
                "move the file away."
            ) from error
        return "", 0
    return str(key), int(rows)


def _connected(path: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None))


def _move_decisions(source: Path, target: Path) -> None:
    # A file that was closed in good order has no companions.
    for suffix in ("", "-wal", "-shm"):
        file = source / f"{FILE_NAME}{suffix}"
        if file.is_file():
            os.replace(file, target / file.name)
    sync_folder(target)
    sync_folder(source)
