"""Randomised trees on confidences.

Where single features carry the labels, trees see what neighbours and kernels blur. A forest of
extremely randomised trees is grown on the confidences of all labels at once, each tree on rows
drawn with replacement, so that the trees which did not draw a row predict it without its own label.
Where confidences change in the feedback, the trees stay and their leaves get new values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll._threads import balanced_blocks, in_threads, n_threads, one_blas_thread
from gmpll._typing import Floats, Mask

__all__ = ["FEW_TREES", "N_TREES", "Forest", "GrownForest", "is_forest_feasible"]

#: Trees of a forest; the first few of them tell whether the others are worth growing.
N_TREES = 60
FEW_TREES = 15
#: A split is searched among so many features where there are more than twice as many; to pick them
#: costs as much as to search all of fewer.
MAX_FEATURES = 64
#: Fewest rows in a leaf.
LEAF_ROWS = 2
#: A tree sees no more rows than this.
TREE_ROWS = 5000
#: No forest is grown on fewer rows, or where a tree would have more values to keep.
MIN_ROWS = 40
MAX_VALUES = 200_000
#: Up to so many values of the features further threads cost more than they bring.
ONE_THREAD_SIZE = 5000
#: Trees are grown on confidences in whole thousandths, and on the digits of their squares.
WHOLE = 1000
DIGIT = 1024
#: Behind the confidences of a row: one by which it is weighed, one by which it is counted, and two
#: digits of the sum of squares.
WEIGHT, COUNT, SQUARES = -4, -3, -2
#: Nodes are split together if one has up to so many times the rows of the other, and as long as
#: their rows have about so many values.
SIMILAR = 1.5
BLOCK_VALUES = 2**19
#: From the key of a node to those of its thresholds and its children.
STEP = np.uint32(0x9E3779B9)
SIDES = np.array([0x7F4A7C15, 0x85EBCA77], dtype=np.uint32)
#: Unseen rows are led down the trees in blocks of this many.
BLOCK_ROWS = 8192


def is_forest_feasible(n_samples: int, n_classes: int) -> bool:
    """Whether a forest has enough to learn from, and takes neither long nor much memory.

    Examples
    --------
    >>> from gmpll.evidence.forest import is_forest_feasible
    >>> is_forest_feasible(10**6, 10), is_forest_feasible(5000, 200), is_forest_feasible(20, 10)
    (True, False, False)
    """
    enough = n_samples >= MIN_ROWS and n_classes > 1
    return enough and n_classes <= MAX_VALUES // min(n_samples, TREE_ROWS)


@dataclass(frozen=True)
class Forest:
    """Grown trees: the nodes of all trees in a few arrays, the children of a leaf are the leaf.

    Attributes
    ----------
    roots : ndarray of shape (n_trees,)
        First node of every tree.
    feature, threshold, left, right : ndarrays of shape (n_nodes,)
        A row goes left if its feature is not above the threshold.
    leaf : ndarray of shape (n_nodes,)
        Number of the leaf, where the node is one.
    values : ndarray of shape (n_leaves, n_classes), float32
        Mean confidences of the rows in every leaf.
    depth : int
        Most steps from a root to a leaf.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    leaf: NDArray[np.int32]
    values: NDArray[np.float32]
    depth: int

    def __call__(self, rows: Floats) -> Floats:
        """Score the labels of rows, (n_rows, n_classes): not negative."""
        scores = np.empty((len(rows), self.values.shape[1]))

        def score(part: slice) -> None:
            scores[part] = self._mean_of_leaves(rows[part])

        in_threads(score, balanced_blocks(len(rows), BLOCK_ROWS))
        return scores

    def _mean_of_leaves(self, rows: Floats) -> Floats:
        # The trees were grown on single precision: so are their questions.
        table = _single_precision(rows)
        begins = np.arange(len(table)) * table.shape[1]  # of the rows in one long vector
        children = np.stack([self.left, self.right], axis=1)
        total = np.zeros((len(table), self.values.shape[1]))
        # Few rows pass through many trees at a time: one row takes a few steps, not thousands.
        at_a_time = max(1, BLOCK_ROWS // max(1, len(table)))
        for first in range(0, len(self.roots), at_a_time):
            roots = self.roots[first : first + at_a_time, None]
            node = np.broadcast_to(roots, (len(roots), len(table)))
            for _ in range(self.depth):
                is_right = table.take(begins + self.feature.take(node)) > self.threshold.take(node)
                node = children.take(2 * node + is_right)
            for leaf in self.leaf.take(
                node
            ):  # one tree after the other: sums depend on their order
                total += self.values.take(leaf, axis=0)
        return total / len(self.roots)


@dataclass(frozen=True)
class GrownForest:
    """A forest and where the rows that it was grown on went.

    Attributes
    ----------
    forest : Forest
        With the values of the confidences that it was grown on.
    leaves : ndarray of shape (n_trees, n_samples)
        Where the rows went, those that a tree did not draw too.
    drawn : sparse matrix of shape (n_leaves, n_samples)
        Its product with confidences is their mean over the rows that were drawn, in every leaf.
    left_out : sparse matrix of shape (n_samples, n_leaves)
        Its product with the values of the leaves is their mean over the trees that did not draw a
        row; nothing if all trees did.
    """

    forest: Forest
    leaves: NDArray[np.int32]
    drawn: sp.csc_array
    left_out: sp.csr_array

    @classmethod
    def of(
        cls,
        rows: Floats,
        confidences: Floats,
        seed: int,
        n_trees: int = N_TREES,
        *,
        n_jobs: int | None = None,
        first: GrownForest | None = None,
    ) -> GrownForest:
        """Grow trees on the confidences of rows.

        Parameters
        ----------
        rows : ndarray of shape (n_samples, n_features)
            Features, of moderate size.
        confidences : ndarray of shape (n_samples, n_classes)
            What is believed of their labels.
        seed : int
            Draws rows, features and thresholds.
        n_trees : int, default=N_TREES
            Number of trees.
        n_jobs : int, default=None
            Threads; by default as many as pay.
        first : GrownForest, default=None
            The first trees of the same forest, which are not grown again.

        Examples
        --------
        >>> import numpy as np
        >>> from gmpll.evidence.forest import GrownForest
        >>> rows = np.repeat([[0.0], [1.0]], 10, axis=0)
        >>> P = np.hstack([1.0 - rows, rows])
        >>> grown = GrownForest.of(rows, P, seed=0)
        >>> grown.out_of_bag(P)[[0, -1]]
        array([[1., 0.],
               [0., 1.]])
        >>> grown.forest(np.array([[-1.0], [3.0]]))
        array([[1., 0.],
               [0., 1.]])
        """
        if n_jobs is None:
            n_jobs = n_threads() if rows.size > ONE_THREAD_SIZE else 1
        table, values = _single_precision(rows), _whole_numbers(confidences)
        times = _times_drawn(len(rows), n_trees, seed)
        keys = _mixed(np.uint32(seed % 2**32) + STEP * np.arange(n_trees, dtype=np.uint32))
        done = [] if first is None else [(first.forest, first.leaves)]
        n_done = sum(len(leaves) for _, leaves in done)

        def grow(some: NDArray[np.int64]) -> tuple[Forest, NDArray[np.int32]]:
            return _grown(table, values, times[some], keys[some])

        parts = np.array_split(np.arange(n_done, n_trees), min(n_jobs, n_trees - n_done))
        with one_blas_thread():  # the products are small
            done += in_threads(grow, parts)
        forest, leaves = _joined(done)
        return cls(forest, leaves, *_averages(leaves, times, len(forest.values)))

    def out_of_bag(self, confidences: Floats) -> Floats:
        """Return what the trees that did not draw a row say of it, (n_samples, n_classes)."""
        return self.left_out @ (self.drawn @ confidences)


def _single_precision(rows: Floats) -> NDArray[np.float32]:
    """Return the rows as trees see them; what is too large is cut."""
    largest = np.finfo(np.float32).max
    return np.clip(rows, -largest, largest).astype(np.float32)


def _whole_numbers(confidences: Floats) -> NDArray[np.float32]:
    """Return rounded confidences, ones to weigh and to count rows by, and the sum of squares.

    Sums of whole numbers are exact in any order, even in single precision (hence two digits of the
    squares): which of two equally good splits is taken would else depend on the last digits, in
    which engines differ.
    """
    rounded = np.rint(confidences * WHOLE)
    squares, ones = (rounded**2).sum(axis=1), np.ones(len(rounded))
    return np.column_stack([rounded, ones, ones, *np.divmod(squares, DIGIT)]).astype(np.float32)


def _times_drawn(n_rows: int, n_trees: int, seed: int) -> NDArray[np.float32]:
    """Return how often every tree draws every row, (n_trees, n_rows)."""
    shape = (n_trees, min(TREE_ROWS, n_rows))
    drawn = np.random.RandomState(seed).randint(0, n_rows, shape)
    places = drawn + n_rows * np.arange(n_trees)[:, None]
    times = np.bincount(places.ravel(), minlength=n_trees * n_rows)
    return times.reshape(n_trees, n_rows).astype(np.float32)


def _mixed(keys: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return numbers that look random, of each key its own: the second half of MurmurHash3."""
    keys = keys ^ (keys >> np.uint32(16))
    keys *= np.uint32(0x85EBCA6B)
    keys ^= keys >> np.uint32(13)
    keys *= np.uint32(0xC2B2AE35)
    keys ^= keys >> np.uint32(16)
    return keys


def _grown(
    table: NDArray[np.float32],
    values: NDArray[np.float32],
    times: NDArray[np.float32],
    keys: NDArray[np.uint32],
) -> tuple[Forest, NDArray[np.int32]]:
    """Grow trees side by side, level by level; also return the leaf of every row in every tree.

    Every node has a key, from which its thresholds and the keys of its children follow: a tree does
    not depend on those beside it.
    """
    n_trees, n_rows = times.shape
    # Places in ``times``, node by node: of the rows that were drawn, and of those that were not.
    seen, unseen = np.flatnonzero(times), np.flatnonzero(times == 0)
    row_of = np.tile(np.arange(n_rows), n_trees)
    n_unseen = n_rows - np.count_nonzero(times, axis=1)
    sums = times.astype(np.float64) @ values
    sums[:, COUNT] = np.count_nonzero(times, axis=1)
    leaves = np.empty(times.size, dtype=np.int32)
    levels, of_leaves, n_nodes, n_leaves = [], [], 0, 0
    while len(keys):
        n_seen = sums[:, COUNT].astype(np.intp)
        level = _Level(row_of.take(seen), times.take(seen), n_seen.cumsum() - n_seen, sums, keys)
        feature, threshold, of_right = _splits(table, values, level)
        is_leaf = feature < 0
        inner = np.flatnonzero(~is_leaf)
        itself = n_nodes + np.arange(len(keys))
        children = np.stack([itself, itself], axis=1)
        children[inner] = n_nodes + len(keys) + np.arange(2 * len(inner)).reshape(2, -1).T
        leaf = n_leaves + np.cumsum(is_leaf) - 1
        levels.append((np.maximum(feature, 0), threshold, *children.T, leaf))
        of_leaves.append(sums[is_leaf])
        n_leaves += len(of_leaves[-1])
        n_nodes += len(keys)
        crowds = []
        for places, sizes in ((seen, n_seen), (unseen, n_unseen)):
            node = np.repeat(np.arange(len(keys)), sizes)
            stays = is_leaf.take(node)
            stay, go = np.flatnonzero(stays), np.flatnonzero(~stays)
            leaves[places.take(stay)] = leaf.take(node.take(stay))
            places, node = places.take(go), node.take(go)
            asked = table.take(row_of.take(places) * table.shape[1] + feature.take(node))
            is_right = asked > threshold.take(node)
            right = np.flatnonzero(is_right)
            crowds.append(places.take(np.concatenate([np.flatnonzero(~is_right), right])))
            n_right = np.bincount(node.take(right), minlength=len(keys))[inner]
        seen, unseen = crowds
        n_unseen = np.concatenate([n_unseen[inner] - n_right, n_right])
        of_right = of_right[inner]
        sums = np.concatenate([sums[inner] - of_right, of_right])
        keys = _mixed(np.concatenate([keys[inner] + SIDES[0], keys[inner] + SIDES[1]]))
    feature, threshold, left, right, leaf = map(np.concatenate, zip(*levels, strict=True))
    sums = np.concatenate(of_leaves)
    forest = Forest(
        roots=np.arange(n_trees, dtype=np.int32),
        feature=feature.astype(np.int32),
        threshold=threshold,
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        leaf=leaf.astype(np.int32),
        values=(sums[:, :WEIGHT] / (WHOLE * sums[:, WEIGHT, None])).astype(np.float32),
        depth=len(levels) - 1,
    )
    return forest, leaves.reshape(times.shape)


class _Level(NamedTuple):
    """Nodes that may be split: rows, how often each was drawn, where those of a node begin."""

    rows: NDArray[np.intp]
    times: NDArray[np.float32]
    begins: NDArray[np.intp]
    sums: Floats  # of values
    keys: NDArray[np.uint32]


def _splits(
    table: NDArray[np.float32], values: NDArray[np.float32], level: _Level
) -> tuple[NDArray[np.int32], NDArray[np.float32], Floats]:
    """Return feature (-1 for a leaf), threshold and sums of values on the right for all nodes."""
    sums = level.sums
    feature = np.full(len(sums), -1, dtype=np.int32)
    threshold = np.zeros(len(sums), dtype=np.float32)
    of_right = np.zeros_like(sums)
    squares = sums[:, WEIGHT] * (DIGIT * sums[:, SQUARES] + sums[:, SQUARES + 1])
    is_pure = squares <= np.einsum("nq,nq->n", sums[:, :WEIGHT], sums[:, :WEIGHT])
    pending = np.flatnonzero((sums[:, COUNT] >= 2 * LEAF_ROWS) & ~is_pure)
    pending = pending[np.argsort(sums[pending, COUNT], kind="stable")]
    n_searched = _n_searched(table.shape[1])
    for window in range(0, table.shape[1], n_searched):  # the next if nothing splits a node
        for some in _of_similar_size(sums[pending, COUNT], n_searched):
            nodes = pending[some]
            found = _best_of(table, values, level, nodes, window)
            feature[nodes], threshold[nodes], of_right[nodes] = found
        pending = pending[feature[pending] < 0]
    return feature, threshold, of_right


def _n_searched(n_features: int) -> int:
    """Return among how many features a split is searched."""
    return n_features if n_features <= 2 * MAX_FEATURES else MAX_FEATURES


def _of_similar_size(sizes: Floats, n_features: int) -> Iterator[slice]:
    """Cut rising sizes into parts that can be stacked without much waste."""
    first = 0
    while first < len(sizes):
        last = int(np.searchsorted(sizes, SIMILAR * sizes[first], side="right"))
        at_once = int(BLOCK_VALUES / (sizes[last - 1] * n_features))
        last = min(last, first + max(1, at_once))
        yield slice(first, last)
        first = last


def _best_of(
    table: NDArray[np.float32],
    values: NDArray[np.float32],
    level: _Level,
    nodes: NDArray[np.intp],
    window: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32], Floats]:
    """Draw one threshold for each of some features and take the best, for nodes of similar size."""
    n_features = table.shape[1]
    n_searched = _n_searched(n_features)
    sums, sizes, keys = (
        level.sums[nodes],
        level.sums[nodes, COUNT].astype(np.intp),
        level.keys[nodes],
    )
    # Smaller nodes repeat a row, which does not count.
    step = np.arange(sizes.max())[:, None]
    places = level.begins[nodes] + np.minimum(step, sizes - 1)
    rows, is_there = level.rows.take(places), step < sizes
    number = window + np.arange(n_searched)
    if n_searched == n_features:
        features = np.broadcast_to(number, (len(nodes), n_features))
        seen = table.take(rows, axis=0)
    else:
        # A walk through the features that begins anywhere and comes to all of them.
        strides = _strides(n_features)
        stride = strides.take(_mixed(keys) % np.uint32(len(strides)))
        features = (keys[:, None] + stride[:, None] * number) % n_features
        seen = table.take(rows[:, :, None] * n_features + features)
    low, high = seen.min(axis=0), seen.max(axis=0)
    random = _mixed(keys[:, None] + STEP * (number + 1).astype(np.uint32)) >> np.uint32(8)
    share = random.astype(np.float32) / np.float32(2**24)
    threshold = (1 - share) * low + share * high
    threshold = np.where(threshold < high, np.maximum(threshold, low), low)
    weighed = values.take(rows, axis=0)
    weighed *= (level.times.take(places) * is_there)[:, :, None]
    weighed[:, :, COUNT] = is_there
    is_right = np.greater(seen, threshold, out=seen)
    right = np.matmul(weighed.transpose(1, 2, 0), is_right.transpose(1, 0, 2)).astype(np.float64)
    # The sum of squared errors is least where that of squared sums by weight is largest.
    of_all, of_right = sums[:, :WEIGHT], right[:, :WEIGHT]
    squares = np.einsum("nqf,nqf->nf", of_right, of_right)
    products = np.matmul(of_all[:, None], of_right)[:, 0]
    on_left = np.einsum("nq,nq->n", of_all, of_all)[:, None] - 2 * products + squares
    weight, count = right[:, WEIGHT], right[:, COUNT]
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = squares / weight + on_left / (sums[:, WEIGHT, None] - weight)
    few = np.minimum(count, sums[:, COUNT, None] - count) < LEAF_ROWS
    np.copyto(gain, -1.0, where=few)
    best, each = gain.argmax(axis=1), np.arange(len(nodes))
    feature = np.where(gain[each, best] < 0, -1, features[each, best])
    return feature.astype(np.int32), threshold[each, best], right[each, :, best]


@cache
def _strides(n_features: int) -> NDArray[np.intp]:
    """Return steps by which one comes to all features, round and round."""
    return np.flatnonzero(np.gcd(np.arange(n_features), n_features) == 1)


def _joined(
    parts: list[tuple[Forest, NDArray[np.int32]]],
) -> tuple[Forest, NDArray[np.int32]]:
    """Return one forest of several on the same rows, and the leaves of these."""
    forests = [forest for forest, _ in parts]
    nodes = np.cumsum([0] + [len(forest.feature) for forest in forests], dtype=np.int32)
    leaves = np.cumsum([0] + [len(forest.values) for forest in forests], dtype=np.int32)

    def joined(name: str, offsets: NDArray[np.int32] | None = None) -> NDArray[Any]:
        arrays = [getattr(forest, name) for forest in forests]
        if offsets is not None:
            arrays = [array + offset for array, offset in zip(arrays, offsets, strict=False)]
        return np.concatenate(arrays)

    forest = Forest(
        roots=joined("roots", nodes),
        feature=joined("feature"),
        threshold=joined("threshold"),
        left=joined("left", nodes),
        right=joined("right", nodes),
        leaf=joined("leaf", leaves),
        values=joined("values"),
        depth=max(forest.depth for forest in forests),
    )
    found = [of_rows + offset for (_, of_rows), offset in zip(parts, leaves, strict=False)]
    return forest, np.concatenate(found)


def _averages(
    leaves: NDArray[np.int32], times: NDArray[np.float32], n_leaves: int
) -> tuple[sp.csc_array, sp.csr_array]:
    """Return what averages confidences in leaves, and values of leaves over trees."""
    leaves, times = leaves.T, times.T
    shape, is_drawn = (len(leaves), n_leaves), times > 0

    def by_row(is_there: Mask, weights: Floats) -> sp.csr_array:
        ends = np.concatenate([[0], is_there.sum(axis=1).cumsum()])
        return sp.csr_array((weights, leaves[is_there], ends), shape=shape)

    of_leaf = np.bincount(leaves[is_drawn], times[is_drawn], n_leaves)
    n_out = leaves.shape[1] - is_drawn.sum(axis=1)
    drawn = by_row(is_drawn, times[is_drawn] / of_leaf[leaves[is_drawn]])
    return drawn.T, by_row(~is_drawn, np.repeat(1.0 / np.maximum(n_out, 1), n_out))
