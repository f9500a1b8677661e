"""The estimator to use: everything is chosen from the candidate sets alone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from sklearn import config_context  # type: ignore[attr-defined]
from sklearn.base import clone, is_regressor
from sklearn.utils.metaestimators import available_if

from gmpll._columns import aligned_columns
from gmpll._meta import TrainingRows, seeded
from gmpll._parameters import Jobs, Learner, Seed, Switch, Verbosity, with_parameters
from gmpll._progress import UNKNOWN, begin, plan, revise
from gmpll._sklearn import HasMethods, Real, StrOptions, fit_context
from gmpll._typing import Floats, Mask, Places
from gmpll.arrays import (
    Array,
    array_namespace,
    beside,
    from_host,
    is_dask_array,
    to_host,
)
from gmpll.base import BasePartialLabelClassifier, DecisionMixin, ProbabilityMixin
from gmpll.candidates import CandidateSets, VotedCandidates
from gmpll.engines import engine_of
from gmpll.evidence.annotators import AnnotatorModel
from gmpll.evidence.forest import is_forest_feasible
from gmpll.evidence.pipeline import (
    N_GRAPH_VIEWS,
    CandidateRows,
    Disambiguated,
    GraphMatching,
    Hyperparameters,
    MatchingOptions,
    Pipeline,
    set_regression,
    shared_scores,
    tree_view,
)
from gmpll.evidence.ridge import EXACT_ROWS, KernelRidge
from gmpll.evidence.scikit import ScikitLearner, check_learner
from gmpll.evidence.selection import (
    ALL_VIEWS,
    FOREST_SHARES,
    MIN_ROWS,
    STACKING,
    Search,
    Selection,
    n_compared_rows,
    select,
)
from gmpll.evidence.set_model import (
    FIRST_WEIGHT,
    MIDDLE_TAU,
    TAUS,
    Scores,
    SetModel,
    fit_outside,
    label_shares,
)
from gmpll.evidence.stacking import is_stackable
from gmpll.evidence.temperature import (
    candidate_temperature,
    confidence_exponent,
    sharpen,
    temper,
)
from gmpll.graph.views import views_of
from gmpll.matching.affinity import check_label_similarity
from gmpll.methods._costs import classifier_costs
from gmpll.methods._fit_state import FitState, batch_digest, warm_probabilities
from gmpll.methods._incremental import IncrementalMixin
from gmpll.methods.gmpll import GMPLL, is_local_matching
from gmpll.ordinal import cooccurrence_similarity, features_vary_with_label, labels_look_ordinal
from gmpll.rounding import as_probabilities, confidences_within
from gmpll.side_information import (
    Prior,
    apply_constraints,
    candidate_prior,
    class_shares,
    weights_by_label,
)

__all__ = ["PartialLabelClassifier"]

#: Rows by which it is judged whether labels are ordered.
ORDINAL_ROWS = 20_000


@with_parameters
class PartialLabelClassifier(
    IncrementalMixin, ProbabilityMixin, DecisionMixin, BasePartialLabelClassifier
):
    r"""Learn from candidate labels; everything is chosen without true ones.

    Four stages, of which each takes what the one before found:

    1. *Disambiguate*: a model of how candidate sets arise, in which every row is judged by rows
       with other sets, estimates the class prior and the probability of every candidate
       (:mod:`gmpll.evidence.set_model`; of more than 4000 rows, 2000 are modelled). From there
       rows are matched to labels on the local graph of several views of the features, as in
       :class:`gmpll.GMPLL`, with capacities: every label has as many rows as the class prior says.
       Or any other method of this library takes the place of both.
    2. *Learn and feed back*: a kernel ridge regression trained on the confidences predicts every
       training row without having seen it (leave-one-out in closed form); these predictions take
       the place of the neighbours' support for a few iterations.
    3. *Predict*: the regression, a logistic regression stacked on its scores, and a forest, as
       far as each of them helps; or any scikit-learn learner of your choice.
    4. *Calibrate*: temperature scaling, so that confidences mean what they say.

    Parameters
    ----------
    disambiguator : partial label learner, default=None
        Resolves the training rows. None is the model of the candidate sets and the matching on
        local graphs; of a GMPLL with ``graph="local"`` the parameters of the graph and the limits
        of the matching are taken, with which the same is done. Any other estimator needs
        ``label_confidences_`` after ``fit``, as every method and baseline of this library has.
    learner : "auto", scikit-learn classifier or regressor, default="auto"
        What is trained on the result and predicts unseen rows. A pipeline is a classifier or
        regressor too, and the place for scaling: learners of your own get the features as they
        are.
    targets : {"auto", "soft", "hard"}, default="auto"
        What a learner of your own is trained on. ``"soft"``: the confidences of all candidates,
        as the values of a regression with one output per label; a classifier gets a copy of the
        row for every candidate, weighted by its confidence. ``"hard"``: the label found; a
        classifier gets its confidence as ``sample_weight`` if it takes one. ``"auto"`` is soft
        for regressions and hard for classifiers, whose cost grows with the copies.
    hyperparameters : dict, default=None
        Hyperparameters that are not to be chosen or estimated, by the names that ``selected_``
        has: ``{"tau": 0.5, "weight_exponent": 1.0}``.
    class_prior : array-like of shape (n_classes,), dict of label to number or None, default=None
        Known frequencies of the labels, of any scale, as an array in the order of ``classes_``.
        None: nothing is known, which is not the same as equal frequencies.
    label_similarity : array-like of shape (n_classes, n_classes), "auto" or None, default="auto"
        Known similarity of the labels in the order of ``classes_``: symmetric, between 0 and 1,
        ones on the diagonal. None: different labels have similarity 0. ``"auto"``: the same,
        unless the labels are numbers along which the candidate sets gather and the features
        change (ages, grades), in which case labels that share many sets are similar.
    outside : {"auto", "never", "allow"}, default="auto"
        Whether ``labels_`` may lie outside the candidates where these seem to lack the right
        label. ``"auto"``: of votes they may; of plain candidate sets they stay within, but the
        default's own learner is trained on what such rows probably are. How probable it is stands
        in ``outside_probability_`` in any case.
    calibrate : bool, default=True
        Whether ``predict_proba`` and ``label_confidences_`` are brought to the level that the
        candidate sets of held-out rows support, see :mod:`gmpll.uncertainty.calibration`. No
        label changes.
    warm_start : bool, default=False
        Whether the matching starts from the confidences found before instead of from equal ones:
        in ``fit`` if the first rows of X are those of the previous ``fit`` (their candidates may
        have changed, and rows may follow), and in ``partial_fit``. That ``fit`` also keeps
        the ``weight_exponent`` and, for the same labels, the hyperparameters that were chosen;
        features are scaled anew. Fewer iterations are needed where the labels are clear, but
        labels that were wrong tend to stay.
    random_state : int, RandomState instance or None, default=None
        Breaks ties, and draws the rows that are held out for choices, the landmarks of a
        regression on many rows, of very many those that it is trained on, and the trees.
    n_jobs : int, default=None
        Parallel search for neighbours, as in scikit-learn. Linear algebra and trees use all
        cores, or as many as the environment variable OMP_NUM_THREADS says.
    verbose : int, default=0
        Whether ``fit`` and ``partial_fit`` print what they do, how long every stage took and how
        much is left: 1 for the stages, 2 for their parts as well.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    labels_ : ndarray of shape (n_samples,)
        The label found for every training row: a candidate or, of votes, maybe a label that
        nobody voted for.
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        How sure every label is: zero outside the candidates unless they are votes, rows sum to
        one.
    label_support_ : ndarray of shape (n_samples, n_classes)
        Share of the support that the candidates of a row get from the neighbours' confidences;
        zero outside the candidates, rows sum to one. Only of the matching on local graphs.
    selected_ : dict
        The hyperparameters: ``views`` of the features, ``ridge`` of the regression, the penalty
        of ``stacking``, the share of the ``forest``, whether predictions were fed back
        (``feedback``), the exponent ``tau`` of the model of the candidate sets, None for
        similar labels and for another disambiguator, and the ``weight_exponent``, None if ``fit``
        got no ``candidate_weight``: the support of a candidate is multiplied with its weight to
        this power. 0 ignores the weights, 1 takes them for probabilities; estimated is the power
        for which the weights agree best with what the matching finds without them, about 0 for
        weights that are mere noise.
    selection_ : Selection
        Every alternative with its score, the candidate lift on held-out rows; in
        ``stacking_gains`` what each stacking gained there and in ``forest_gains`` what each share
        of the forest gained on rows that neither trees nor regression were trained on, with the
        standard errors of that.
    temperature_ : float
        By which the probabilities of unseen rows are calibrated; 1 leaves them as they are.
    annotators_ : Annotators
        Of votes: votes, estimated accuracy, confusion and agreement of every annotator;
        ``annotators_.to_frame()`` is a table.
    class_prior_ : ndarray of shape (n_classes,)
        Share of every label among the training rows, as far as it was found.
    class_prior_error_ : ndarray of shape (n_classes,)
        Its standard error if the confidences are right: how far it is open because labels are.
    evidence_ : dict
        How far each kind of evidence was believed: the weights of ``"graph"`` and
        ``"regression"`` in the model of the candidate sets, about 0 where features say nothing,
        and the power of the ``"class prior"`` in it; of votes the weight of the ``"features"``
        and the ``"gain by features"``, by how much they raised the log-likelihood of the votes of
        a row. Empty where neither was modelled.
    outside_probability_ : ndarray of shape (n_samples,)
        How probable it is that no candidate of the row is right, also where there is only one.
    suggested_labels_ : ndarray of shape (n_samples,)
        The best label of all, candidate or not.
    disambiguator_ : estimator or None
        The fitted disambiguator, None if it is the matching on local graphs.
    predictor_ : callable
        Scores the labels that occur for unseen rows; of a learner of your own its ``model`` is
        the fitted estimator.
    neighbor_recall_ : float
        Share of the true neighbours that the search found, estimated on a sample of rows; 1.0 for
        an exact search, NaN for another disambiguator.
    n_iter_ : int
        Iterations of the matching; 0 for another disambiguator.
    converged_ : bool
        Whether the matching converged. Labels settle long before.
    objective_path_ : ndarray of shape (n_iter_,)
        :math:`p^\top K p` before every iteration.
    matching_ : MatchingProblem or None
        What the rows were matched by, see :func:`gmpll.explain`; None for another disambiguator.
    n_samples_seen_ : int
        Number of training rows, those of ``fit`` and of every ``partial_fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names, if X has string column names.

    See Also
    --------
    GMPLL : The method of the paper, with nothing chosen and no learner on top.

    Notes
    -----
    With m rows, d features, q labels and k neighbours the graph takes O(m^2 d) time for an exact
    search (less in few dimensions) and O(m k q) an iteration, O(m (k + q)) memory; the regression
    O(m c^2) time and O(m c) memory for c landmarks (all rows up to 3000, then fewer, from 4000 on
    2000 of them). A forest takes O(m d log m) for each tree. Of more than 50,000 rows so many,
    drawn at random, train regression, stacking and forest, which predict the others in O(m c d).

    Features are z-scored or ranked, except in the linear part of the regression's kernel: there the
    spread of a feature counts, which tells components and embeddings that matter from those that
    do not. Of features in different units those of a large spread count most in this part.

    With a learner of your own ``predict_proba`` exists if it is a regression (its values, cut off
    at zero and normalised) or has ``predict_proba``; otherwise there is ``decision_function``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gmpll import PartialLabelClassifier
    >>> from gmpll.datasets import random_candidates
    >>> X, y = load_iris(return_X_y=True)
    >>> candidates = random_candidates(y, p=0.6, r=1, random_state=0)
    >>> model = PartialLabelClassifier(random_state=0).fit(X[::2], candidates[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True

    Any method finds the labels, any learner learns from them:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from gmpll import PLKNN
    >>> learner = LogisticRegression(max_iter=1000)
    >>> model = PartialLabelClassifier(PLKNN(), learner, random_state=0)
    >>> model.fit(X[::2], candidates[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    disambiguator: Learner = field(default=None, kw_only=False)
    learner: Annotated[Any, StrOptions({"auto"}), HasMethods(["fit", "predict"])] = field(
        default="auto", kw_only=False
    )
    targets: Annotated[str, StrOptions({"auto", "soft", "hard"})] = "auto"
    hyperparameters: Annotated[dict[str, Any] | None, None, dict] = None
    class_prior: Annotated[Any, None, dict, "array-like"] = None
    label_similarity: Annotated[Any, None, StrOptions({"auto"}), "array-like"] = "auto"
    outside: Annotated[str, StrOptions({"auto", "never", "allow"})] = "auto"
    calibrate: Switch = True
    warm_start: Switch = False
    random_state: Seed = None
    n_jobs: Jobs = None
    verbose: Verbosity = 0

    _takes_any_library = True

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
            sets, or a label vector; see :func:`gmpll.as_candidates`. Of what
            :func:`gmpll.candidates_from_votes` returns every vote counts: a model of how every
            annotator votes is joined with what the features say of a row without its own votes,
            see :mod:`gmpll.evidence.annotators`. Features that do not predict votes fade.
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
            weight of 0 makes a candidate unlikely, not impossible. How much the weights count
            is estimated, or given as the hyperparameter ``weight_exponent``. An error if the
            ``fit`` of another disambiguator does not take it.

        Returns
        -------
        self
        """
        own = self.disambiguator is None or is_local_matching(self.disambiguator)
        self._votes = (
            y if isinstance(y, VotedCandidates) and candidate_weight is None and own else None
        )
        self._constraints = {"gold": gold, "impossible": impossible}
        try:
            return self._fit_sets(X, y, **self._constraints, candidate_weight=candidate_weight)
        finally:  # rows that come later have neither
            self._votes, self._constraints = None, {}

    def _fit(
        self,
        X: Floats,
        mask: Mask,
        rng: np.random.RandomState,
        prior: Floats | None = None,
    ) -> Floats:
        before = self._state_before(X)
        fixed = _checked_hyperparameters(self.hyperparameters)
        rows = self._candidate_rows(X, mask, prior, keep_exponent=before is not None)
        parts_are_checked = config_context(skip_parameter_validation=False)  # they are the user's
        with parts_are_checked, plan(self._costs(rows)):
            self._open_parts(rng)
            start = None if before is None else warm_probabilities(before, mask, rows.labels)
            seed = rng.randint(np.iinfo(np.int32).max)
            pipeline = self._pipeline(rows, fixed.get("views", ALL_VIEWS), seed, start)
            keep = before is not None and np.array_equal(before.labels, rows.labels)
            begin("choice of hyperparameters")
            chosen = self._choose(pipeline, fixed, seed, keep=keep)
            revise(self._costs(rows, chosen.forest > 0))
            self.selected_ = asdict(chosen)
            digest = batch_digest(X) if self._library == "numpy" else (rows.n_samples, "")
            return self._learned(pipeline, chosen, (digest,))

    def _costs(self, rows: CandidateRows, has_forest: bool = False) -> dict[str, float]:
        """Return the stages and what they cost; nothing is known of parts of the user's own."""
        (m, d), q = rows.X.shape, rows.mask.shape[1]
        costs = classifier_costs(m, d, q, has_forest=has_forest)
        if not (self.disambiguator is None or is_local_matching(self.disambiguator)):
            del costs["neighbours"], costs["matching"]
            before, costs["choice of hyperparameters"] = costs.pop("features"), UNKNOWN
            costs = {"features": before, "disambiguation": UNKNOWN, **costs}
        if not isinstance(self.learner, str):
            stages = ("choice of hyperparameters", "feedback", "predictor")
            costs |= dict.fromkeys(stages, UNKNOWN)
        return costs

    def _prior_of(self, candidate_weight: Any, sets: CandidateSets) -> Floats:
        if self.disambiguator is None or is_local_matching(self.disambiguator):
            return candidate_prior(candidate_weight, sets)
        return weights_by_label(candidate_weight, sets)  # the disambiguator makes its own of them

    def _candidate_rows(
        self,
        X: Floats,
        mask: Mask,
        prior: Floats | None,
        *,
        keep_exponent: bool,
    ) -> CandidateRows:
        """Put together what is known of the rows."""
        labels = self.classes_[self._seen]
        priors = self._priors(prior, keep_exponent=keep_exponent)
        rows = CandidateRows(X, mask, labels, priors)
        if isinstance(self.label_similarity, str):
            self._is_ordinal = _are_ordinal(rows)
        return replace(rows, similarity=self._similarity_of(mask))

    def _similarity_of(self, mask: Mask) -> Floats | None:
        """Return the similarity of the labels that some row contains, None if all differ."""
        if self.label_similarity is None:
            return None
        if isinstance(self.label_similarity, str):
            return cooccurrence_similarity(mask) if self._is_ordinal else None
        similarity = check_label_similarity(
            np.asarray(self.label_similarity, dtype=np.float64), len(self.classes_)
        )
        return similarity[np.ix_(self._seen, self._seen)]

    def _priors(self, candidates: Floats | None, *, keep_exponent: bool) -> Prior:
        """Return what is likely beforehand; the exponent of weights may be one found before."""
        exponent = _checked_hyperparameters(self.hyperparameters).get("weight_exponent")
        if keep_exponent and exponent is None:
            exponent = self.selected_["weight_exponent"]
        if self.class_prior is None:
            return Prior(candidates, weight_exponent=exponent)
        seen = np.asarray(self._seen)
        return Prior(candidates, class_shares(self.class_prior, self.classes_, seen), exponent)

    def _open_parts(self, rng: np.random.RandomState) -> None:
        """Make copies of the parts that the user gave; open random states are drawn."""
        given = GMPLL(graph="local")
        if self.disambiguator is None or is_local_matching(self.disambiguator):
            self._disambiguator = None
            given = given if self.disambiguator is None else self.disambiguator
        else:
            self._disambiguator = seeded(self.disambiguator, rng)
        self._options = MatchingOptions(
            given.n_graph_neighbors,
            given.neighbor_search,
            given.max_iter,
            given.tol,
            self.n_jobs if given.n_jobs is None else given.n_jobs,
        )
        self._learner = None
        if not isinstance(self.learner, str):
            check_learner(self.learner)
            self._learner = seeded(self.learner, rng)

    def _choose(
        self,
        pipeline: Pipeline,
        fixed: dict[str, Any],
        seed: int,
        *,
        keep: bool,
    ) -> Hyperparameters:
        """Choose what is left open from the candidate sets alone, or keep what was chosen."""
        rows = pipeline.rows
        search = self._search(rows, fixed)
        if keep and self.selection_.answers(search, rows.mask.shape[1]):
            return self.selection_.chosen
        rng = np.random.RandomState(seed)
        n_compared = n_compared_rows(rows.n_samples)
        compared = np.sort(rng.permutation(rows.n_samples)[:n_compared])
        own = self._learner is None and self._disambiguator is None
        on_device = self._library == "torch" and own and rows.prior.candidates is None
        part = pipeline
        if rows.n_samples > EXACT_ROWS:
            some = rows.sample(compared) if on_device else rows.part(compared)
            part = self._pipeline(some, search.plain.views, seed)
        elif on_device:
            part = pipeline.parts(compared)
        elif len(compared) < rows.n_samples or self._library != "numpy":
            part = pipeline.part(compared)  # on the host
        found = select(pipeline, part, search, rng)
        self.selection_: Selection = replace(found, rows=compared[found.rows])
        return found.chosen

    def _search(self, rows: CandidateRows, fixed: dict[str, Any]) -> Search:
        """Return what is open."""
        n_classes = rows.mask.shape[1]
        plain = Hyperparameters(ALL_VIEWS)
        plain = replace(
            plain, **{name: fixed[name] for name in ("views", "ridge") if name in fixed}
        )
        own = self._learner is None
        matched = self._disambiguator is None
        feedback = (True,) if matched and own else (False, True)
        stacking = STACKING if is_stackable(n_classes) and own else (0.0,)
        feasible = is_forest_feasible(rows.n_samples, n_classes) and own
        modelled = matched and rows.similarity is None
        taus: Sequence[float | None] = (MIDDLE_TAU,) if modelled else (None,)
        if modelled and n_classes > 1 and rows.n_samples >= MIN_ROWS:
            taus = TAUS
        return Search(
            plain,
            (fixed["feedback"],) if "feedback" in fixed else feedback,
            (fixed["tau"],) if modelled and "tau" in fixed else taus,
            (fixed["stacking"],) if "stacking" in fixed else stacking,
            (fixed["forest"],) if "forest" in fixed else FOREST_SHARES if feasible else (0.0,),
        )

    def _pipeline(
        self,
        rows: CandidateRows,
        views: tuple[str, ...],
        seed: int,
        start: Floats | None = None,
    ) -> Pipeline:
        """Return the stages for some rows in some views."""
        rng = np.random.RandomState(seed)
        begin("features")
        spaces = views_of(rows.X, views, rng)
        table = partial(tree_view, rows.X)
        learner = regression = None
        if self._learner is not None:
            learner = ScikitLearner(rows.X, self._learner, self.targets, rng)
        disambiguated: Disambiguated
        if self._disambiguator is not None:
            begin("disambiguation")
            disambiguated = FittedDisambiguator.on(rows, self._disambiguator)
            if learner is None:
                begin("regression")
                regression = set_regression(spaces, seed)
        else:
            begin("neighbours")
            graph = self._options.graph(spaces[:N_GRAPH_VIEWS], rng)
            begin("regression")
            regression = set_regression(spaces, seed)
            disambiguated = GraphMatching(
                rows, spaces, graph, regression, self._options, seed, start
            )
        return Pipeline(rows, spaces, disambiguated, regression, seed, table, learner)

    def _learned(
        self,
        pipeline: Pipeline,
        chosen: Hyperparameters,
        batches: tuple[tuple[int, str], ...],
    ) -> Floats:
        """Run the stages, keep what is asked for later; return the confidences."""
        rows, disambiguated = pipeline.rows, pipeline.disambiguated
        begin("matching")
        disambiguated.probabilities(chosen.tau)
        begin("feedback")
        confidences = pipeline.confidences(chosen)
        self.__dict__.pop("annotators_", None)  # of an earlier fit
        self.evidence_ = {}
        begin("incomplete sets")
        if self._votes is not None:
            joint = self._joint_with_votes(pipeline, chosen, confidences)
        else:
            if isinstance(disambiguated, GraphMatching) and chosen.tau is not None:
                model, _ = disambiguated.set_model(chosen.tau)
                graph, regression = model.weights.tolist()
                self.evidence_ = {
                    "graph": graph,
                    "regression": regression,
                    "class prior": 1.0 - chosen.tau,
                }
            joint = self._joint_with_outside(pipeline, chosen, confidences)
        mask = to_host(rows.mask) if is_dask_array(rows.mask) else rows.mask
        joint = beside(self._within_constraints(joint), mask)
        xp = array_namespace(joint)
        beyond = xp.where(mask, 0.0, joint)
        outside = xp.sum(beyond, axis=1)
        self.outside_probability_ = to_host(outside)
        self.suggested_labels_ = rows.labels[to_host(xp.argmax(joint, axis=1))]
        if self.outside == "allow" or (self._votes is not None and self.outside == "auto"):
            confidences = from_host(joint, rows.mask)
        elif self._votes is not None:
            confidences = from_host(confidences_within(joint, mask), rows.mask)
        learned = confidences
        own = self._disambiguator is None and self._learner is None
        if own and self.outside == "auto" and self._votes is None:
            # Labels stay within the sets; the learner need not believe sets that seem wrong.
            kept, beyond = (from_host(each, rows.mask) for each in (1.0 - outside[:, None], beyond))
            learned = confidences * kept + beyond
        begin("predictor")
        self.predictor_ = pipeline.predictor(chosen, learned)
        begin("calibration")
        if len(batches) == 1:  # rows that come later change nothing of the calibration
            self._fit_calibration(confidences, rows.mask)
        if self._exponent != 1.0:
            confidences = sharpen(confidences, rows.mask, self._exponent)
        self._keep_matching(disambiguated, chosen.tau, confidences)
        self._views, self._similarity = pipeline.views, rows.similarity
        # Only NumPy arrays can grow.
        self._table = pipeline.table if chosen.forest and self._library == "numpy" else None
        self._state = None
        if self._library == "numpy":
            weights = rows.prior.candidates
            self._state = FitState(rows.labels, rows.mask, confidences, weights, batches)
        self.n_samples_seen_ = rows.n_samples
        masses = confidences.sum(axis=0), (confidences * (1.0 - confidences)).sum(axis=0)
        shares, open_ones = map(to_host, engine_of(confidences).small(*masses))
        self.class_prior_ = self._with_unseen_labels(shares[None, :] / rows.n_samples, 0.0)[0]
        unsure = np.sqrt(open_ones) / rows.n_samples
        self.class_prior_error_ = self._with_unseen_labels(unsure[None, :], 0.0)[0]
        return confidences

    def _joint_with_votes(
        self, pipeline: Pipeline, chosen: Hyperparameters, confidences: Array
    ) -> Floats:
        """Join what every annotator votes with the learner's out-of-sample scores."""
        votes: Any = self._votes
        rows = pipeline.rows

        def out_of_sample(P: Floats) -> Floats:
            P = self._within_constraints(aligned_columns(P, votes.candidates.classes, rows.labels))
            scores = to_host(pipeline.out_of_sample(chosen, from_host(P, rows.mask)))
            return aligned_columns(scores, rows.labels, votes.candidates.classes)

        start = aligned_columns(to_host(confidences), rows.labels, votes.candidates.classes)
        crowd = AnnotatorModel().fit(votes, out_of_sample, start)
        self.annotators_ = crowd.annotators_
        self.evidence_ = {
            "features": float(crowd.feature_weight_.sum()),
            "gain by features": crowd.feature_gain_,
        }
        return aligned_columns(crowd.posterior_, crowd.classes_, rows.labels)

    def _within_constraints(self, joint: Array) -> Array:
        """Leave nothing to labels that ``gold`` or ``impossible`` rule out for a row."""
        if all(constraint is None for constraint in self._constraints.values()):
            return joint
        joint = to_host(joint)
        every = np.ones((len(joint), len(self.classes_)), dtype=bool)
        possible = apply_constraints(CandidateSets(every, self.classes_), **self._constraints).mask
        return confidences_within(joint, possible[:, self._seen])

    def _joint_with_outside(
        self, pipeline: Pipeline, chosen: Hyperparameters, confidences: Array
    ) -> Array:
        """Return probabilities of all labels, those that are no candidates of the row included.

        Those of Dask arrays are on the host. The support of the neighbours stays that of their
        candidates.
        """
        here = to_host if is_dask_array(confidences) else lambda array: array
        P, mask = here(confidences), here(pipeline.rows.mask)
        if mask.shape[1] == 1:
            return P
        xp = array_namespace(P)
        P = xp.astype(P, xp.float64, copy=False)
        on_graph = isinstance(pipeline.disambiguated, GraphMatching)
        support = pipeline.support(confidences) if on_graph else xp.zeros_like(P)
        sample = pipeline.sample
        stages, some = (pipeline, slice(None)) if sample is None else (sample.stages, sample.rows)

        def said(support: Array, predicted: Array, joint: Array) -> Scores:
            """Return it of some rows, by others with these probabilities."""
            shares = label_shares(xp.sum(joint, axis=0, keepdims=True), len(joint))
            shares = xp.broadcast_to(shares, support.shape)
            return Scores(support, xp.astype(here(predicted), P.dtype, copy=False), shares)

        def score(joint: Array) -> Scores:
            predicted = stages.out_of_sample(chosen, from_host(joint, stages.rows.mask))
            return said(support[some], predicted, joint)

        shares = label_shares(xp.sum(P, axis=0), len(P))
        tau = MIDDLE_TAU if chosen.tau is None else chosen.tau
        model = SetModel(tau, shares, np.full(2, FIRST_WEIGHT))
        model, joint = fit_outside(score, mask[some], model, P[some])
        if sample is not None:
            predicted = pipeline.scores_by_sample(chosen, from_host(joint, stages.rows.mask))
            predicted = shared_scores(predicted, pipeline.rows.similarity)
            joint = model.joint(said(support, predicted, joint), mask)
        return joint

    def _keep_matching(
        self,
        disambiguated: Disambiguated,
        tau: float | None,
        confidences: Floats,
    ) -> None:
        """Keep what is known of the first stage."""
        self.disambiguator_ = exponent = None
        self.__dict__.pop("label_support_", None)  # of an earlier fit
        if isinstance(disambiguated, GraphMatching):
            matching = disambiguated.matching(tau)
            self.n_iter_ = matching.n_iter
            self.converged_ = matching.converged
            self.objective_path_ = matching.objective_path
            exponent = disambiguated.weight_exponent(tau)
            self.neighbor_recall_ = disambiguated.graph.recall
            support = disambiguated.support(confidences)
            self.label_support_ = self._with_unseen_labels(support, 0.0)
            self.matching_ = None
            if self._library == "numpy":
                self.matching_ = disambiguated.problem(tau).over_all_labels(self._seen)
            self._graph = disambiguated.graph
        elif isinstance(disambiguated, FittedDisambiguator):
            self.disambiguator_ = disambiguated.model
            self.n_iter_, self.converged_ = 0, True
            self.objective_path_ = np.zeros(0)
            exponent = disambiguated.weight_exponent
            self.neighbor_recall_ = np.nan
            self.matching_ = None
            self._graph = None
        self.selected_ = {**self.selected_, "weight_exponent": exponent}

    def _fit_calibration(self, confidences: Floats, mask: Mask) -> None:
        """Let confidences mean what they say, by what was said of held-out rows."""
        self.temperature_ = self._exponent = 1.0
        rows, held_out = self.selection_.rows, self.selection_.held_out
        if self.outside != "never":  # sets that seem wrong count in outside_probability_ already
            complete = self.outside_probability_[rows] <= 0.5
            rows, held_out = rows[complete], held_out[complete]
        if not self.calibrate or not len(rows) or not self._has_probabilities():
            return
        engine = engine_of(mask)
        mask, confidences = engine.rows_on_host(mask, rows), engine.rows_on_host(confidences, rows)
        self.temperature_ = candidate_temperature(held_out, mask)
        if self._votes is not None or self.outside == "allow":  # these are probabilities already
            return
        tempered = confidences_within(temper(held_out, self.temperature_), mask)
        self._exponent = confidence_exponent(confidences, mask, tempered)

    def _state_before(self, X: Floats) -> FitState | None:
        """Return where the previous fit ended if this one is to start from there."""
        before: FitState | None = getattr(self, "_state", None)
        if self.warm_start and engine_of(X).name != "numpy":
            raise ValueError("warm_start needs NumPy arrays: leave it out, or pass NumPy arrays.")
        if not self.warm_start or before is None or before.begins(X):
            return before if self.warm_start else None
        warnings.warn(
            "warm_start=True, but the first rows of X are not those of the previous fit: this fit "
            "starts anew.",
            stacklevel=5,
        )
        return None

    def _scores(self, X: Floats) -> Floats:
        scores = self.predictor_(X)
        if not self._has_probabilities():
            return scores
        shares = as_probabilities(scores)
        return shares if self.temperature_ == 1.0 else temper(shares, self.temperature_)

    def _has_probabilities(self) -> bool:
        learner = self.learner
        return (
            isinstance(learner, str) or is_regressor(learner) or hasattr(learner, "predict_proba")
        )

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Probability of every label for unseen rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one; columns in the order of ``classes_``.
        """
        return super().predict_proba(X)

    @available_if(lambda self: not self._has_probabilities())
    def decision_function(self, X: Any) -> Floats:
        """Score of every label for unseen rows, larger is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            As in :class:`gmpll.base.DecisionMixin`; a label that no training row was given has
            ``-inf``.
        """
        return super().decision_function(X)


def _are_ordinal(rows: CandidateRows) -> bool:
    """Whether labels are numbers on a scale, judged by as many rows as the host holds easily."""
    some = np.linspace(0, rows.n_samples - 1, min(rows.n_samples, ORDINAL_ROWS)).astype(np.intp)
    if not labels_look_ordinal(rows.labels, mask := rows.mask_on_host(some)):
        return False
    return features_vary_with_label(rows.X_on_host(some), rows.labels, mask)


@dataclass(frozen=True)
class FittedDisambiguator:
    """Confidences by another partial label learner, fitted on some rows."""

    rows: CandidateRows
    model: Any
    confidences: Floats
    weights: Floats | None
    weight_exponent: float | None

    @classmethod
    def on(cls, rows: CandidateRows, disambiguator: Any) -> FittedDisambiguator:
        """Fit a copy of the disambiguator."""
        sets = CandidateSets(rows.mask, rows.labels)
        candidates = rows.prior.candidates
        model = TrainingRows(rows.X, sets, sets, candidates).fit(clone(disambiguator))
        if not hasattr(model, "label_confidences_"):
            raise ValueError(
                f"The disambiguator {type(model).__name__} has no label_confidences_ after "
                "fit: use one of the methods of gmpll, for instance GMPLL()."
            )
        weights = exponent = None
        if candidates is not None:
            given = rows.prior.weight_exponent
            exponent = _weight_exponent_of(model) if given is None else given
            weights = candidate_prior(candidates, sets) ** exponent
        return cls(rows, model, model.label_confidences_, weights, exponent)

    def part(self, rows: Places, regression: KernelRidge | None) -> FittedDisambiguator:
        """Fit another copy on some of the rows alone."""
        return FittedDisambiguator.on(self.rows.part(rows), self.model)

    def probabilities(self, tau: float | None) -> Floats:
        """Return the confidences."""
        return self.confidences

    def priors(self, tau: float | None) -> Floats | None:
        """Return what the weights of the candidates say in the feedback."""
        return self.weights

    def masses(self, tau: float | None) -> dict[str, Any]:
        """Return how many rows every label is known, or was found, to have."""
        known = self.rows.expected_mass
        return {"expected_mass": self.confidences.sum(axis=0) if known is None else known}


def _weight_exponent_of(model: Any) -> float:
    """Return how far a fitted method trusts weights of candidates; 1 if it does not say."""
    exponent = getattr(model, "selected_", {}).get("weight_exponent")
    if exponent is not None:
        return float(exponent)
    inner = getattr(model, "estimator_", getattr(model, "disambiguator_", None))
    return 1.0 if inner is None else _weight_exponent_of(inner)


def _checked_hyperparameters(given: dict[str, Any] | None) -> dict[str, Any]:
    """Return a copy of the hyperparameters that are fixed; raise for names that are none."""
    names = [*(each.name for each in fields(Hyperparameters)), "weight_exponent"]
    fixed = dict(given or {})
    unknown = [name for name in fixed if name not in names]
    if unknown:
        raise ValueError(
            f"hyperparameters has the name {unknown[0]!r}, which is none of them: "
            f"they are {', '.join(names)}."
        )
    if "views" in fixed:
        fixed["views"] = tuple(fixed["views"])
        wrong = [name for name in fixed["views"] if name not in ALL_VIEWS]
        if wrong or not fixed["views"]:
            raise ValueError(
                f"hyperparameters has views={fixed['views']!r}: name at least one of "
                f"{', '.join(ALL_VIEWS)}."
            )
    for name, value in fixed.items():
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if name in ("ridge", "weight_exponent") and value is None:
            continue
        if name not in ("views", "feedback") and not (is_number and value >= 0):
            raise ValueError(
                f"hyperparameters has {name}={value!r}: it must be a number that is not negative."
            )
    for name in ("forest", "tau"):
        if fixed.get(name, 0.0) > 1:
            raise ValueError(f"hyperparameters has {name}={fixed[name]!r}: it is at most 1.")
    return fixed
