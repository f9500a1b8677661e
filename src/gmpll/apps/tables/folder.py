"""The output folder of a run: the resolved rows, the model, the matching and the page."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gmpll.apps.decisions.archive import Archived, archiving, carry_over
from gmpll.apps.tables import model_file, saved
from gmpll.apps.tables.believed import annotator_table
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.formulas import escape_formula
from gmpll.apps.tables.output import output_folder, table_suffix, write_table
from gmpll.apps.tables.page import render_page
from gmpll.apps.tables.page_facts import page_facts
from gmpll.apps.tables.resolving import result_columns

if TYPE_CHECKING:
    from gmpll.apps.tables.resolving import Resolution

__all__ = ["OWN_FILES", "PAGE", "Written", "write_folder"]

PAGE = "report.html"
ANNOTATORS = "annotators.csv"
#: Where one of these lies, a run has been written.
OWN_FILES = (saved.FILE_NAME, model_file.FILE_NAME, PAGE)


class Written(NamedTuple):
    """The files of a run, the resolved rows first, and decisions that had to make room."""

    files: list[Path]
    archived: Archived | None


def write_folder(
    resolution: Resolution,
    folder: Path,
    *,
    escape: bool = True,
    step: Callable[[str], None] = lambda text: None,
) -> Written:
    """Write everything that a run found; all files appear together at the end.

    Decisions of a review that do not fit what was found are kept beside it. Cells of delimited
    text that look like formulas are made harmless; ``step`` is told what begins now.
    """
    prepared = resolution.prepared
    table = prepared.table
    results = f"resolved{table_suffix(table)}"
    with archiving(folder, saved.FILE_NAME) as make_room, output_folder(folder) as staging:
        step("Writing the resolved rows")
        columns = result_columns(
            resolution.verdicts,
            prepared.sets.classes,
            set(table.frame.columns),
            votes=resolution.votes,
        )
        write_table(table, columns, staging / results, escape=escape)
        annotators = annotator_table(resolution)
        if annotators is not None:
            if escape:
                annotators = annotators.rename(index=lambda name: escape_formula(str(name)))
            annotators.round(4).to_csv(staging / ANNOTATORS)
        step("Writing the model")
        model_file.save_model(
            model_file.SavedModel(
                resolution.encoder,
                resolution.model,
                prepared.roles.vectors,
                len(prepared.roles.files),
                prepared.review_below,
            ),
            staging / model_file.FILE_NAME,
        )
        matching = saved.saved_matching(resolution)
        saved.write_matching(matching, staging / saved.FILE_NAME)
        step("Explaining and drawing the report")
        page = render_page(page_facts(resolution, matching.display))
        (staging / PAGE).write_text(page, encoding="utf-8")
        archived = make_room(matching)
    if archived is not None:
        with suppress(InputError):  # a damaged matching: the decisions can be read where they are
            before = saved.read_matching(archived.folder)
            archived = carry_over(archived, before, folder, matching, prepared.roles.id)
    names = (results, ANNOTATORS, PAGE, model_file.FILE_NAME, saved.FILE_NAME)
    return Written([folder / name for name in names if (folder / name).exists()], archived)
