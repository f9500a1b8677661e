"""From facts to one self-contained HTML page: no script, no network, every name escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmpll.apps.pages import render_template
from gmpll.apps.pages.tables import Cell, Row, Table, count, number
from gmpll.apps.tables.page_figures import confidence_figure, frequency_figure, map_figure

if TYPE_CHECKING:
    from gmpll.apps.tables.page_facts import DoubtfulRow, PageFacts

__all__ = ["render_page"]

_MAX_NEIGHBORS = 8
MAX_ANNOTATORS = 50


def render_page(facts: PageFacts) -> str:
    """Render the page of a run as HTML."""
    import gmpll

    return render_template(
        "gmpll.apps.tables",
        "resolved.html",
        facts=facts,
        version=gmpll.__version__,
        confidence_figure=confidence_figure(facts),
        frequency_figure=frequency_figure(facts),
        map_figure=map_figure(facts),
        frequency_table=_frequency_table(facts),
        pair_table=_pair_table(facts),
        annotator_table=_annotator_table(facts),
        reason_tables={row.id: _reason_tables(row, facts) for row in facts.doubtful},
    )


def _frequency_table(facts: PageFacts) -> Table:
    rows = [
        [label, count(in_sets), number(expected, 1), count(found)]
        for label, in_sets, expected, found in facts.frequencies.to_numpy(dtype=object)
    ]
    header = ["label", "in sets", "expected", "found"]
    return _table("frequencies", "Label frequencies", header, rows)


def _pair_table(facts: PageFacts) -> Table:
    rows = [
        [
            f"{first} \N{EN DASH} {second}",
            *map(count, [both, a, b, both - a - b]),
            number(margin, 2),
        ]
        for first, second, both, a, b, margin in facts.pairs.to_numpy(dtype=object)
    ]
    header = ["labels", "rows with both", "first", "second", "another", "mean margin"]
    return _table("pairs", "Rows with both labels, and what they became", header, rows)


def _annotator_table(facts: PageFacts) -> Table | None:
    if facts.annotators is None:
        return None
    rows = [
        [str(name), count(votes), number(accuracy, 2), number(agreement, 2)]
        for name, votes, accuracy, agreement in facts.annotators.itertuples()
    ][:MAX_ANNOTATORS]
    header = ["annotator", "votes", "estimated accuracy", "agreement"]
    return _table("annotators", "Annotators", header, rows)


def _reason_tables(row: DoubtfulRow, facts: PageFacts) -> list[Table]:
    """Lay out who voted and how the matching went."""
    if row.reasons is None:
        return []
    tables = []
    if facts.annotators is not None:
        accuracy = facts.annotators["accuracy"]
        voted = [[name, label, number(accuracy[name], 2)] for name, label in row.votes]
        header = ["annotator", "vote", "estimated accuracy"]
        tables.append(_table("annotators", f"Who voted about {row.id}", header, voted))
    votes = [
        [identity, str(near.label), number(near.weight, 2), f"{near.share:.0%}"]
        for identity, near in zip(row.neighbor_ids, row.reasons.neighbors, strict=True)
    ][:_MAX_NEIGHBORS]
    header = ["neighbour", "its label", "weight", "share of all weight"]
    title = f"Neighbours of {row.id}, the heaviest vote first"
    tables.append(_table("votes", title, header, votes))
    if facts.annotators is not None:  # the matching is the lesser part of the reasons
        return tables
    names = list(row.reasons.support)
    told = [(f"iteration {step.number}", step) for step in row.reasons.iterations]
    if row.reasons.afterwards is not None:
        told.append(("afterwards", row.reasons.afterwards))
    iterations = [
        [name, *(f"{step.confidences[n]:.2f} ({step.changes[n]:+.2f})" for n in names)]
        for name, step in told
    ]
    if iterations:
        title = f"Confidences of {row.id} after every iteration (added or taken away)"
        header = ["", *(str(name) for name in names)]
        tables.append(_table("iterations", title, header, iterations))
    return tables


def _table(name: str, title: str, header: list[str], rows: list[list[str]]) -> Table:
    import pandas as pd

    lines = [Row([Cell(text) for text in row]) for row in rows]
    return Table(name, title, header, lines, pd.DataFrame())
