"""Randomised trees on confidences.

Where single features carry the labels, trees see what neighbours and kernels blur. A forest of
extremely randomised trees is grown on the confidences of all labels at once, each tree on rows
drawn with replacement, so that the trees which did not draw a row predict it without its own label.
Where confidences change in the feedback, the trees stay and their leaves get new values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor

from gmpll._threads import balanced_blocks, in_threads, n_threads
from gmpll._typing import Floats

__all__ = ["FEW_TREES", "N_TREES", "Forest", "GrownForest", "is_forest_feasible"]

#: Trees of a forest; the first few of them tell whether the others are worth growing.
N_TREES = 60
FEW_TREES = 15
#: A split is searched among so many features at most.
MAX_FEATURES = 64
#: Fewest rows in a leaf.
LEAF_ROWS = 2
#: A tree sees no more rows than this.
TREE_ROWS = 5000
#: No forest is grown on fewer rows, or where a tree would have more values to keep.
MIN_ROWS = 40
MAX_VALUES = 200_000
#: Up to so many values of the features further threads cost more than they bring, and so do
#: threads that would grow fewer trees.
ONE_THREAD_SIZE = 5000
TREES_OF_A_THREAD = 4
#: Decimals of the confidences that trees are grown on.
TARGET_DECIMALS = 3
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
    """Grown trees: nodes of all trees one after the other, the children of a leaf are the leaf.

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
    threshold: Floats
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
    drawn : sparse matrix of shape (n_leaves, n_samples)
        Its product with confidences is their mean over the rows that were drawn, in every leaf.
    left_out : sparse matrix of shape (n_samples, n_leaves)
        Its product with the values of the leaves is their mean over the trees that did not draw a
        row; nothing if all trees did.
    trees : ExtraTreesRegressor
        What it was made of, to which more trees can be added.
    """

    forest: Forest
    drawn: sp.csr_array
    left_out: sp.csr_array
    trees: ExtraTreesRegressor

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
        table = _single_precision(rows)
        if n_jobs is None:
            n_new = n_trees - (0 if first is None else len(first.forest.roots))
            several = min(n_threads(), max(1, n_new // TREES_OF_A_THREAD))
            n_jobs = several if rows.size > ONE_THREAD_SIZE else 1
        trees = _trees(rows, seed) if first is None else first.trees
        trees.set_params(n_estimators=n_trees, n_jobs=n_jobs)
        grown = trees.fit(table, _target(confidences))
        forest = _packed([tree.tree_ for tree in grown.estimators_])
        shape = (n_trees, len(rows))
        leaves, times = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.int32)
        pairs = zip(grown.estimators_, grown.estimators_samples_, strict=True)
        for number, (tree, drawn) in enumerate(pairs):
            leaves[number] = forest.leaf[forest.roots[number] + tree.tree_.apply(table)]
            times[number] = np.bincount(drawn, minlength=len(rows))
        everyone = np.broadcast_to(np.arange(len(rows)), shape)
        n_leaves, is_drawn = len(forest.values), times > 0
        rows_of_leaf = np.bincount(leaves[is_drawn], times[is_drawn], n_leaves)
        shares = times[is_drawn] / rows_of_leaf[leaves[is_drawn]]
        seen = (shares, (leaves[is_drawn], everyone[is_drawn]))
        out = ~is_drawn
        of_trees = 1.0 / np.maximum(out.sum(axis=0), 1)
        unseen = (of_trees[everyone[out]], (everyone[out], leaves[out]))
        return cls(
            forest,
            sp.csr_array(seen, shape=(n_leaves, len(rows))),
            sp.csr_array(unseen, shape=(len(rows), n_leaves)),
            grown,
        )

    def out_of_bag(self, confidences: Floats) -> Floats:
        """Return what the trees that did not draw a row say of it, (n_samples, n_classes)."""
        return self.left_out @ (self.drawn @ confidences)


def _trees(rows: Floats, seed: int) -> ExtraTreesRegressor:
    """Return a forest to be grown."""
    n_rows, n_features = rows.shape
    return ExtraTreesRegressor(
        max_features=min(n_features, MAX_FEATURES),
        min_samples_leaf=LEAF_ROWS,
        bootstrap=True,
        max_samples=min(TREE_ROWS, n_rows),
        random_state=seed,
        warm_start=True,
    )


def _single_precision(rows: Floats) -> NDArray[np.float32]:
    """Return the rows as trees see them; what is too large is cut."""
    largest = np.finfo(np.float32).max
    return np.clip(rows, -largest, largest).astype(np.float32)


def _target(confidences: Floats) -> Floats:
    """Return rounded confidences, those of a single label as scikit-learn wants them.

    Which of two equally good splits is taken would else depend on the last digits, in which
    engines differ.
    """
    rounded = np.round(confidences, TARGET_DECIMALS)
    return rounded[:, 0] if rounded.shape[1] == 1 else rounded


def _packed(trees: list[object]) -> Forest:
    """Lay scikit-learn's trees into a few arrays of less than a third of their size."""
    sizes = np.array([tree.node_count for tree in trees])  # type: ignore[attr-defined]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def joined(name: str) -> NDArray[np.int64]:
        return np.concatenate([getattr(tree, name) for tree in trees])

    itself, offset = np.arange(sizes.sum()), np.repeat(roots, sizes)
    is_leaf = joined("children_left") < 0
    values = np.concatenate([tree.value[:, :, 0] for tree in trees])  # type: ignore[attr-defined]
    return Forest(
        roots=roots.astype(np.int32),
        feature=np.where(is_leaf, 0, joined("feature")).astype(np.int32),
        threshold=joined("threshold").astype(np.float64),
        left=np.where(is_leaf, itself, offset + joined("children_left")).astype(np.int32),
        right=np.where(is_leaf, itself, offset + joined("children_right")).astype(np.int32),
        leaf=(np.cumsum(is_leaf) - 1).astype(np.int32),
        values=values[is_leaf].astype(np.float32),
        depth=max(tree.max_depth for tree in trees),  # type: ignore[attr-defined]
    )
