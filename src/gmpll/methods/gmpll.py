"""GM-PLL: partial label learning by graph matching."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gmpll._sklearn import Integral, Interval, Real, StrOptions
from gmpll.base import N_JOBS, PartialLabelClassifier, ProbabilityMixin
from gmpll.graph.features import DirectionSpace
from gmpll.graph.local import LocalGraph
from gmpll.graph.neighbors import nearest_neighbors
from gmpll.graph.reconstruction import reconstruction_weights
from gmpll.matching import Affinity, LocalAffinity, full_affinity, match
from gmpll.matching.affinity import check_label_similarity
from gmpll.rounding import confidences_within

__all__ = ["GMPLL", "assigned_set_size"]


class GMPLL(ProbabilityMixin, PartialLabelClassifier):
    r"""Graph matching based partial label learning.

    Choosing a label for every instance is a matching between instances and labels: assignments
    (instance, candidate label) support each other if similar instances get the same label and,
    on the full graph, dissimilar instances get different ones. With K the affinity between
    assignments the matching

    .. math:: \max_p\ p^\top K p \quad\text{s.t.}\quad \sum_{l \in S_i} p_{il} = 1

    is found by turns of :math:`p \leftarrow \text{normalise}(p \circ K p)` inside every instance
    [1]_. An unseen instance gets the labels that its neighbours, weighted by how well they
    reconstruct it, vote for; the r best of them are then matched like candidates.

    ``GMPLL(graph="full", balance=0, prediction="joint")`` is the paper's method to the letter.

    Parameters
    ----------
    graph : {"local", "full"}, default="local"
        ``"full"`` is the paper's affinity between all pairs of assignments, ``"local"`` relates
        an instance to its nearest neighbours only: faster and on most data more accurate.
    alpha : float, default=0.0
        Full graph: weight of the imbalance bias, Eq. (6). The paper tries 0, 0.1 and 0.2.
    beta : float, default=0.6
        Full graph: standardised affinities below this are dropped. The paper tries 0.3 to 0.8;
        where one label sits in most candidate sets values about 2 are better.
    graph_neighbors : int, default=40
        Local graph: neighbours of an instance.
    balance : float, default=0.5
        Exponent of the class-mass correction, which keeps frequent labels from snowballing;
        0 is the paper's matching.
    label_similarity : array-like of shape (n_classes, n_classes), default=None
        Known similarity of the labels in the order of ``classes_``: symmetric, between 0 and 1,
        ones on the diagonal. By default different labels have similarity 0.
    n_neighbors : int, default=10
        Neighbours that an unseen instance is reconstructed from.
    r : int or "auto", default="auto"
        How many labels an unseen instance is matched with; ``"auto"`` is Eq. (10), 1 is the vote
        of the neighbours itself.
    prediction : {"independent", "joint"}, default="independent"
        ``"joint"`` matches unseen instances together with the training instances, as in the
        paper: the answer for a row depends on the batch that it comes in. ``"independent"``
        matches each of them against the training instances only, in one turn that starts from
        the vote.
    max_iter : int, default=100
        Largest number of turns of the matching.
    tol : float, default=1e-4
        The matching has converged when a turn moves p by less than this (Euclidean norm).
    random_state : int, RandomState instance or None, default=None
        Breaks ties.
    n_jobs : int, default=None
        Parallel search for neighbours, as in scikit-learn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    labels_ : ndarray of shape (n_samples,)
        The label matched to every training row.
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        Matching probabilities: zero outside the candidates, rows sum to one. The matching drives
        them towards 0 and 1.
    label_support_ : ndarray of shape (n_samples, n_classes)
        Share of the support that the candidates of a row get from the final matching of all other
        rows; zero outside the candidates, rows sum to one. A label found against the majority of
        its neighbours has little: the better measure of doubt.
    n_iter_ : int
        Turns of the matching.
    converged_ : bool
        Whether it converged within ``max_iter`` turns. Labels settle long before.
    objective_path_ : ndarray of shape (n_iter_,)
        :math:`p^\top K p` before every turn; with ``balance=0`` it never falls.
    r_ : int
        The number of labels that an unseen instance is matched with.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names, if X has string column names.

    Notes
    -----
    Features are z-scored with the training statistics and compared by their cosine. With m rows,
    d features, q labels and k neighbours the local graph takes O(m^2 d) time for an exact search
    (less in few dimensions) and O(m k q) a turn, O(m (k + q)) memory; the full graph
    O(m^2 (d + q)) a turn at worst, and tiles of the m x m affinities are kept between turns if
    they fit.

    References
    ----------
    .. [1] G. Lyu, S. Feng, T. Wang, C. Lang and Y. Li, "GM-PLL: Graph Matching based Partial
       Label Learning", IEEE Transactions on Knowledge and Data Engineering, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from gmpll import GMPLL
    >>> X, y = load_iris(return_X_y=True)
    >>> candidates = np.eye(3, dtype=int)[y]
    >>> candidates[np.arange(0, 150, 2), (y[::2] + 1) % 3] = 1  # a wrong one in every second set
    >>> model = GMPLL(random_state=0).fit(X, candidates)
    >>> float((model.labels_ == y).mean()) > 0.9
    True
    >>> model.predict(X[:2])
    array([0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "graph": [StrOptions({"local", "full"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "graph_neighbors": [Interval(Integral, 1, None, closed="left")],
        "balance": [Interval(Real, 0, None, closed="left")],
        "label_similarity": [None, "array-like"],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "r": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "prediction": [StrOptions({"independent", "joint"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        graph: str = "local",
        *,
        alpha: float = 0.0,
        beta: float = 0.6,
        graph_neighbors: int = 40,
        balance: float = 0.5,
        label_similarity: ArrayLike | None = None,
        n_neighbors: int = 10,
        r: int | str = "auto",
        prediction: str = "independent",
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.graph = graph
        self.alpha = alpha
        self.beta = beta
        self.graph_neighbors = graph_neighbors
        self.balance = balance
        self.label_similarity = label_similarity
        self.n_neighbors = n_neighbors
        self.r = r
        self.prediction = prediction
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(
        self, X: NDArray[np.float64], mask: NDArray[np.bool_], rng: np.random.RandomState
    ) -> NDArray[np.float64]:
        self._similarity = self._similarity_of_seen_labels()
        self._space = DirectionSpace(X)
        self._local = self._local_graph(self._space.rows)
        self.r_ = assigned_set_size(mask) if self.r == "auto" else int(self.r)

        affinity = self._affinity(self._space.rows, mask, self._local)
        matching = self._match(affinity, mask)
        self.n_iter_ = matching.n_iter
        self.converged_ = matching.converged
        self.objective_path_ = matching.objective_path
        support = affinity.apply(matching.probabilities)
        self.label_support_ = self._with_unseen_labels(confidences_within(support, mask), 0.0)
        return matching.probabilities

    def _prepare_prediction(self, labels: NDArray[np.intp]) -> None:
        """Make the matched labels the only candidates of the training rows."""
        self._matched = _one_hot(labels, int(self._seen.sum()))
        if self.graph == "full" and self.prediction == "independent":
            self._support = self._affinity(self._space.rows, self._matched, None)

    def _scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        queries = self._space.transform(X)
        vote = self._vote(queries)
        if self.r_ == 1:
            return vote
        candidates = self._assigned_candidates(vote)
        if self.prediction == "joint":
            return self._match_jointly(queries, candidates)
        support = vote * self._support_of(queries)
        support /= np.maximum(self._matched.sum(axis=0), 1) ** self.balance
        unsupported = ~(support * candidates).any(axis=1)
        support[unsupported] = vote[unsupported]
        return confidences_within(support, candidates)

    def _vote(self, queries: NDArray[np.float64]) -> NDArray[np.float64]:
        """OP (4): the neighbours vote with the weights that reconstruct the query best."""
        rows = self._space.rows
        near = nearest_neighbors(rows, self.n_neighbors, queries, n_jobs=self.n_jobs).indices
        weights = reconstruction_weights(queries, rows, near)
        n, k = near.shape
        voters = sp.csr_array(
            (weights.ravel(), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, len(rows))
        )
        return voters @ self._matched.astype(np.float64)

    def _assigned_candidates(self, vote: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Keep the r best labels that got a vote."""
        by_priority = np.argsort(-self._priority)
        order = by_priority[np.argsort(-vote[:, by_priority], axis=1, kind="stable")]
        candidates = np.zeros(vote.shape, dtype=bool)
        np.put_along_axis(candidates, order[:, : self.r_], True, axis=1)
        return candidates & (vote > 0)

    def _support_of(self, queries: NDArray[np.float64]) -> NDArray[np.floating]:
        """Return how much the matched training rows support every label of the queries."""
        matched = self._matched.astype(np.float64)
        if self._local is None:
            return self._support.to_queries(queries, matched)
        weights = self._local.to_queries(queries)
        return LocalAffinity(weights, self._matched, self._similarity).apply(matched)

    def _match_jointly(
        self, queries: NDArray[np.float64], candidates: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Match the queries among themselves and with the matched training rows."""
        rows = np.vstack([self._space.rows, queries])
        mask = np.vstack([self._matched, candidates])
        affinity = self._affinity(rows, mask, self._local_graph(rows))
        return self._match(affinity, mask).probabilities[len(self._matched) :]

    def _local_graph(self, rows: NDArray[np.float64]) -> LocalGraph | None:
        if self.graph == "full":
            return None
        return LocalGraph(rows, self.graph_neighbors, n_jobs=self.n_jobs)

    def _affinity(
        self, rows: NDArray[np.float64], mask: NDArray[np.bool_], local: LocalGraph | None
    ) -> Any:
        if local is not None:
            return LocalAffinity(local.weights, mask, self._similarity)
        return full_affinity(
            rows, mask, alpha=self.alpha, beta=self.beta, label_similarity=self._similarity
        )

    def _match(self, affinity: Affinity, mask: NDArray[np.bool_]) -> Any:
        return match(affinity, mask, balance=self.balance, max_iter=self.max_iter, tol=self.tol)

    def _similarity_of_seen_labels(self) -> NDArray[np.float64] | None:
        if self.label_similarity is None:
            return None
        similarity = check_label_similarity(
            np.asarray(self.label_similarity, dtype=np.float64), len(self.classes_)
        )
        return similarity[np.ix_(self._seen, self._seen)]


def assigned_set_size(mask: NDArray[np.bool_]) -> int:
    r"""Eq. (10): :math:`r = [1 + \text{mean}(|S_i|) / \lg q]` labels for an unseen instance.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.methods.gmpll import assigned_set_size
    >>> assigned_set_size(np.ones((5, 10), dtype=bool))
    11
    """
    n_classes = mask.shape[1]
    if n_classes == 1:
        return 1
    return int(np.rint(1 + mask.sum(axis=1).mean() / np.log10(n_classes)))


def _one_hot(labels: NDArray[np.intp], n_classes: int) -> NDArray[np.bool_]:
    matrix = np.zeros((len(labels), n_classes), dtype=bool)
    matrix[np.arange(len(labels)), labels] = True
    return matrix
