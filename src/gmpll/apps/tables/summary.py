"""What a run says of itself: what counted, who is careless, how many labels are wrong."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gmpll._typing import Floats, Names
from gmpll.apps.tables.errors import counted, listed, quoted

if TYPE_CHECKING:
    from gmpll.apps.tables.resolving import Resolution
    from gmpll.evidence.annotators import Annotators

#: A set lacks the right label, probably, from this probability on.
PROBABLY = 0.5
#: A weight below this is none.
_NOTHING = 0.05
#: A log-likelihood of the votes of a row that is worth little.
_LITTLE = 0.05
_SHOWN_LABELS = 4
_SHOWN_ANNOTATORS = 3
#: Who cast fewer votes is not called careless.
LEAST_VOTES = 10
#: Confusions of an annotator that are named: so many, and of so large a share of the votes.
_MAX_CONFUSIONS, _LEAST_SHARE = 3, 0.02
#: Annotators times labels times labels; the confusions of more are not looked for.
_MAX_CELLS = 20_000_000
#: Cells shown to a person are cut to this many characters.
MAX_CELL = 2000
#: NumPy keeps every text as long as the longest: all of them together take no more than this.
MAX_DISPLAY_CHARACTERS = 25_000_000
_MIN_CELL = 20
#: Parameters of an estimator that a report says in other words, or that change no label.
_OWN_WORDS = ("hyperparameters", "random_state", "verbose", "warm_start")
#: More columns, or more columns of numbers, tell a person nothing.
_MAX_COLUMNS = 20
_MAX_NUMBERS = 8


def annotator_table(resolution: Resolution) -> pd.DataFrame | None:
    """Return what is known of the annotators, the busiest first; None if nobody is named.

    By the half-way rule an annotator is careless who cast at least ten votes and whose estimated
    accuracy is less than half way from guessing (1 / number of labels) to the median annotator.
    ``confuses`` names the labels most often given in place of others.
    """
    annotators: Annotators | None = getattr(resolution.model, "annotators_", None)
    if not resolution.prepared.sets.annotated or annotators is None:
        return None
    table = annotators.to_frame(confusion=False)[["votes", "accuracy", "agreement"]]
    table["careless"] = (table["votes"] >= LEAST_VOTES) & (
        table["accuracy"] < half_way(table, annotators)
    )
    small = len(table) * len(annotators.classes) ** 2 <= _MAX_CELLS
    prior = resolution.model.class_prior_
    table["confuses"] = [_confusions(annotators, n, prior) if small else "" for n in table.index]
    return table.sort_values("votes", ascending=False, kind="stable")


def half_way(table: pd.DataFrame, annotators: Annotators) -> float:
    """Return the accuracy half way from guessing to the median annotator with enough votes."""
    median = table["accuracy"][table["votes"] >= LEAST_VOTES].median()
    return float((1 / len(annotators.classes) + median) / 2)


def _confusions(annotators: Annotators, name: Any, prior: Floats) -> str:
    matrix = annotators.confusion(name)
    shares = prior[:, None] * matrix
    np.fill_diagonal(shares, 0.0)
    most = np.argsort(-shares, axis=None, kind="stable")[:_MAX_CONFUSIONS]
    pairs = [divmod(int(cell), len(matrix)) for cell in most if shares.flat[cell] >= _LEAST_SHARE]
    names = annotators.classes
    return "; ".join(f"{names[v]} for {names[t]} {matrix[t, v]:.0%}" for t, v in pairs)


def notes_of(resolution: Resolution) -> tuple[str, ...]:
    """Return what is odd about the data and what counted, in sentences."""
    odd = [f"{problem[:1].upper()}{problem[1:]}." for problem in resolution.prepared.problems]
    return (*odd, *sentences(resolution))


def sentences(resolution: Resolution) -> tuple[str, ...]:
    """Say how much features, votes and label frequencies count; () of methods that do not tell."""
    model = resolution.model
    evidence: dict[str, Any] | None = getattr(model, "evidence_", None)
    if evidence is None:
        return ()
    table = annotator_table(resolution)
    exponent = getattr(model, "selected_", {}).get("weight_exponent")
    told = [_of_features(evidence)]
    if table is not None:
        told += _of_annotators(table, resolution)
    elif exponent is not None:
        told.append(
            f"The votes count to the power of {exponent:.2f} (0: not at all, 1: as probabilities)."
        )
    if table is None and (lacking := resolution.n_lacking):
        told.append(
            f"{counted(lacking, 'row')} probably {'lacks' if lacking == 1 else 'lack'} the right "
            "label (outside above 0.5): look at the label suggested, or say that the sets are "
            "complete with --outside never."
        )
    shares = model.class_prior_
    order = np.argsort(-shares.round(3), kind="stable")
    named = [f"{quoted(model.classes_[code])} {shares[code]:.0%}" for code in order]
    return (*told, f"Labels by the frequency found: {listed(named, _SHOWN_LABELS)}.")


def _of_features(evidence: dict[str, Any]) -> str:
    graph, regression = evidence.get("graph"), evidence.get("regression")
    weight, gain = evidence.get("features"), evidence.get("gain by features", 0.0)
    if weight is not None:
        if weight <= 0 or gain <= 0:
            return "The features add nothing to the votes: labels come from the votes alone."
        what, only = "Features and votes count together", ""
        if gain < _LITTLE:
            what, only = "The features add next to nothing to the votes", "only "
        times = f"{only}{math.exp(gain):.2f} times as probable as without."
        return f"{what}: by the features the votes of a row are {times}"
    if graph is None or regression is None:
        return "How far the features are to be believed was not estimated for these data."
    if max(graph, regression) < _NOTHING:
        return (
            "The features say nothing about the labels: they come from the candidate sets and the "
            "label frequencies."
        )
    prior = evidence.get("class prior")
    frequencies = "" if prior is None else f", label frequencies {prior:.2f}"
    return (
        f"Beside the candidate sets count (0: not at all): similar rows {graph:.2f}, the "
        f"regression on the features {regression:.2f}{frequencies}."
    )


def _of_annotators(table: pd.DataFrame, resolution: Resolution) -> list[str]:
    sets = resolution.prepared.sets
    assert sets.weights is not None
    accuracy = np.average(table["accuracy"], weights=table["votes"])
    told = [
        f"The votes of {counted(len(table), 'annotator')} are right with an estimated probability "
        f"of {accuracy:.2f} on average."
    ]
    careless = table[table["careless"]]
    if len(careless):
        limit = half_way(table, resolution.model.annotators_)
        told.append(
            f"{counted(len(careless), 'annotator', 'is')} careless, right less often than "
            f"{limit:.2f}, half way from guessing to the median annotator: "
            f"{listed(map(quoted, careless.index), _SHOWN_ANNOTATORS)}. Look at their votes, or "
            "leave them out."
        )
    worse = table.index[table["accuracy"] < 1 / len(sets.classes)]
    if len(worse):
        told.append(
            f"{counted(len(worse), 'annotator', 'is')} right less often than by chance, so their "
            f"votes count against the label: {listed(map(quoted, worse), _SHOWN_ANNOTATORS)}."
        )
    checked = table.dropna(subset="agreement")
    counts = sets.weights.sum(axis=0)
    by_chance = np.square(counts / counts.sum()).sum() + 1 / np.sqrt(counts.sum())
    if len(checked) and np.average(checked["agreement"], weights=checked["votes"]) <= by_chance:
        told.append(
            "The annotators agree no more often than by chance: nothing shows which of their votes "
            "are right, so look at the labels before you use them."
        )
    outside = int(np.count_nonzero(resolution.votes == 0))
    if outside:
        told.append(f"{counted(outside, 'row')} got a label that nobody voted for.")
    return told


def wrong_probability(resolution: Resolution) -> Floats:
    """Return how probable it is that the label of a row is wrong, as far as confidences tell."""
    found, sets = resolution.verdicts, resolution.prepared.sets
    right = found.confidence
    if found.outside is not None and not sets.annotated:  # of votes labels outside are weighed too
        right = right * (1.0 - found.outside)
    return np.where(sets.gold >= 0, 0.0, 1.0 - right)


def label_confusion(resolution: Resolution, most: int) -> tuple[list[str], Floats]:
    """Return the labels that are confused most, and how often which is probably which.

    In row i and column j stands how many of the rows with the label i have j in fact, as the
    confidences expect; the last column is for all other labels.
    """
    found, sets = resolution.verdicts, resolution.prepared.sets
    wrong, q = wrong_probability(resolution), len(sets.classes)
    doubt = np.bincount(found.labels, wrong, minlength=q)
    if found.suggested is not None:
        doubt += np.bincount(found.suggested, wrong, minlength=q)
    chosen = np.sort(np.argsort(-doubt, kind="stable")[:most])
    confusion = np.zeros((len(chosen), len(chosen) + 1))
    for place, code in enumerate(chosen):
        rows = np.flatnonzero(found.labels == code)
        P = resolution.confidences[rows].astype(np.float64)
        P[:, code] = 0.0
        if found.outside is not None and found.suggested is not None and not sets.annotated:
            P *= (1.0 - found.outside[rows])[:, None]
            suggested = found.suggested[rows]
            beyond = ~sets.mask[rows, suggested]
            P[beyond, suggested[beyond]] += found.outside[rows][beyond]
        confusion[place, :-1] = P[:, chosen].sum(axis=0)
        confusion[place, place] = (1.0 - wrong[rows]).sum()
        confusion[place, -1] = len(rows) - confusion[place, :-1].sum()
    return sets.classes[chosen].tolist(), confusion.clip(0.0)


def settings_of(resolution: Resolution) -> dict[str, Any]:
    """Return how the labels were found; what was estimated stands in place of "auto"."""
    prepared, model = resolution.prepared, resolution.model
    told = {
        "method": prepared.options.method,
        "seed": prepared.options.seed,
        "worth a look below a margin of": prepared.review_below,
    }
    given = {n: v for n, v in model.get_params().items() if v is not None and v != "auto"}
    told |= {n: v for n, v in given.items() if n not in _OWN_WORDS}
    for name, value in getattr(model, "selected_", {}).items():
        told[name] = round(value, 4) if isinstance(value, float) else value
    if hasattr(model, "temperature_"):
        told["temperature"] = round(float(model.temperature_), 4)
    for name, value in getattr(model, "evidence_", {}).items():
        told[name if name.startswith("gain") else f"weight of {name}"] = np.round(value, 4)
    if getattr(model, "outside", "") == "auto":
        may = "may lie outside of the votes" if prepared.sets.annotated else "are candidates"
        told["outside"] = f"labels {may}"
    known = {n: v for n, v in told.items() if v is not None}
    return {n: ", ".join(map(str, v)) if isinstance(v, tuple) else v for n, v in known.items()}


def display_cells(resolution: Resolution) -> Names:
    """Return the cells of every row that are worth showing, as JSON objects."""
    prepared = resolution.prepared
    roles, table = prepared.roles, prepared.table
    flags = roles.candidates if len(roles.candidates) > 1 else ()
    hidden = {*roles.vectors, *roles.numeric[_MAX_NUMBERS:], *flags}
    names = [name for name in table.frame.columns if name not in hidden]
    first = [n for n in (roles.id, *roles.text, roles.image, *roles.candidates) if n in names]
    shown = list(dict.fromkeys([*first, *names]))[:_MAX_COLUMNS]
    room = MAX_DISPLAY_CHARACTERS // (len(table.frame) * max(len(shown), 1))
    longest = max(_MIN_CELL, min(MAX_CELL, room))
    columns = [[text[:longest] for text in table.text(name).tolist()] for name in shown]
    rows = [
        json.dumps(dict(zip(shown, cells, strict=True)), ensure_ascii=False)
        for cells in zip(*columns, strict=True)
    ]
    return np.array(rows, dtype=str)
