r"""Why a row got its label: who voted for it, how the matching went, what would have tipped it.

In every iteration of the matching the new confidence of a candidate is its old one times the votes
of the neighbours,

.. math:: p_{il} \leftarrow \text{normalise}\Big(u_{il}\, p_{il} \sum_j W_{ij} p_{jl}\Big)

with :math:`u_{il}` what is known of the candidate beforehand, and labels drawn to their capacities
or divided by a power of their mass; where similar labels support each other, :math:`p_{jl}` stands
for the confidences spread over them. An explanation shows the terms of that sum.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gmpll._typing import Floats, Places

#: Iterations that are replayed; the labels settle within the first few.
MAX_ITERATIONS = 12
#: An iteration that moves no candidate of the row by more than this is not worth showing.
STILL = 5e-4


class NeighborVote(NamedTuple):
    """A neighbour of the explained row.

    The weight of its vote, its share of the weight of all neighbours, and the label it has now,
    which it votes for.
    """

    row: int
    weight: float
    share: float
    label: Any


class Iteration(NamedTuple):
    """One iteration of the matching; 1 is the first.

    ``confidences`` are those of the candidates after it, ``changes`` what it added to each or,
    negative, took away.
    """

    number: int
    confidences: dict[Any, float]
    changes: dict[Any, float]


@dataclass(frozen=True)
class Tipping:
    """What would have changed the decision to another ``label``.

    ``neighbors`` are the fewest that would have had to be of that label for sure; none if no number
    of them is enough, or if the neighbours prefer that label anyway (``is_preferred``) although the
    matching found another one.
    """

    label: Any
    neighbors: tuple[int, ...]
    is_preferred: bool


@dataclass(frozen=True)
class Explanation:
    """Reasons for the label of one row; print it to read them.

    ``support`` is the share of the neighbours' votes for every candidate, largest first; it sums to
    one (uniform where no neighbour votes for any candidate). ``beforehand`` is where the matching
    began: what the model of the candidate sets said, or all candidates alike in
    :class:`gmpll.GMPLL`. ``neighbors`` come heaviest first, with those that vote for no candidate
    of the row. ``iterations`` are the first of the matching that moved something, and
    ``afterwards`` is the change after them: by further iterations and, where the model has them, by
    the regression over all rows and the forest. ``tipping`` is what would have changed the
    decision; None for a row with one candidate.
    """

    row: int
    label: Any
    support: dict[Any, float]
    beforehand: dict[Any, float]
    neighbors: tuple[NeighborVote, ...]
    iterations: tuple[Iteration, ...]
    afterwards: Iteration | None
    tipping: Tipping | None

    def __str__(self) -> str:
        votes = ", ".join(f"{label} {share:.0%}" for label, share in self.support.items())
        began = ", ".join(f"{label} {share:.0%}" for label, share in self.beforehand.items())
        lines = [f"Row {self.row}: {self.label}", f"  support: {votes}", f"  beforehand: {began}"]
        for near in self.neighbors[:5]:
            lines.append(f"  neighbour {near.row} votes {near.label} with weight {near.weight:.2f}")
        for step in self.iterations:
            lines.append(f"  iteration {step.number}: {_moved(step)}")
        if self.afterwards is not None:
            lines.append(f"  afterwards: {_moved(self.afterwards)}")
        return "\n".join([*lines, f"  {self.counterfactual()}"])

    def counterfactual(self, name_of: Callable[[int], Any] = int) -> str:
        """Say in a sentence what would have changed the decision; ``name_of`` names a row."""
        if self.tipping is None:
            return "It has one candidate: nothing else was possible."
        other = self.tipping.label
        if self.tipping.is_preferred:
            return (
                f"Its neighbours prefer {other}, but the matching of all rows together settled on "
                f"{self.label}: this one is worth a look."
            )
        if not self.tipping.neighbors:
            return f"Not even all of its neighbours could have made it {other}."
        count = len(self.tipping.neighbors)
        rows = ", ".join(str(name_of(row)) for row in self.tipping.neighbors[:8])
        rows += ", …" if count > 8 else ""
        return (
            f"Had {count} of its neighbours ({'row' if count == 1 else 'rows'} {rows}) been "
            f"{other} for sure, its neighbours would have preferred {other}."
        )


def _moved(step: Iteration) -> str:
    return ", ".join(f"{label} {change:+.2f}" for label, change in step.changes.items())


def explain(model: Any, i: int) -> Explanation:
    """Explain the label that a fitted model found for training row i.

    The model is a PartialLabelClassifier or GMPLL on a local graph, as the former is by default.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll import GMPLL
    >>> from gmpll.explanation import explain
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [0.05, 1.1], [1.0, 0.0], [1.0, 0.1], [1.1, 0.0]])
    >>> y = [{"cat", "dog"}, {"cat"}, {"cat"}, {"dog"}, {"dog"}, {"dog"}]
    >>> why = explain(GMPLL("local", n_graph_neighbors=2).fit(X, y), 0)
    >>> why.label, why.support["cat"] > 0.9, sorted(near.row for near in why.neighbors)
    ('cat', True, [1, 2])
    """
    return explain_rows(model, [i])[0]


def explain_rows(
    model: Any, rows: Sequence[int], *, max_iterations: int = MAX_ITERATIONS
) -> list[Explanation]:
    """Explain several rows; the matching is replayed once for all of them."""
    check_is_fitted(model)
    problem = getattr(model, "matching_", None)
    if problem is None:
        raise ValueError(
            "Only a matching on a local graph can be explained, as PartialLabelClassifier() and "
            "GMPLL(graph='local') have it: on the full graph every row votes for every other."
        )
    graph = sp.csr_array(problem.weights)
    n_samples = graph.shape[0]
    chosen = np.asarray(rows, dtype=np.intp).reshape(-1)
    outside = chosen[(chosen < 0) | (chosen >= n_samples)]
    if outside.size:
        raise IndexError(f"There is no row {outside[0]}: the rows are 0 to {n_samples - 1}.")
    path = problem.path(chosen, min(max_iterations, int(model.n_iter_)))
    return [
        _explanation(int(row), model, graph, steps) for row, steps in zip(chosen, path, strict=True)
    ]


def _explanation(row: int, model: Any, graph: sp.csr_array, path: Floats) -> Explanation:
    here = slice(graph.indptr[row], graph.indptr[row + 1])
    order = np.argsort(-graph.data[here], kind="stable")
    near, weight = graph.indices[here][order], graph.data[here][order]
    total = float(weight.sum()) or 1.0
    names, final = model.classes_.tolist(), model.label_support_[row]
    codes = np.flatnonzero(model.matching_.mask[row])
    by_support = codes[np.argsort(-final[codes], kind="stable")]

    def named(values: Floats) -> dict[Any, float]:
        return {names[code]: float(values[code]) for code in by_support}

    *iterations, afterwards = (
        Iteration(number, named(after), named(after - before))
        if np.abs(after - before)[codes].max() > STILL
        else None
        for number, (before, after) in enumerate(
            pairwise([*path, model.label_confidences_[row]]), start=1
        )
    )
    label = model.labels_[row : row + 1].tolist()[0]
    return Explanation(
        row=row,
        label=label,
        support=named(final),
        beforehand=named(path[0]),
        neighbors=tuple(
            NeighborVote(int(j), float(w), float(w) / total, voted)
            for j, w, voted in zip(near, weight, model.labels_[near].tolist(), strict=True)
        ),
        iterations=tuple(step for step in iterations if step is not None),
        afterwards=afterwards,
        tipping=_tipping(model, names.index(label), codes, near, weight),
    )


def _tipping(
    model: Any, found: int, codes: Places, near: NDArray[np.integer], weight: Floats
) -> Tipping | None:
    """Count the neighbours that would have had to be of the runner-up's label."""
    others = codes[codes != found]
    if others.size == 0:
        return None
    ballots, similarity = model.label_confidences_[near], model.matching_.similarity
    if similarity is not None:
        ballots = ballots @ similarity
    votes = weight @ ballots
    other = int(others[np.argmax(votes[others])])
    name = model.classes_.tolist()[other]
    gap = float(votes[found] - votes[other])
    if gap < 0:
        return Tipping(name, (), True)
    alike = 0.0 if similarity is None else float(similarity[other, found])
    gain = weight * ((1.0 - alike) - (ballots[:, other] - ballots[:, found]))
    order = np.argsort(-gain, kind="stable")
    enough = np.flatnonzero(np.cumsum(gain[order]) > gap)
    turned = near[order[: enough[0] + 1]] if enough.size else near[:0]
    return Tipping(name, tuple(turned.tolist()), False)
