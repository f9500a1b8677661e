"""Writing results: whole or not at all, in the input's own format.

Everything is written into a folder beside the target first and moved at the end.
"""

import csv
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from gmpll._atomic_io import (
    abandoned,
    nearest_folder,
    remove_abandoned,
    sync_file,
    sync_folder,
    takes_files,
    unfinished_path,
)
from gmpll._progress import begin
from gmpll.apps.decisions.archive import (
    Archived,
    archiving,
    carry_over,
    decisions_about,
    next_folder,
)
from gmpll.apps.decisions.errors import ReviewError
from gmpll.apps.decisions.store import Entry, Rows
from gmpll.apps.tables import saved
from gmpll.apps.tables.cells import escape_formula
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.page import page_facts, render_page
from gmpll.apps.tables.resolving import Prepared, Resolution, result_columns
from gmpll.apps.tables.steps import REPORTING, SAVING, WRITING
from gmpll.apps.tables.summary import annotator_table
from gmpll.apps.tables.tables import FORMATS, Table

#: Endings of files of results, by the format of the input.
SUFFIX = {"csv": ".csv", "tsv": ".tsv", "parquet": ".parquet", "jsonl": ".jsonl", "json": ".jsonl"}
_BATCH_ROWS = 10_000
#: Where the files of an earlier run wait until those of the new one have all arrived.
_REPLACED = "replaced"
#: Folder of results that decisions have changed since; a number follows.
EARLIER_RESULTS = "earlier-results"
PAGE = "report.html"
ANNOTATORS = "annotators.csv"
#: Where one of these lies, a run has been written.
OWN_FILES = (saved.MATCHING_FILE, saved.MODEL_FILE, PAGE)


def check_suffix(path: Path, table: Table) -> None:
    """Refuse the name of a file that promises another format than the table's."""
    own = SUFFIX[table.format]
    is_text = table.format in ("csv", "tsv")
    fitting = {suffix for suffix, kind in FORMATS.items() if kind == FORMATS[own]}
    if path.suffix.lower() not in fitting | {"", *([".txt"] if is_text else [])}:
        raise InputError(
            f"{path} would hold the format of the input: name a file that ends in {own} with --out."
        )


def check_target(folder: Path, *, force: bool, own_files: tuple[str, ...]) -> None:
    """Refuse a folder that cannot be written, or holds results already, before any work."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder with --out.")
    # Without being told, nothing is replaced but what a killed run left incomplete.
    left = abandoned(folder.absolute().parent, folder.absolute().name)
    force = force or any((path / _REPLACED).is_dir() for path in left)
    if folder.is_dir() and not force and any((folder / name).exists() for name in own_files):
        raise InputError(
            f"{folder} holds results already: name another folder with --out, or replace them "
            "with --force."
        )
    near = nearest_folder(folder)
    if not takes_files(near):
        raise InputError(f"{near} cannot be written to: name another folder with --out.")


@contextmanager
def output_folder(folder: Path) -> Iterator[Path]:
    """Give an empty folder whose files move to ``folder`` if the block ends well.

    Whatever goes wrong, an interruption included, nothing is left behind and ``folder`` is as it
    was. Files that lay in it before and are not written anew stay.
    """
    made = [path for path in (folder, *folder.absolute().parents) if not path.exists()]
    staging = unfinished_path(folder.absolute())
    try:
        staging.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(staging.parent, folder.absolute().name)
        staging.mkdir()
    except OSError as error:
        raise InputError(
            f"The folder {folder} cannot be made ({error.strerror}): name another with --out."
        ) from error
    try:
        yield staging
        for file in staging.iterdir():
            sync_file(file)
        if folder.exists():
            _exchange(staging, folder)
        else:
            os.replace(staging, folder)  # one step: even a kill leaves all or nothing
        sync_folder(folder)
        sync_folder(folder.absolute().parent)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        for path in made:  # the deepest first; a folder with something in it stays
            with suppress(OSError):
                path.rmdir()
        raise
    shutil.rmtree(staging, ignore_errors=True)


def _exchange(staging: Path, folder: Path) -> None:
    """Put the files of a run in the place of those of an earlier one.

    Old files leave before new ones come, so that a kill never leaves a mixture of two runs.
    """
    new = sorted(file.name for file in staging.iterdir())
    old = {name for name in new if (folder / name).exists()}
    if any(name.startswith("resolved.") for name in new):
        # Perhaps of another format, or of votes with names of annotators.
        earlier = (*folder.glob("resolved.*"), *folder.glob("annotators.csv"))
        old |= {file.name for file in earlier}
    replaced = staging / _REPLACED
    replaced.mkdir()
    try:
        for name in sorted(old):
            os.replace(folder / name, replaced / name)
        for name in new:
            os.replace(staging / name, folder / name)
    except BaseException:
        for name in new:
            if not (staging / name).exists():
                (folder / name).unlink(missing_ok=True)
        for file in replaced.iterdir():
            os.replace(file, folder / file.name)
        raise


@contextmanager
def keeping(folder: Path) -> Iterator[Path]:
    """Keep a copy of the results in a folder beside them, unless the block fails."""
    kept = next_folder(folder, EARLIER_RESULTS)
    try:
        with output_folder(kept) as copy:
            for path in (
                *folder.glob("resolved.*"),
                *map(folder.joinpath, (ANNOTATORS, *OWN_FILES)),
            ):
                if path.is_file():
                    shutil.copy2(path, copy)
        yield kept
    except BaseException:
        shutil.rmtree(kept, ignore_errors=True)
        raise


def write_table(
    table: Table, columns: dict[str, list[Any]], path: Path, *, escape: bool = True
) -> None:
    """Write a table with columns added, in its format and with every cell as it was.

    Cells of delimited text that look like formulas are made harmless unless ``escape`` is off.
    """
    cells = table.cells
    if cells is None:
        with path.open("w", encoding="utf-8") as file:
            for record, *values in zip(table.records(), *columns.values(), strict=True):
                row = {**record, **dict(zip(columns, values, strict=True))}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        return
    is_text = table.format in ("csv", "tsv")
    for name, values in columns.items():
        cells = cells.append_column(name, pa.array(_as_text(values) if is_text else values))
    if not is_text:
        # The description that pandas leaves in a file knows nothing of the new columns.
        parquet.write_table(cells.replace_schema_metadata(None), path)
        return
    clean = escape_formula if escape else str
    with path.open("w", encoding=table.encoding, newline="") as file:
        # Carriage returns in cells, which readers take for ends of rows, are quoted only where the
        # writer itself ends lines with them; lines end with a line feed alone.
        lines: Any = SimpleNamespace(write=lambda s: file.write(s.removesuffix("\r\n") + "\n"))
        writer = csv.writer(lines, delimiter=table.delimiter, lineterminator="\r\n")
        writer.writerow([clean(name) for name in cells.column_names])
        for batch in cells.to_batches(max_chunksize=_BATCH_ROWS):
            texts = [map(clean, column.to_pylist()) for column in batch.columns]
            writer.writerows(zip(*texts, strict=True))


def _as_text(values: list[Any]) -> list[str]:
    texts = {None: "", True: "true", False: "false"}
    return [texts[v] if v is None or isinstance(v, bool) else str(v) for v in values]


def decisions_in(folder: Path, prepared: Prepared, before: Rows | None = None) -> dict[int, Entry]:
    """Return what reviewers decided in a folder about the rows of a run; nothing if damaged."""
    sets = prepared.sets
    after = Rows(prepared.ids, sets.classes, sets.mask, prepared.ids)
    try:
        before = before or saved.read_matching(folder).rows
        return decisions_about(folder, before, after, prepared.roles.id)
    except (InputError, ReviewError, IndexError):
        return {}


def write_folder(
    resolution: Resolution,
    folder: Path,
    *,
    escape: bool = True,
    held: Mapping[int, Entry] | None = None,
    command: str = "",
) -> tuple[list[Path], Archived | None]:
    """Write everything that a run found; all files appear together at the end.

    They are returned, the resolved rows first, with decisions of a review that had to make room:
    those that do not fit what was found are kept beside it. Cells of delimited text that look like
    formulas are made harmless; ``held`` are decisions that were known labels of the run, and the
    report says that the ``command`` made it.
    """
    prepared = resolution.prepared
    table = prepared.table
    results = f"resolved{SUFFIX[table.format]}"
    with archiving(folder, saved.MATCHING_FILE) as make_room, output_folder(folder) as staging:
        begin(WRITING)
        taken = set(table.frame.columns)
        found, classes = resolution.verdicts, prepared.sets.classes
        columns = result_columns(found, classes, taken, votes=resolution.votes, held=held)
        write_table(table, columns, staging / results, escape=escape)
        annotators = annotator_table(resolution)
        if annotators is not None:
            if escape:
                annotators = annotators.rename(index=lambda name: escape_formula(str(name)))
                annotators["confuses"] = annotators["confuses"].map(escape_formula)
            annotators.round(4).to_csv(staging / ANNOTATORS)
        begin(SAVING)
        roles, encoder = prepared.roles, resolution.encoder
        needed = (roles.vectors, len(roles.files), prepared.review_below)
        model = saved.SavedModel(encoder, resolution.model, *needed)
        saved.save_model(model, staging / saved.MODEL_FILE)
        matching = saved.saved_matching(resolution, escape=escape, n_added=len(columns))
        saved.write_matching(matching, staging / saved.MATCHING_FILE)
        begin(REPORTING)
        page = render_page(page_facts(resolution, matching.display, command))
        (staging / PAGE).write_text(page, encoding="utf-8")
        archived = make_room(matching.rows)
    if archived is not None:
        with suppress(InputError):  # a damaged matching: the decisions can be read where they are
            before = saved.read_matching(archived.folder).rows
            archived = carry_over(archived, before, folder, matching.rows, roles.id)
    names = (results, ANNOTATORS, PAGE, saved.MODEL_FILE, saved.MATCHING_FILE)
    return [folder / name for name in names if (folder / name).exists()], archived
