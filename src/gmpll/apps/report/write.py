"""From a table of scores to a folder with the page, the tables and the figures."""

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from gmpll._atomic_io import write_atomically
from gmpll.apps.experiments.own_data import own_infos
from gmpll.apps.experiments.provenance import provenance_of_run
from gmpll.apps.experiments.store import RunFolder
from gmpll.apps.pages import render_template
from gmpll.apps.report import paper
from gmpll.apps.report.formats import to_csv, to_latex, to_markdown
from gmpll.apps.report.scores_table import checked_scores, printable
from gmpll.apps.report.sections import make_sections
from gmpll.datasets import list_datasets

#: A longer table is cut on the page; its files hold all rows.
MAX_ROWS = 300
#: Heading of the facts that stand in no group.
GENERAL = "General"


def write_report(
    scores: pd.DataFrame,
    out_dir: str | PathLike[str],
    *,
    provenance: Mapping[str, Any],
    own: Path | None = None,
) -> Path:
    """Render a table of scores as a report; return the path of the page.

    The scores have a row per job, as :func:`gmpll.apps.experiments.scores` returns them. The folder
    is made where needed and gets ``index.html`` (self-contained), ``tables/NAME.csv``, ``.md`` and
    ``.tex`` for every table, and ``figures/NAME.svg``. The provenance (command, versions, commit,
    class of machine) is listed at the end of the page. ``own`` is the folder of data sets that the
    catalogue does not know.
    """
    folder = Path(out_dir)
    infos = [*list_datasets(), *(own_infos(own) if own is not None else ())]
    sections = make_sections(checked_scores(scores), infos)
    formats = {"csv": to_csv, "md": to_markdown, "tex": to_latex}
    files = {}
    for section in sections:
        for table in section.tables:
            for suffix, to_text in formats.items():
                files[f"tables/{table.name}.{suffix}"] = to_text(table)
        for drawing in section.drawings:
            files[f"figures/{drawing.name}.svg"] = f"{drawing.svg}\n"
    # The page comes last: where it stands, everything it links to stands too.
    files["index.html"] = render_template(
        "gmpll.apps.report",
        "report.html",
        sections=sections,
        provenance=provenance_groups(provenance),
        citation=paper.CITATION if set(scores["dataset"]) & paper.PRINTED_NAMES.keys() else "",
        max_rows=MAX_ROWS,
    )
    for name, text in files.items():
        write_atomically(folder / name, text.encode())
    return folder / "index.html"


def write_run_report(run_dir: Path, scores: pd.DataFrame) -> Path:
    """Render the scores of a run folder into it, with what the folder tells of their making."""
    folder = RunFolder(run_dir)
    provenance = provenance_of_run(folder)
    return write_report(scores, run_dir / "report", provenance=provenance, own=folder.data)


def provenance_groups(provenance: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Arrange nested facts in groups of named lines, for the end of the page.

    A value that is a mapping becomes a group of its own, with deeper ones flattened; empty values
    and groups are left out.
    """
    general = {key: value for key, value in provenance.items() if not isinstance(value, Mapping)}
    groups = {printable(k): v for k, v in provenance.items() if isinstance(v, Mapping)}
    named = {GENERAL: general} | groups
    return [(heading, lines) for heading in named if (lines := list(_lines(named[heading])))]


def _lines(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in facts.items():
        name = printable(f"{prefix}{key}".replace("_", " "))
        if isinstance(value, Mapping):
            yield from _lines(value, f"{name}: ")
        elif value not in (None, "", [], ()):
            listed = isinstance(value, (list, tuple))
            yield name, printable(", ".join(map(str, value)) if listed else value)
