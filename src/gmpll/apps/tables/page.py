"""The page of a run: one self-contained HTML file, no script, no network, every name escaped."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler, normalize

import gmpll
from gmpll.apps.pages import render_template
from gmpll.apps.pages.svg import PALETTE, drawing_style, to_svg
from gmpll.apps.pages.tables import Cell, Row, Table, count, number
from gmpll.apps.tables.resolving import annotator_table, sentences
from gmpll.explanation import Explanation, explain_rows

if TYPE_CHECKING:
    from gmpll.apps.tables.candidate_sets import LabelSets
    from gmpll.apps.tables.resolving import Resolution

#: The page must open at once, whatever the number of rows: it shows so many ...
MAX_DOUBTFUL = 40
MAX_PAIRS = 25
MAX_LABELS = 40
MAX_POINTS = 1500
MAX_ITERATIONS = 6
MAX_ANNOTATORS = 50
MAX_NEIGHBORS = 8
MAX_BARS = 20
#: ... and projects with axes learned from so many.
_PROJECTION_ROWS = 20_000
_MAX_CELL = 300
_MAX_NAME = 24
#: Labels with a colour of their own on the map; the others share the last colour.
_COLOURED = len(PALETTE) - 1
_MARKERS = "osD^vP<"
#: Confidence from doubtful to sure, and the place of its colour in the palette.
_STEPS = ((0.0, 0.5, 1), (0.5, 0.75, 4), (0.75, 0.95, 5), (0.95, 1.01, 0))


@dataclass(frozen=True)
class DoubtfulRow:
    """A row worth a look, with the reasons for its label and who voted what, as far as known."""

    id: str
    label: str
    runner_up: str
    margin: float
    candidates: tuple[tuple[str, float], ...]
    cells: tuple[tuple[str, str], ...]
    votes: tuple[tuple[str, str], ...]
    reasons: Explanation | None
    neighbor_ids: tuple[str, ...]
    counterfactual: str


def page_facts(resolution: Resolution, display: NDArray[np.str_]) -> dict[str, Any]:
    """Collect what the page says; ``display`` are the cells of every row that are worth showing.

    ``frequencies`` tells how often a label stands in the sets, is expected in them (a row with s
    candidates counts as 1/s for each of them), and was found; ``pairs`` how the rows that have
    both labels among their candidates were decided; ``map`` is a sample of the rows.
    """
    prepared, found = resolution.prepared, resolution.verdicts
    sets, options = prepared.sets, prepared.options
    sizes = sets.mask.sum(axis=1)
    is_open = resolution.is_open & (sets.gold < 0)
    settings = {
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
    return {
        "source": prepared.table.name,
        "n_rows": len(sets.mask),
        "n_labels": len(sets.classes),
        "n_ambiguous": int((sizes > 1).sum()),
        "n_gold": int((sets.gold >= 0).sum()),
        "n_review": int(found.review.sum()),
        "calibrated": prepared.calibrated,
        "mean_candidates": float(sizes.mean()),
        "confidence": found.confidence[resolution.is_open],
        "used": prepared.roles.described(),
        "n_features": resolution.features.shape[1],
        "problems": prepared.problems,
        "evidence": sentences(resolution),
        "annotators": annotator_table(resolution),
        "frequencies": frequencies.iloc[order],
        "pairs": _pairs(resolution),
        "map": _map(resolution),
        "doubtful": _doubtful(resolution, display, np.flatnonzero(is_open)),
        "n_doubtful": int(is_open.sum()),
        "settings": settings,
    }


def render_page(facts: dict[str, Any]) -> str:
    """Render the page of a run as HTML."""
    return render_template(
        "gmpll.apps.tables",
        "resolved.html",
        **facts,
        version=gmpll.__version__,
        confidence_figure=_confidence_figure(facts["confidence"]),
        frequency_figure=_frequency_figure(facts["frequencies"][:MAX_BARS]),
        map_figure=_map_figure(facts["map"], facts["frequencies"]["label"]),
        frequency_table=_frequency_table(facts["frequencies"]),
        pair_table=_pair_table(facts["pairs"]),
        annotator_table=_annotator_table(facts["annotators"]),
        reason_tables={r.id: reason_tables(r, facts["annotators"]) for r in facts["doubtful"]},
    )


# Facts ---------------------------------------------------------------------------------------


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


def _map(resolution: Resolution) -> dict[str, Any]:
    """Project what the matching sees: scaled features, rows of length one."""
    features, found = resolution.features, resolution.verdicts
    rng = np.random.RandomState(resolution.prepared.options.seed)
    order = rng.permutation(len(features))
    sample = np.sort(order[:_PROJECTION_ROWS])
    rows = normalize(StandardScaler().fit_transform(features[sample]))
    if rows.shape[1] == 1:
        rows = np.hstack([rows * features[sample], np.zeros_like(rows)])
    projection = PCA(n_components=2, random_state=rng).fit(rows)
    shown = np.sort(rng.permutation(len(sample))[:MAX_POINTS])
    return {
        "points": projection.transform(rows[shown]),
        "labels": resolution.prepared.sets.classes[found.labels[sample[shown]]],
        "confidence": found.confidence[sample[shown]],
        "explained": float(np.nan_to_num(projection.explained_variance_ratio_).sum()),
    }


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
                candidates=tuple((names[c], float(resolution.confidences[row, c])) for c in codes),
                cells=tuple((n, _short(v)) for n, v in json.loads(str(display[row])).items()),
                votes=_votes_of(row, sets),
                reasons=why,
                neighbor_ids=tuple(str(ids[near.row]) for near in why.neighbors) if why else (),
                counterfactual=why.counterfactual(ids.__getitem__) if why and tipped else "",
            )
        )
    return rows


def _votes_of(row: int, sets: LabelSets) -> tuple[tuple[str, str], ...]:
    """Return who voted what for a row."""
    votes = sets.votes
    if votes is None or votes.annotators is None or votes.votes is None:
        return ()
    who, labels = divmod(votes.votes[[row]].indices, len(sets.classes))
    names = map(str, votes.annotators[who])
    return tuple(zip(names, sets.classes[labels].tolist(), strict=True))


def _short(text: str, most: int = _MAX_CELL) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


# Tables --------------------------------------------------------------------------------------


def _frequency_table(frequencies: pd.DataFrame) -> Table:
    rows = [
        [label, count(in_sets), number(expected, 1), count(found)]
        for label, in_sets, expected, found in frequencies.to_numpy(dtype=object)
    ]
    header = ["label", "in sets", "expected", "found"]
    return _table("frequencies", "Label frequencies", header, rows)


def _pair_table(pairs: pd.DataFrame) -> Table:
    rows = [
        [
            f"{first} \N{EN DASH} {second}",
            *map(count, [both, a, b, both - a - b]),
            number(margin, 2),
        ]
        for first, second, both, a, b, margin in pairs.to_numpy(dtype=object)
    ]
    header = ["labels", "rows with both", "first", "second", "another", "mean margin"]
    return _table("pairs", "Rows with both labels, and what they became", header, rows)


def _annotator_table(annotators: pd.DataFrame | None) -> Table | None:
    if annotators is None:
        return None
    rows = [
        [str(name), count(votes), number(accuracy, 2), number(agreement, 2)]
        for name, votes, accuracy, agreement in annotators[:MAX_ANNOTATORS].itertuples()
    ]
    header = ["annotator", "votes", "estimated accuracy", "agreement"]
    return _table("annotators", "Annotators", header, rows)


def reason_tables(row: DoubtfulRow, annotators: pd.DataFrame | None) -> list[Table]:
    """Lay out who voted and how the matching went."""
    if row.reasons is None:
        return []
    votes = [
        [identity, str(near.label), number(near.weight, 2), f"{near.share:.0%}"]
        for identity, near in zip(row.neighbor_ids, row.reasons.neighbors, strict=True)
    ][:MAX_NEIGHBORS]
    header = ["neighbour", "its label", "weight", "share of all weight"]
    near = _table("votes", f"Neighbours of {row.id}, the heaviest vote first", header, votes)
    if annotators is not None:  # the matching is the lesser part of the reasons
        voted = [[n, label, number(annotators.accuracy[n], 2)] for n, label in row.votes]
        header = ["annotator", "vote", "estimated accuracy"]
        return [_table("annotators", f"Who voted about {row.id}", header, voted), near]
    names = list(row.reasons.support)
    told = [(f"iteration {step.number}", step) for step in row.reasons.iterations]
    if row.reasons.afterwards is not None:
        told.append(("afterwards", row.reasons.afterwards))
    if not told:
        return [near]
    iterations = [
        [name, *(f"{step.confidences[n]:.2f} ({step.changes[n]:+.2f})" for n in names)]
        for name, step in told
    ]
    title = f"Confidences of {row.id} after every iteration (added or taken away)"
    return [near, _table("iterations", title, ["", *map(str, names)], iterations)]


def _table(name: str, title: str, header: list[str], rows: list[list[str]]) -> Table:
    return Table(name, title, header, [Row([*map(Cell, row)]) for row in rows], pd.DataFrame())


# Drawings ------------------------------------------------------------------------------------


def _confidence_figure(confidence: NDArray[np.float64]) -> str:
    """Draw how sure the ambiguous rows are."""
    with rc_context(drawing_style()):
        figure = Figure(figsize=(7.0, 2.4), layout="constrained")
        axes = figure.subplots()
        axes.hist(confidence, bins=20, range=(0, 1), color=PALETTE[0])
        axes.set(xlabel="confidence of the label", ylabel="rows", xlim=(0, 1))
        counts, _ = np.histogram(confidence, bins=4, range=(0, 1))
        said = ", ".join(f"{c} rows in quarter {k}" for k, c in enumerate(counts, start=1))
        return to_svg(figure, "confidence", "Confidence of ambiguous rows", f"Histogram: {said}.")


def _frequency_figure(shown: pd.DataFrame) -> str:
    """Draw label frequencies before and after."""
    names = [_name(label) for label in shown["label"]]
    places = np.arange(len(shown))
    with rc_context(drawing_style()):
        figure = Figure(figsize=(7.0, 1.0 + 0.36 * len(shown)), layout="constrained")
        axes = figure.subplots()
        for offset, column, colour, words in (
            (-0.2, "expected", PALETTE[7], "before: guess in every set"),
            (0.2, "found", PALETTE[0], "after"),
        ):
            axes.barh(places + offset, shown[column], 0.36, color=colour, label=words)
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        axes.set_xlabel("rows")
        figure.legend(loc="outside upper left", ncols=2)
        said = "; ".join(
            f"{name}: {before:.0f} before, {after} after"
            for name, before, after in zip(names, shown["expected"], shown["found"], strict=True)
        )
        return to_svg(figure, "frequencies", "Label frequencies before and after", said)


def _map_figure(sample: dict[str, Any], by_frequency: pd.Series) -> str:
    """Draw the rows in two dimensions, by label and by confidence."""
    points, labels, confidence = sample["points"], sample["labels"], sample["confidence"]
    with rc_context(drawing_style()):
        figure = Figure(figsize=(9.4, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        frequent = by_frequency[:_COLOURED].tolist()
        _dots(left, points[~np.isin(labels, frequent)], PALETTE[-1], "other labels")
        for place, label in enumerate(frequent):
            _dots(left, points[labels == label], PALETTE[place], _name(label), _MARKERS[place])
        for low, high, colour in _STEPS:
            chosen = (confidence >= low) & (confidence < high)
            _dots(right, points[chosen], PALETTE[colour], f"{low:.2f} to {min(high, 1):.2f}")
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0)}
        for axes, title in ((left, "label"), (right, "confidence")):
            axes.set(title=f"by {title}", xticks=[], yticks=[])
            axes.grid(False)
            axes.spines[["left", "bottom"]].set_visible(False)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(**below, ncols=3, fontsize=8.5, markerscale=2)
        said = (
            f"{len(points)} rows as points, near each other where their features are similar; the "
            f"colour shows the label on the left and its confidence on the right."
        )
        return to_svg(figure, "map", "Map of the rows", said)


def _dots(axes: Any, points: Any, colour: str, name: str, marker: str = "o") -> None:
    if len(points):
        look = {"linestyle": "none", "markersize": 3.2, "markeredgewidth": 0, "alpha": 0.75}
        axes.plot(*points.T, marker=marker, color=colour, label=name, **look)


def _name(label: str) -> str:
    """Return a name that fits, on one line, and that matplotlib does not hide."""
    text = " ".join("".join(c for c in label if c.isprintable()).split())
    text = text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…"
    return f"\N{ZERO WIDTH SPACE}{text}" if text.startswith("_") or not text else text
