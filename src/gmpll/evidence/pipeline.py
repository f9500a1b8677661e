"""Disambiguate, learn, feed back, predict: the stages of the default on some rows.

:class:`gmpll.PartialLabelClassifier` runs them once on all rows; choosing hyperparameters without
true labels runs them many times on parts of the rows (:mod:`gmpll.evidence.selection`). Stages
that do not depend on what changes are shared.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll._typing import Floats, Mask, Places
from gmpll.arrays import (
    Array,
    array_namespace,
    beside,
    from_host,
    is_dask_array,
    is_torch_array,
    submatrix,
    to_host,
)
from gmpll.engines import engine_of
from gmpll.evidence.forest import FEW_TREES, N_TREES, Forest, GrownForest
from gmpll.evidence.relations import Relations, SampleModel
from gmpll.evidence.ridge import (
    EXACT_ROWS,
    KernelRidge,
    RidgePredictor,
    number_of_landmarks,
)
from gmpll.evidence.scikit import ScikitLearner
from gmpll.evidence.set_model import SetModel
from gmpll.evidence.stacking import Stacker, fit_stacker
from gmpll.evidence.temperature import set_likelihood
from gmpll.graph.local import LocalGraphs
from gmpll.graph.views import TreeView
from gmpll.matching import LocalAffinity, Matching, match, support_of, uniform_start
from gmpll.matching.feedback import FEEDBACK_ITERATIONS, feedback
from gmpll.matching.problem import MatchingProblem
from gmpll.rounding import confidences_within
from gmpll.side_information import Prior, estimate_weight_exponent

__all__ = [
    "N_GRAPH_VIEWS",
    "SET_RIDGE",
    "CandidateRows",
    "Disambiguated",
    "GraphMatching",
    "Hyperparameters",
    "MatchingOptions",
    "Pipeline",
    "blended",
    "learning_rows",
    "set_regression",
    "shared_scores",
    "some_rows",
    "tree_view",
]

#: Neighbours of a row in the graph.
GRAPH_NEIGHBORS = 40
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
        None if another disambiguator takes the place of that model, or labels are similar.
    """

    views: tuple[str, ...] = ("cosine", "rank", "euclidean")
    ridge: float | None = None
    stacking: float = 0.0
    forest: float = 0.0
    feedback: bool = True
    tau: float | None = None


#: Of the views in which the regression compares rows, the graph is made of the first two.
N_GRAPH_VIEWS = 2
#: Weight of the regression's norm in the model of the sets: one wrong label among few sets must not
#: be taken at its word. Elsewhere it is the first to be tried.
SET_RIDGE = 0.1
#: Exponent of the class masses that similar labels are balanced by.
SIMILAR_BALANCE = 0.5
#: Rows that regression, stacking and forest are trained on at most. With so many for each of its
#: landmarks a regression has nearly settled, and those left out are predicted by it in one pass.
LEARNING_ROWS = 50_000
#: By how much larger ridges are tried on many rows, and rows by which these are judged.
RIDGE_STEP = 10**0.5
RIDGE_ROWS = 1000


@dataclass(frozen=True)
class MatchingOptions:
    """Graph and limits of the matching: parameters of :class:`gmpll.GMPLL` with a local graph."""

    n_graph_neighbors: int = GRAPH_NEIGHBORS
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
    similarity: Floats | None = None

    def part(self, rows: Places) -> CandidateRows:
        """Return some of the rows, as NumPy arrays."""
        prior = self.prior
        if prior.candidates is not None:
            of_rows = engine_of(prior.candidates).rows_on_host(prior.candidates, rows)
            prior = replace(prior, candidates=of_rows)
        mask = np.ascontiguousarray(self.mask_on_host(rows))
        return CandidateRows(self.X_on_host(rows), mask, self.labels, prior, self.similarity)

    def sample(self, rows: Places) -> CandidateRows:
        """Return some of the rows where they are, those of Dask arrays as NumPy arrays.

        Of tensors, ``rows`` of several problems, (n_problems, n_rows), give arrays for all of them.
        """
        prior = self.prior
        if prior.candidates is not None:
            prior = replace(prior, candidates=some_rows(prior.candidates, rows))
        X, mask = some_rows(self.X, rows), some_rows(self.mask, rows)
        return replace(self, X=X, mask=mask, prior=prior)

    def X_on_host(self, rows: Places) -> Floats:
        """Return the features of some rows as a NumPy array."""
        return engine_of(self.X).rows_on_host(self.X, rows).astype(np.float64, copy=False)

    def mask_on_host(self, rows: Places) -> Mask:
        """Return the candidates of some rows as a NumPy array."""
        return engine_of(self.mask).rows_on_host(self.mask, rows)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.mask.shape[-2]

    @property
    def expected_mass(self) -> Floats | None:
        """Known number of rows of every label."""
        return self.prior.expected_mass(self.n_samples)


def some_rows(array: Array, rows: Places) -> Array:
    """Return some rows of an array on its device; those of a Dask array as a NumPy array."""
    (found,) = engine_of(array).small(array[beside(rows, array), :])
    return found


def tree_view(X: Array) -> TreeView:
    """Return the view in which trees see rows."""
    return TreeView(to_host(X).astype(np.float64, copy=False))


def learning_rows(n_samples: int, seed: int) -> Places | None:
    """Return the rows that a learner is trained on where there are many, None for all."""
    if n_samples <= LEARNING_ROWS:
        return None
    return np.sort(np.random.RandomState(seed).permutation(n_samples)[:LEARNING_ROWS])


def set_regression(views: Sequence[Any], seed: int) -> KernelRidge:
    """Return the regression, with the ridge of the set model, on the rows of views.

    Many rows are represented by their :func:`learning_rows`.
    """
    rows = [view.rows for view in views]
    some = learning_rows(rows[0].shape[0], seed)
    if some is not None:
        rows = [some_rows(each, some) for each in rows]
    rng = np.random.RandomState(seed)
    return KernelRidge(rows, ridge=SET_RIDGE, variances=views[-1].variances, rng=rng)


class Disambiguated(Protocol):
    """Confidences of the candidates before any learner has its say."""

    def probabilities(self, tau: float | None) -> Array:
        """Return the confidences."""

    def priors(self, tau: float | None) -> Array | None:
        """Return what multiplies the support of every candidate; None if that is nothing."""

    def masses(self, tau: float | None) -> dict[str, Any]:
        """Return how the masses of the labels are corrected, see :func:`gmpll.matching.match`."""

    def part(self, rows: Places, regression: KernelRidge | None) -> Disambiguated:
        """Return the same of some rows alone, with the regression on these."""


class GraphMatching:
    """Match some rows to labels, beginning with the model of their candidate sets.

    The model (:mod:`gmpll.evidence.set_model`) judges every row by rows with other sets. Its
    posterior are the unary affinities of a matching on the local graph, in which all rows support
    each other; the sums of the posterior are the capacities of the labels. Similar labels (ages,
    grades) have too few rows each for a class prior: there is no such model of theirs, ``tau`` is
    None, and the matching begins with equal confidences and balances the masses.

    Parameters
    ----------
    rows : CandidateRows
        Rows and candidates.
    views : sequence of views
        Each has ``rows``; none are needed for parts of other rows.
    graph : graph
        Their graph; only its ``weights`` are needed.
    regression : KernelRidge
        With the ridge of the set model.
    options : MatchingOptions
        Limits of the matching.
    seed : int
        Draws the rows that are modelled where there are many.
    start : ndarray of shape (n_samples, n_classes), default=None
        Where the matching starts; where an earlier one ended makes it short.
    """

    def __init__(
        self,
        rows: CandidateRows,
        views: Sequence[Any],
        graph: Any,
        regression: KernelRidge,
        options: MatchingOptions,
        seed: int = 0,
        start: Array | None = None,
    ) -> None:
        self.rows = rows
        self.graph = graph
        self.options = options
        self.affinity = LocalAffinity(graph.weights, rows.mask, rows.similarity)
        self._views = views
        self._regression = regression
        self._seed = seed
        self._start = start
        self._set_models: dict[float, tuple[SetModel, Array]] = {}
        self._matchings: dict[float | None, Matching] = {}
        self._exponents: dict[float | None, float] = {}

    def part(self, rows: Places, regression: KernelRidge | None) -> GraphMatching:
        """Return the same of some rows alone, on the host: the edges to others are cut."""
        assert regression is not None
        cut = SimpleNamespace(weights=self.weights[rows][:, rows])
        return GraphMatching(self.rows.part(rows), (), cut, regression, self.options)

    def parts(self, rows: Places, regression: KernelRidge) -> GraphMatching:
        """Return the same of some rows of tensors, or of several parts of them at once."""
        cut = SimpleNamespace(weights=submatrix(self.dense_weights, rows, rows))
        return GraphMatching(self.rows.sample(rows), (), cut, regression, self.options)

    @cached_property
    def weights(self) -> sp.csr_array:
        """The weights of the graph, on the host."""
        weights = self.graph.weights
        if isinstance(weights, sp.csr_array):
            return weights
        there = [to_host(view.rows) for view in self._views[:N_GRAPH_VIEWS]]
        return self.options.graph(there, self._seed).weights

    @property
    def dense_weights(self) -> Array:
        """The weights of the graph of tensors, as a matrix in double precision."""
        weights = self.graph.weights
        return (weights.to_dense() if weights.is_sparse_csr else weights).double()

    @cached_property
    def relations(self) -> Relations:
        """Graph and regression between the rows, those of Dask arrays on the host."""
        rows, inverse = self.rows, self._regression.inverse
        if is_torch_array(rows.mask):
            return Relations(self.dense_weights, inverse, rows.mask, rows.prior.classes)
        return Relations(self.weights, to_host(inverse), to_host(rows.mask), rows.prior.classes)

    def set_model(self, tau: float) -> tuple[SetModel, Array]:
        """Return the model of the candidate sets, and the posterior that it gives the rows."""
        if tau not in self._set_models:
            if self.rows.n_samples > EXACT_ROWS:
                found = self._set_model_of_sample(tau)
            else:
                model, posterior = self.relations.fit(tau)
                if is_dask_array(self.rows.mask):
                    posterior = from_host(posterior, self.rows.mask)
                found = model, posterior
            self._set_models[tau] = found
        return self._set_models[tau]

    def _set_model_of_sample(self, tau: float) -> tuple[SetModel, Array]:
        """Model the sets of some rows, which then speak of all; of Dask arrays on the host."""
        rng = np.random.RandomState(self._seed)
        n_modelled = number_of_landmarks(self.rows.n_samples)
        some = np.sort(rng.permutation(self.rows.n_samples)[:n_modelled])
        rows = self.rows.sample(some)
        views = [some_rows(view.rows, some) for view in self._views]
        variances = self._views[-1].variances
        regression = KernelRidge(views, ridge=SET_RIDGE, variances=variances, rng=rng)
        graph = LocalGraphs(views[:N_GRAPH_VIEWS], GRAPH_NEIGHBORS)
        kernel = replace(regression.kernel, is_double=False)
        of_sample = GraphMatching(rows, (), graph, regression, self.options)
        sample = SampleModel(of_sample.relations, tau)

        def posterior(mask: Mask, *rows: NDArray[Any]) -> Floats:
            return sample.posterior(mask, graph.to_queries(rows[:N_GRAPH_VIEWS]), kernel(*rows))

        engine = engine_of(self.rows.mask)
        everything = (self.rows.mask, *(view.rows for view in self._views))
        (found,) = engine.keep(engine.map_rows(posterior, *everything))
        return sample.model, found

    def posterior(self, tau: float | None) -> Array:
        """Return what the set model and the weights of the candidates say before the matching."""
        weights = self.priors(tau)
        if tau is None:
            said = uniform_start(self.rows.mask, self.rows.X.dtype)
        else:
            _, said = self.set_model(tau)
        return said if weights is None else confidences_within(said * weights, self.rows.mask)

    def masses(self, tau: float | None) -> dict[str, Any]:
        """Return the capacities of the labels, or the balance where there is no prior of them."""
        known = self.rows.expected_mass
        if known is not None:
            return {"expected_mass": known}
        if tau is None:
            return {"balance": SIMILAR_BALANCE}
        posterior = self.posterior(tau)
        mass = array_namespace(posterior).sum(posterior, axis=-2)
        (mass,) = engine_of(self.rows.mask).small(mass)
        return {"expected_mass": mass}

    def matching(self, tau: float | None) -> Matching:
        """Match from what is said before, until nothing moves."""
        if tau not in self._matchings:
            self._matchings[tau] = self._match(self.posterior(tau), self._start, self.masses(tau))
        return self._matchings[tau]

    def _match(self, posterior: Array, start: Array | None, masses: dict[str, Any]) -> Matching:
        return match(
            self.affinity,
            self.rows.mask,
            max_iter=self.options.max_iter,
            tol=self.options.tol,
            start=posterior if start is None else start,
            priors=posterior,
            keep=engine_of(self.rows.mask).keeper(),
            **masses,
        )

    def probabilities(self, tau: float | None) -> Array:
        """Return the matching probabilities."""
        return self.matching(tau).probabilities

    def priors(self, tau: float | None) -> Array | None:
        """Return the weights of the candidates to the power that they deserve."""
        exponent = self.weight_exponent(tau)
        if exponent is None or self.rows.prior.candidates is None:
            return None
        weights = self.rows.prior.candidates**exponent
        return array_namespace(weights).where(self.rows.mask, weights, 0.0)

    def weight_exponent(self, tau: float | None) -> float | None:
        """Return the exponent of the candidates' weights, None if there are none.

        Where it is to be estimated, the weights are compared with what is found without them.
        """
        prior = self.rows.prior
        if prior.candidates is None or prior.weight_exponent is not None:
            return None if prior.candidates is None else prior.weight_exponent
        if tau not in self._exponents:
            if tau is None:
                equal = uniform_start(self.rows.mask, self.rows.X.dtype)
                unaided = self._match(equal, None, {"balance": SIMILAR_BALANCE}).probabilities
            else:
                _, unaided = self.set_model(tau)
            some: Any = slice(None)
            if self.rows.n_samples > WEIGHT_ROWS:
                some = np.linspace(0, self.rows.n_samples - 1, WEIGHT_ROWS).astype(np.intp)
            self._exponents[tau] = estimate_weight_exponent(
                *(
                    engine_of(array).rows_on_host(array, some)
                    for array in (prior.candidates, unaided, self.rows.mask)
                )
            )
        return self._exponents[tau]

    def problem(self, tau: float | None) -> MatchingProblem:
        """Return all that the matching was made from."""
        return MatchingProblem(
            self.graph.weights,
            self.rows.mask,
            similarity=self.rows.similarity,
            priors=self.posterior(tau),
            **self.masses(tau),
        )

    def support(self, P: Array) -> Array:
        """Return the share of the support that every candidate gets."""
        return confidences_within(support_of(self.affinity, P), self.rows.mask)


@dataclass(frozen=True)
class SampledConfidences:
    """What a first stage found, of some of its rows."""

    whole: Disambiguated
    rows: Places
    n_samples: int

    def probabilities(self, tau: float | None) -> Array:
        """Return the confidences of these rows."""
        return some_rows(self.whole.probabilities(tau), self.rows)

    def priors(self, tau: float | None) -> Array | None:
        """Return what multiplies the support of every candidate; None if that is nothing."""
        priors = self.whole.priors(tau)
        return None if priors is None else some_rows(priors, self.rows)

    def masses(self, tau: float | None) -> dict[str, Any]:
        """Return their part of the masses of the labels."""
        masses = dict(self.whole.masses(tau))
        if "expected_mass" in masses:
            masses["expected_mass"] = masses["expected_mass"] * (len(self.rows) / self.n_samples)
        return masses

    def part(self, rows: Places, regression: KernelRidge | None) -> Disambiguated:
        """Return the same of some rows alone."""
        return self.whole.part(self.rows[rows], regression)


class Sample(NamedTuple):
    """Rows that a learner is trained on in place of all, and the stages on them alone."""

    rows: Places
    stages: Pipeline


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
    regression : KernelRidge or None
        That of :func:`set_regression`; None if neither set model nor learner is a regression.
    seed : int
        Draws trees.
    table : callable
        Makes the view in which a forest sees the rows.
    learner : ScikitLearner, default=None
        Takes the place of regression, stacking and forest.

    Attributes
    ----------
    sample : Sample or None
        Many rows: those that regression, stacking and forest are trained on.
    """

    def __init__(
        self,
        rows: CandidateRows,
        views: Sequence[Any],
        disambiguated: Disambiguated,
        regression: KernelRidge | None,
        seed: int,
        table: Callable[[], Any],
        learner: ScikitLearner | None = None,
    ) -> None:
        self.rows = rows
        self.views = views
        self.sample = None
        self.disambiguated = disambiguated
        self.learner = learner
        self._seed = seed
        self._make_table = table
        self._regression = regression
        self._regressions = {} if regression is None else {regression.ridge: regression}
        self._forests: dict[float | None, GrownForest] = {}
        some = None if learner is not None else learning_rows(rows.n_samples, seed)
        if some is not None:
            found = SampledConfidences(disambiguated, some, rows.n_samples)
            of_some = (rows.sample(some), views, found, regression, seed)
            self.sample = Sample(some, Pipeline(*of_some, lambda: self._table_of(some)))

    @cached_property
    def table(self) -> Any:
        """The rows as a forest sees them."""
        return self._make_table()

    def _table_of(self, some: Places) -> Any:
        """Return the view of trees with some of its rows."""
        if not isinstance(self.rows.X, np.ndarray):  # all of them may be more than fits
            return tree_view(some_rows(self.rows.X, some))
        table = copy.copy(self.table)
        table.rows = table.rows[some]
        return table

    def part(self, rows: Places) -> Pipeline:
        """Return the stages on some of the rows alone, with the scaling of all; on the host."""
        regression = None if self._regression is None else self._regression.part(rows)
        return Pipeline(
            self.rows.part(rows),
            (),
            self.disambiguated.part(rows, regression),
            regression,
            self._seed,
            lambda: SimpleNamespace(rows=self.table.rows[rows]),
            None if self.learner is None else self.learner.part(rows),
        )

    def parts(self, rows: Places) -> Pipeline:
        """Return the stages on some rows of tensors, or on several parts of them at once.

        Only those of the matching and the regression, see :meth:`GraphMatching.parts`.
        """
        assert self._regression is not None
        assert isinstance(self.disambiguated, GraphMatching)
        regression = self._regression.parts(rows)
        return Pipeline(
            self.rows.sample(rows),
            (),
            self.disambiguated.parts(rows, regression),
            regression,
            self._seed,
            lambda: SimpleNamespace(rows=self.table.rows[rows]),
        )

    def confidences(self, chosen: Hyperparameters) -> Array:
        """Disambiguate, then feed the learner's out-of-sample predictions back."""
        P = self.disambiguated.probabilities(chosen.tau)
        if not chosen.feedback:
            return P
        if self.learner is not None:
            return self._fed_back(self.learner.out_of_sample, P, self.learner.n_iterations, chosen)
        if self.sample is not None:
            by_sample = self._by_sample(chosen, self.sample.stages.confidences(chosen))
            return self._fed_back(lambda _: by_sample, P, 1, chosen)
        ridge = self.regression(chosen)

        def of_both(P: Array) -> Array:
            of_trees = from_host(self.out_of_bag(chosen, P), P)
            return blended(ridge.leave_one_out(P), of_trees, chosen.forest)

        P = self._fed_back(ridge.leave_one_out, P, FEEDBACK_ITERATIONS, chosen)
        return self._fed_back(of_both, P, FOREST_ITERATIONS, chosen) if chosen.forest else P

    def _by_sample(self, chosen: Hyperparameters, P: Array) -> Array:
        """Return what regression and trees that are trained on P of the sample say of all rows."""
        assert self.sample is not None
        scores = self.scores_by_sample(chosen, P)
        if not chosen.forest:
            return scores
        stages = self.sample.stages
        own = stages.out_of_bag(chosen, P)
        forest = stages.forest(P)
        if isinstance(self.rows.X, np.ndarray):
            of_trees = forest.forest(self.table.rows)
        else:
            of_trees = forest(self.rows.X)
        of_trees = engine_of(of_trees).with_rows(of_trees, self.sample.rows, from_host(own, P))
        return blended(scores, of_trees, chosen.forest)

    def scores_by_sample(self, chosen: Hyperparameters, P: Array) -> Array:
        """Return the scores of all rows by a regression trained on P of the sample.

        Rows of the sample are left out one by one; similar labels do not share yet.
        """
        assert self.sample is not None
        ridge = self.sample.stages.regression(chosen)
        scores = ridge.predictor(P)([view.rows for view in self.views])
        return engine_of(scores).with_rows(scores, self.sample.rows, ridge.leave_one_out(P))

    def support(self, P: Array) -> Array:
        """Return the support that confidences get by the graph; of Dask arrays on the host."""
        assert isinstance(self.disambiguated, GraphMatching)
        weights = self.disambiguated.graph.weights
        xp, dtype = array_namespace(P), self.rows.X.dtype
        (support,) = engine_of(P).small(weights @ xp.astype(P, dtype))
        return array_namespace(support).astype(support, xp.float64)

    def predictor(self, chosen: Hyperparameters, P: Array) -> Scorer:
        """Return a function that scores the labels of unseen rows."""
        if self.learner is not None:
            return self.learner.fit(P)
        if self.sample is not None:
            return self.sample.stages.predictor(chosen, some_rows(P, self.sample.rows))
        fitted = self.regression(chosen).predictor(P)
        stacker = self.stacker(chosen, P) if chosen.stacking else None
        scores = KernelPredictor(self.views, fitted, self.rows.similarity, stacker)
        if not chosen.forest:
            return scores
        return BlendedPredictor(scores, self.forest(P), chosen.forest)

    def regression(self, chosen: Hyperparameters) -> KernelRidge:
        """Return the regression, ready for any confidences."""
        ridge = SET_RIDGE if chosen.ridge is None else chosen.ridge
        if ridge not in self._regressions:
            assert self._regression is not None
            self._regressions[ridge] = self._regression.with_ridge(ridge)
        return self._regressions[ridge]

    def stiffened(self, chosen: Hyperparameters, n_rows: int) -> Hyperparameters:
        """Return a ridge that was found on so many rows, or a larger one that suits all of them.

        More rows show better what is noise: steps are taken to larger ridges as long as
        leave-one-out scores make the candidate sets likelier. The ridge per row must not grow.
        """
        assert chosen.ridge is not None
        if self.sample is not None:
            return self.sample.stages.stiffened(chosen, n_rows)
        n_steps = int(np.log(max(self.rows.n_samples / n_rows, 1.0)) / np.log(RIDGE_STEP))
        if not n_steps:
            return chosen
        P = self.disambiguated.probabilities(chosen.tau)
        rng = np.random.RandomState(self._seed)
        some = np.sort(rng.permutation(self.rows.n_samples)[:RIDGE_ROWS])
        mask = some_rows(self.rows.mask, some)

        def likelihood(setting: Hyperparameters) -> float:
            scores = self.regression(setting).leave_one_out(P, some)
            scores = shared_scores(scores, self.rows.similarity)
            (scores,) = engine_of(scores).small(scores)
            xp = array_namespace(scores)
            return set_likelihood(xp.astype(scores, xp.float64), mask)

        best = likelihood(chosen)
        for _ in range(n_steps):
            further = replace(chosen, ridge=chosen.ridge * RIDGE_STEP)
            if (found := likelihood(further)) <= best:
                break
            chosen, best = further, found
        return chosen

    def stacker(self, chosen: Hyperparameters, P: Array) -> Stacker:
        """Stack a logistic regression on the out-of-sample scores of the training rows."""
        return fit_stacker(self.out_of_sample_scores(chosen, P), P, chosen.stacking)

    def out_of_sample(self, chosen: Hyperparameters, P: Array) -> Array:
        """Return what the learner says of every training row without having seen it."""
        if self.learner is not None:
            return self.learner.out_of_sample(P)
        return self.out_of_sample_scores(chosen, P)

    def out_of_sample_scores(self, chosen: Hyperparameters, P: Array) -> Array:
        """Return the regression's leave-one-out scores, shared among similar labels."""
        if self.sample is None:
            scores = self.regression(chosen).leave_one_out(P)
        else:
            scores = self.scores_by_sample(chosen, some_rows(P, self.sample.rows))
        return shared_scores(scores, self.rows.similarity)

    def forest(self, P: Array) -> ForestPredictor:
        """Grow trees on confidences."""
        grown = GrownForest.of(self.table.rows, to_host(P), self._seed)
        return ForestPredictor(self.table, grown.forest, self.rows.similarity)

    def out_of_bag(self, chosen: Hyperparameters, P: Array, n_trees: int = N_TREES) -> Floats:
        """Return what the trees that did not draw a row say of it, on the host.

        Similar labels do not share yet.
        """
        return self._grown_forest(chosen.tau, n_trees).out_of_bag(to_host(P))

    def _grown_forest(self, tau: float | None, n_trees: int) -> GrownForest:
        """Grow trees on the confidences before the feedback, or some more of them."""
        first = self._forests.get(tau)
        if first is None or len(first.forest.roots) < n_trees:
            P = to_host(self.disambiguated.probabilities(tau))
            of_rows = (self.table.rows, P, self._seed, n_trees)
            self._forests[tau] = GrownForest.of(*of_rows, first=first)
        return self._forests[tau]

    def trees_on(self, train: Places, P: Floats, others: Places) -> Floats:
        """Grow a few trees on confidences of some rows, in one thread, and score other rows."""
        rows = self.table.rows
        grown = GrownForest.of(rows[train], P, self._seed, FEW_TREES, n_jobs=1)
        return shared_scores(grown.forest(rows[others]), self.rows.similarity)

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
            n_iterations=n_iterations,
            priors=self.disambiguated.priors(chosen.tau),
            **self.disambiguated.masses(chosen.tau),
        )


def shared_scores(scores: Array, similarity: Floats | None) -> Array:
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
