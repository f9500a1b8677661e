"""Ordered labels: whether labels are numbers on a scale, and how similar they are then.

Annotators of an ordered quantity (an age, a grade) disagree by a little. Labels that share many
candidate sets are then similar, and the matching lets them support each other, Eq. (2).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from gmpll._typing import Floats, Mask
from gmpll.arrays import Array, to_host
from gmpll.engines import engine_of
from gmpll.graph.views import EuclideanView

#: Sets are called ordered if their labels lie this much closer together than in random sets.
ORDINAL_GAP = 0.5

#: A border between two labels is a break if less than this share of the usual sets crosses it.
MIN_CROSSING_SHARE = 0.5

#: Features follow the labels if rows that look alike lie this much closer together than others.
VARYING_GAP = 0.9

#: No more rows than these are compared with each other to see whether features follow.
MAX_COMPARED_ROWS = 1000


def cooccurrence_similarity(mask: Array) -> Floats:
    """Cosine between the columns of the candidate matrix: labels that share sets are similar."""
    engine = engine_of(mask)
    sets = engine.xp.astype(mask, engine.xp.float64)
    (counts,) = engine.small(engine.xp.sum(sets, axis=0))
    sets = sets / engine.xp.clip(counts**0.5, min=1.0)
    similarity = np.minimum(to_host(sets.T @ sets), 1.0)
    np.fill_diagonal(similarity, 1.0)
    return similarity


def labels_look_ordinal(labels: NDArray[Any], mask: Mask) -> bool:
    """Whether the labels are numbers and candidate sets gather along the number line.

    Annotators of an ordered quantity disagree by a little. The mean gap between the candidates of a
    row is compared with that of sets of the same sizes drawn by the labels' frequencies. Unordered
    labels that are easily confused may have been numbered one after the other; but sets do not
    cross the border between two such groups, and in an order they cross all borders.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.ordinal import labels_look_ordinal
    >>> ages = np.arange(20)
    >>> labels_look_ordinal(ages, np.abs(ages[:, None] - ages) <= 1)
    True
    >>> labels_look_ordinal(ages, ages[:, None] // 5 == ages // 5)  # four groups of five
    False
    """
    if labels.dtype.kind not in "iuf" or len(labels) < 3:
        return False
    sizes = mask.sum(axis=1)
    ambiguous = mask[sizes > 1].astype(np.float64)
    if not len(ambiguous):
        return False
    gaps = np.abs(labels[:, None].astype(np.float64) - labels[None, :])
    pairs = sizes[sizes > 1] * (sizes[sizes > 1] - 1)
    within = ((ambiguous @ gaps) * ambiguous).sum() / pairs.sum()
    frequency = ambiguous.sum(axis=0) / ambiguous.sum()
    other = 1.0 - np.square(frequency).sum()  # two different labels are drawn
    apart = float(frequency @ gaps @ frequency) / other
    if within >= ORDINAL_GAP * apart:
        return False
    return not _breaks(mask[sizes > 1][:, np.argsort(labels)])


def _breaks(mask: Mask) -> bool:
    """Whether clearly fewer sets than usual cross one of the borders between adjacent columns.

    Of the sets that contain one of the two labels at a border, those count that have labels on
    both sides. Chance is allowed for: two standard deviations of that number.
    """
    at_border = mask[:, :-1] | mask[:, 1:]
    borders = np.arange(at_border.shape[1])
    first = mask.argmax(axis=1)[:, None]
    last = mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)[:, None]
    near = at_border.sum(axis=0)
    crossing = (at_border & (first <= borders) & (borders < last)).sum(axis=0)
    crossing, near = crossing[near > 0], near[near > 0]
    usual = np.median(crossing / near) * near
    return bool((crossing + 2.0 * np.sqrt(crossing + 1.0) < MIN_CROSSING_SHARE * usual).any())


def features_vary_with_label(X: Floats, labels: NDArray[Any], mask: Mask) -> bool:
    """Whether rows that look alike have numbers near each other as labels, as in an order.

    Every row is compared with the one that looks most like it among those which share no candidate
    with it, because rows with a common candidate say nothing about that. In an order its label is
    still nearer than those of the others. True also where all rows share candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.ordinal import features_vary_with_label
    >>> ages = np.arange(20)
    >>> guesses = np.abs(ages[:, None] - ages) <= 1
    >>> features_vary_with_label(ages[:, None] * 0.1, ages, guesses)
    True
    """
    rows = np.linspace(0, len(X) - 1, min(len(X), MAX_COMPARED_ROWS)).astype(np.intp)
    sets = mask[rows].astype(np.float64)
    distinct = sets @ sets.T == 0
    compared = distinct.any(axis=1)
    if not compared.any():
        return True
    centre = sets @ labels.astype(np.float64) / sets.sum(axis=1)
    gaps = np.abs(centre[:, None] - centre)[compared]
    distinct = distinct[compared]
    places = EuclideanView(X[rows].astype(np.float64)).rows
    distances = euclidean_distances(places[compared], places, squared=True)
    alike = np.where(distinct, distances, np.inf).argmin(axis=1)
    near = gaps[np.arange(len(gaps)), alike]
    usual = (gaps * distinct).sum(axis=1) / distinct.sum(axis=1)
    return bool(near.mean() < VARYING_GAP * usual.mean())
