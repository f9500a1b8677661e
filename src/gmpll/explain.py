r"""Why a row got its label: who voted for it, how the matching went, what would have tipped it.

In every turn of the matching the new confidence of a candidate is its old one times the votes of
the neighbours,

.. math:: p_{il} \leftarrow \text{normalise}\Big(p_{il} \sum_j W_{ij} p_{jl} \big/ m_l^g\Big)

with :math:`m_l` the mass of the label and g the balance of :class:`gmpll.GMPLL`; where similar
labels support each other, :math:`p_{jl}` stands for the confidences spread over them. An
explanation shows the terms of that sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gmpll.candidates import as_candidates
from gmpll.matching import LocalAffinity, match, uniform_start
from gmpll.rounding import confidences_within
from gmpll.side_information import Prior

__all__ = ["Explanation", "NeighborVote", "Tipping", "Turn", "explain", "explain_rows"]

#: Turns that are replayed; the labels settle within the first few.
MAX_TURNS = 12
#: A turn that moves no candidate of the row by more than this is not worth showing.
STILL = 5e-4


class NeighborVote(NamedTuple):
    """A neighbour of the explained row.

    Attributes
    ----------
    row : int
        Its row number.
    weight : float
        Weight of its vote.
    share : float
        Its share of the weight of all neighbours.
    label : object
        The label it has now, which it votes for.
    """

    row: int
    weight: float
    share: float
    label: Any


class Turn(NamedTuple):
    """One turn of the matching.

    Attributes
    ----------
    number : int
        1 is the first.
    confidences : dict
        Confidence of every candidate after the turn.
    changes : dict
        What the turn added to it or, negative, took away.
    """

    number: int
    confidences: dict[Any, float]
    changes: dict[Any, float]


@dataclass(frozen=True)
class Tipping:
    """What would have changed the decision.

    Attributes
    ----------
    label : object
        The label that would have been taken.
    neighbors : tuple of int
        The fewest neighbours that would have had to be of that label for sure; empty if no number
        of them is enough or if the neighbours prefer that label anyway.
    is_preferred : bool
        Whether the neighbours prefer that label although the matching found another one.
    """

    label: Any
    neighbors: tuple[int, ...]
    is_preferred: bool


@dataclass(frozen=True)
class Explanation:
    """Reasons for the label of one row; print it to read them.

    Attributes
    ----------
    row : int
        The row.
    label : object
        The label found.
    support : dict
        Share of the neighbours' votes for every candidate, largest first; sums to one (uniform
        where no neighbour votes for any candidate).
    neighbors : tuple of NeighborVote
        Heaviest first, those that vote for no candidate of the row included.
    turns : tuple of Turn
        The first turns of the matching; turns that moved nothing are left out.
    afterwards : Turn or None
        What came after them: further turns, and the say that a regression over all rows and a
        forest have where the model uses them. None if it moved nothing.
    tipping : Tipping or None
        What would have changed the decision; None for a row with one candidate.
    """

    row: int
    label: Any
    support: dict[Any, float]
    neighbors: tuple[NeighborVote, ...]
    turns: tuple[Turn, ...]
    afterwards: Turn | None
    tipping: Tipping | None

    def __str__(self) -> str:
        votes = ", ".join(f"{label} {share:.0%}" for label, share in self.support.items())
        lines = [f"Row {self.row}: {self.label}", f"  support: {votes}"]
        for near in self.neighbors[:5]:
            lines.append(f"  neighbour {near.row} votes {near.label} with weight {near.weight:.2f}")
        for turn in self.turns:
            lines.append(f"  turn {turn.number}: {_moved(turn)}")
        if self.afterwards is not None:
            lines.append(f"  afterwards: {_moved(self.afterwards)}")
        return "\n".join([*lines, f"  {self.counterfactual()}"])

    def counterfactual(self, name_of: Callable[[int], Any] = int) -> str:
        """Say in a sentence what would have changed the decision.

        Parameters
        ----------
        name_of : callable, default=int
            How to call a row; by its number by default.
        """
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


def _moved(turn: Turn) -> str:
    return ", ".join(f"{label} {change:+.2f}" for label, change in turn.changes.items())


def explain(model: Any, i: int, candidates: Any = None) -> Explanation:
    """Explain the label that a fitted GMPLL found for training row i.

    Parameters
    ----------
    model : GMPLL
        Fitted with the local graph (the default).
    i : int
        Row number.
    candidates : candidate sets, default=None
        What ``fit`` got as y. Without them the candidates are those labels that ended with any
        confidence or support; a candidate that no neighbour shares is then missed.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll import GMPLL
    >>> from gmpll.explain import explain
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [0.05, 1.1], [1.0, 0.0], [1.0, 0.1], [1.1, 0.0]])
    >>> y = [{"cat", "dog"}, {"cat"}, {"cat"}, {"dog"}, {"dog"}, {"dog"}]
    >>> why = explain(GMPLL(random_state=0, graph_neighbors=2).fit(X, y), 0, y)
    >>> why.label, why.support["cat"] > 0.9, sorted(near.row for near in why.neighbors)
    ('cat', True, [1, 2])
    """
    return explain_rows(model, [i], candidates)[0]


def explain_rows(
    model: Any, rows: Sequence[int], candidates: Any = None, *, max_turns: int = MAX_TURNS
) -> list[Explanation]:
    """Explain several rows; the matching is replayed once for all of them.

    Parameters
    ----------
    model, candidates
        As for :func:`explain`.
    rows : sequence of int
        Row numbers.
    max_turns : int, default=MAX_TURNS
        How many turns to replay.

    Returns
    -------
    list of Explanation
    """
    check_is_fitted(model)
    graph = _votes_of(model)
    n_samples = graph.shape[0]
    chosen = np.asarray(rows, dtype=np.intp).reshape(-1)
    outside = chosen[(chosen < 0) | (chosen >= n_samples)]
    if outside.size:
        raise IndexError(f"There is no row {outside[0]}: the rows are 0 to {n_samples - 1}.")
    mask = _candidates_of(model, candidates)
    similarity = _similarity_of(model, mask)
    path = _replay(graph, mask, similarity, model, chosen, max_turns)
    return [
        _explanation(int(row), model, mask[row], graph, path[k], similarity)
        for k, row in enumerate(chosen)
    ]


def _votes_of(model: Any) -> sp.csr_array:
    """Return the symmetric weights with which rows vote for each other."""
    if getattr(model, "graph", None) != "local":
        raise ValueError(
            "Only a GMPLL with graph='local' can be explained: on the full graph every row "
            "votes for every other."
        )
    return sp.csr_array(model._relation.weights)


def _candidates_of(model: Any, candidates: Any) -> NDArray[np.bool_]:
    if candidates is None:
        return (model.label_confidences_ > 0) | (model.label_support_ > 0)
    sets = as_candidates(candidates, n_samples=len(model.labels_))
    if len(sets.classes) != len(model.classes_):
        raise ValueError(
            f"The model knows {len(model.classes_)} labels but the candidates have "
            f"{len(sets.classes)}: give the candidates that it was fitted with."
        )
    return sets.mask


def _similarity_of(model: Any, mask: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """Return the similarity of the labels that the model used, None if all are different."""
    if model._similarity is None:
        return None
    seen = mask.any(axis=0)  # the model knows the similarity of the labels that occur
    similarity = np.eye(len(model.classes_))
    similarity[np.ix_(seen, seen)] = model._similarity
    return similarity


def _replay(
    graph: sp.csr_array,
    mask: NDArray[np.bool_],
    similarity: NDArray[np.float64] | None,
    model: Any,
    rows: NDArray[np.intp],
    max_turns: int,
) -> NDArray[np.float64]:
    """Return the confidences of the rows before the first turn and after every turn."""
    affinity = LocalAffinity(graph, mask, similarity)
    balance = model.selected_["balance"]
    unary = _over_all_labels(model._unary, model)
    expected = _over_all_labels(Prior(classes=model._class_shares).expected_mass(len(mask)), model)
    P = uniform_start(mask) if unary is None else confidences_within(unary, mask)
    path = [P[rows]]
    for _ in range(min(max_turns, int(model.n_iter_))):
        P = match(
            affinity,
            mask,
            balance=balance,
            max_iter=1,
            tol=0.0,
            start=P,
            unary=unary,
            expected_mass=expected,
        ).probabilities
        path.append(P[rows])
    return np.stack(path, axis=1)


def _over_all_labels(values: NDArray[np.float64] | None, model: Any) -> NDArray[np.float64] | None:
    """Return values of the labels that occur with zeros for the other labels."""
    if values is None:
        return None
    full = np.zeros((len(values), len(model.classes_)))
    full[:, model._seen] = values
    return full


def _explanation(
    row: int,
    model: Any,
    candidates: NDArray[np.bool_],
    graph: sp.csr_array,
    path: NDArray[np.float64],
    similarity: NDArray[np.float64] | None,
) -> Explanation:
    here = slice(graph.indptr[row], graph.indptr[row + 1])
    order = np.argsort(-graph.data[here], kind="stable")
    near, weight = graph.indices[here][order], graph.data[here][order]
    total = float(weight.sum()) or 1.0
    names = model.classes_.tolist()
    final = model.label_support_[row]
    codes = np.flatnonzero(candidates)
    by_support = codes[np.argsort(-final[codes], kind="stable")]
    end = model.label_confidences_[row]
    label = model.labels_[row]
    found = names.index(label.item() if isinstance(label, np.generic) else label)
    ballots = model.label_confidences_[near]
    return Explanation(
        row=row,
        label=names[found],
        support={names[code]: float(final[code]) for code in by_support},
        neighbors=tuple(
            NeighborVote(int(j), float(w), float(w) / total, voted)
            for j, w, voted in zip(near, weight, model.labels_[near].tolist(), strict=True)
        ),
        turns=tuple(
            turn
            for number, (before, after) in enumerate(pairwise(path), start=1)
            if (turn := _turn(number, before, after, by_support, names)) is not None
        ),
        afterwards=_turn(len(path), path[-1], end, by_support, names),
        tipping=_tipping(found, codes, near, weight, ballots, similarity, names),
    )


def _turn(
    number: int,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    codes: NDArray[np.intp],
    names: list[Any],
) -> Turn | None:
    """Describe a turn; None if it moved nothing."""
    change = (after - before)[codes]
    if np.abs(change).max() <= STILL:
        return None
    return Turn(
        number,
        {names[code]: float(after[code]) for code in codes},
        {names[code]: float(c) for code, c in zip(codes, change, strict=True)},
    )


def _tipping(
    found: int,
    codes: NDArray[np.intp],
    near: NDArray[np.integer],
    weight: NDArray[np.float64],
    ballots: NDArray[np.float64],
    similarity: NDArray[np.float64] | None,
    names: list[Any],
) -> Tipping | None:
    """Count the neighbours that would have had to be of the runner-up's label.

    The gains add up, so the neighbours that gain most make the smallest set.
    """
    others = codes[codes != found]
    if others.size == 0:
        return None
    if similarity is not None:
        ballots = ballots @ similarity
    votes = weight @ ballots
    other = int(others[np.argmax(votes[others])])
    gap = float(votes[found] - votes[other])
    if gap < 0:
        return Tipping(names[other], (), True)
    alike = 0.0 if similarity is None else float(similarity[other, found])
    gain = weight * ((1.0 - alike) - (ballots[:, other] - ballots[:, found]))
    order = np.argsort(-gain, kind="stable")
    enough = np.flatnonzero(np.cumsum(gain[order]) > gap)
    turned = near[order[: enough[0] + 1]] if enough.size else near[:0]
    return Tipping(names[other], tuple(int(j) for j in turned), False)
