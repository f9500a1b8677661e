"""GM-PLL: partial label learning by graph matching."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gmpll._sklearn import Integral, Interval, Real, StrOptions, fit_context
from gmpll.base import N_JOBS, BasePartialLabelClassifier, ProbabilityMixin
from gmpll.evidence.forest import is_worth_growing
from gmpll.evidence.stacking import is_worth_reading
from gmpll.evidence.temperature import (
    candidate_temperature,
    confidence_exponent,
    sharpen,
    temper,
)
from gmpll.graph.local import LocalGraphs
from gmpll.graph.neighbors import Neighbors, nearest_neighbors
from gmpll.graph.reconstruction import reconstruction_weights
from gmpll.graph.views import TreeSpace, spaces_of
from gmpll.matching import LocalAffinity, full_affinity, match
from gmpll.matching.affinity import check_label_similarity
from gmpll.methods._growing import GrowingMixin
from gmpll.methods._learner import (
    ConfidenceLearner,
    Setting,
    cooccurrence_similarity,
    features_follow,
    ordered_labels,
)
from gmpll.methods._selection import FOREST_SHARES, READOUTS, Selection, alternatives, select
from gmpll.methods._standing import Standing, batch_of, warm_probabilities
from gmpll.methods._tensor_fit import (
    fit_tensors,
    keeps_tensors,
    predict_proba_tensors,
    predict_tensors,
    predicts_tensors,
)
from gmpll.rounding import confidences_within
from gmpll.side_information import Prior, class_shares

__all__ = ["GMPLL", "assigned_set_size"]

#: Ratings are taken as they are.
NO_READOUT = (0.0, 0.0)
#: The class-mass correction where nothing is chosen.
DEFAULT_BALANCE = 0.5


class GMPLL(GrowingMixin, ProbabilityMixin, BasePartialLabelClassifier):
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
    neighbors : {"auto", "exact", "approximate"}, default="auto"
        Local graph: how they are searched for. The approximate search takes close to linear time
        and needs the extra ``neighbors``; ``"auto"`` uses it from 100,000 rows of more than five
        features on. How many true neighbours it found is in ``neighbor_recall_``. Neighbours of
        unseen instances are always exact.
    balance : float or "auto", default="auto"
        Exponent of the class-mass correction, which keeps frequent labels from snowballing;
        0 is the paper's matching, ``"auto"`` is 0.5.
    label_similarity : array-like of shape (n_classes, n_classes), "auto" or None, default="auto"
        Known similarity of the labels in the order of ``classes_``: symmetric, between 0 and 1,
        ones on the diagonal. None: different labels have similarity 0. ``"auto"``: the same,
        unless the labels are numbers along which the candidate sets gather and the features
        change (ages, grades), in which case labels that share many sets are similar; the full
        graph takes None.
    class_prior : array-like of shape (n_classes,), dict of label to number or None, default=None
        Known frequencies of the labels, of any scale, as an array in the order of ``classes_``.
        Every turn draws the summed probabilities of the labels towards them. None: nothing is
        known, which is not the same as equal frequencies.
    trust : float or "auto", default="auto"
        How much the ``candidate_weight`` of ``fit`` counts: the support of a candidate is
        multiplied with its weight to this power. 0 ignores the weights, 1 takes them for
        probabilities; ``"auto"`` is the power for which the weights agree best with what the
        matching finds without them, about 0 for weights that are mere noise.
    scaling : {"auto", "standard", "rank", "both", "all"}, default="auto"
        In which features instances are compared: ``"standard"`` by the direction of their
        z-scores, as in the paper, ``"rank"`` by that of z-scored normal scores, which tame
        outliers; ``"both"`` adds up the graphs and the kernels of the two, ``"all"`` also those of
        the z-scores themselves, where a row's distance from the mean counts. ``"auto"`` chooses
        between both and all for ridge prediction and is standard otherwise. The full graph takes
        one of the first two.
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
    readout : float, pair of floats or "auto", default="auto"
        Ridge prediction: penalty of the logistic regression that reads the regression's ratings
        of unseen rows, see :mod:`gmpll.evidence.stacking`; 0 takes them as they are. With a second number,
        the penalty of what the features themselves say, it reads these too. ``"auto"`` chooses
        both; with fewer than 30 rows or more than 200 labels they are 0, with more than 300
        features the second.
    forest : float or "auto", default="auto"
        Ridge prediction: share of a forest of randomised trees in the opinion of regression and
        forest, between 0 (the regression alone) and 1, see :mod:`gmpll.evidence.forest`. ``"auto"``
        chooses it; with fewer than 40 or more than 20,000 rows, or very many labels, it is 0.
    max_iter : int, default=100
        Largest number of turns of the matching.
    tol : float, default=1e-4
        The matching has converged when a turn moves p by less than this (Euclidean norm).
    calibrate : bool, default=True
        Ridge prediction: bring ``predict_proba`` and ``label_confidences_`` to the level that the
        candidate sets of held-out rows support, see :mod:`gmpll.evidence.temperature`. No label
        changes.
    warm_start : bool, default=False
        Whether the matching starts from the confidences found before instead of from equal ones:
        in ``fit`` if the first rows of X are those of the previous ``fit`` (their candidates may
        have changed, and rows may follow), and in ``partial_fit``. That ``fit`` also keeps the
        trust in weights and, for the same labels, the setting that was chosen; features are
        scaled anew. Fewer turns are needed where the labels are clear, but labels that were wrong
        tend to stay.
    random_state : int, RandomState instance or None, default=None
        Breaks ties, and draws the rows that are held out for choices, the landmarks of a
        regression on many rows, and the trees.
    n_jobs : int, default=None
        Parallel search for neighbours, as in scikit-learn. Linear algebra and trees use all
        cores, or as many as the environment variable OMP_NUM_THREADS says.

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
        The chosen ``balance`` and ``scaling``, the ``width`` and ``ridge`` of the regression, the
        penalties of its ``readout`` and of the ``linear`` part of that, and the share of the
        ``forest``.
    selection_ : Selection
        Every alternative with its score, the candidate lift on held-out rows; in
        ``readout_gains`` and ``gains`` what each readout and each share of the forest gained
        there, with the standard error of that.
    temperature_ : float
        By which the probabilities of unseen rows are calibrated; 1 leaves them as they are.
    prediction_ : str
        How unseen rows are predicted.
    trust_ : float or None
        The power of the candidate weights; None if ``fit`` got none.
    neighbor_recall_ : float
        Local graph: share of the true neighbours that the search found, estimated on a sample of
        rows; 1.0 for an exact search, NaN for the full graph.
    n_iter_ : int
        Turns of the matching.
    converged_ : bool
        Whether it converged within ``max_iter`` turns. Labels settle long before.
    objective_path_ : ndarray of shape (n_iter_,)
        :math:`p^\top K p` before every turn; with ``balance=0`` and without candidate weights
        it never falls.
    r_ : int
        The number of labels that an unseen instance is matched with.
    n_samples_seen_ : int
        Number of training rows, those of ``fit`` and of every ``partial_fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names, if X has string column names.

    Notes
    -----
    Features are z-scored with the training statistics and compared by their cosine. With m rows,
    d features, q labels and k neighbours the local graph takes O(m^2 d) time for an exact search
    (less in few dimensions) and O(m k q) a turn, O(m (k + q)) memory; the regression O(m c^2) time
    and O(m c) memory for c landmarks (all rows up to 6000, else 3000 of them). A forest takes
    O(m d log m) for each tree, and none is grown on more than 20,000 rows. The full graph takes
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
        "neighbors": [StrOptions({"auto", "exact", "approximate"})],
        "balance": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "label_similarity": [None, StrOptions({"auto"}), "array-like"],
        "class_prior": [None, dict, "array-like"],
        "trust": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "scaling": [StrOptions({"auto", "standard", "rank", "both", "all"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "r": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "prediction": [StrOptions({"auto", "ridge", "independent", "joint"})],
        "readout": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left"), tuple, list],
        "forest": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "calibrate": ["boolean"],
        "warm_start": ["boolean"],
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
        neighbors: str = "auto",
        balance: float | str = "auto",
        label_similarity: ArrayLike | str | None = "auto",
        class_prior: ArrayLike | dict[Any, float] | None = None,
        trust: float | str = "auto",
        scaling: str = "auto",
        n_neighbors: int = 10,
        r: int | str = "auto",
        prediction: str = "auto",
        readout: float | tuple[float, float] | str = "auto",
        forest: float | str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        calibrate: bool = True,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.graph = graph
        self.alpha = alpha
        self.beta = beta
        self.graph_neighbors = graph_neighbors
        self.neighbors = neighbors
        self.balance = balance
        self.label_similarity = label_similarity
        self.class_prior = class_prior
        self.trust = trust
        self.scaling = scaling
        self.n_neighbors = n_neighbors
        self.r = r
        self.prediction = prediction
        self.readout = readout
        self.forest = forest
        self.max_iter = max_iter
        self.tol = tol
        self.calibrate = calibrate
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        gold: Any = None,
        impossible: Any = None,
        candidate_weight: Any = None,
    ) -> Self:
        """Learn from rows with candidate labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : candidate sets
            A 0/1 matrix, sparse matrix or DataFrame with a column per label, a sequence of label
            sets, or a label vector; see :func:`gmpll.as_candidates`.
        gold : array-like of shape (n_samples,), default=None
            Labels that are known for certain; None, NaN or -1 where there is none (-1 is a label
            if y has it). A known label becomes the only candidate of its row, also if it was
            none before.
        impossible : candidate sets that may be empty, default=None
            Labels that a row cannot have, as a sequence of sets (None for none), or as a matrix,
            sparse matrix or DataFrame of 0 and 1 with a column per label.
        candidate_weight : array-like, sparse matrix or DataFrame, default=None
            Of shape (n_samples, n_classes): how much speaks for every candidate of a row, for
            instance how many annotators voted for it. Not negative, of any scale: only the shares
            within a row count. Weights of labels that are no candidates of the row are ignored. A
            weight of 0 makes a candidate unlikely, not impossible. ``trust`` says how much the
            weights count.

        Returns
        -------
        self
        """
        knowledge = {"gold": gold, "impossible": impossible, "candidate_weight": candidate_weight}
        if keeps_tensors(X):
            return fit_tensors(self, X, y, **knowledge)
        self._tensor_matching = None
        return self._fit_sets(X, y, **knowledge)

    def predict(self, X: Any) -> Any:
        """Predict the label of unseen rows.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray or tensor of shape (n_samples,)
            Predicted labels. Ties are broken by an order of the labels drawn in ``fit`` with
            ``random_state``.
        """
        return predict_tensors(self, X) if predicts_tensors(self, X) else super().predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Probability of every label for unseen rows.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray or tensor of shape (n_samples, n_classes)
            Rows sum to one; columns in the order of ``classes_``.
        """
        if predicts_tensors(self, X):
            return predict_proba_tensors(self, X)
        return super().predict_proba(X)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Models saved before there were these.
        super().__setstate__({"forest": 0.0, "readout": 0.0} | state)

    def _fit(
        self,
        X: NDArray[np.float64],
        mask: NDArray[np.bool_],
        rng: np.random.RandomState,
        prior: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        before = self._standing_before(X)
        beliefs = self._prepared(mask, prior, X, keep_trust=before is not None)
        labels = self.classes_[self._seen]
        keep = before is not None and np.array_equal(before.labels, labels)
        setting = self._choose(X, mask, rng, beliefs, keep=keep)
        start = None
        if before is not None:
            start = warm_probabilities(before, mask, labels)
        learner = self._learner(X, mask, self._similarity, rng, beliefs, setting.scaling, start)
        return self._learned(learner, setting, beliefs, (batch_of(X),))

    def _prepared(
        self,
        mask: NDArray[np.bool_],
        prior: NDArray[np.float64] | None,
        X: NDArray[np.float64] | None = None,
        *,
        keep_trust: bool,
    ) -> Prior:
        """Settle what follows from parameters and data; return what is likely beforehand."""
        self.prediction_ = self._resolved_prediction()
        self._similarity = self._label_similarity(mask, X)
        self.r_ = assigned_set_size(mask) if self.r == "auto" else int(self.r)
        return self._beliefs(prior, keep_trust=keep_trust)

    def _learned(
        self,
        learner: ConfidenceLearner,
        setting: Setting,
        beliefs: Prior,
        batches: tuple[tuple[int, str], ...],
    ) -> NDArray[np.float64]:
        """Match, refine, keep what is asked for later; return the confidences."""
        mask = learner.mask
        matching = learner.matching(setting)
        self.trust_ = learner.trust(setting)
        self._unary, self._class_shares = learner.unary(setting), beliefs.classes
        self.n_iter_ = matching.n_iter
        self.converged_ = matching.converged
        self.objective_path_ = matching.objective_path
        self._views, self._relation = learner.views, learner.relation
        self._table = learner.table if setting.forest or setting.linear else None
        self.neighbor_recall_ = np.nan if self.graph == "full" else learner.relation.recall
        confidences = matching.probabilities
        if self.prediction_ == "ridge":
            confidences = learner.confidences(setting)
            self._predictor = learner.predictor(setting, confidences)
        if len(batches) == 1:  # rows that come later change nothing of the calibration
            self._fit_calibration(confidences, mask)
        if self._exponent != 1.0:
            confidences = sharpen(confidences, mask, self._exponent)
        support = confidences_within(learner.support(confidences), mask)
        self.label_support_ = self._with_unseen_labels(support, 0.0)
        labels = self.classes_[self._seen]
        self._standing = Standing(labels, mask, confidences, beliefs.candidates, batches)
        self.n_samples_seen_ = len(mask)
        return confidences

    def _fit_calibration(self, confidences: NDArray[np.float64], mask: NDArray[np.bool_]) -> None:
        """Let confidences mean what they say, by what was said of held-out rows."""
        self.temperature_ = self._exponent = 1.0
        rows, held_out = self.selection_.rows, self.selection_.held_out
        if not self.calibrate or not len(rows):
            return
        self.temperature_ = candidate_temperature(held_out, mask[rows])
        opinion = confidences_within(temper(held_out, self.temperature_), mask[rows])
        self._exponent = confidence_exponent(confidences[rows], mask[rows], opinion)

    def _standing_before(self, X: NDArray[np.float64]) -> Standing | None:
        """Return where the previous fit ended if this one is to start from there."""
        before: Standing | None = getattr(self, "_standing", None)
        if not self.warm_start or before is None or before.begins(X):
            return before if self.warm_start else None
        warnings.warn(
            "warm_start=True, but the first rows of X are not those of the previous fit: this fit "
            "starts anew.",
            stacklevel=5,
        )
        return None

    def _choose(
        self,
        X: NDArray[np.float64],
        mask: NDArray[np.bool_],
        rng: np.random.RandomState,
        prior: Prior,
        *,
        keep: bool,
    ) -> Setting:
        """Choose what is left open from the candidate sets alone, or keep what was chosen."""
        balance = DEFAULT_BALANCE if isinstance(self.balance, str) else float(self.balance)
        settings = [Setting(balance, scaling=self._scaling_of_graph())]
        if self.prediction_ == "ridge":
            is_open = self.scaling == "auto" and self.graph == "local"
            settings = alternatives(balance, "auto" if is_open else self._scaling_of_graph())
        shares, readouts = self._forest_shares(mask), self._readouts(mask.shape[1], X.shape[1])
        if keep and self._offers(settings, shares, readouts, mask.shape[1]):
            return self.selection_.setting

        def learner_of(
            rows: NDArray[np.intp], seen: NDArray[np.bool_], scaling: str
        ) -> ConfidenceLearner:
            similarity = self._similarity
            if similarity is not None:
                similarity = similarity[np.ix_(seen, seen)]
            return self._learner(
                X[rows],
                np.ascontiguousarray(mask[rows][:, seen]),
                similarity,
                rng,
                prior.part(rows, seen),
                scaling,
                make_table=lambda: TreeSpace(X[rows]),
            )

        self.selection_: Selection = select(learner_of, X, mask, settings, rng, shares, readouts)
        self.selected_ = asdict(self.selection_.setting)
        return self.selection_.setting

    def _settled_parameters(self) -> dict[str, Any]:
        """Return parameters by which a copy would be as sure of its labels as this model is."""
        chosen = self.selection_.setting
        return {"readout": (chosen.readout, chosen.linear), "forest": chosen.forest}

    def _forest_shares(self, mask: NDArray[np.bool_]) -> tuple[float, ...]:
        """Return the shares that the forest may have."""
        if self.prediction_ != "ridge":
            return (0.0,)
        if not isinstance(self.forest, str):
            return (float(self.forest),)
        return FOREST_SHARES if is_worth_growing(*mask.shape) else (0.0,)

    def _readouts(self, n_classes: int, n_features: int) -> list[tuple[float, float]]:
        """Return the readouts that are open."""
        if self.prediction_ != "ridge":
            return [NO_READOUT]
        if not isinstance(self.readout, str):
            return [_penalties(self.readout)]
        return [
            penalties
            for penalties in READOUTS
            if penalties == NO_READOUT
            or is_worth_reading(n_classes, n_features if penalties[1] else 0)
        ]

    def _offers(
        self,
        settings: Sequence[Setting],
        shares: Sequence[float],
        readouts: Sequence[tuple[float, float]],
        n_labels: int,
    ) -> bool:
        """Whether what was chosen last time, of the same labels, can be chosen again."""
        last = self.selection_
        compared = (bool(last.gains), bool(last.readout_gains))
        wanted = (any(shares), list(readouts) != [NO_READOUT])
        if last.held_out.shape[1] != n_labels or compared != wanted:
            return False  # nothing was compared then, or not all of this
        chosen = last.setting
        regression = replace(chosen, forest=0.0, readout=0.0, linear=0.0)
        read = (chosen.readout, chosen.linear)
        return regression in settings and chosen.forest in shares and read in readouts

    def _learner(
        self,
        X: NDArray[np.float64],
        mask: NDArray[np.bool_],
        similarity: NDArray[np.float64] | None,
        rng: np.random.RandomState,
        prior: Prior,
        scaling: str,
        start: NDArray[np.float64] | None = None,
        make_table: Callable[[], TreeSpace] | None = None,
    ) -> ConfidenceLearner:
        return ConfidenceLearner(
            spaces_of(X, scaling, rng),
            mask,
            lambda views: self._relate(views, rng),
            self._affinity,
            similarity=similarity,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
            prior=prior,
            start=start,
            make_table=make_table or partial(TreeSpace, X),
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
            shares = confidences_within(np.maximum(rated, 0.0), np.ones(rated.shape, dtype=bool))
            temperature = getattr(self, "temperature_", 1.0)  # older saved models have none
            return shares if temperature == 1.0 else temper(shares, temperature)
        views = [view.transform(X) for view in self._views]
        near = self._nearest(views[0])
        vote = self._vote(views[0], near.indices[:, : self.n_neighbors])
        if self.r_ == 1:
            return vote
        candidates = self._assigned_candidates(vote)
        if self.prediction_ == "joint":
            return self._match_jointly(views, candidates)
        support = vote * self._support_of(views, near)
        support /= np.maximum(self._matched.sum(axis=0), 1) ** self.selected_["balance"]
        unsupported = ~(support * candidates).any(axis=1)
        support[unsupported] = vote[unsupported]
        return confidences_within(support, candidates)

    def _nearest(self, queries: NDArray[np.float64]) -> Neighbors:
        """Search once for all that unseen rows are related to in the first view."""
        k = self.n_neighbors
        if self.graph == "local" and self.prediction_ == "independent" and self.r_ > 1:
            k = max(k, self.graph_neighbors)
        return nearest_neighbors(self._views[0].rows, k, queries, n_jobs=self.n_jobs)

    def _vote(self, queries: NDArray[np.float64], near: NDArray[np.integer]) -> NDArray[np.float64]:
        """OP (4): the neighbours vote with the weights that reconstruct the query best."""
        rows = self._views[0].rows
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

    def _support_of(
        self, views: list[NDArray[np.float64]], near: Neighbors
    ) -> NDArray[np.floating]:
        """Return how much the matched training rows support every label of unseen rows."""
        matched = self._matched.astype(np.float64)
        if self.graph == "full":
            return self._support.to_queries(views[0], matched)
        weights = self._relation.to_queries(views, near)
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
            expected_mass=Prior(classes=self._class_shares).expected_mass(len(mask)),
        )
        return matching.probabilities[len(self._matched) :]

    def _scaling_of_graph(self) -> str:
        """Return in which features rows are compared where nothing is chosen."""
        if self.scaling == "auto" or (self.graph == "full" and self.scaling in ("both", "all")):
            return "standard"
        return self.scaling

    def _relate(
        self, views: Sequence[NDArray[np.float64]], rng: int | np.random.RandomState = 0
    ) -> Any:
        """Return the graph of the rows; the full graph is made from the rows when it is used."""
        if self.graph == "full":
            return views[0]
        return LocalGraphs(
            views,
            self.graph_neighbors,
            neighbors=self.neighbors,
            random_state=rng,
            n_jobs=self.n_jobs,
        )

    def _affinity(
        self, relation: Any, mask: NDArray[np.bool_], similarity: NDArray[np.float64] | None
    ) -> Any:
        if self.graph == "full":
            return full_affinity(
                relation, mask, alpha=self.alpha, beta=self.beta, label_similarity=similarity
            )
        return LocalAffinity(relation.weights, mask, similarity)

    def _beliefs(
        self, candidates: NDArray[np.float64] | None, *, keep_trust: bool = False
    ) -> Prior:
        """Return what is likely beforehand; the trust in weights may be one found before."""
        trust = None if isinstance(self.trust, str) else float(self.trust)
        if keep_trust and trust is None:
            trust = self.trust_
        if self.class_prior is None:
            return Prior(candidates, trust=trust)
        seen = np.asarray(self._seen)
        return Prior(candidates, class_shares(self.class_prior, self.classes_, seen), trust)

    def _resolved_prediction(self) -> str:
        if self.prediction != "auto":
            return self.prediction
        return "ridge" if self.graph == "local" else "independent"

    def _label_similarity(
        self, mask: NDArray[np.bool_], X: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the similarity of the labels that some row contains, None if all differ.

        Without X what was found about the features before is kept.
        """
        if self.label_similarity is None:
            return None
        if isinstance(self.label_similarity, str):
            labels = self.classes_[self._seen]
            ordered = self.graph == "local" and ordered_labels(labels, mask)
            if X is not None:
                self._follow = not ordered or features_follow(X, labels, mask)
            follow = getattr(self, "_follow", True)  # older saved models have none
            return cooccurrence_similarity(mask) if ordered and follow else None
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


def _penalties(readout: ArrayLike) -> tuple[float, float]:
    """Return the penalties of what ratings and features say."""
    given = np.atleast_1d(np.asarray(readout))
    if given.dtype.kind not in "iuf" or given.shape not in [(1,), (2,)] or not (given >= 0).all():
        raise ValueError(
            f"readout={readout!r} is neither 'auto' nor one or two numbers that are not negative."
        )
    of_ratings, of_features = float(given[0]), float(given[1:].sum())
    if of_features and not of_ratings:
        raise ValueError(
            f"readout={readout!r} asks features without reading ratings: the first number must be "
            "positive."
        )
    return of_ratings, of_features


def _one_hot(labels: NDArray[np.intp], n_classes: int) -> NDArray[np.bool_]:
    matrix = np.zeros((len(labels), n_classes), dtype=bool)
    matrix[np.arange(len(labels)), labels] = True
    return matrix
