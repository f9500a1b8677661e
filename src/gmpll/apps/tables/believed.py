"""How far each kind of evidence was believed, said in plain sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gmpll.apps.tables.errors import counted, listed, quoted

if TYPE_CHECKING:
    import pandas as pd

    from gmpll.apps.tables.resolving import Resolution

__all__ = ["annotator_table", "sentences"]

#: A weight below this is none.
_NOTHING = 0.05
#: A log-likelihood of the votes of a row that is worth little.
_LITTLE = 0.05
_SHOWN_LABELS = 4
_SHOWN_ANNOTATORS = 3


def annotator_table(resolution: Resolution) -> pd.DataFrame | None:
    """Return votes, estimated accuracy and agreement of the annotators, the busiest first.

    None where it is not known who voted.
    """
    annotators = getattr(resolution.model, "annotators_", None)
    if not resolution.prepared.sets.annotated or annotators is None:
        return None
    table = annotators.to_frame(confusion=False)[["votes", "accuracy", "agreement"]]
    return table.sort_values("votes", ascending=False, kind="stable")


def sentences(resolution: Resolution) -> tuple[str, ...]:
    """Say how much features, votes and label frequencies count; () of methods that do not tell."""
    model = resolution.model
    evidence: dict[str, Any] | None = getattr(model, "evidence_", None)
    if evidence is None:
        return ()
    table = annotator_table(resolution)
    exponent = getattr(model, "weight_exponent_", None)
    told = [_of_features(evidence)]
    if table is not None:
        told += _of_annotators(table, resolution)
    elif exponent is not None:
        told.append(
            f"The votes count to the power of {exponent:.2f} (0: not at all, 1: as probabilities)."
        )
    return (*told, _of_labels(model))


def _of_features(evidence: dict[str, Any]) -> str:
    graph, regression = evidence.get("graph"), evidence.get("regression")
    weight, gain = evidence.get("features"), evidence.get("gain by features", 0.0)
    if weight is not None and (weight <= 0 or gain <= 0):
        return "The features add nothing to the votes: labels come from the votes alone."
    if weight is not None and gain < _LITTLE:
        return (
            "The features add next to nothing to the votes: by the features the votes of a row are "
            f"only {math.exp(gain):.2f} times as probable as without."
        )
    if weight is not None:
        return (
            f"Features and votes count together: by the features the votes of a row are "
            f"{math.exp(gain):.2f} times as probable as without."
        )
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
        f"{counted(len(table), 'annotator')}, whose votes are right with an estimated probability "
        f"of {accuracy:.2f} on average."
    ]
    worse = table.index[table["accuracy"] < 1 / len(sets.classes)]
    if len(worse):
        told.append(
            f"{counted(len(worse), 'annotator', 'is')} right less often than by chance, so their "
            f"votes count against the label: {listed(map(quoted, worse), _SHOWN_ANNOTATORS)}."
        )
    checked = table.dropna()
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


def _of_labels(model: Any) -> str:
    shares = model.class_prior_
    order = np.argsort(-shares, kind="stable")
    named = [f"{quoted(model.classes_[code])} {shares[code]:.0%}" for code in order]
    return f"Labels by the frequency found: {listed(named, _SHOWN_LABELS)}."
