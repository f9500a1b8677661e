"""Disambiguate, learn, feed back, predict: the stages of the default on some rows.

:class:`gmpll.PartialLabelClassifier` runs them once on all rows; choosing hyperparameters without
true labels runs them many times on parts of the rows (:mod:`gmpll.evidence.selection`). Stages
that do not depend on what changes are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll.arrays import Array, array_namespace, beside, from_host, is_torch_array, to_host
from gmpll.engines import engine_of
from gmpll.evidence.forest import N_TREES, Forest, grow_forest, oob_prediction
from gmpll.evidence.ridge import EXACT_ROWS, KernelRidge, RidgePredictor
from gmpll.evidence.scikit import ScikitLearner
from gmpll.evidence.set_model import Relations, SampleModel, SetModel
from gmpll.evidence.stacking import Stacker, fit_stacker
from gmpll.graph.local import LocalGraphs
from gmpll.matching import LocalAffinity, Matching, match, support_of, uniform_start
from gmpll.matching.feedback import FEEDBACK_ITERATIONS, feedback
from gmpll.matching.problem import MatchingProblem
from gmpll.rounding import confidences_within
from gmpll.side_information import Prior, estimate_weight_exponent

__all__ = [
    "CandidateRows",
    "Disambiguated",
    "GraphDisambiguation",
    "Hyperparameters",
    "MatchingOptions",
    "Pipeline",
    "blended",
]

#: How often regression and forest are asked together after the regression alone.
FOREST_ITERATIONS = 2
#: Rows on which the exponent of candidate weights is estimated.
WEIGHT_ROWS = 100_000

Scorer = Callable[[Array], Array]


@dataclass(frozen=True)
class Hyperparameters:
    """What is chosen without true labels.

    Attributes
    ----------
    balance : float
        Exponent of the class-mass correction.
    views : tuple of {"cosine", "rank", "euclidean"}
        In which views rows are compared.
    width : float
        Width of the regression's kernel.
    ridge : float
        Weight of the regression's squared norm.
    stacking : float
        Penalty of the stacked logistic regression; 0 if the scores are taken as they are.
    linear : float
        Penalty of the features' own part in it; 0 if they have none.
    forest : float
        Share of the forest in the mean of regression and forest.
    feedback : bool
        Whether out-of-sample predictions are fed back to the training rows.
    tau : float or None
        What a candidate set says of its members beforehand, see :mod:`gmpll.evidence.set_model`;
        None if there is no model of the sets.
    """

    balance: float = 0.5
    views: tuple[str, ...] = ("cosine", "rank")
    width: float = 1.5
    ridge: float = 0.1
    stacking: float = 0.0
    linear: float = 0.0
    forest: float = 0.0
    feedback: bool = True
    tau: float | None = None


#: The regression by which rows of other sets speak.
SET_REGRESSION = Hyperparameters(width=1.5, ridge=0.1)
#: Neighbours in the graph by which they speak.
GRAPH_NEIGHBORS = 40
#: Rows of which sets are modelled where there are too many for an exact regression.
SET_MODEL_ROWS = 3000
#: Iterations of the matching, and of the feedback, from the posterior of the set model.
SET_ITERATIONS = 5


@dataclass(frozen=True)
class MatchingOptions:
    """How the default matches: the parameters of :class:`gmpll.GMPLL` with a local graph."""

    n_graph_neighbors: int = 40
    neighbor_search: str = "auto"
    max_iter: int = 100
    tol: float = 1e-4
    n_jobs: int | None = None

    def graph(self, views: Sequence[Array], rng: int | np.random.RandomState) -> LocalGraphs:
        """Return the local graph of rows in several views."""
        return LocalGraphs(
            views,
            self.n_graph_neighbors,
            neighbor_search=self.neighbor_search,
            random_state=rng,
            n_jobs=self.n_jobs,
        )


@dataclass(frozen=True)
class CandidateRows:
    """Rows with candidates, and what else is known of them.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
        Features.
    mask : array of shape (n_samples, n_classes), bool
        Candidates, of the library of X.
    labels : ndarray of shape (n_classes,)
        The labels of its columns.
    prior : Prior
        Weights of candidates and class frequencies, where they are known.
    similarity : ndarray of shape (n_classes, n_classes) or None
        Similarity of the labels, None if they are all different.
    """

    X: Array
    mask: Array
    labels: NDArray[Any]
    prior: Prior
    similarity: NDArray[np.float64] | None = None

    def part(self, rows: NDArray[np.intp], seen: NDArray[np.bool_]) -> CandidateRows:
        """Return some of the rows and labels, as NumPy arrays."""
        similarity = self.similarity
        if similarity is not None:
            similarity = similarity[np.ix_(seen, seen)]
        mask = np.ascontiguousarray(self.mask_on_host(rows)[:, seen])
        prior = self.prior
        if prior.candidates is not None:
            of_rows = engine_of(prior.candidates).rows_on_host(prior.candidates, rows)
            prior = replace(prior, candidates=of_rows)
        prior = prior.part(np.arange(len(rows)), seen)
        return CandidateRows(self.X_on_host(rows), mask, self.labels[seen], prior, similarity)

    def X_on_host(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the features of some rows as a NumPy array."""
        return engine_of(self.X).rows_on_host(self.X, rows).astype(np.float64, copy=False)

    def mask_on_host(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return the candidates of some rows as a NumPy array."""
        return engine_of(self.mask).rows_on_host(self.mask, rows)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.mask.shape[0]

    @property
    def expected_mass(self) -> NDArray[np.float64] | None:
        """Known number of rows of every label."""
        return self.prior.expected_mass(self.n_samples)


class Disambiguated(Protocol):
    """Confidences of the candidates before any learner has its say."""

    def probabilities(self, balance: float) -> Array:
        """Return the confidences."""

    def priors(self, balance: float) -> Array | None:
        """Return what multiplies the support of every candidate; None if that is nothing."""


class GraphDisambiguation:
    """Matching on the local graph of some rows, for any balance.

    Parameters
    ----------
    rows : CandidateRows
        Rows and candidates.
    graph : LocalGraphs
        Their graph.
    options : MatchingOptions
        Limits of the matching.
    start : ndarray of shape (n_samples, n_classes), default=None
        Where the matching starts; where an earlier one ended makes it short.
    """

    def __init__(
        self,
        rows: CandidateRows,
        graph: Any,
        options: MatchingOptions,
        start: Array | None = None,
    ) -> None:
        self.rows = rows
        self.graph = graph
        self.options = options
        self.affinity = LocalAffinity(graph.weights, rows.mask, rows.similarity)
        self._start = start
        self._matchings: dict[float, Matching] = {}
        self._exponents: dict[float, float] = {}

    def matching(self, balance: float) -> Matching:
        """Match with the weights of the candidates, if there are any."""
        if balance not in self._matchings:
            self._matchings[balance] = self._match(balance, self.priors(balance), self._start)
        return self._matchings[balance]

    def probabilities(self, balance: float) -> Array:
        """Return the matching probabilities."""
        return self.matching(balance).probabilities

    def priors(self, balance: float) -> Array | None:
        """Return the weights of the candidates to the power that they deserve."""
        exponent = self.weight_exponent(balance)
        if exponent is None or self.rows.prior.candidates is None:
            return None
        weights = self.rows.prior.candidates**exponent
        return array_namespace(weights).where(self.rows.mask, weights, 0.0)

    def weight_exponent(self, balance: float) -> float | None:
        """Return the exponent of the candidates' weights, None if there are none.

        Where it is to be estimated, the rows are matched without the weights first.
        """
        prior = self.rows.prior
        if prior.candidates is None or prior.weight_exponent is not None:
            return None if prior.candidates is None else prior.weight_exponent
        if balance not in self._exponents:
            unaided = self._match(balance, None)
            some: Any = slice(None)
            if self.rows.n_samples > WEIGHT_ROWS:
                some = np.linspace(0, self.rows.n_samples - 1, WEIGHT_ROWS).astype(np.intp)
            self._exponents[balance] = estimate_weight_exponent(
                *(
                    engine_of(array).rows_on_host(array, some)
                    for array in (prior.candidates, unaided.probabilities, self.rows.mask)
                )
            )
        return self._exponents[balance]

    def problem(self, balance: float) -> MatchingProblem:
        """Return all that the matching was made from."""
        return MatchingProblem(
            self.graph.weights,
            self.rows.mask,
            balance,
            self.rows.similarity,
            self.priors(balance),
            self.rows.expected_mass,
        )

    def support(self, P: Array) -> Array:
        """Return the share of the support that every candidate gets."""
        return confidences_within(support_of(self.affinity, P), self.rows.mask)

    def _match(
        self,
        balance: float,
        priors: Array | None,
        start: Array | None = None,
    ) -> Matching:
        if start is None:
            start = uniform_start(self.rows.mask, self.rows.X.dtype)
            if priors is not None:
                start = confidences_within(priors, self.rows.mask)
        return match(
            self.affinity,
            self.rows.mask,
            balance=balance,
            max_iter=self.options.max_iter,
            tol=self.options.tol,
            start=start,
            priors=priors,
            expected_mass=self.rows.expected_mass,
            keep=engine_of(self.rows.mask).keeper(),
        )


@dataclass(frozen=True)
class FixedConfidences:
    """Confidences that another method found, and what the weights of the candidates say."""

    confidences: Array
    weights: Array | None = None

    def probabilities(self, balance: float) -> Array:
        """Return the confidences."""
        return self.confidences

    def priors(self, balance: float) -> Array | None:
        """Return the weights."""
        return self.weights


class Pipeline:
    """The stages for any hyperparameters of the same views.

    Parameters
    ----------
    rows : CandidateRows
        Rows and candidates.
    views : sequence of views
        Each has ``rows`` and ``transform``.
    disambiguated : Disambiguated
        The first confidences.
    seed : int
        Draws landmarks and trees.
    table : callable
        Makes the view in which a forest sees the rows.
    learner : ScikitLearner, default=None
        Takes the place of regression, stacking and forest.
    """

    def __init__(
        self,
        rows: CandidateRows,
        views: Sequence[Any],
        disambiguated: Disambiguated,
        seed: int,
        table: Callable[[], Any],
        learner: ScikitLearner | None = None,
    ) -> None:
        self.rows = rows
        self.views = views
        self.disambiguated = disambiguated
        self.learner = learner
        self._seed = seed
        self._make_table = table
        self._set_models: dict[float, tuple[SetModel, Array]] = {}
        self._set_matchings: dict[tuple[float, float], list[tuple[dict[str, Any], Array]]] = {}
        self._kernels: dict[float, KernelRidge] = {}
        self._regressions: dict[tuple[float, float], KernelRidge] = {}  # the last one asked for

    @cached_property
    def table(self) -> Any:
        """The rows as a forest sees them."""
        return self._make_table()

    def without_kernels(self) -> Pipeline:
        """Return the same without the matrices that only confidences and scores need."""
        nothing = FixedConfidences(np.zeros((0, 0)))
        return Pipeline(self.rows, self.views, nothing, self._seed, self._make_table, self.learner)

    def confidences(self, chosen: Hyperparameters) -> Array:
        """Disambiguate, then feed the learner's out-of-sample predictions back."""
        P = self.disambiguated.probabilities(chosen.balance)
        if not chosen.feedback:
            return P
        if self.learner is not None:
            return self._fed_back(self.learner.out_of_sample, P, self.learner.n_iterations, chosen)
        ridge = self.ridge(chosen)

        def of_both(P: Array) -> Array:
            of_trees = oob_prediction(self.table.rows, to_host(P), self._seed)
            return blended(ridge.leave_one_out(P), from_host(of_trees, P), chosen.forest)

        P = self._fed_back(ridge.leave_one_out, P, FEEDBACK_ITERATIONS, chosen)
        if chosen.tau is not None:
            P = self._joined_with_sets(P, chosen)
        return self._fed_back(of_both, P, FOREST_ITERATIONS, chosen) if chosen.forest else P

    def relations(self) -> Relations:
        """Return graph and kernel between the rows, on the host."""
        graph = getattr(self.disambiguated, "graph", None)
        if graph is None or not isinstance(graph.weights, sp.csr_array):
            graph = LocalGraphs([to_host(view.rows) for view in self.views], GRAPH_NEIGHBORS)
        kernel = self.ridge(SET_REGRESSION).kernel_between_rows()
        return Relations(graph.weights, kernel, SET_REGRESSION.ridge, to_host(self.rows.mask))

    def set_model(self, tau: float) -> tuple[SetModel, Array]:
        """Return the model of the candidate sets, and the posterior that it gives the rows."""
        if tau not in self._set_models:
            if self.rows.n_samples > EXACT_ROWS:
                self._set_models[tau] = self._set_model_of_sample(tau)
            else:
                related = self.relations()
                model, posterior = related.fit(tau, related.inverse())
                self._set_models[tau] = model, from_host(posterior, self.rows.mask)
        return self._set_models[tau]

    def _set_model_of_sample(self, tau: float) -> tuple[SetModel, Array]:
        """Model the sets of some rows, which then speak of all."""
        rng = np.random.RandomState(self._seed)
        some = np.sort(rng.permutation(self.rows.n_samples)[:SET_MODEL_ROWS])
        views = [engine_of(view.rows).rows_on_host(view.rows, some) for view in self.views]
        width, ridge = SET_REGRESSION.width, SET_REGRESSION.ridge
        regression = KernelRidge(views, width=width, ridge=ridge, rng=rng)
        graph, kernel = LocalGraphs(views, GRAPH_NEIGHBORS), regression.kernel
        sample = SampleModel(
            Relations(
                graph.weights,
                regression.kernel_between_rows(),
                ridge,
                self.rows.mask_on_host(some),
            ),
            tau,
        )

        def posterior(mask: NDArray[np.bool_], *rows: NDArray[Any]) -> NDArray[np.float64]:
            return sample.posterior(mask, graph.to_queries(rows), kernel(*rows))

        everything = (self.rows.mask, *(view.rows for view in self.views))
        if is_torch_array(self.rows.mask):
            found = engine_of(views[0]).map_rows(posterior, *map(to_host, everything))
            return sample.model, from_host(found, self.rows.mask)
        engine = engine_of(self.rows.mask)
        (found,) = engine.keep(engine.map_rows(posterior, *everything))
        return sample.model, found

    def _joined_with_sets(self, P: Array, chosen: Hyperparameters) -> Array:
        """Join what matching and feedback found with the model of the sets.

        From the model's posterior all other rows speak for a few iterations, those with the same
        set too: once with the class-mass correction, once with the labels' masses held at the
        model's class prior. Many iterations would forget the start. Model and prior are estimates:
        the mean with what was found without them is returned.
        """
        total = P
        for masses, matched in self._matched_from_sets(chosen.tau, chosen.balance):
            total = total + feedback(
                self.ridge(chosen).leave_one_out,
                self.rows.mask,
                matched,
                n_iterations=SET_ITERATIONS,
                priors=self.disambiguated.priors(chosen.balance),
                **masses,
            )
        return total / 3.0

    def _matched_from_sets(
        self, tau: float | None, balance: float
    ) -> list[tuple[dict[str, Any], Array]]:
        """Match from the posterior of the set model; what the masses are held by, and the result.

        It does not depend on the regression that is asked afterwards.
        """
        assert tau is not None
        if (tau, balance) not in self._set_matchings:
            _, posterior = self.set_model(tau)
            mask, priors = self.rows.mask, self.disambiguated.priors(balance)
            if priors is not None:
                posterior = confidences_within(posterior * priors, mask)
            capacities = {"balance": 0.0, "expected_mass": posterior.sum(axis=0)}
            self._set_matchings[tau, balance] = [
                (
                    masses,
                    match(
                        self.disambiguated.affinity,  # type: ignore[attr-defined]
                        mask,
                        start=posterior,
                        priors=priors,
                        max_iter=SET_ITERATIONS,
                        tol=0.0,
                        keep=engine_of(mask).keeper(),
                        **masses,
                    ).probabilities,
                )
                for masses in ({"balance": balance}, capacities)
            ]
        return self._set_matchings[tau, balance]

    def support_on_host(self, P: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the support that confidences get by the graph, all of them on the host."""
        graph = self.disambiguated.graph  # type: ignore[attr-defined]
        there = from_host(P.astype(to_host(self.rows.X[:1]).dtype), self.rows.X)
        return to_host(graph.weights @ there).astype(np.float64)

    def predictor(self, chosen: Hyperparameters, P: Array) -> Scorer:
        """Return a function that scores the labels of unseen rows."""
        if self.learner is not None:
            return self.learner.fit(P)
        scores = self.regression(chosen, P)
        if not chosen.forest:
            return scores
        return BlendedPredictor(scores, self.forest(P, N_TREES), chosen.forest)

    def regression(self, chosen: Hyperparameters, P: Array) -> KernelPredictor:
        """Return the regression's part of the predictor, stacking included."""
        fitted = self.ridge(chosen).predictor(P)
        stacked = self.stacked(chosen, P) if chosen.stacking else None
        return KernelPredictor(self.views, fitted, self.rows.similarity, stacked)

    def scorer_of(self, X: Array) -> Callable[[Hyperparameters, Array], Array]:
        """Return a function that scores these unseen rows, before stacking and forest."""
        if self.learner is not None:
            learner = self.learner
            return lambda chosen, P: learner.fit(P)(X)
        views = [view.transform(X) for view in self.views]
        return lambda chosen, P: self.regression(
            replace(chosen, stacking=0.0, linear=0.0), P
        ).of_views(views)

    def ridge(self, chosen: Hyperparameters) -> KernelRidge:
        """Return the regression, ready for any confidences."""
        if chosen.width not in self._kernels:
            self._kernels[chosen.width] = KernelRidge(
                [view.rows for view in self.views],
                width=chosen.width,
                ridge=chosen.ridge,
                rng=np.random.RandomState(self._seed),
            )
        which = (chosen.width, chosen.ridge)
        if which not in self._regressions:
            self._regressions = {which: self._kernels[chosen.width].with_ridge(chosen.ridge)}
        return self._regressions[which]

    def stacked(
        self,
        chosen: Hyperparameters,
        P: Array,
        scores: Array | None = None,
    ) -> StackedScores:
        """Stack a logistic regression on the out-of-sample scores of the training rows."""
        if scores is None:
            scores = self.out_of_sample_scores(chosen, P)
        table = self.table if chosen.linear else None
        rows = None if table is None else table.rows
        stacker = fit_stacker(scores, P, chosen.stacking, rows, chosen.linear)
        return StackedScores(stacker, table)

    def out_of_sample(self, chosen: Hyperparameters, P: Array) -> Array:
        """Return what the learner says of every training row without having seen it."""
        if self.learner is not None:
            return self.learner.out_of_sample(P)
        return self.out_of_sample_scores(chosen, P)

    def out_of_sample_scores(self, chosen: Hyperparameters, P: Array) -> Array:
        """Return the regression's leave-one-out scores, shared among similar labels."""
        return shared_scores(self.ridge(chosen).leave_one_out(P), self.rows.similarity)

    def forest(self, P: Array, n_trees: int) -> ForestPredictor:
        """Grow trees on confidences."""
        forest = grow_forest(self.table.rows, to_host(P), self._seed, n_trees)
        return ForestPredictor(self.table, forest, self.rows.similarity)

    def _fed_back(
        self,
        predict: Scorer,
        P: Array,
        n_iterations: int,
        chosen: Hyperparameters,
    ) -> Array:
        return feedback(
            lambda P: shared_scores(predict(P), self.rows.similarity),
            self.rows.mask,
            P,
            balance=chosen.balance,
            n_iterations=n_iterations,
            priors=self.disambiguated.priors(chosen.balance),
            expected_mass=self.rows.expected_mass,
        )


def shared_scores(scores: Array, similarity: NDArray[np.float64] | None) -> Array:
    """Let similar labels share their scores."""
    if similarity is None:
        return scores
    return scores @ beside(similarity / similarity.sum(axis=0), scores)


def blended(of_kernel: Array, of_trees: Array, share: float) -> Array:
    """Return the mean of two predictions; scores below zero count as zero."""
    xp = array_namespace(of_kernel)
    return (1.0 - share) * xp.clip(of_kernel, min=0.0) + share * of_trees


@dataclass(frozen=True)
class KernelPredictor:
    """Score labels of unseen rows by the regression."""

    views: Sequence[Any]
    regression: RidgePredictor
    similarity: Array | None
    stacked: StackedScores | None = None

    def __call__(self, X: Array) -> Array:
        scores = self.of_views([view.transform(X) for view in self.views])
        return scores if self.stacked is None else self.stacked(scores, X)

    def of_views(self, rows: Sequence[Array]) -> Array:
        """Score rows that lie in the views already, without stacking."""
        return shared_scores(self.regression(rows), self.similarity)


@dataclass(frozen=True)
class StackedScores:
    """The stacked logistic regression, and the view of the features where they have a part."""

    stacker: Stacker
    table: Any

    def __call__(self, scores: Array, X: Array) -> Array:
        rows = None if self.table is None else on_host(self.table.transform, X)
        return self.stacker(scores, rows)


@dataclass(frozen=True)
class ForestPredictor:
    """Score labels of unseen rows by trees."""

    table: Any
    forest: Forest
    similarity: Array | None

    def __call__(self, X: Array) -> Array:
        scores = on_host(lambda rows: self.forest(self.table.transform(rows)), X)
        return shared_scores(scores, self.similarity)


@dataclass(frozen=True)
class BlendedPredictor:
    """Score labels of unseen rows by regression and trees."""

    regression: KernelPredictor
    trees: ForestPredictor
    share: float

    def __call__(self, X: Array) -> Array:
        return blended(self.regression(X), self.trees(X), self.share)


def on_host(function: Callable[[NDArray[Any]], NDArray[Any]], X: Array) -> Array:
    """Apply a function of NumPy rows: tensors visit the host, partitions of Dask need not."""
    if is_torch_array(X):
        return from_host(function(to_host(X)), X)
    return engine_of(X).map_rows(function, X)
