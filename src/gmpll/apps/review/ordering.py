r"""Which row to ask about next.

A row is worth a question if its label is in doubt and if rows like it are in doubt too, because
the answer speaks for them when the rows are matched again:

.. math:: g_i = u_i \Bigl(1 + \sum_j w_{ij} u_j\Bigr)

with the doubt :math:`u` and the similarity :math:`w`. Rows are taken greedily; one that is taken
lessens the doubt of the rows around it, so near-duplicates do not follow each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gmpll.apps.review.evidence import Similarity

#: So many of the most doubtful rows are put in order by what they tell about others; the rows
#: behind them come by doubt alone. Nobody answers more before matching again.
POOL = 2000


def doubt(confidence: NDArray[np.floating], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Half of one minus the margin of the label found over its best rival.

    It is 0 for a label that nothing speaks against, 1/2 for a tie, and more where the rest of the
    data supports another candidate better.
    """
    rows = np.arange(len(labels))
    rivals = np.array(confidence, dtype=np.float64)
    chosen = rivals[rows, labels]
    rivals[rows, labels] = -np.inf
    rival = rivals.max(axis=1, initial=0.0)
    return np.clip((1.0 - chosen + rival) / 2, 0.0, 1.0)


def propose_order(
    doubts: NDArray[np.floating],
    open_rows: NDArray[np.bool_],
    similarity: Similarity,
    *,
    pool: int = POOL,
) -> NDArray[np.intp]:
    """Return the open rows in the order in which to ask about them, most informative first.

    Rows that are not open still count as rows to be influenced. So many rows as fit into the pool
    are put in order by more than their doubt.
    """
    rows = np.flatnonzero(open_rows)
    rows = rows[np.argsort(-doubts[rows], kind="stable")]
    first = rows[:pool]
    return np.concatenate([first[_greedy(first, doubts, similarity)], rows[pool:]])


def _greedy(
    rows: NDArray[np.intp], doubts: NDArray[np.floating], similarity: Similarity
) -> NDArray[np.intp]:
    """Take the most telling row, lessen the doubt around it, and so on."""
    similar, weights = similarity.to(rows)
    remaining = np.array(doubts, dtype=np.float64)
    waiting = np.ones(len(rows), dtype=bool)
    order = np.empty(len(rows), dtype=np.intp)
    for place in range(len(rows)):
        worth = remaining[rows] * (1.0 + (weights * remaining[similar]).sum(axis=1))
        best = int(np.argmax(np.where(waiting, worth, -1.0)))
        order[place] = best
        waiting[best] = False
        remaining[similar[best]] *= 1.0 - weights[best]
        remaining[rows[best]] = 0.0
    return order
