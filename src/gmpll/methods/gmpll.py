"""GM-PLL as published: partial label learning by graph matching (Algorithm 1 of the paper)."""

import copy
from dataclasses import field
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmpll._parameters import Count, Jobs, NotNegative, Seed, Verbosity, with_parameters
from gmpll._progress import begin, plan
from gmpll._sklearn import HasMethods, StrOptions
from gmpll._typing import Floats, RandomSource
from gmpll.arrays import Array, array_namespace, beside
from gmpll.base import BasePartialLabelClassifier, ProbabilityMixin
from gmpll.engines import Neighbors, engine_of
from gmpll.graph.local import LocalGraph
from gmpll.graph.reconstruction import reconstruction_weights
from gmpll.graph.views import CosineView
from gmpll.matching import LocalAffinity, Matching, full_affinity, match, support_of, uniform_start
from gmpll.matching.affinity import check_label_similarity
from gmpll.matching.problem import MatchingProblem
from gmpll.methods._costs import matching_costs
from gmpll.rounding import confidences_within, one_hot

__all__ = ["GMPLL", "assigned_set_size", "set_size_rule"]


@with_parameters
class GMPLL(ProbabilityMixin, BasePartialLabelClassifier):
    r"""Graph matching based partial label learning, as published [1]_.

    Choosing a label for every instance is a matching between instances and labels: assignments
    (instance, candidate label) support each other if similar instances get the same label, and if
    dissimilar instances get different ones. With K the affinity between assignments the matching

    .. math:: \max_p\ p^\top K p \quad\text{s.t.}\quad \sum_{l \in S_i} p_{il} = 1

    is found by iterations of :math:`p \leftarrow \text{normalise}(p \circ K p)` inside every
    instance. An unseen instance gets the labels that its neighbours, weighted by how well they
    reconstruct it, vote for, and the r best of them are matched like candidates.

    Nothing is chosen from the data and no learner is trained on the result: this is the method to
    compare with. :class:`gmpll.PartialLabelClassifier` is the one to use.

    Parameters
    ----------
    graph : {"full", "local"}, sparse matrix or graph, default="full"
        ``"full"`` is the paper's affinity between all pairs of assignments. ``"local"`` relates
        an instance to its nearest neighbours only, with self-tuning weights and without
        dissimilarity: much faster. A sparse matrix of shape (n_samples, n_samples) holds weights
        of your own, symmetric and not negative; unseen instances then get the neighbours' vote. A
        graph is an object with such ``weights`` and a method ``to_queries(rows)`` that returns
        those of unseen rows, (n_queries, n_samples), as :class:`gmpll.graph.local.LocalGraph`.
    alpha : float, default=0.0
        Full graph: weight of the imbalance bias, Eq. (6). The paper tries 0, 0.1 and 0.2.
    beta : float, default=0.6
        Full graph: standardised affinities below this are dropped. The paper tries 0.3 to 0.8;
        where one label sits in most candidate sets values about 2 are better.
    n_graph_neighbors : int, default=40
        Local graph: neighbours of an instance.
    neighbor_search : {"auto", "exact", "approximate"} or k-NN estimator, default="auto"
        Local graph: how they are searched for; an estimator has ``fit`` and ``kneighbors`` as
        :class:`sklearn.neighbors.NearestNeighbors`. The approximate search takes close to linear
        time and needs the extra ``neighbors``; ``"auto"`` uses it from 100,000 rows of more than
        five features on. Neighbours of unseen instances are always exact.
    balance : float, default=0.0
        Exponent of the class-mass correction, which keeps frequent labels from snowballing; 0 is
        the paper's matching.
    label_similarity : array-like of shape (n_classes, n_classes), default=None
        Known similarity of the labels in the order of ``classes_``, Eq. (2): symmetric, between 0
        and 1, ones on the diagonal. None: different labels have similarity 0.
    n_neighbors : int, default=10
        Neighbours that an unseen instance is reconstructed from.
    r : int or "auto", default="auto"
        How many labels an unseen instance is matched with; ``"auto"`` is Eq. (10), 1 is the vote
        of the neighbours itself.
    prediction : {"independent", "joint"}, default="independent"
        ``"joint"`` matches unseen instances together with the training instances, as in the
        paper: the answer for a row depends on the batch that it comes in, which scikit-learn
        forbids. ``"independent"``, the default for that reason alone, matches each of them
        against the training instances only, in one iteration that starts from the vote.
    max_iter : int, default=100
        Largest number of iterations of the matching.
    tol : float, default=1e-4
        The matching has converged when an iteration moves p by less than this (Euclidean norm).
    random_state : int, RandomState instance or None, default=None
        Breaks ties, and seeds the approximate search.
    verbose : int, default=0
        Whether ``fit`` prints what it does, how long every stage took and how much is left.

    Attributes
    ----------
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        Matching probabilities, which are driven towards 0 and 1: zero outside the candidates,
        rows sum to one.
    label_support_ : ndarray of shape (n_samples, n_classes)
        Share of the support that the candidates of a row get from the other rows' labels; zero
        outside the candidates, rows sum to one.
    n_iter_ : int
        Iterations of the matching.
    converged_ : bool
        Whether it converged within ``max_iter`` iterations. Labels settle long before.
    objective_path_ : ndarray of shape (n_iter_,)
        :math:`p^\top K p` before every iteration; with ``balance=0`` it never falls.
    r_ : int
        The number of labels that an unseen instance is matched with.
    neighbor_recall_ : float
        Local graph: share of the true neighbours that the search found, estimated on a sample of
        rows; 1.0 for an exact search, NaN for the other graphs.
    matching_ : MatchingProblem
        Local graph: what the rows were matched by, see :func:`gmpll.explain`.

    Notes
    -----
    Features are z-scored with the training statistics and compared by their cosine. With m rows,
    d features, q labels and k neighbours the full graph takes O(m^2 (d + q)) an iteration at
    worst; tiles of the m x m affinities are kept between iterations if they fit. The local graph
    takes O(m^2 d) time for an exact search (less in few dimensions) and O(m k q) an iteration,
    O(m (k + q)) memory.

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
    >>> float((model.labels_ == y).mean()) > 0.8
    True
    >>> model.predict(X[:2])
    array([0, 0])
    """

    graph: Annotated[Any, StrOptions({"full", "local"}), "sparse matrix", object] = field(
        default="full", kw_only=False
    )
    alpha: NotNegative = 0.0
    beta: NotNegative = 0.6
    n_graph_neighbors: Count = 40
    neighbor_search: Annotated[
        Any, StrOptions({"auto", "exact", "approximate"}), HasMethods(["fit", "kneighbors"])
    ] = "auto"
    balance: NotNegative = 0.0
    label_similarity: Annotated[Any, None, "array-like"] = None
    n_neighbors: Count = 10
    r: Annotated[str, StrOptions({"auto"})] | Count = "auto"
    prediction: Annotated[str, StrOptions({"independent", "joint"})] = "independent"
    max_iter: Count = 100
    tol: NotNegative = 1e-4
    random_state: Seed = None
    n_jobs: Jobs = None
    verbose: Verbosity = 0

    _takes_any_library = True

    # Algorithm 1: the labels of the training instances

    def _fit(self, X: Array, mask: Array, rng: np.random.RandomState) -> Array:
        self._view = CosineView(X)
        self._similarity = self._similarity_of_seen_labels()
        (m, d), q = X.shape, mask.shape[1]
        with plan(matching_costs(m, d, q, self.max_iter, is_full=self._is_full)):
            begin("neighbours")
            self._graph = self._relate(self._view, rng)
            begin("matching")
            affinity = self._affinity(self._graph, mask)
            matching = self._match(affinity, mask)
        self.n_iter_ = matching.n_iter
        self.converged_ = matching.converged
        self.objective_path_ = matching.objective_path
        self.neighbor_recall_ = float(getattr(self._graph, "recall", np.nan))
        self.r_ = assigned_set_size(mask) if self.r == "auto" else int(self.r)
        support = confidences_within(support_of(affinity, matching.probabilities), mask)
        self.label_support_ = self._with_unseen_labels(support, 0.0)
        self.matching_ = None
        if not self._is_full and engine_of(X).name == "numpy":
            problem = MatchingProblem(self._graph.weights, mask, self.balance, self._similarity)
            self.matching_ = problem.over_all_labels(np.asarray(self._seen))
        return matching.probabilities

    def _relate(self, view: Any, rng: RandomSource = 0) -> Any:
        """Eq. (1): return the graph of a view; the full one is made from its rows when used."""
        if not isinstance(self.graph, str):
            return _checked_graph(self.graph, view.rows.shape[0])
        if self.graph == "full":
            return view
        return LocalGraph(
            view,
            self.n_graph_neighbors,
            neighbor_search=self.neighbor_search,
            random_state=rng,
            n_jobs=self.n_jobs,
        )

    def _affinity(self, graph: Any, mask: Array) -> Any:
        """Eqs. (2) to (6): the affinity between assignments."""
        if self._is_full:
            return full_affinity(
                graph.rows,
                mask,
                alpha=self.alpha,
                beta=self.beta,
                label_similarity=self._similarity,
            )
        return LocalAffinity(graph.weights, mask, self._similarity)

    def _match(self, affinity: Any, mask: Array) -> Matching:
        """Eqs. (7) to (9)."""
        return match(
            affinity,
            mask,
            balance=self.balance,
            max_iter=self.max_iter,
            tol=self.tol,
            start=uniform_start(mask, self._view.rows.dtype),
            keep=engine_of(mask).keeper(),
        )

    @property
    def _is_full(self) -> bool:
        return isinstance(self.graph, str) and self.graph == "full"

    def _similarity_of_seen_labels(self) -> Floats | None:
        """Eq. (2): the similarity of the labels that some row contains, None if all differ."""
        if self.label_similarity is None:
            return None
        similarity = check_label_similarity(
            np.asarray(self.label_similarity, dtype=np.float64), len(self.classes_)
        )
        return similarity[np.ix_(self._seen, self._seen)]

    # Section 3.3: the labels of unseen instances

    def _prepare_prediction(self, labels: Array) -> None:
        """Make the matched labels the only candidates of the training rows."""
        n_classes = int(self._seen.sum())
        self._matched = engine_of(labels).map_rows(lambda found: one_hot(found, n_classes), labels)
        self.__dict__.pop("_matched_affinity", None)  # of an earlier fit
        if self._is_full and self.prediction == "independent":
            _ = self._matched_affinity  # made now, not in the first prediction

    @cached_property
    def _matched_affinity(self) -> Any:
        return self._affinity(self._graph, self._matched)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made of the view, whose rows files need not hold."""
        return {k: v for k, v in super().__getstate__().items() if k != "_matched_affinity"}

    def _scores(self, X: Array) -> Array:
        engine = engine_of(self._view.rows)
        xp = engine.xp
        queries = self._view.transform(X)
        near = self._nearest(queries)
        vote = self._vote(queries, near.indices[:, : self.n_neighbors])
        if self.r_ == 1:
            return vote
        candidates = engine.map_rows(self._r_best, vote)
        if self.prediction == "joint":
            return self._match_jointly(queries, candidates)
        (mass,) = engine.small(xp.sum(xp.astype(self._matched, vote.dtype), axis=0))
        support = vote * self._support_of(queries, near) / xp.clip(mass, min=1.0) ** self.balance
        supported = xp.any(xp.where(candidates, support, 0.0) != 0, axis=1)
        return confidences_within(xp.where(supported[:, None], support, vote), candidates)

    def _nearest(self, queries: Array) -> Neighbors:
        """Search once for all that unseen rows are related to."""
        of_graph = self.n_graph_neighbors if isinstance(self._graph, LocalGraph) else 0
        k, engine = max(self.n_neighbors, of_graph), engine_of(self._view.rows)
        return engine.nearest_neighbors(self._view.rows, k, queries, n_jobs=self.n_jobs)

    def _vote(self, queries: Array, near: Array) -> Array:
        """OP (4): the neighbours vote with the weights that reconstruct the query best."""
        rows = self._view.rows
        engine = engine_of(rows)
        weights = reconstruction_weights(queries, rows, near)
        voters = engine.query_weights(near, weights, rows.shape[0])
        return voters @ engine.xp.astype(self._matched, weights.dtype)

    def _r_best(self, vote: Array) -> Array:
        """Keep the r best labels that got a vote, Eq. (10)."""
        xp = array_namespace(vote)
        by_priority = beside(np.argsort(-self._priority), vote)
        order = xp.argsort(-vote[:, by_priority], axis=1, stable=True)[:, : self.r_]
        labels = beside(np.arange(vote.shape[1]), vote)
        return xp.any(by_priority[order][:, :, None] == labels, axis=1) & (vote > 0)

    def _support_of(self, queries: Array, near: Neighbors) -> Array:
        """Return how much the matched training rows support every label of unseen rows."""
        matched = array_namespace(queries).astype(self._matched, queries.dtype)
        if self._is_full:
            return self._matched_affinity.to_queries(queries, matched)
        known = [near] if isinstance(self._graph, LocalGraph) else []
        weights = self._graph.to_queries(queries, *known)
        if weights is None:  # a matrix of the user's knows nothing of unseen rows
            return 1.0
        return LocalAffinity(weights, self._matched, self._similarity).to_queries(weights, matched)

    def _match_jointly(self, queries: Array, candidates: Array) -> Array:
        """Match unseen rows among themselves and with the matched training rows."""
        if not isinstance(self.graph, str):
            raise ValueError(
                "prediction='joint' needs a graph over training and unseen rows, which a graph "
                "of your own does not have: use prediction='independent'."
            )
        xp = array_namespace(queries)
        mask = xp.concat([self._matched, candidates])
        view = copy.copy(self._view)
        view.rows = xp.concat([view.rows, queries])
        graph = self._relate(view)
        matching = self._match(self._affinity(graph, mask), mask)
        return matching.probabilities[self._matched.shape[0] :]


def is_local_matching(estimator: Any) -> bool:
    """Whether it is a GMPLL on the graph of nearest neighbours."""
    given = estimator.graph if isinstance(estimator, GMPLL) else None
    return isinstance(given, str) and given == "local"


class _WeightMatrix(NamedTuple):
    """Weights that the user gave."""

    weights: sp.csr_array

    def to_queries(self, queries: Floats) -> None:
        """Nothing is known of unseen rows."""


def _checked_graph(graph: Any, n_samples: int) -> Any:
    """Return a graph of the user's; raise if it is none, or of other rows."""
    if hasattr(graph, "tocsr"):
        graph = _WeightMatrix(sp.csr_array(graph.tocsr(), dtype=np.float64))
    if not (hasattr(graph, "weights") and hasattr(graph, "to_queries")):
        raise ValueError(
            f"graph={graph!r} is no graph: pass 'full', 'local', a sparse matrix, or an object "
            "with weights and to_queries."
        )
    weights = graph.weights
    if weights.shape != (n_samples, n_samples):
        raise ValueError(
            f"The weights of the graph have shape {weights.shape}, but X has {n_samples} rows: "
            f"they must be ({n_samples}, {n_samples})."
        )
    if hasattr(weights, "nnz") and weights.nnz:
        if weights.data.min() < 0 or not np.isfinite(weights.data).all():
            raise ValueError("The weights of the graph must be finite and not negative.")
        if abs(weights - weights.T).max() > 1e-8 * weights.data.max():
            raise ValueError("The weights of the graph must be symmetric.")
    return graph


def set_size_rule(mean_size: float, n_classes: int) -> int:
    r"""Eq. (10): :math:`r = [1 + \text{mean}(|S_i|) / \lg q]` labels for an unseen instance.

    Examples
    --------
    >>> from gmpll.methods.gmpll import set_size_rule
    >>> set_size_rule(2.33, 16)
    3
    """
    return 1 if n_classes == 1 else int(np.rint(1 + mean_size / np.log10(n_classes)))


def assigned_set_size(mask: Array) -> int:
    """Eq. (10) for the candidate sets of a mask."""
    xp = array_namespace(mask)
    (n_candidates,) = engine_of(mask).small(xp.sum(xp.astype(mask, xp.int64)))
    return set_size_rule(float(n_candidates) / mask.shape[0], mask.shape[1])
