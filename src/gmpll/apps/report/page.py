"""From sections to one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("gmpll.apps.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The drawings were written by an XML serialiser, which has escaped every name in them.
    environment.filters["drawn"] = Markup
    return environment.get_template("report.html").render(
        sections=sections,
        provenance=provenance_groups(provenance),
        citation=paper.CITATION,
        max_rows=MAX_ROWS,
    )
