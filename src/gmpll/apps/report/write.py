"""From a table of scores to a folder with the page, the tables and the figures."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmpll.apps.report.formats import to_csv, to_latex, to_markdown
from gmpll.apps.report.page import render_page
from gmpll.apps.report.scores_table import checked_scores
from gmpll.apps.report.sections import all_drawings, all_tables, make_sections

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_report"]


def _write(path: Path, text: str) -> None:
    from gmpll.apps.experiments.store import write_atomically

    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())


def write_report(
    scores: pd.DataFrame, out_dir: str | PathLike[str], *, provenance: Mapping[str, Any]
) -> Path:
    """Render a table of scores as a report.

    Parameters
    ----------
    scores : DataFrame
        One row per job, as :func:`gmpll.apps.experiments.scores` returns it.
    out_dir : path
        Folder to write to; it is made where needed. It gets ``index.html`` (self-contained),
        ``tables/NAME.csv``, ``.md`` and ``.tex`` for every table, and ``figures/NAME.svg``.
    provenance : mapping
        Command, versions, commit, class of machine; listed at the end of the page.

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from gmpll.apps.report import write_report
    >>> from gmpll.apps.report.scores_table import SCORE_COLUMNS
    >>> nothing = pd.DataFrame(columns=list(SCORE_COLUMNS))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(nothing, folder, provenance={"command": "none"})
    ...     "The table of scores is empty." in page.read_text(encoding="utf-8")
    True
    """
    from gmpll.datasets import list_datasets

    folder = Path(out_dir)
    sections = make_sections(checked_scores(scores), list_datasets())
    for table in all_tables(sections):
        stem = folder / "tables" / table.name
        _write(stem.with_name(f"{table.name}.csv"), to_csv(table))
        _write(stem.with_name(f"{table.name}.md"), to_markdown(table))
        _write(stem.with_name(f"{table.name}.tex"), to_latex(table))
    for drawing in all_drawings(sections):
        _write(folder / "figures" / f"{drawing.name}.svg", drawing.svg + "\n")
    page = folder / "index.html"
    # The page comes last: where it stands, everything it links to stands too.
    _write(page, render_page(sections, provenance))
    return page
