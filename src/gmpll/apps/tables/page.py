"""The page of a run: one self-contained HTML file, no script, no network, every name escaped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

import gmpll
from gmpll.apps.pages import render_template
from gmpll.apps.tables.resolving import annotator_table, sentences
from gmpll.explanation import Explanation, explain_rows

if TYPE_CHECKING:
    from gmpll.apps.tables.candidate_sets import LabelSets
    from gmpll.apps.tables.resolving import Resolution

#: The page must open at once, whatever the number of rows: it shows so many.
MAX_DOUBTFUL = 40
MAX_PAIRS = 25
MAX_LABELS = 40
MAX_ITERATIONS = 6
MAX_ANNOTATORS = 50
MAX_NEIGHBORS = 8
#: Between the bars of the confidences; narrow where most rows are.
_EDGES = np.array([0.0, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0])


class DoubtfulRow(NamedTuple):
    """A row worth a look, with the reasons for its label and who voted what, as far as known."""

    id: str
    label: str
    runner_up: str
    margin: float
    candidates: list[tuple[str, float]]
    cells: list[tuple[str, str]]
    votes: list[tuple[str, str]]
    reasons: Explanation | None
    neighbor_ids: list[str]
    counterfactual: str


def page_facts(resolution: Resolution, display: NDArray[np.str_]) -> dict[str, Any]:
    """Collect what the page says; ``display`` are the cells of every row that are worth showing.

    ``frequencies`` tells how often a label stands in the sets, is expected in them (a row with s
    candidates counts as 1/s for each of them), and was found; ``pairs`` how the rows that have
    both labels among their candidates were decided.
    """
    prepared, found = resolution.prepared, resolution.verdicts
    sets, options = prepared.sets, prepared.options
    sizes = sets.mask.sum(axis=1)
    is_open = resolution.is_open & (sets.gold < 0)
    settings = {
        "gmpll": gmpll.__version__,
        "method": options.method,
        "seed": options.seed,
        "flagged for review below a margin of": prepared.review_below,
        **resolution.model.get_params(),
    }
    frequencies = pd.DataFrame(
        {
            "label": sets.classes,
            "in_sets": sets.mask.sum(axis=0),
            "expected": (1.0 / sizes) @ sets.mask,
            "found": np.bincount(found.labels, minlength=len(sets.classes)),
        }
    )
    order = np.lexsort((sets.classes, -frequencies["found"]))[:MAX_LABELS]
    counts, _ = np.histogram(found.confidence[resolution.is_open], bins=_EDGES)
    lengths = np.log1p(counts) / np.log1p(max(counts.max(), 1))
    return {
        "source": prepared.table.name,
        "n_rows": len(sets.mask),
        "n_labels": len(sets.classes),
        "n_ambiguous": int((sizes > 1).sum()),
        "n_open": int(resolution.is_open.sum()),
        "n_gold": int((sets.gold >= 0).sum()),
        "n_review": int(found.review.sum()),
        "calibrated": prepared.calibrated,
        "mean_candidates": float(sizes.mean()),
        "confidences": list(zip(_EDGES, _EDGES[1:], counts, lengths, strict=False)),
        "used": prepared.roles.described(),
        "n_features": resolution.features.shape[1],
        "problems": prepared.problems,
        "evidence": sentences(resolution),
        "annotators": annotator_table(resolution),
        "frequencies": frequencies.iloc[order],
        "pairs": _pairs(resolution),
        "doubtful": _doubtful(resolution, display, np.flatnonzero(is_open)),
        "n_doubtful": int(is_open.sum()),
        "settings": settings,
    }


def render_page(facts: dict[str, Any]) -> str:
    """Render the page of a run as HTML."""
    limits = {"max_annotators": MAX_ANNOTATORS, "max_neighbors": MAX_NEIGHBORS}
    return render_template("gmpll.apps.tables", "resolved.html", **facts, **limits)


def _pairs(resolution: Resolution) -> pd.DataFrame:
    """Count what became of rows with two labels in common; never a dense labels x labels array."""
    sets, found = resolution.prepared.sets, resolution.verdicts
    candidates = sp.csr_array(sets.mask.astype(np.float64))
    together = sp.coo_array(sp.triu(candidates.T @ candidates, k=1))
    facts = []
    for k in np.argsort(-together.data, kind="stable")[:MAX_PAIRS]:
        pair = [together.row[k], together.col[k]]
        both = sets.mask[:, pair].all(axis=1)
        decided = [np.count_nonzero(found.labels[both] == label) for label in pair]
        facts.append((*sets.classes[pair], both.sum(), *decided, found.margin[both].mean()))
    names = ["first", "second", "together", "to_first", "to_second", "margin"]
    return pd.DataFrame(facts, columns=names)


def _doubtful(
    resolution: Resolution, display: NDArray[np.str_], open_rows: NDArray[np.intp]
) -> list[DoubtfulRow]:
    prepared, found = resolution.prepared, resolution.verdicts
    sets, ids = prepared.sets, prepared.ids
    names = [*sets.classes.tolist(), ""]
    order = open_rows[np.argsort(found.margin[open_rows], kind="stable")][:MAX_DOUBTFUL]
    reasons: list[Explanation | None] = [None] * len(order)
    if prepared.options.method == "gmpll" and order.size:
        reasons = [*explain_rows(resolution.model, order.tolist(), max_iterations=MAX_ITERATIONS)]
    rows = []
    for row, why in zip(order.tolist(), reasons, strict=True):
        either = [found.labels[row], found.runners_up[row]]
        codes = np.union1d(np.flatnonzero(sets.mask[row]), either)
        codes = codes[np.argsort(-resolution.confidences[row, codes], kind="stable")]
        tipped = why is not None and not sets.annotated
        rows.append(
            DoubtfulRow(
                id=str(ids[row]),
                label=names[either[0]],
                runner_up=names[either[1]],
                margin=float(found.margin[row]),
                candidates=[(names[c], float(resolution.confidences[row, c])) for c in codes],
                cells=list(json.loads(str(display[row])).items()),
                votes=_votes_of(row, sets),
                reasons=why,
                neighbor_ids=[str(ids[near.row]) for near in why.neighbors] if why else [],
                counterfactual=why.counterfactual(ids.__getitem__) if why and tipped else "",
            )
        )
    return rows


def _votes_of(row: int, sets: LabelSets) -> list[tuple[str, str]]:
    """Return who voted what for a row."""
    votes = sets.votes
    if votes is None or votes.annotators is None or votes.votes is None:
        return []
    who, labels = divmod(votes.votes[[row]].indices, len(sets.classes))
    names = map(str, votes.annotators[who])
    return list(zip(names, sets.classes[labels].tolist(), strict=True))
