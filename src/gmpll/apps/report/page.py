"""From sections to one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gmpll.apps.pages import render_template
from gmpll.apps.report import paper
from gmpll.apps.report.provenance import provenance_groups

if TYPE_CHECKING:
    from gmpll.apps.report.sections import Section

__all__ = ["MAX_ROWS", "render_page"]

#: A longer table is cut on the page; its files hold all rows.
MAX_ROWS = 300


def render_page(sections: Sequence[Section], provenance: Mapping[str, Any]) -> str:
    """Render the page: no script, no network, names escaped.

    Parameters
    ----------
    sections : sequence of Section
    provenance : mapping
        Nested facts, listed at the end.

    Returns
    -------
    str
        HTML.
    """
    return render_template(
        "gmpll.apps.report",
        "report.html",
        sections=sections,
        provenance=provenance_groups(provenance),
        citation=paper.CITATION,
        max_rows=MAX_ROWS,
    )
