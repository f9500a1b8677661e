"""Disambiguate, learn, feed back, predict: the stages of the default on some rows.

:class:`gmpll.PartialLabelClassifier` runs them once on all rows; choosing hyperparameters without
true labels runs them many times on parts of the rows (:mod:`gmpll.evidence.selection`). Stages
that do not depend on what changes are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll.arrays import Array, array_namespace, beside, from_host, is_torch_array, to_host
from gmpll.engines import engine_of
from gmpll.evidence.forest import Forest, grow_forest, oob_prediction
from gmpll.evidence.ridge import EXACT_ROWS, KernelRidge, RidgePredictor
from gmpll.evidence.scikit import ScikitLearner
from gmpll.evidence.set_model import Relations, SampleModel, SetModel
from gmpll.evidence.stacking import Stacker, fit_stacker
from gmpll.evidence.temperature import set_likelihood
from gmpll.graph.local import LocalGraphs
from gmpll.matching import LocalAffinity, Matching, match, support_of, uniform_start
from gmpll.matching.feedback import FEEDBACK_ITERATIONS, feedback
from gmpll.matching.problem import MatchingProblem
from gmpll.rounding import confidences_within
from gmpll.side_information import Prior, estimate_weight_exponent

__all__ = [
    "N_GRAPH_VIEWS",
    "CandidateRows",
    "Disambiguated",
    "GraphDisambiguation",
    "Hyperparameters",
    "MatchingOptions",
    "Pipeline",
    "blended",
]

#: How often regression and forest are asked together after the regression alone.
FOREST_ITERATIONS = 1
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
        In which views rows are compared: all of them by the regression, the first two by the graph.
    ridge : float or None
        Weight of the regression's squared norm; None if it is still to be estimated.
    stacking : float
        Penalty of the stacked logistic regression; 0 if the scores are taken as they are.
    forest : float
        Share of the forest in the mean of regression and forest.
    feedback : bool
        Whether out-of-sample predictions are fed back to the training rows.
    tau : float or None
        What a candidate set says of its members beforehand, see :mod:`gmpll.evidence.set_model`;
        None if there is no model of the sets.
    """

    balance: float = 0.5
    views: tuple[str, ...] = ("cosine", "rank", "euclidean")
    ridge: float | None = None
    stacking: float = 0.0
    forest: float = 0.0
    feedback: bool = True
    tau: float | None = None


#: Of the views in which the regression compares rows, the graph is made of the first two.
N_GRAPH_VIEWS = 2
#: The regression by which rows of other sets speak is at least so stiff: one wrong label among few
#: sets must not be taken at its word.
SET_RIDGE = 0.1
#: Neighbours in the graph by which they speak.
GRAPH_NEIGHBORS = 40
#: Rows of which sets are modelled where there are too many for an exact regression.
SET_MODEL_ROWS = 2000
#: Weight of the regression's norm where nothing is known, by how much larger ones are tried on many
#: rows, and rows by which these are judged.
FIRST_RIDGE = 0.1
RIDGE_STEP = 10**0.5
RIDGE_ROWS = 1000
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

    def part(self, rows: NDArray[np.intp]) -> CandidateRows:
        """Return some of the rows, as NumPy arrays."""
        prior = self.prior
        if prior.candidates is not None:
            of_rows = engine_of(prior.candidates).rows_on_host(prior.candidates, rows)
            prior = replace(prior, candidates=of_rows)
        mask = np.ascontiguousarray(self.mask_on_host(rows))
        return CandidateRows(self.X_on_host(rows), mask, self.labels, prior, self.similarity)

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

    def part(self, rows: NDArray[np.intp]) -> Disambiguated:
        """Return the same of some rows alone."""


class GraphDisambiguation:
    """Matching on the local graph of some rows, for any balance.

    Parameters
    ----------
    rows : CandidateRows
        Rows and candidates.
    graph : graph
        Their graph; only its ``weights`` are needed.
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

    def part(self, rows: NDArray[np.intp]) -> GraphDisambiguation:
        """Return the same of some rows alone: the edges to others are cut."""
        cut = SimpleNamespace(weights=self.graph.weights[rows][:, rows])
        return GraphDisambiguation(self.rows.part(rows), cut, self.options)

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
        self._set_models: dict[tuple[float, float | None], tuple[SetModel, Array]] = {}
        self._regressions: dict[float, KernelRidge] = {}

    @cached_property
    def table(self) -> Any:
        """The rows as a forest sees them."""
        return self._make_table()

    def part(self, rows: NDArray[np.intp]) -> Pipeline:
        """Return the stages on some of the rows alone, with the scaling of all; on the host."""
        learner = None if self.learner is None else self.learner.part(rows)
        part = Pipeline(
            self.rows.part(rows),
            (),
            self.disambiguated.part(rows),
            self._seed,
            lambda: SimpleNamespace(rows=self.table.rows[rows]),
            learner,
        )
        if learner is None:
            whole = self.regression(Hyperparameters())
            part._regressions[whole.ridge] = whole.part(rows)
        return part

    def confidences(self, chosen: Hyperparameters) -> Array:
        """Disambiguate, then feed the learner's out-of-sample predictions back."""
        P = self.disambiguated.probabilities(chosen.balance)
        if not chosen.feedback:
            return P
        if self.learner is not None:
            return self._fed_back(self.learner.out_of_sample, P, self.learner.n_iterations, chosen)
        ridge = self.regression(chosen)

        def of_both(P: Array) -> Array:
            of_trees = oob_prediction(self.table.rows, to_host(P), self._seed)
            return blended(ridge.leave_one_out(P), from_host(of_trees, P), chosen.forest)

        P = self._fed_back(ridge.leave_one_out, P, FEEDBACK_ITERATIONS, chosen)
        if chosen.tau is not None:
            P = self._joined_with_sets(P, chosen)
        return self._fed_back(of_both, P, FOREST_ITERATIONS, chosen) if chosen.forest else P

    @cached_property
    def weights(self) -> sp.csr_array:
        """The weights of the graph, on the host."""
        weights = self.disambiguated.graph.weights  # type: ignore[attr-defined]
        if isinstance(weights, sp.csr_array):
            return weights
        return LocalGraphs(
            [to_host(view.rows) for view in self.views[:N_GRAPH_VIEWS]], GRAPH_NEIGHBORS
        ).weights

    def relations(self, chosen: Hyperparameters) -> Relations:
        """Return graph and regression between the rows, on the host."""
        inverse = to_host(self.regression(_stiff(chosen)).inverse)
        return Relations(self.weights, inverse, to_host(self.rows.mask))

    def set_model(self, chosen: Hyperparameters) -> tuple[SetModel, Array]:
        """Return the model of the candidate sets, and the posterior that it gives the rows."""
        assert chosen.tau is not None
        key = (chosen.tau, _stiff(chosen).ridge)
        if key not in self._set_models:
            if self.rows.n_samples > EXACT_ROWS:
                found = self._set_model_of_sample(chosen)
            else:
                model, posterior = self.relations(chosen).fit(chosen.tau)
                found = model, from_host(posterior, self.rows.mask)
            self._set_models[key] = found
        return self._set_models[key]

    def _set_model_of_sample(self, chosen: Hyperparameters) -> tuple[SetModel, Array]:
        """Model the sets of some rows, which then speak of all."""
        rng = np.random.RandomState(self._seed)
        some = np.sort(rng.permutation(self.rows.n_samples)[:SET_MODEL_ROWS])
        views = [engine_of(view.rows).rows_on_host(view.rows, some) for view in self.views]
        ridge, variances = _stiff(chosen).ridge or SET_RIDGE, self.views[-1].variances
        regression = KernelRidge(views, ridge=ridge, variances=variances, rng=rng)
        graph, kernel = LocalGraphs(views[:N_GRAPH_VIEWS], GRAPH_NEIGHBORS), regression.kernel
        mask = self.rows.mask_on_host(some)
        related = Relations(graph.weights, regression.inverse, mask)
        sample = SampleModel(related, chosen.tau or 0.0)

        def posterior(mask: NDArray[np.bool_], *rows: NDArray[Any]) -> NDArray[np.float64]:
            return sample.posterior(mask, graph.to_queries(rows[:N_GRAPH_VIEWS]), kernel(*rows))

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
        for masses, matched in self._matched_from_sets(chosen):
            total = total + feedback(
                self.regression(chosen).leave_one_out,
                self.rows.mask,
                matched,
                n_iterations=SET_ITERATIONS,
                priors=self.disambiguated.priors(chosen.balance),
                **masses,
            )
        return total / 3.0

    def _matched_from_sets(self, chosen: Hyperparameters) -> list[tuple[dict[str, Any], Array]]:
        """Match from the set model's posterior; what the masses are held by, and the result."""
        _, posterior = self.set_model(chosen)
        mask, priors = self.rows.mask, self.disambiguated.priors(chosen.balance)
        if priors is not None:
            posterior = confidences_within(posterior * priors, mask)
        capacities = {"balance": 0.0, "expected_mass": posterior.sum(axis=0)}
        return [
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
            for masses in ({"balance": chosen.balance}, capacities)
        ]

    def support_on_host(self, P: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the support that confidences get by the graph, all of them on the host."""
        graph = self.disambiguated.graph  # type: ignore[attr-defined]
        there = from_host(P.astype(to_host(self.rows.X[:1]).dtype), self.rows.X)
        return to_host(graph.weights @ there).astype(np.float64)

    def predictor(self, chosen: Hyperparameters, P: Array) -> Scorer:
        """Return a function that scores the labels of unseen rows."""
        if self.learner is not None:
            return self.learner.fit(P)
        fitted = self.regression(chosen).predictor(P)
        stacker = self.stacker(chosen, P) if chosen.stacking else None
        scores = KernelPredictor(self.views, fitted, self.rows.similarity, stacker)
        if not chosen.forest:
            return scores
        return BlendedPredictor(scores, self.forest(P), chosen.forest)

    def regression(self, chosen: Hyperparameters) -> KernelRidge:
        """Return the regression, ready for any confidences."""
        ridge = FIRST_RIDGE if chosen.ridge is None else chosen.ridge
        if not self._regressions:
            views = [view.rows for view in self.views]
            rng = np.random.RandomState(self._seed)
            variances = self.views[-1].variances
            self._regressions[ridge] = KernelRidge(views, ridge=ridge, variances=variances, rng=rng)
        if ridge not in self._regressions:
            other = next(iter(self._regressions.values()))
            self._regressions[ridge] = other.with_ridge(ridge)
        return self._regressions[ridge]

    def stiffened(self, chosen: Hyperparameters, n_rows: int) -> Hyperparameters:
        """Return a ridge that was found on so many rows, or a larger one that suits all of them.

        More rows show better what is noise: steps are taken to larger ridges as long as
        leave-one-out scores make the candidate sets likelier. The ridge per row must not grow.
        """
        assert chosen.ridge is not None
        P = self.disambiguated.probabilities(chosen.balance)
        rng = np.random.RandomState(self._seed)
        some = np.sort(rng.permutation(self.rows.n_samples)[:RIDGE_ROWS])
        mask = self.rows.mask_on_host(some)

        def likelihood(setting: Hyperparameters) -> float:
            scores = self.regression(setting).leave_one_out(P, some)
            scores = shared_scores(scores, self.rows.similarity)
            return set_likelihood(to_host(scores).astype(np.float64), mask)

        n_steps = int(np.log(max(self.rows.n_samples / n_rows, 1.0)) / np.log(RIDGE_STEP))
        best = likelihood(chosen) if n_steps else 0.0
        for _ in range(n_steps):
            further = replace(chosen, ridge=chosen.ridge * RIDGE_STEP)
            if (found := likelihood(further)) <= best:
                break
            chosen, best = further, found
        return chosen

    def stacker(self, chosen: Hyperparameters, P: Array, scores: Array | None = None) -> Stacker:
        """Stack a logistic regression on the out-of-sample scores of the training rows."""
        if scores is None:
            scores = self.out_of_sample_scores(chosen, P)
        return fit_stacker(scores, P, chosen.stacking)

    def out_of_sample(self, chosen: Hyperparameters, P: Array) -> Array:
        """Return what the learner says of every training row without having seen it."""
        if self.learner is not None:
            return self.learner.out_of_sample(P)
        return self.out_of_sample_scores(chosen, P)

    def out_of_sample_scores(self, chosen: Hyperparameters, P: Array) -> Array:
        """Return the regression's leave-one-out scores, shared among similar labels."""
        return shared_scores(self.regression(chosen).leave_one_out(P), self.rows.similarity)

    def forest(self, P: Array) -> ForestPredictor:
        """Grow trees on confidences."""
        forest = grow_forest(self.table.rows, to_host(P), self._seed)
        return ForestPredictor(self.table, forest, self.rows.similarity)

    def trees_on(
        self, rows: NDArray[np.float64], P: NDArray[np.float64], n_trees: int
    ) -> NDArray[np.float64]:
        """Grow a few trees on confidences, in one thread, and score other rows of the table."""
        forest = grow_forest(self.table.rows, P, self._seed, n_trees, n_jobs=1)
        return shared_scores(forest(rows), self.rows.similarity)

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


def _stiff(chosen: Hyperparameters) -> Hyperparameters:
    """Return the hyperparameters with a ridge by which rows of other sets may speak."""
    return replace(chosen, ridge=max(chosen.ridge or SET_RIDGE, SET_RIDGE))


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
    stacker: Stacker | None = None

    def __call__(self, X: Array) -> Array:
        scores = self.of_views([view.transform(X) for view in self.views])
        return scores if self.stacker is None else self.stacker(scores)

    def of_views(self, rows: Sequence[Array]) -> Array:
        """Score rows that lie in the views already, without stacking."""
        return shared_scores(self.regression(rows), self.similarity)

    def __getstate__(self) -> dict[str, Any]:
        """Leave landmarks out that are the rows of the views."""
        state, kernel = dict(self.__dict__), self.regression.kernel
        pairs = zip(kernel.landmarks, self.views, strict=True)
        if all(landmarks is view.rows for landmarks, view in pairs):
            state["regression"] = replace(self.regression, kernel=replace(kernel, landmarks=[]))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        regression = state["regression"]
        if not regression.kernel.landmarks:
            rows = [view.rows for view in state["views"]]
            kernel = replace(regression.kernel, landmarks=rows)
            state = state | {"regression": replace(regression, kernel=kernel)}
        self.__dict__.update(state)


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
