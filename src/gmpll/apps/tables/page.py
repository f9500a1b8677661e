"""The page of a run: one self-contained HTML file, no network, every name escaped.

Its script sorts and searches the doubtful rows; without it everything else works.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import sklearn

import gmpll
from gmpll._typing import Names
from gmpll.apps.pages import render_template
from gmpll.apps.pages.images import PictureError, read_picture
from gmpll.apps.tables.summary import (
    PROBABLY,
    annotator_table,
    label_confusion,
    notes_of,
    settings_of,
    wrong_probability,
)
from gmpll.explanation import Explanation, explain_rows

if TYPE_CHECKING:
    from gmpll.apps.tables.candidate_sets import LabelSets
    from gmpll.apps.tables.resolving import Resolution

#: The page must open at once, whatever the number of rows: it shows so many.
MAX_DOUBTFUL = 200
MAX_EXPLAINED = 40
MAX_PAIRS = 25
MAX_LABELS = 40
MAX_CONFUSED = 12
MAX_ITERATIONS = 6
MAX_ANNOTATORS = 50
MAX_MATRICES = 20
MAX_NEIGHBORS = 8
#: Bytes of a picture, and of all pictures of the page.
MAX_PICTURE, MAX_PICTURES = 500_000, 6_000_000
#: Between the bars of the confidences; narrow where most rows are.
_EDGES = np.array([0.0, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0])


def page_facts(resolution: Resolution, display: Names, command: str = "") -> dict[str, Any]:
    """Collect what the page says; ``display`` are the cells of every row that are worth showing."""
    prepared, found = resolution.prepared, resolution.verdicts
    sets = prepared.sets
    sizes = sets.mask.sum(axis=1)
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
    wrong = wrong_probability(resolution)
    annotators = annotator_table(resolution)
    matrices = []
    if annotators is not None and len(sets.classes) <= MAX_CONFUSED:
        busiest = annotators.index[:MAX_MATRICES]
        matrices = [(str(n), resolution.model.annotators_.confusion(n)) for n in busiest]
    made = {
        "date": f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
        "command": command,
        "versions": f"gmpll {gmpll.__version__}, Python {platform.python_version()}, NumPy "
        f"{np.__version__}, scikit-learn {sklearn.__version__}, pandas {pd.__version__}",
    }
    return {
        "source": prepared.table.name,
        "classes": sets.classes[:MAX_CONFUSED].tolist(),
        "n_rows": len(sets.mask),
        "n_labels": len(sets.classes),
        "n_ambiguous": int((sizes > 1).sum()),
        "n_open": int(resolution.is_open.sum()),
        "n_gold": int((sets.gold >= 0).sum()),
        "n_review": int(found.review.sum()),
        "n_lacking": resolution.n_lacking,
        "n_wrong": float(wrong.sum()) if prepared.calibrated else None,
        "n_wrong_flagged": float(wrong[found.review].sum()),
        "calibrated": prepared.calibrated,
        "mean_candidates": float(sizes.mean()),
        "confidences": list(zip(_EDGES, _EDGES[1:], counts, lengths, strict=False)),
        "used": prepared.roles.described(),
        "merged": sets.merged,
        "n_features": resolution.features.shape[1],
        "notes": notes_of(resolution),
        "annotators": annotators,
        "matrices": matrices,
        "frequencies": frequencies.iloc[order],
        "confusion": label_confusion(resolution, MAX_CONFUSED),
        "pairs": _pairs(resolution),
        "doubtful": _doubtful(resolution, display),
        "settings": settings_of(resolution),
        "made": {name: text for name, text in made.items() if text},
    }


def render_page(facts: dict[str, Any]) -> str:
    """Render the page of a run as HTML."""
    script = files("gmpll.apps.tables").joinpath("templates/resolved.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render_template(
        "gmpll.apps.tables",
        "resolved.html",
        **facts,
        script=script,
        script_hash=f"sha256-{digest}",
        max_annotators=MAX_ANNOTATORS,
        max_neighbors=MAX_NEIGHBORS,
        probably=PROBABLY,
    )


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


def _doubtful(resolution: Resolution, display: Names) -> list[SimpleNamespace]:
    """Describe the flagged rows, the most doubtful first, with the reasons as far as known."""
    prepared, found = resolution.prepared, resolution.verdicts
    sets, ids, roles = prepared.sets, prepared.ids, prepared.roles
    names = [*sets.classes.tolist(), ""]
    outside = np.zeros(len(ids)) if found.outside is None else found.outside
    suggested = found.labels if found.suggested is None else found.suggested
    flagged = np.flatnonzero(found.review)
    doubt = np.minimum(found.margin, 1 - 2 * outside)[flagged]
    order = flagged[np.argsort(doubt, kind="stable")][:MAX_DOUBTFUL].tolist()
    reasons: list[Explanation | None] = [None] * len(order)
    if prepared.options.method == "gmpll" and order:
        explained = order[:MAX_EXPLAINED]
        reasons[: len(explained)] = explain_rows(
            resolution.model, explained, max_iterations=MAX_ITERATIONS
        )
    path, room = prepared.table.path, MAX_PICTURES
    folder = None if path is None else path.absolute().parent
    rows = []
    for row, why in zip(order, reasons, strict=True):
        named = np.array([found.labels[row], suggested[row], found.runners_up[row]])
        codes = np.union1d(np.flatnonzero(sets.mask[row]), named[named >= 0])
        shares = resolution.confidences[row].astype(np.float64)
        if not sets.annotated:
            shares *= 1.0 - outside[row]
            shares[suggested[row]] += outside[row] * (not sets.mask[row, suggested[row]])
        codes = codes[np.argsort(-shares[codes], kind="stable")]
        votes = _votes_of(row, sets)
        tipped = why is not None and not sets.annotated
        cells = json.loads(str(display[row]))
        picture = _picture(cells.get(roles.image, ""), folder, room)
        room -= len(picture) * 3 // 4
        rows.append(
            SimpleNamespace(
                id=str(ids[row]),
                label=names[found.labels[row]],
                runner_up=names[found.runners_up[row]],
                margin=float(found.margin[row]),
                outside=float(outside[row]),
                suggested=names[suggested[row]],
                text=" ".join(cells.get(name, "") for name in roles.text),
                picture=picture,
                candidates=[
                    SimpleNamespace(
                        name=names[code],
                        share=float(shares[code]),
                        voters=[who for who, label in votes if label == names[code]],
                        n_votes=None if sets.weights is None else round(sets.weights[row, code]),
                    )
                    for code in codes
                ],
                cells=[(n, cell) for n, cell in cells.items() if n not in roles.text],
                votes=votes,
                reasons=why,
                neighbor_ids=[str(ids[near.row]) for near in why.neighbors] if why else [],
                counterfactual=why.counterfactual(ids.__getitem__) if why and tipped else "",
            )
        )
    return rows


def _picture(name: str, folder: Path | None, room: int) -> str:
    """Return a picture beside the input as the address that holds it, "" if there is no room."""
    if not name or folder is None:
        return ""
    try:
        image = read_picture(name, folder)
    except PictureError:
        return ""
    address = f"data:{image.media_type};base64,{base64.b64encode(image.content).decode()}"
    return address if len(image.content) <= min(MAX_PICTURE, room) else ""


def _votes_of(row: int, sets: LabelSets) -> list[tuple[str, str]]:
    """Return who voted what for a row."""
    votes = sets.votes
    if votes is None or votes.annotators is None or votes.votes is None:
        return []
    who, labels = divmod(votes.votes[[row]].indices, len(sets.classes))
    names = map(str, votes.annotators[who])
    return list(zip(names, sets.classes[labels].tolist(), strict=True))
