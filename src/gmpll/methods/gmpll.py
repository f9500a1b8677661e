"""GM-PLL: partial label learning by graph matching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gmpll._sklearn import Integral, Interval, Real, StrOptions
from gmpll.base import N_JOBS, PartialLabelClassifier, ProbabilityMixin
from gmpll.graph.features import DirectionSpace, RankSpace
from gmpll.graph.local import LocalGraphs
from gmpll.graph.neighbors import nearest_neighbors
from gmpll.graph.reconstruction import reconstruction_weights
from gmpll.matching import LocalAffinity, full_affinity, match
from gmpll.matching.affinity import check_label_similarity
from gmpll.methods._learner import (
    ConfidenceLearner,
    Setting,
    cooccurrence_similarity,
    ordered_labels,
)
from gmpll.methods._selection import Selection, alternatives, select
from gmpll.rounding import confidences_within

__all__ = ["GMPLL", "assigned_set_size"]

#: The class-mass correction where nothing is chosen.
DEFAULT_BALANCE = 0.5


class GMPLL(ProbabilityMixin, PartialLabelClassifier):
    r"""Graph matching based partial label learning.

    Choosing a label for every instance is a matching between instances and labels: assignments
    (instance, candidate label) support each other if similar instances get the same label and,
    on the full graph, dissimilar instances get different ones. With K the affinity between
    assignments the matching

    .. math:: \max_p\ p^\top K p \quad\text{s.t.}\quad \sum_{l \in S_i} p_{il} = 1

    is found by turns of :math:`p \leftarrow \text{normalise}(p \circ K p)` inside every instance
    [1]_. In the default, a kernel ridge regression trained on the matched confidences then gives
    its leave-one-out opinion of every row, which is fed back for a few turns, and rates the labels
    of unseen rows. The paper's own prediction is there too: an unseen instance gets the labels
    that its neighbours, weighted by how well they reconstruct it, vote for, and the r best of them
    are matched like candidates.

    What is ``"auto"`` is chosen from the candidate sets alone, see ``selected_``.
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
    balance : float or "auto", default="auto"
        Exponent of the class-mass correction, which keeps frequent labels from snowballing;
        0 is the paper's matching, ``"auto"`` is 0.5.
    label_similarity : array-like of shape (n_classes, n_classes), "auto" or None, default="auto"
        Known similarity of the labels in the order of ``classes_``: symmetric, between 0 and 1,
        ones on the diagonal. None: different labels have similarity 0. ``"auto"``: the same,
        unless the labels are numbers along which the candidate sets gather (ages, grades), in
        which case labels that share many sets are similar; the full graph takes None.
    scaling : {"auto", "standard", "rank", "both"}, default="auto"
        In which features instances are compared, always by their direction: ``"standard"`` are
        z-scores, as in the paper, ``"rank"`` z-scores of normal scores, which tame outliers,
        ``"both"`` adds up the graphs and the kernels of the two. ``"auto"`` is both for ridge
        prediction and standard otherwise. The full graph has no ``"both"``.
    n_neighbors : int, default=10
        Neighbours that an unseen instance is reconstructed from.
    r : int or "auto", default="auto"
        How many labels an unseen instance is matched with; ``"auto"`` is Eq. (10), 1 is the vote
        of the neighbours itself.
    prediction : {"auto", "ridge", "independent", "joint"}, default="auto"
        ``"ridge"``: kernel ridge regression on the confidences, with feedback to the matching.
        ``"joint"`` matches unseen instances together with the training instances, as in the
        paper: the answer for a row depends on the batch that it comes in. ``"independent"``
        matches each of them against the training instances only, in one turn that starts from
        the vote. ``"auto"`` is ridge on the local graph, independent on the full one.
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
        How sure every candidate is: zero outside the candidates, rows sum to one. Without ridge
        prediction these are the matching probabilities, which are driven towards 0 and 1.
    label_support_ : ndarray of shape (n_samples, n_classes)
        Share of the support that the candidates of a row get from the neighbours' confidences;
        zero outside the candidates, rows sum to one.
    selected_ : dict
        The chosen ``balance`` and the ``width`` and ``ridge`` of the regression.
    selection_ : Selection
        Every alternative with its score, the candidate lift on held-out rows.
    prediction_ : str
        How unseen rows are predicted.
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
    (less in few dimensions) and O(m k q) a turn, O(m (k + q)) memory; the regression O(m c^2) time
    and O(m c) memory for c landmarks (all rows up to 1500 of them). The full graph takes
    O(m^2 (d + q)) a turn at worst, and tiles of the m x m affinities are kept between turns if
    they fit. ``GMPLL(prediction="independent")`` needs no regression and chooses nothing: it is
    the fastest.

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
        "balance": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "label_similarity": [None, StrOptions({"auto"}), "array-like"],
        "scaling": [StrOptions({"auto", "standard", "rank", "both"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "r": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "prediction": [StrOptions({"auto", "ridge", "independent", "joint"})],
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
        balance: float | str = "auto",
        label_similarity: ArrayLike | str | None = "auto",
        scaling: str = "auto",
        n_neighbors: int = 10,
        r: int | str = "auto",
        prediction: str = "auto",
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
        self.scaling = scaling
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
        self.prediction_ = self._resolved_prediction()
        self._similarity = self._label_similarity(mask)
        self.r_ = assigned_set_size(mask) if self.r == "auto" else int(self.r)

        setting = self._choose(X, mask, rng)
        learner = self._learner(X, mask, self._similarity, rng)
        matching = learner.matching(setting)
        self.n_iter_ = matching.n_iter
        self.converged_ = matching.converged
        self.objective_path_ = matching.objective_path
        self._views, self._relation = learner.views, learner.relation
        confidences = matching.probabilities
        if self.prediction_ == "ridge":
            confidences = learner.confidences(setting)
            self._predictor = learner.predictor(setting, confidences)
        support = learner.affinity.apply(confidences)
        self.label_support_ = self._with_unseen_labels(confidences_within(support, mask), 0.0)
        return confidences

    def _choose(
        self, X: NDArray[np.float64], mask: NDArray[np.bool_], rng: np.random.RandomState
    ) -> Setting:
        """Choose what is left open from the candidate sets alone."""
        balance = DEFAULT_BALANCE if isinstance(self.balance, str) else float(self.balance)
        settings = [Setting(balance)]
        if self.prediction_ == "ridge":
            settings = alternatives(balance)

        def learner_of(rows: NDArray[np.intp], seen: NDArray[np.bool_]) -> ConfidenceLearner:
            similarity = self._similarity
            if similarity is not None:
                similarity = similarity[np.ix_(seen, seen)]
            return self._learner(
                X[rows], np.ascontiguousarray(mask[rows][:, seen]), similarity, rng
            )

        self.selection_: Selection = select(learner_of, X, mask, settings, rng)
        self.selected_ = asdict(self.selection_.setting)
        return self.selection_.setting

    def _learner(
        self,
        X: NDArray[np.float64],
        mask: NDArray[np.bool_],
        similarity: NDArray[np.float64] | None,
        rng: np.random.RandomState,
    ) -> ConfidenceLearner:
        return ConfidenceLearner(
            self._spaces(X, rng),
            mask,
            self._relate,
            self._affinity,
            similarity=similarity,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
        )

    def _prepare_prediction(self, labels: NDArray[np.intp]) -> None:
        """Make the matched labels the only candidates of the training rows."""
        if self.prediction_ == "ridge":
            return
        self._matched = _one_hot(labels, int(self._seen.sum()))
        if self.graph == "full" and self.prediction_ == "independent":
            self._support = self._affinity(self._relation, self._matched, self._similarity)

    def _scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.prediction_ == "ridge":
            rated = self._predictor(X)
            return confidences_within(np.maximum(rated, 0.0), np.ones(rated.shape, dtype=bool))
        views = [view.transform(X) for view in self._views]
        vote = self._vote(views[0])
        if self.r_ == 1:
            return vote
        candidates = self._assigned_candidates(vote)
        if self.prediction_ == "joint":
            return self._match_jointly(views, candidates)
        support = vote * self._support_of(views)
        support /= np.maximum(self._matched.sum(axis=0), 1) ** self.selected_["balance"]
        unsupported = ~(support * candidates).any(axis=1)
        support[unsupported] = vote[unsupported]
        return confidences_within(support, candidates)

    def _vote(self, queries: NDArray[np.float64]) -> NDArray[np.float64]:
        """OP (4): the neighbours vote with the weights that reconstruct the query best."""
        rows = self._views[0].rows
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

    def _support_of(self, views: list[NDArray[np.float64]]) -> NDArray[np.floating]:
        """Return how much the matched training rows support every label of unseen rows."""
        matched = self._matched.astype(np.float64)
        if self.graph == "full":
            return self._support.to_queries(views[0], matched)
        weights = self._relation.to_queries(views)
        return LocalAffinity(weights, self._matched, self._similarity).apply(matched)

    def _match_jointly(
        self, views: list[NDArray[np.float64]], candidates: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Match unseen rows among themselves and with the matched training rows."""
        together = [
            np.vstack([view.rows, rows]) for view, rows in zip(self._views, views, strict=True)
        ]
        mask = np.vstack([self._matched, candidates])
        matching = match(
            self._affinity(self._relate(together), mask, self._similarity),
            mask,
            balance=self.selected_["balance"],
            max_iter=self.max_iter,
            tol=self.tol,
        )
        return matching.probabilities[len(self._matched) :]

    def _spaces(self, X: NDArray[np.float64], rng: np.random.RandomState) -> list[Any]:
        """Return the spaces in which rows are compared."""
        scaling = self.scaling
        if scaling == "auto":
            scaling = "both" if self.prediction_ == "ridge" else "standard"
        if self.graph == "full" and scaling == "both":
            scaling = "standard"
        spaces: list[Any] = []
        if scaling in ("standard", "both"):
            spaces.append(DirectionSpace(X))
        if scaling in ("rank", "both"):
            spaces.append(RankSpace(X, random_state=rng.randint(np.iinfo(np.int32).max)))
        return spaces

    def _relate(self, views: Sequence[NDArray[np.float64]]) -> Any:
        """Return the graph of the rows; the full graph is made from the rows when it is used."""
        if self.graph == "full":
            return views[0]
        return LocalGraphs(views, self.graph_neighbors, n_jobs=self.n_jobs)

    def _affinity(
        self, relation: Any, mask: NDArray[np.bool_], similarity: NDArray[np.float64] | None
    ) -> Any:
        if self.graph == "full":
            return full_affinity(
                relation, mask, alpha=self.alpha, beta=self.beta, label_similarity=similarity
            )
        return LocalAffinity(relation.weights, mask, similarity)

    def _resolved_prediction(self) -> str:
        if self.prediction != "auto":
            return self.prediction
        return "ridge" if self.graph == "local" else "independent"

    def _label_similarity(self, mask: NDArray[np.bool_]) -> NDArray[np.float64] | None:
        """Return the similarity of the labels that some row contains, None if all differ."""
        if self.label_similarity is None:
            return None
        if isinstance(self.label_similarity, str):
            ordered = self.graph == "local" and ordered_labels(self.classes_[self._seen], mask)
            return cooccurrence_similarity(mask) if ordered else None
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
