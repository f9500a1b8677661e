r"""Which row to ask about next, and the rows most similar to a row.

A row is worth a question if its label is in doubt and if rows like it are in doubt too, because
the answer speaks for them when the rows are matched again:

.. math:: g_i = u_i \Bigl(1 + \sum_j w_{ij} u_j\Bigr)

with the doubt :math:`u` and the similarity :math:`w`. Rows are taken greedily; one that is taken
lessens the doubt of the rows around it, so near-duplicates do not follow each other.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from gmpll._typing import AnyFloats, Floats, Mask, Places
from gmpll.engines import Neighbors
from gmpll.engines.numpy import without_self
from gmpll.graph.local import row_scales, self_tuning_weights
from gmpll.graph.views import CosineView, TreeView

#: Directions are compared instead of values where so many more neighbours have the same label.
CLEARLY_MORE = 0.05
#: Rows and neighbours that this is judged by.
_JUDGED_ROWS = 500
_JUDGED_NEIGHBORS = 8
#: So many of the most doubtful rows are put in order by what they tell about others; the rows
#: behind them come by doubt alone. Nobody answers more before matching again.
POOL = 2000


class SimilarRows(NamedTuple):
    """The nearest rows of some rows, nearest first, and how similar they are (0 to 1)."""

    rows: Places
    weights: Floats


class Similarity:
    r"""Nearest rows by z-scored features, or by their direction where labels then agree more.

    The weight of row j for row i is :math:`\exp(-d_{ij}^2 / \sigma_i^2)`, where :math:`\sigma_i`
    is the distance of row i to its seventh neighbour. Only the rows asked for are searched, so
    nothing of the size n x n or n x k is ever made.
    """

    def __init__(
        self, features: AnyFloats, n_neighbors: int = 20, labels: NDArray[np.integer] | None = None
    ) -> None:
        self._points = _points(np.asarray(features, dtype=np.float64), labels)
        self.n_neighbors = min(n_neighbors, len(self._points) - 1)
        if self.n_neighbors > 0:
            self._search = NearestNeighbors().fit(self._points)

    def to(self, rows: Places) -> SimilarRows:
        """Find the nearest other rows of the given rows; arrays of shape (n_rows, k)."""
        k = self.n_neighbors
        if k <= 0 or not len(rows):
            return SimilarRows(np.zeros((len(rows), 0), np.intp), np.zeros((len(rows), 0)))
        distances, found = _nearest_others(self._search, self._points, rows, k)
        scales = np.broadcast_to(row_scales(distances)[:, None], distances.shape)
        return SimilarRows(found, self_tuning_weights(scales, distances))


def _points(features: Floats, labels: NDArray[np.integer] | None) -> Floats:
    """Return the rows in the space in which they are compared."""
    positions = TreeView(features).rows
    if labels is None or features.shape[1] < 2:  # a single feature has two directions only
        return positions
    directions = CosineView(features).rows
    gain = _agreement(directions, labels) - _agreement(positions, labels)
    return directions if gain > CLEARLY_MORE else positions


def _agreement(points: Floats, labels: NDArray[np.integer]) -> float:
    """Return how often a neighbour has the label of the row."""
    k = min(_JUDGED_NEIGHBORS, len(points) - 1)
    if k < 1:
        return 0.0
    rows = np.arange(0, len(points), max(1, len(points) // _JUDGED_ROWS))
    _, found = _nearest_others(NearestNeighbors().fit(points), points, rows, k)
    return float((labels[found] == labels[rows, None]).mean())


def _nearest_others(search: NearestNeighbors, points: Floats, rows: Places, k: int) -> Neighbors:
    return without_self(Neighbors(*search.kneighbors(points[rows], k + 1)), rows)


def doubt(confidence: AnyFloats, labels: NDArray[np.integer]) -> Floats:
    """Half of one minus the margin of the label found over its best rival: 1/2 for a tie."""
    rows = np.arange(len(labels))
    rivals = np.array(confidence, dtype=np.float64)
    chosen = rivals[rows, labels]
    rivals[rows, labels] = -np.inf
    rival = rivals.max(axis=1, initial=0.0)
    return np.clip((1.0 - chosen + rival) / 2, 0.0, 1.0)


def propose_order(
    doubts: AnyFloats, open_rows: Mask, similarity: Similarity, *, pool: int = POOL
) -> Places:
    """Return the open rows, the most informative first; those behind the pool by doubt alone."""
    by_doubt = np.flatnonzero(open_rows)
    by_doubt = by_doubt[np.argsort(-doubts[by_doubt], kind="stable")]
    rows = by_doubt[:pool]
    similar, weights = similarity.to(rows)
    remaining = np.array(doubts, dtype=np.float64)
    waiting = np.ones(len(rows), dtype=bool)
    order = np.empty(len(rows), dtype=np.intp)
    for place in range(len(rows)):  # the most telling row lessens the doubt around it, and so on
        worth = remaining[rows] * (1.0 + (weights * remaining[similar]).sum(axis=1))
        best = int(np.argmax(np.where(waiting, worth, -1.0)))
        order[place] = best
        waiting[best] = False
        remaining[similar[best]] *= 1.0 - weights[best]
        remaining[rows[best]] = 0.0
    return np.concatenate([rows[order], by_doubt[pool:]])
