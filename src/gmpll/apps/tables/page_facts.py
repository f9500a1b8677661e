"""What the page of a run says, as plain facts; how it looks is decided elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler, normalize

from gmpll.apps.tables.believed import annotator_table, sentences
from gmpll.explanation import Explanation, explain_rows

if TYPE_CHECKING:
    import pandas as pd

    from gmpll.apps.tables.candidate_sets import LabelSets
    from gmpll.apps.tables.resolving import Resolution

__all__ = ["DoubtfulRow", "MapFacts", "PageFacts", "page_facts"]

#: The page must open at once, whatever the number of rows: it shows so many ...
MAX_DOUBTFUL = 40
MAX_PAIRS = 25
MAX_LABELS = 40
MAX_POINTS = 1500
MAX_ITERATIONS = 6
#: ... and projects with axes learned from so many.
_PROJECTION_ROWS = 20_000
_MAX_CELL = 300


@dataclass(frozen=True)
class MapFacts:
    """A sample of the rows in two dimensions, which show a share of the variance."""

    points: NDArray[np.float64]
    labels: NDArray[np.int64]
    confidence: NDArray[np.float64]
    explained: float


@dataclass(frozen=True)
class DoubtfulRow:
    """A row worth a look, with the reasons for its label and who voted what, as far as known."""

    id: str
    label: str
    runner_up: str
    confidence: float
    margin: float
    candidates: tuple[tuple[str, float], ...]
    cells: tuple[tuple[str, str], ...]
    votes: tuple[tuple[str, str], ...]
    reasons: Explanation | None
    neighbor_ids: tuple[str, ...]
    counterfactual: str


@dataclass(frozen=True)
class PageFacts:
    """Everything on the page.

    ``frequencies`` tells how often a label stands in the sets, is expected in them (a row with s
    candidates counts as 1/s for each of them), and was found; ``pairs`` how the rows that have
    both labels among their candidates were decided.
    """

    source: str
    n_rows: int
    n_labels: int
    n_ambiguous: int
    n_gold: int
    n_review: int
    calibrated: bool
    mean_candidates: float
    classes: tuple[str, ...]
    confidence: NDArray[np.float64]
    used: tuple[tuple[str, str, str], ...]
    n_features: int
    problems: tuple[str, ...]
    evidence: tuple[str, ...]
    annotators: pd.DataFrame | None
    frequencies: pd.DataFrame
    pairs: pd.DataFrame
    map: MapFacts
    doubtful: tuple[DoubtfulRow, ...]
    n_doubtful: int
    settings: tuple[tuple[str, str], ...]


def page_facts(resolution: Resolution, display: NDArray[np.str_]) -> PageFacts:
    """Collect the facts of a run; ``display`` are the cells of every row that are worth showing."""
    prepared, found = resolution.prepared, resolution.verdicts
    mask, classes = prepared.sets.mask, prepared.sets.classes
    is_open = resolution.is_open & (prepared.sets.gold < 0)
    settings = {
        "method": prepared.options.method,
        "seed": str(prepared.options.seed),
        "flagged for review below a margin of": str(prepared.review_below),
        **{name: str(value) for name, value in resolution.model.get_params().items()},
    }
    return PageFacts(
        source=prepared.table.name,
        n_rows=len(mask),
        n_labels=len(classes),
        n_ambiguous=int((mask.sum(axis=1) > 1).sum()),
        n_gold=int((prepared.sets.gold >= 0).sum()),
        n_review=int(found.review.sum()),
        calibrated=prepared.calibrated,
        mean_candidates=float(mask.sum(axis=1).mean()),
        classes=tuple(classes.tolist()),
        confidence=found.confidence[resolution.is_open],
        used=tuple(prepared.roles.described()),
        n_features=resolution.features.shape[1],
        problems=prepared.problems,
        evidence=sentences(resolution),
        annotators=annotator_table(resolution),
        frequencies=_frequencies(mask, classes, found.labels),
        pairs=_pairs(mask, classes, found.labels, found.margin),
        map=_map(resolution),
        doubtful=_doubtful(resolution, display, np.flatnonzero(is_open)),
        n_doubtful=int(is_open.sum()),
        settings=tuple(settings.items()),
    )


def _frequencies(
    mask: NDArray[np.bool_], classes: NDArray[np.str_], labels: NDArray[np.int64]
) -> pd.DataFrame:
    import pandas as pd

    columns = {
        "label": classes,
        "in_sets": mask.sum(axis=0),
        "expected": (1.0 / mask.sum(axis=1)) @ mask,
        "found": np.bincount(labels, minlength=len(classes)),
    }
    order = np.lexsort((classes, -columns["found"]))[:MAX_LABELS]
    return pd.DataFrame(columns).iloc[order]


def _pairs(
    mask: NDArray[np.bool_],
    classes: NDArray[np.str_],
    labels: NDArray[np.int64],
    margin: NDArray[np.float64],
) -> pd.DataFrame:
    """Count what became of rows with two labels in common; never a dense labels x labels array."""
    import pandas as pd

    sets = sp.csr_array(mask.astype(np.float64))
    together = sp.coo_array(sp.triu(sets.T @ sets, k=1))
    facts = []
    for k in np.argsort(-together.data, kind="stable")[:MAX_PAIRS]:
        a, b = together.row[k], together.col[k]
        both = mask[:, a] & mask[:, b]
        decided = [np.count_nonzero(labels[both] == label) for label in (a, b)]
        facts.append((classes[a], classes[b], both.sum(), *decided, margin[both].mean()))
    names = ["first", "second", "together", "to_first", "to_second", "margin"]
    return pd.DataFrame(facts, columns=names)


def _map(resolution: Resolution) -> MapFacts:
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
    return MapFacts(
        points=projection.transform(rows[shown]),
        labels=found.labels[sample[shown]],
        confidence=found.confidence[sample[shown]],
        explained=float(np.nan_to_num(projection.explained_variance_ratio_).sum()),
    )


def _doubtful(
    resolution: Resolution, display: NDArray[np.str_], open_rows: NDArray[np.intp]
) -> tuple[DoubtfulRow, ...]:
    prepared, found = resolution.prepared, resolution.verdicts
    names = [*prepared.sets.classes.tolist(), ""]
    order = open_rows[np.argsort(found.margin[open_rows], kind="stable")][:MAX_DOUBTFUL]
    reasons: list[Explanation | None] = [None] * len(order)
    if prepared.options.method == "gmpll" and order.size:
        reasons = [*explain_rows(resolution.model, order.tolist(), max_iterations=MAX_ITERATIONS)]
    rows = []
    for row, why in zip(order.tolist(), reasons, strict=True):
        either = [found.labels[row], found.runners_up[row]]
        codes = np.union1d(np.flatnonzero(prepared.sets.mask[row]), either)
        codes = codes[np.argsort(-resolution.confidences[row, codes], kind="stable")]
        cells = json.loads(str(display[row]))
        rows.append(
            DoubtfulRow(
                id=str(prepared.ids[row]),
                label=names[found.labels[row]],
                runner_up=names[found.runners_up[row]],
                confidence=float(found.confidence[row]),
                margin=float(found.margin[row]),
                candidates=tuple((names[c], float(resolution.confidences[row, c])) for c in codes),
                cells=tuple((name, _short(value)) for name, value in cells.items()),
                votes=_votes_of(row, prepared.sets),
                reasons=why,
                neighbor_ids=()
                if why is None
                else tuple(str(prepared.ids[near.row]) for near in why.neighbors),
                counterfactual=""
                if why is None or prepared.sets.annotated
                else why.counterfactual(prepared.ids.__getitem__),
            )
        )
    return tuple(rows)


def _votes_of(row: int, sets: LabelSets) -> tuple[tuple[str, str], ...]:
    """Return who voted what for a row."""
    votes = sets.votes
    if votes is None or votes.annotators is None or votes.votes is None:
        return ()
    who, labels = divmod(votes.votes[[row]].indices, len(sets.classes))
    names = map(str, votes.annotators[who])
    return tuple(zip(names, sets.classes[labels].tolist(), strict=True))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_CELL else f"{text[:_MAX_CELL]}…"
