"""The decisions in SQLite: an append-only log in which even undo is an entry.

Every entry is a transaction of its own, on the disk before the call returns. The entries of a row
are numbered; who writes says which number he has seen last, so of two tabs, or two servers on the
same folder, the slower one is told instead of winning silently.
"""

import hashlib
import io
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmpll._typing import Integers, Mask, Names
from gmpll.apps.decisions.errors import ConflictError, RequestError, ReviewError

#: The decisions lie beside the matching that they are about.
FILE_NAME = "review.sqlite"

#: ``label``: one of the known labels is right; ``other``: a label that the data do not know;
#: ``none``: no candidate is right and no better label is known; ``skip``: not now.
ACTIONS = ("label", "other", "none", "skip")

#: Of the file, kept in SQLite's ``user_version``; a file that was just made has 0 there.
FORMAT = 2
#: How long to wait for another process that writes at this moment.
BUSY_SECONDS = 10.0

_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS log (
    entry   INTEGER PRIMARY KEY AUTOINCREMENT,
    at      TEXT NOT NULL,
    tab     TEXT NOT NULL,
    item    INTEGER NOT NULL,
    version INTEGER NOT NULL,
    action  TEXT NOT NULL CHECK (action IN ('label', 'other', 'none', 'skip', 'undo')),
    code    INTEGER,
    name    TEXT,
    undoes  INTEGER REFERENCES log (entry),
    reviewer TEXT NOT NULL DEFAULT '',
    found   INTEGER,
    margin  REAL,
    batch   INTEGER,
    UNIQUE (item, version)
) STRICT;
CREATE INDEX IF NOT EXISTS log_undone ON log (undoes);
CREATE VIEW IF NOT EXISTS held AS SELECT * FROM log WHERE action <> 'undo'
    AND NOT EXISTS (SELECT 1 FROM log AS later WHERE later.undoes = log.entry);
CREATE TRIGGER IF NOT EXISTS log_is_not_changed BEFORE UPDATE ON log
    BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER IF NOT EXISTS log_is_not_shortened BEFORE DELETE ON log
    BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TABLE IF NOT EXISTS rematched (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    at      TEXT NOT NULL,
    base    TEXT NOT NULL,
    content BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS leases (
    tab     TEXT PRIMARY KEY,
    item    INTEGER NOT NULL,
    since   REAL NOT NULL
) STRICT;
COMMIT;
"""
_COLUMNS = (
    "entry, at, tab, item, version, action, code, name, undoes, reviewer, found, margin, batch"
)


class Rows(NamedTuple):
    """What decisions speak of: ids, labels, candidates, and the cells of every row as JSON.

    The last ``n_new`` labels are such that reviewers brought.
    """

    ids: Names
    classes: Names
    mask: Mask
    display: Names
    n_new: int = 0

    def key(self) -> str:
        """Return what tells these rows, labels and candidates from others, new labels apart."""
        n_own = len(self.classes) - self.n_new
        digest = hashlib.sha256()
        for names in (self.ids, self.classes[:n_own]):
            digest.update(json.dumps([str(name) for name in names]).encode())
        digest.update(np.packbits(np.asarray(self.mask[:, :n_own], dtype=bool)).tobytes())
        return digest.hexdigest()


class Decision(NamedTuple):
    """What a reviewer said about a row: one of the actions, or ``undo``."""

    action: str
    code: int | None = None
    name: str | None = None


class Entry(NamedTuple):
    """A line of the log; an undo carries the number of the entry it undoes.

    ``found`` is the label that the matching had found before anybody decided, by a ``margin`` over
    the best other one. Entries of a ``batch`` were made, and are undone, together.
    """

    number: int
    at: str
    tab: str
    row: int
    version: int
    decision: Decision
    undoes: int | None = None
    reviewer: str = ""
    found: int | None = None
    margin: float | None = None
    batch: int | None = None


class Rematched(NamedTuple):
    """The latest matching with decisions, and the rows whose labels were known to it."""

    at: str
    labels: Integers
    confidence: NDArray[np.float32]
    gold_rows: Integers


class Store:
    """Decisions about the rows of one matching.

    Safe to use from several threads, and from several processes on the same SQLite file, which is
    made if it is missing. The key identifies the rows and labels that decisions speak of; a file
    with another one is refused.
    """

    def __init__(self, path: str | Path, rows_key: str) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        with self._plain_errors():
            self._connection = self._open(rows_key)
        self._tabs: set[str] = set()

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeError, MemoryError, _DamageError) as error:
            # SQLite may quote the file, or say nothing.
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise ReviewError(
                f"The decisions cannot be kept in {self.path} ({reason}): "
                "make the folder writable, free space on its disk, or move the file away if it is "
                "damaged."
            ) from error

    def _open(self, rows_key: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, FORMAT):  # refused before anything in it is touched
                raise ReviewError(
                    f"{self.path} was written by another version of gmpll (its format is "
                    f"{version}, this one reads {FORMAT}): go on with the review in that one."
                )
            connection.execute("PRAGMA journal_mode = WAL")
            # WAL alone survives a crash of the program; FULL survives a power cut as well.
            connection.execute("PRAGMA synchronous = FULL")
            if version != FORMAT:  # who only reads changes nothing
                connection.executescript(_SCHEMA)
                connection.execute("INSERT OR IGNORE INTO facts VALUES ('rows', ?)", (rows_key,))
                connection.execute(f"PRAGMA user_version = {FORMAT}")
            found = connection.execute("SELECT value FROM facts WHERE name = 'rows'").fetchone()
            if found != (rows_key,):
                raise ReviewError(
                    f"{self.path} holds decisions about other rows or labels: "
                    "move it away to begin a new review."
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """End the leases of the tabs that were served from here, and close the file."""
        with self._lock:
            with suppress(sqlite3.Error):  # closed already, or full: leases run out
                for tab in self._tabs:
                    self._connection.execute("DELETE FROM leases WHERE tab = ?", (tab,))
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._plain_errors(), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    def _entries(self, selection: str, *values: int | str) -> list[Entry]:
        with self._lock, self._plain_errors():
            lines = self._connection.execute(f"SELECT {_COLUMNS} FROM {selection}", values)
            return [_entry(line) for line in lines]

    def version(self, row: int) -> int:
        """Return the number of the last entry of a row, 0 if there is none."""
        history = self._entries("log WHERE item = ? ORDER BY version DESC LIMIT 1", row)
        return history[0].version if history else 0

    def current(self, row: int) -> Entry | None:
        """Return the entry that holds for a row now."""
        found = self._entries("held WHERE item = ? ORDER BY entry DESC LIMIT 1", row)
        return found[0] if found else None

    def decisions(self) -> dict[int, Entry]:
        """Return the entries that hold now, by row, skipped rows included."""
        return {entry.row: entry for entry in self._entries("held ORDER BY entry")}

    def opinions(self) -> dict[int, dict[str, Entry]]:
        """Return what every reviewer said last, and did not take back, about every row."""
        said: dict[int, dict[str, Entry]] = {}
        for entry in self._entries("held WHERE action <> 'skip' ORDER BY entry"):
            said.setdefault(entry.row, {})[entry.reviewer] = entry
        return said

    def log(self) -> list[Entry]:
        """Return the whole log, oldest entry first."""
        return self._entries("log ORDER BY entry")

    def decide(
        self, row: int, decision: Decision, *, seen_version: int, tab: str, **more: Any
    ) -> Entry:
        """Write a decision; when this returns, it is on the disk.

        Where the row has a newer version than the reviewer was looking at, that is a ConflictError.
        ``more`` are ``at``, ``reviewer``, ``found`` and ``margin`` of the entry.
        """
        if decision.action not in ACTIONS:
            raise RequestError(f"{decision.action!r} is no decision: use one of {ACTIONS}.")
        with self._transaction():
            if seen_version != self.version(row):
                raise ConflictError("This row was decided elsewhere in the meantime.")
            said = self._entries("log WHERE item = ? AND found >= 0 ORDER BY entry LIMIT 1", row)
            if said:
                more |= {"found": said[0].found, "margin": said[0].margin}
            return self._append(row, tab, decision, **more)

    def decide_together(
        self, found: Mapping[int, int], *, tab: str, reviewer: str = ""
    ) -> list[Entry]:
        """Write the labels found as decisions about those rows that have none: all, or nothing."""
        with self._transaction() as connection:
            held = self.decisions()
            (last,) = connection.execute("SELECT coalesce(max(entry), 0) FROM log").fetchone()
            more = {"reviewer": reviewer, "batch": last + 1}
            return [
                self._append(row, tab, Decision("label", code=code), found=code, **more)
                for row, code in found.items()
                if row not in held
            ]

    def take(
        self,
        tab: str,
        choose: Callable[[dict[int, Entry], set[int]], int | None],
        *,
        lease_seconds: float,
    ) -> int | None:
        """Lease to a tab the row that ``choose(decisions, rows leased to others)`` returns."""
        with self._transaction() as connection:
            now = time.time()
            self._tabs.add(tab)
            # A time to come is one of a clock that was put right since.
            connection.execute(
                "DELETE FROM leases WHERE tab = ? OR since < ? OR since > ?",
                (tab, now - lease_seconds, now + lease_seconds),
            )
            elsewhere = {row for (row,) in connection.execute("SELECT item FROM leases")}
            row = choose(self.decisions(), elsewhere)
            if row is not None:
                connection.execute("INSERT INTO leases VALUES (?, ?, ?)", (tab, row, now))
        return row

    def release(self, tab: str) -> None:
        """End the lease of a tab: others may have its row."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM leases WHERE tab = ?", (tab,))

    def undo(self, tab: str) -> list[Entry]:
        """Take back the last decision of a tab, or the last batch, as far as it still holds."""
        with self._transaction():
            mine = self._entries("held WHERE tab = ? ORDER BY entry DESC LIMIT 1", tab)
            if mine and mine[0].batch is not None:
                mine = self._entries("held WHERE batch = ? ORDER BY entry DESC", mine[0].batch)
            still = [entry for entry in mine if self.current(entry.row) == entry]
            if mine and not still:
                raise ConflictError(
                    "Your last decision was replaced elsewhere: open the row to decide it again."
                )
            return [
                self._append(entry.row, tab, Decision("undo"), undoes=entry.number)
                for entry in still
            ]

    def _append(self, row: int, tab: str, decision: Decision, **more: Any) -> Entry:
        more["at"] = more.get("at") or datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = Entry(0, tab=tab, row=row, version=self.version(row) + 1, decision=decision, **more)
        _, at, _, _, version, _, *rest = entry
        cursor = self._connection.execute(
            f"INSERT INTO log ({_COLUMNS}) "
            "VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING entry",
            (at, tab, row, version, *decision, *rest),
        )
        return entry._replace(number=cursor.fetchone()[0])

    def save_rematched(self, base: str, rematched: Rematched) -> None:
        """Keep the latest matching, in place of the one before."""
        content = io.BytesIO()
        arrays: dict[str, Any] = rematched._asdict()
        at = arrays.pop("at")
        np.savez_compressed(content, **arrays)
        with self._transaction() as connection:
            connection.execute("DELETE FROM rematched")
            connection.execute(
                "INSERT INTO rematched (at, base, content) VALUES (?, ?, ?)",
                (at, base, content.getvalue()),
            )

    def load_rematched(self, base: str) -> Rematched | None:
        """Return the latest matching if it was made from the matching ``base``."""
        with self._lock, self._plain_errors():
            found = self._connection.execute(
                "SELECT at, content FROM rematched WHERE base = ?", (base,)
            ).fetchone()
            if found is None:
                return None
            try:
                with np.load(io.BytesIO(found[1]), allow_pickle=False) as arrays:
                    rematched = Rematched(found[0], **{name: arrays[name] for name in arrays.files})
                kinds = [array.dtype.kind for array in rematched[1:]]
                if kinds != ["i", "f", "i"]:
                    raise ValueError(f"the arrays are of the kinds {kinds}")
                return rematched
            except Exception as error:  # damage shows in a dozen kinds of exception
                raise _DamageError("the last matching in it is damaged") from error


class _DamageError(ValueError):
    """The file can be read but does not hold what it must."""


def _entry(line: tuple[Any, ...]) -> Entry:
    """Check a line of the log, which another program may have damaged."""
    number, at, tab, row, version, action, code, name, *rest = line
    places, margin = (row, version, code or 0, rest[2] or 0), rest[3] or 0.0
    if not all(isinstance(p, int) and p >= 0 for p in places) or not isinstance(margin, float):
        raise _DamageError(f"entry {number} of its log is damaged")
    return Entry(number, at, tab, row, version, Decision(action, code, name), *rest)
