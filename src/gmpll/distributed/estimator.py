"""GM-PLL on the local graph, over Dask."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Self

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gmpll._sklearn import Integral, Interval, Real, StrOptions, fit_context
from gmpll.distributed.blocks import RowBlocks
from gmpll.distributed.candidates import candidate_block, candidate_facts, raise_for_bad_rows
from gmpll.distributed.checkpoints import Checkpoints
from gmpll.distributed.features import Directions, block_statistics, merged_statistics
from gmpll.distributed.graph import GraphPart, local_graph, row_scales
from gmpll.distributed.inputs import as_candidate_rows, as_rows
from gmpll.distributed.labels import (
    best_of_block,
    chosen,
    dense,
    joined,
    scores_of_block,
    support_shares,
)
from gmpll.distributed.matching import match_blocks, support_of_block, uniform_block
from gmpll.distributed.neighbors import UNSEEN, neighbors_of_block
from gmpll.matching.affinity import check_label_similarity

__all__ = ["DaskGMPLL"]

#: The probabilities that one task gathers take about this much ...
GATHERED_BYTES = 2**25
#: ... at a value and a column number for every candidate.
CANDIDATE_BYTES = 12


class DaskGMPLL(ClassifierMixin, BaseEstimator):
    r"""Graph matching of rows that no single machine has to hold.

    The matching is that of ``GMPLL(prediction="independent", label_similarity=None)`` and finds
    the same confidences. Features, graph and probabilities lie in partitions of rows, which are
    the row chunks of X. Work goes to the active ``distributed.Client``, or to threads of this
    process if there is none.

    Parameters
    ----------
    graph_neighbors : int, default=40
        Neighbours of an instance.
    balance : float, default=0.5
        Exponent of the class-mass correction, which keeps frequent labels from snowballing;
        0 is the paper's matching.
    label_similarity : array-like of shape (n_classes, n_classes), default=None
        Known similarity of the labels in the order of ``classes_``; by default different labels
        have similarity 0.
    max_iter : int, default=100
        Largest number of turns of the matching.
    tol : float, default=1e-4
        The matching has converged when a turn moves p by less than this (Euclidean norm).
    dtype : {"float64", "float32"}, default="float64"
        Precision in which the rows of two partitions are compared; ``"float32"`` halves the
        memory of a task.
    partition_rows : int, default=None
        Rows of a partition where X has no chunks of its own (files, arrays); by default as many
        as take 32 MiB, and 32768 at most.
    checkpoint_turns : int, default=10
        The probabilities are kept outside of the workers every so many turns: no more turns are
        repeated when a worker is lost.
    directory : path-like, default=None
        Folder that all workers reach under this name. Checkpoints and the neighbours found are
        then kept in it, and may be removed when the model is no longer needed. Without it,
        checkpoints go through the client to the scheduler, and neighbours that are lost with a
        worker are searched again.
    random_state : int, RandomState instance or None, default=None
        Breaks ties.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    labels_ : dask array of shape (n_samples,)
        The label matched to every training row.
    label_confidences_ : dask array of shape (n_samples, n_classes)
        The matching probabilities: zero outside the candidates, rows sum to one.
    label_support_ : dask array of shape (n_samples, n_classes)
        Share of the support that the candidates of a row get from the neighbours' confidences;
        zero outside the candidates, rows sum to one.
    n_iter_ : int
        Turns of the matching.
    converged_ : bool
        Whether it converged within ``max_iter`` turns.
    objective_path_ : ndarray of shape (n_iter_,)
        :math:`p^\top K p` before every turn.
    n_features_in_ : int
        Number of features seen during ``fit``.

    Notes
    -----
    With m rows in partitions of b rows, d features, k neighbours and u candidates in all, a task
    holds O(b (d + k)) numbers. The cluster as a whole holds O(m k + u), and may spill it to its
    disks. The exact search takes O(m^2 d) time and reads every partition m / b times; a turn takes
    O(m k u / m) time and sends to every worker the probabilities, 12 u bytes at most.

    Unseen rows get the labels of the training rows that their ``graph_neighbors`` nearest edges
    lead to, with the weights of the graph and the class-mass correction. The training rows are
    searched where they are stored: they must stay there, unchanged, as long as the model predicts.

    Results are Dask arrays whose partitions are held by the cluster: compute them, or write them
    with :meth:`to_zarr`, before it is closed.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from gmpll.distributed import DaskGMPLL
    >>> X, y = load_iris(return_X_y=True)
    >>> candidates = np.eye(3, dtype=int)[y]
    >>> candidates[np.arange(0, 150, 2), (y[::2] + 1) % 3] = 1  # a wrong one in every second set
    >>> rows = da.from_array(X, chunks=(50, -1))
    >>> model = DaskGMPLL(random_state=0).fit(rows, candidates)
    >>> float((model.labels_.compute() == y).mean()) > 0.9
    True
    >>> model.predict(rows[:2]).compute()
    array([0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "graph_neighbors": [Interval(Integral, 1, None, closed="left")],
        "balance": [Interval(Real, 0, None, closed="left")],
        "label_similarity": [None, "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "dtype": [StrOptions({"float64", "float32"})],
        "partition_rows": [None, Interval(Integral, 1, None, closed="left")],
        "checkpoint_turns": [Interval(Integral, 1, None, closed="left")],
        "directory": [None, str, PathLike],
        "random_state": ["random_state"],
    }

    classes_: NDArray[Any]
    labels_: da.Array
    label_confidences_: da.Array
    label_support_: da.Array

    def __init__(
        self,
        *,
        graph_neighbors: int = 40,
        balance: float = 0.5,
        label_similarity: ArrayLike | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        dtype: str = "float64",
        partition_rows: int | None = None,
        checkpoint_turns: int = 10,
        directory: str | PathLike[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.graph_neighbors = graph_neighbors
        self.balance = balance
        self.label_similarity = label_similarity
        self.max_iter = max_iter
        self.tol = tol
        self.dtype = dtype
        self.partition_rows = partition_rows
        self.checkpoint_turns = checkpoint_turns
        self.directory = directory
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows with candidate labels.

        Parameters
        ----------
        X : dask array, dask DataFrame, Zarr array, memory map, path or array-like
            Features. A path names a ``.npy`` file or a Zarr array. Data on disk that is larger
            than the memory is given as a path, a memory map, a Zarr array or a Dask collection
            that reads files; what such a collection computes is computed again for every pair of
            partitions, so persist it, or write it to Zarr, if that is much.
        y : dask array, dask DataFrame, Zarr array, memory map, path or candidate sets
            A 0/1 matrix with a column per label, and with the row chunks of X if it has any; or
            candidate sets in memory in any form that :func:`gmpll.as_candidates` takes.

        Returns
        -------
        self
        """
        features = as_rows(X, self.partition_rows)
        matrix, self.classes_ = as_candidate_rows(y, features)
        self.n_features_in_ = features.shape[1]
        rng = check_random_state(self.random_state)
        self._priority = rng.permutation(len(self.classes_))
        checkpoints = Checkpoints(self.directory)

        self._rows = RowBlocks(features)
        candidates, n_candidates = self._checked_candidates(RowBlocks(matrix))
        self._space = self._directions()
        neighbors, self._scales = self._neighbors(checkpoints)
        graph = self._graph(neighbors, n_candidates)
        del neighbors

        similarity = self._checked_similarity()
        matching = match_blocks(
            dask.persist(*(dask.delayed(uniform_block)(block) for block in candidates)),
            graph,
            similarity=similarity,
            balance=self.balance,
            max_iter=self.max_iter,
            tol=self.tol,
            checkpoints=checkpoints,
            checkpoint_turns=self.checkpoint_turns,
        )
        self.n_iter_ = matching.n_iter
        self.converged_ = matching.converged
        self.objective_path_ = matching.objective_path
        support = [
            support_of_block(parts, matching.probabilities, block, similarity)
            for parts, block in zip(graph, candidates, strict=True)
        ]
        self._keep_results(candidates, matching.probabilities, support, rng)
        return self

    def fit_predict(self, X: Any, y: Any) -> da.Array:
        """Return the label found for every training row (transductive use).

        Parameters
        ----------
        X, y
            As for ``fit``.

        Returns
        -------
        dask array of shape (n_samples,)
            ``labels_``.
        """
        return self.fit(X, y).labels_

    def predict_proba(self, X: Any) -> da.Array:
        """Rate every label for unseen rows, when the result is computed.

        Parameters
        ----------
        X : dask array, dask DataFrame, Zarr array, memory map, path or array-like
            Features.

        Returns
        -------
        dask array of shape (n_samples, n_classes)
            Rows sum to one; columns in the order of ``classes_``.
        """
        scores, sizes = self._scores(X)
        return joined(scores, [(n, len(self.classes_)) for n in sizes], np.float64)

    def predict(self, X: Any) -> da.Array:
        """Predict the label of unseen rows, when the result is computed.

        Parameters
        ----------
        X : dask array, dask DataFrame, Zarr array, memory map, path or array-like
            Features.

        Returns
        -------
        dask array of shape (n_samples,)
            Ties are broken by an order of the labels drawn in ``fit`` with ``random_state``.
        """
        scores, sizes = self._scores(X)
        choose = dask.delayed(chosen, pure=False)
        labels = [choose(block, self._priority, self.classes_) for block in scores]
        return joined(labels, [(n,) for n in sizes], self.classes_.dtype)

    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
        """Share of rows whose prediction lies in their candidate set.

        Parameters
        ----------
        X : dask array, dask DataFrame, Zarr array, memory map, path or array-like
            Features.
        y : dask array, dask DataFrame, Zarr array, memory map, path or candidate matrix
            A 0/1 matrix with the columns of ``classes_``; with a single 1 in every row the score
            is the accuracy.
        sample_weight : None
            Not supported.

        Returns
        -------
        float
        """
        features = as_rows(X, self.partition_rows)
        matrix, _ = as_candidate_rows(y, features)
        scores, _ = self._scores(features)
        hits = [
            dask.delayed(_hits, pure=False)(block, self._priority, candidates)
            for block, candidates in zip(scores, matrix.to_delayed().ravel(), strict=True)
        ]
        return sum(dask.compute(*hits)) / features.shape[0]

    def to_zarr(self, url: str | PathLike[str]) -> None:
        """Write what ``fit`` found, partition by partition, to a Zarr group.

        Parameters
        ----------
        url : path-like
            Folder of the group, which all workers must reach. It gets the arrays ``labels``
            (numbers of the labels), ``label_confidences`` and ``label_support`` and the attribute
            ``classes``, the labels in the order of their numbers.
        """
        check_is_fitted(self)
        import zarr

        target = str(url)
        zarr.open_group(target, mode="w").attrs["classes"] = self.classes_.tolist()
        arrays = {
            "labels": self._codes_array(),
            "label_confidences": self.label_confidences_,
            "label_support": self.label_support_,
        }
        dask.compute(
            *(
                # Chunks of a Zarr array are equal but for the last one.
                array.rechunk({0: self._rows.sizes[0]}).to_zarr(
                    target, component=name, compute=False
                )
                for name, array in arrays.items()
            )
        )

    def _checked_candidates(self, blocks: RowBlocks) -> tuple[list[Any], int]:
        """Return the candidates of every partition, sparse, and their number in all."""
        facts = dask.compute(
            *(
                dask.delayed(candidate_facts, pure=False)(block, start)
                for block, start in zip(blocks.blocks, blocks.starts, strict=True)
            )
        )
        raise_for_bad_rows(list(facts))
        read = dask.delayed(candidate_block, pure=False)
        sparse = dask.persist(*(read(block) for block in blocks.blocks))
        return list(sparse), sum(fact.n_candidates for fact in facts)

    def _directions(self) -> Delayed:
        """Return the space in which rows are compared, from the statistics of all partitions."""
        parts = [
            dask.delayed(block_statistics, pure=False)(block, start)
            for block, start in zip(self._rows.blocks, self._rows.starts, strict=True)
        ]
        statistics = dask.delayed(merged_statistics, pure=False)(parts)
        space, *facts = dask.persist(
            dask.delayed(Directions, pure=False)(statistics, self.dtype),
            statistics.bad_row,
            statistics.overflows,
        )
        row, overflows = dask.compute(*facts)
        if overflows:
            raise ValueError("X holds values too large to be squared: divide its features first.")
        if row >= 0:
            raise ValueError(
                f"Input X contains NaN or infinity in row {row}: drop the row or fill in the value."
            )
        return space

    def _neighbors(self, checkpoints: Checkpoints) -> tuple[list[Any], list[Any]]:
        """Return the neighbours and the scales of the rows of every partition."""
        k = self.graph_neighbors
        neighbors = [
            neighbors_of_block(block, start, self._rows, self._space, k)
            for block, start in zip(self._rows.blocks, self._rows.starts, strict=True)
        ]
        if checkpoints.directory is not None:
            neighbors = checkpoints.keep(neighbors, "neighbors")
        scales = [dask.delayed(row_scales, pure=False)(near) for near in neighbors]
        persisted = dask.persist(*neighbors, *scales)
        return list(persisted[: len(neighbors)]), list(persisted[len(neighbors) :])

    def _graph(self, neighbors: Sequence[Any], n_candidates: int) -> list[list[GraphPart]]:
        bytes_per_row = CANDIDATE_BYTES * n_candidates / sum(self._rows.sizes)
        budget = int(GATHERED_BYTES / bytes_per_row)
        graph = local_graph(neighbors, self._scales, self._rows, budget)
        weights = iter(dask.persist(*(part.weights for parts in graph for part in parts)))
        return [[GraphPart(next(weights), part.columns) for part in parts] for parts in graph]

    def _checked_similarity(self) -> NDArray[np.float64] | None:
        if self.label_similarity is None:
            return None
        similarity = np.asarray(self.label_similarity, dtype=np.float64)
        return check_label_similarity(similarity, len(self.classes_))

    def _keep_results(
        self,
        candidates: Sequence[Any],
        probabilities: Sequence[Any],
        support: Sequence[Any],
        rng: np.random.RandomState,
    ) -> None:
        seeds = rng.randint(np.iinfo(np.int32).max, size=len(candidates)).tolist()
        codes = [
            dask.delayed(best_of_block, pure=False)(*block)
            for block in zip(probabilities, candidates, seeds, strict=True)
        ]
        shares = [
            dask.delayed(support_shares, pure=False)(*block)
            for block in zip(support, candidates, strict=True)
        ]
        persisted = dask.persist(*codes, *shares)
        self._codes, shares = list(persisted[: len(codes)]), list(persisted[len(codes) :])
        counts = dask.compute(
            *(dask.delayed(np.bincount)(code, None, len(self.classes_)) for code in self._codes)
        )
        found = np.sum(counts, axis=0)
        self._correction = np.where(found > 0, np.maximum(found, 1.0) ** -self.balance, 0.0)

        n_classes = len(self.classes_)
        shapes = [(n, n_classes) for n in self._rows.sizes]
        make_dense = dask.delayed(dense, pure=False)
        self.label_confidences_ = joined(
            [make_dense(block) for block in probabilities], shapes, np.float64
        )
        self.label_support_ = joined([make_dense(block) for block in shares], shapes, np.float64)
        self.labels_ = da.map_blocks(
            _named, self._codes_array(), classes=self.classes_, dtype=self.classes_.dtype
        )

    def _codes_array(self) -> da.Array:
        return joined(self._codes, [(n,) for n in self._rows.sizes], np.intp)

    def _scores(self, X: Any) -> tuple[list[Delayed], tuple[int, ...]]:
        """Return the scores of the labels, as a task per partition, and the partitions' sizes."""
        check_is_fitted(self)
        features = as_rows(X, self.partition_rows)
        if features.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {features.shape[1]} features, but DaskGMPLL is expecting "
                f"{self.n_features_in_} features as input."
            )
        rate = dask.delayed(scores_of_block, pure=False)
        blocks = features.to_delayed().ravel()
        scores = [
            rate(
                neighbors_of_block(block, UNSEEN, self._rows, self._space, self.graph_neighbors),
                self._scales,
                self._codes,
                self._correction,
            )
            for block in blocks
        ]
        return scores, features.chunks[0]


def _named(codes: NDArray[np.intp], classes: NDArray[Any]) -> NDArray[Any]:
    return classes[codes]


def _hits(scores: NDArray[np.float64], priority: NDArray[np.intp], candidates: NDArray[Any]) -> int:
    """Count the rows whose best label is a candidate."""
    predicted = chosen(scores, priority, np.arange(len(priority)))
    return int((np.asarray(candidates)[np.arange(len(predicted)), predicted] == 1).sum())
