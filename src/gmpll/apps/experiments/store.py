"""The run folder: what is in it (see ``docs/experiments.md``), and how it gets there whole.

A file appears under its name only when it is complete: it is written beside, flushed to the disk
and then renamed.
"""

import io
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np

from gmpll._atomic_io import remove_abandoned, write_atomically
from gmpll._typing import Integers
from gmpll.apps.experiments.claims import claimed
from gmpll.apps.experiments.declaration import Declaration, expand, parse_declaration
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.jobs import Job, canonical_json
from gmpll.apps.experiments.own_data import (
    SUFFIX,
    archive_of_table,
    is_archive,
    name_of,
    names_a_file,
    read_own,
)

#: Of the files in a run folder.
FORMAT_VERSION = 1
#: A claim that no job has, for changes of the declaration.
_FOLDER_CLAIM = "0" * 24
_ARRAYS = ("predicted", "labels", "test_rows", "train_rows")


@dataclass(frozen=True)
class Result:
    """What a job left behind; ``facts`` are plain values such as ``status`` and ``fit_seconds``."""

    predicted: Integers  # label of every test row, by its number in the data set
    labels: Integers  # of every training row; empty if the method finds none
    test_rows: Integers
    train_rows: Integers
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def failure(cls, error: str, traceback: str = "", attempt: int = 1) -> Self:
        """Return the result of a job that raised an error."""
        nothing = np.empty(0, dtype=np.int64)
        facts = {"status": "failed", "error": error, "traceback": traceback, "attempt": attempt}
        return cls(nothing, nothing, nothing, nothing, facts)

    @property
    def failed(self) -> bool:
        """Whether the job raised an error."""
        return self.facts["status"] == "failed"


class RunFolder:
    """A folder that holds a run, made where it does not exist."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        #: The file that claims are made in, and where data sets lie that the catalogue lacks.
        self.lock_file, self.data = self.path / "claims.lock", self.path / "data"
        if self.path.exists() and not self.path.is_dir():
            raise ExperimentError(f"{self.path} is a file; a run needs a folder.")

    def take_in(self, declaration: Declaration) -> Declaration:
        """Keep the files that a declaration names as archives; return it with their names."""
        names = {}
        for file in sorted({name for item in declaration.experiments for name in item.datasets}):
            if not names_a_file(file) or (self.data / f"{file}{SUFFIX}").exists():
                continue
            name = names[file] = name_of(file)
            kept = self.data / f"{name}{SUFFIX}"
            if is_archive(file):
                read_own(Path(file))  # or say why it cannot be read
                given = Path(file).read_bytes()
            else:
                of_file = (item for item in declaration.experiments if file in item.datasets)
                columns, draws = declaration.tables.get(file, {}), all(item.p for item in of_file)
                given = archive_of_table(Path(file), columns, draws=draws)
            if kept.exists() and kept.read_bytes() != given:
                raise ExperimentError(
                    f"{self.path} holds results on another data set named {name}: choose another "
                    "folder, or give the file another name."
                )
            write_atomically(kept, given)
        return replace(declaration.rename_datasets(lambda name: names.get(name, name)), tables={})

    def file_of(self, job: Job) -> Path:
        """Return where a job's result lies."""
        return self.path / "jobs" / f"{job.id}.npz"

    def declare(self, declaration: Declaration) -> Declaration:
        """Add a declaration to the folder; return all that the folder is for.

        It is an error if the folder holds results of another protocol, which must not share a
        table.
        """
        try:
            for folder in (self.path, self.path / "jobs", self.path / "starts"):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExperimentError(
                f"The run folder {self.path} cannot be made: {error.strerror}."
            ) from error
        with claimed(self.lock_file, _FOLDER_CLAIM, wait=True):
            merged = self._merged(declaration)
            content = {"format": FORMAT_VERSION, **merged.plain()}
            text = json.dumps(content, indent=1) + "\n"
            write_atomically(self.path / "declaration.json", text.encode())
        return merged

    def declaration(self) -> Declaration:
        """Return what the folder is for."""
        file = self.path / "declaration.json"
        if not file.exists():
            raise ExperimentError(f"{self.path} is not a run folder: it holds no declaration.json.")
        content = _read_object(file)
        version = content.pop("format", None)
        if version != FORMAT_VERSION:
            newer = isinstance(version, int) and version > FORMAT_VERSION
            raise ExperimentError(
                f"{self.path} was made by another version of gmpll: "
                + (f"its format is {version}, update gmpll or " if newer else "")
                + "use a new folder."
            )
        return parse_declaration(content, where=str(file))

    def jobs(self) -> list[Job]:
        """Return all jobs that the folder is for, finished or not."""
        return expand(self.declaration())

    def save(self, job: Job, result: Result) -> None:
        """Keep a job's result, replacing an earlier one."""
        facts = {"format": FORMAT_VERSION, "job": asdict(job), **result.facts}
        arrays = {name: getattr(result, name) for name in _ARRAYS}
        arrays["facts"] = np.frombuffer(canonical_json(facts).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        write_atomically(self.file_of(job), buffer.getvalue())

    def load(self, job: Job) -> Result | None:
        """Return a job's result, or None if there is no (readable) one."""
        try:
            with np.load(self.file_of(job), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            facts = json.loads(arrays.pop("facts").tobytes())
            is_good = facts.pop("format") == FORMAT_VERSION and facts.pop("job") is not None
            result = Result(**arrays, facts=facts)
            return result if is_good and _is_whole(result) else None
        except Exception:  # damage shows in a dozen kinds of exception
            # Not there, or damaged behind our back: either way the job has to be run.
            return None

    def load_all(self, jobs: Iterable[Job]) -> dict[str, Result]:
        """Return the results that there are, by job id."""
        return {job.id: result for job in jobs if (result := self.load(job)) is not None}

    def remove_leftovers(self) -> None:
        """Remove what killed processes had begun to write, but nothing that is being written."""
        for leftover in (self.path / "jobs").glob(".*.tmp"):
            with claimed(self.lock_file, leftover.name[1:].partition(".")[0]) as ours:
                if ours:
                    leftover.unlink(missing_ok=True)
        for folder in (self.path, self.path / "starts"):
            remove_abandoned(folder)

    def note_start(self, provenance: dict[str, Any]) -> None:
        """Note down who works on the folder from now on."""
        name = f"{provenance['started'].replace(':', '')}-{os.getpid()}.json"
        text = json.dumps(provenance, indent=1) + "\n"
        write_atomically(self.path / "starts" / name, text.encode())

    def starts(self) -> list[dict[str, Any]]:
        """Return the provenance of every start, oldest first."""
        files = sorted((self.path / "starts").glob("*.json"))
        starts = {file: _read_object(file, advice="; remove it") for file in files}
        for file, start in starts.items():
            if not isinstance(start.get("commit", ""), str):
                raise ExperimentError(
                    f"{file} is damaged: it must tell of one start, so remove it."
                )
        return list(starts.values())

    def _merged(self, declaration: Declaration) -> Declaration:
        if not (self.path / "declaration.json").exists():
            return declaration
        before = self.declaration()
        for old, new in product(before.experiments, declaration.experiments):
            if not old.fits_beside(new):
                raise ExperimentError(
                    f"{self.path} holds a {old.kind} run with another protocol (folds, tuning or "
                    "rows differ): choose another folder, or repeat its options."
                )
        for name, method in declaration.variants.items():
            if before.variants.get(name, method) != method:
                raise ExperimentError(
                    f"{self.path} holds results of another variant named {name!r}: choose another "
                    "name or folder."
                )
        # Both as they are after a way through JSON, so that equal ones are found to be equal.
        plain = json.loads(json.dumps(declaration.plain()))
        again = parse_declaration(plain, where=str(self.path / "declaration.json"))
        added = [item for item in again.experiments if item not in before.experiments]
        variants = {**before.variants, **again.variants}
        return Declaration((*before.experiments, *added), variants)


def _is_whole(result: Result) -> bool:
    """Whether the arrays of a result fit together and its facts say how it ended."""
    arrays = [getattr(result, name) for name in _ARRAYS]
    are_numbers = all(np.ndim(array) == 1 and array.dtype.kind in "iu" for array in arrays)
    are_words = all(isinstance(result.facts.get(name), str) for name in ("status", "error"))
    if not are_numbers or not are_words or result.failed:
        return are_numbers and are_words
    return (
        len(result.predicted) == len(result.test_rows)
        and len(result.labels) in (0, len(result.train_rows))
        and bool((result.test_rows >= 0).all() and (result.train_rows >= 0).all())
    )


def _read_object(file: Path, advice: str = "") -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExperimentError(f"{file} cannot be read: {error.strerror}{advice}.") from error
    except (ValueError, RecursionError) as error:
        raise ExperimentError(f"{file} is not valid JSON: {error}{advice}.") from error
    if not isinstance(content, dict):
        raise ExperimentError(f"{file} is damaged: it must hold one JSON object{advice}.")
    return content
