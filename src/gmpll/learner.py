"""Any learner on the labels that any partial label method found.

Methods differ in how they resolve candidates *and* in how they predict unseen rows. Here the two
are separate: a disambiguator resolves the training rows, a learner of your choice is trained on the
result, and, where that helps, its out-of-sample opinion of the training rows goes back to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context  # type: ignore[attr-defined]
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from gmpll._meta import TrainingRows, aligned_columns, label_probabilities, seeded
from gmpll._sklearn import HasMethods, StrOptions, fit_context
from gmpll.base import BasePartialLabelClassifier, DecisionMixin, ProbabilityMixin
from gmpll.candidates import CandidateSets
from gmpll.evidence.ridge import ConfidenceRidge, RidgePredictor
from gmpll.graph.views import spaces_of
from gmpll.matching.feedback import FEEDBACK_TURNS, feedback
from gmpll.methods._selection import (
    ALTERNATIVES,
    FEWEST_ROWS,
    SELECTION_FOLDS,
    SELECTION_ROWS,
)
from gmpll.metrics import chance_of_covering, lift_of_rows
from gmpll.rounding import best_labels, confidences_within
from gmpll.side_information import candidate_prior, weights_by_label

__all__ = ["ConfidenceClassifier", "Plan"]

#: Exponent of the class-mass correction when opinions go back.
BALANCE = 0.5
#: Opinions of a learner without closed form: how often they are taken, and in how many parts.
TURNS = 2
OPINION_FOLDS = 3
#: A candidate of less confidence is no training row of its own.
LEAST_CONFIDENCE = 1e-3

Rater = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Plan:
    """What can be chosen without true labels.

    Attributes
    ----------
    feedback : bool
        Whether the learner's opinion goes back to the training rows.
    width, ridge : float or None
        Kernel width and weight of the norm of the ridge regression, None for other learners.
    scaling : str or None
        In which features the ridge regression compares rows, "both" or "all" as in
        :class:`gmpll.GMPLL`, None for other learners.
    """

    feedback: bool
    width: float | None = None
    ridge: float | None = None
    scaling: str | None = None


class ConfidenceClassifier(ProbabilityMixin, DecisionMixin, BasePartialLabelClassifier):
    """Train any learner on the labels that any partial label method found.

    Parameters
    ----------
    disambiguator : partial label learner, default=None
        Resolves the training rows; needs ``label_confidences_`` after ``fit``, as every method
        and baseline of this library has. :class:`gmpll.GMPLL` by default.
    learner : "ridge", scikit-learn classifier or regressor, default="ridge"
        What is trained on the result and predicts unseen rows. ``"ridge"`` is the kernel ridge
        regression of :class:`gmpll.GMPLL`: closed form for few rows, Nystroem landmarks for many;
        its views of the features (``scaling`` "both" or "all"), width and penalty are chosen by
        the candidate lift on held-out rows; with fewer than 30 rows it sees all views. A pipeline
        is a classifier or regressor too, and the place for scaling: other learners get the
        features as they are.
    targets : {"auto", "soft", "hard"}, default="auto"
        What the learner is trained on. ``"soft"``: the confidences of all candidates, as the
        values of a regression with one output per label; a classifier gets a copy of the row for
        every candidate, weighted by its confidence. ``"hard"``: the label found; a classifier
        gets its confidence as ``sample_weight`` if it takes one. ``"auto"`` is soft for
        regressions and hard for classifiers, whose cost grows with the copies.
    feedback : bool or "auto", default="auto"
        Whether the learner's out-of-sample opinion of the training rows (leave-one-out in closed
        form for ridge, cross-validated for others) replaces their confidences before the final
        fit. ``"auto"`` compares both by the candidate lift on rows that were held out of the
        disambiguation as well; with fewer than 30 rows it is off.
    random_state : int, RandomState instance or None, default=None
        Breaks ties, draws folds, and seeds disambiguator and learner where they leave that open.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    labels_ : ndarray of shape (n_samples,)
        The label found for every training row, always one of its candidates.
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        Confidence of every candidate, after feedback if there was any.
    disambiguator_ : estimator
        The fitted disambiguator.
    learner_ : estimator or callable
        The fitted learner; for ``"ridge"`` a function that rates the labels.
    selected_ : dict
        The chosen ``feedback``, and ``width``, ``ridge`` and ``scaling`` of the regression.
    selection_ : list of (Plan, float)
        Every alternative with its held-out candidate lift, the best first.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names, if X has string column names.

    Notes
    -----
    ``predict_proba`` exists if the learner is a regression (its values, cut off at zero and
    normalised) or has ``predict_proba``; otherwise there is ``decision_function``. To make
    confidences match the share of right answers, wrap the whole in
    :class:`gmpll.CalibratedPartialClassifier`.

    Choosing takes three more fits of the disambiguator; ``feedback=False`` with a learner other
    than ``"ridge"`` needs none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from gmpll import ConfidenceClassifier, PLKNN
    >>> from gmpll.datasets import random_candidates
    >>> X, y = load_iris(return_X_y=True)
    >>> candidates = random_candidates(y, p=0.6, r=1, random_state=0)
    >>> learner = LogisticRegression(max_iter=1000)
    >>> model = ConfidenceClassifier(PLKNN(), learner, random_state=0)
    >>> model = model.fit(X[::2], candidates[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BasePartialLabelClassifier._parameter_constraints,
        "disambiguator": [None, HasMethods(["fit", "predict"])],
        "learner": [StrOptions({"ridge"}), HasMethods(["fit", "predict"])],
        "targets": [StrOptions({"auto", "soft", "hard"})],
        "feedback": [StrOptions({"auto"}), "boolean"],
    }

    def __init__(
        self,
        disambiguator: Any = None,
        learner: Any = "ridge",
        *,
        targets: str = "auto",
        feedback: bool | str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.disambiguator = disambiguator
        self.learner = learner
        self.targets = targets
        self.feedback = feedback
        self.random_state = random_state

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
            In any form that :func:`gmpll.as_candidates` reads.
        gold, impossible : default=None
            Labels that are known, and labels that cannot be, as in
            :meth:`gmpll.base.BasePartialLabelClassifier.fit`.
        candidate_weight : array-like, sparse matrix or DataFrame, default=None
            How much speaks for every candidate of a row, as in :meth:`gmpll.GMPLL.fit`; an error
            if the ``fit`` of the disambiguator does not take it. In the feedback the weights
            count as much as the disambiguator trusts them.

        Returns
        -------
        self
        """
        knowledge = {"gold": gold, "impossible": impossible, "candidate_weight": candidate_weight}
        return self._fit_sets(X, y, **knowledge)

    def _prior_of(self, candidate_weight: Any, sets: CandidateSets) -> NDArray[np.float64]:
        return weights_by_label(candidate_weight, sets)  # the disambiguator makes its own of them

    def _fit(
        self,
        X: NDArray[np.float64],
        mask: NDArray[np.bool_],
        rng: np.random.RandomState,
        prior: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        rows = CandidateRows(X, mask, self.classes_[self._seen], prior)
        with config_context(skip_parameter_validation=False):  # the parts are the user's own
            self._disambiguator = self._open_disambiguator(rng)
            self._learner = self._open_learner(rng)
            plan = self._choose(rows, rng)

            resolved = rows.resolved_by(self._disambiguator)
            self.disambiguator_ = resolved.model
            training = self._trainer(X, rng)(plan)
            confidences = self._refined(training, resolved, plan)
            self._rater = training.fit(confidences)
        self.learner_ = getattr(self._rater, "model", self._rater)
        return confidences

    def _scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._rater(X)

    def _open_disambiguator(self, rng: np.random.RandomState) -> Any:
        if self.disambiguator is not None:
            return seeded(self.disambiguator, rng)
        from gmpll.methods.gmpll import GMPLL

        return seeded(GMPLL(), rng)

    def _open_learner(self, rng: np.random.RandomState) -> Any:
        if isinstance(self.learner, str):
            return self.learner
        if not (is_regressor(self.learner) or is_classifier(self.learner)):
            raise ValueError(
                f"The learner {self.learner!r} is neither a classifier nor a regressor: "
                "pass a scikit-learn estimator of one of these kinds, or 'ridge'."
            )
        return seeded(self.learner, rng)

    def _plans(self) -> list[Plan]:
        """List what is compared, the simplest first: of equals the first wins."""
        options = [False, True] if self.feedback == "auto" else [bool(self.feedback)]
        plans = [Plan(option) for option in options]
        if isinstance(self.learner, str):
            plans = [
                replace(plan, width=width, ridge=ridge, scaling=scaling)
                for plan in plans
                for scaling, width, ridge in ALTERNATIVES
            ]
        return plans

    def _choose(self, rows: CandidateRows, rng: np.random.RandomState) -> Plan:
        """Compare the plans on rows held out of the disambiguation, by their candidate lift."""
        plans = self._plans()
        lifts: list[list[NDArray[np.float64]]] = [[] for _ in plans]
        if len(plans) > 1 and len(rows.X) >= FEWEST_ROWS:
            some = rng.permutation(len(rows.X))[:SELECTION_ROWS]
            for train, held_out in KFold(SELECTION_FOLDS).split(some):
                of_fold = self._lifts(rows, some[train], some[held_out], plans, rng)
                for values, lift in zip(lifts, of_fold, strict=True):
                    values.append(lift)
        else:  # as in GMPLL no view is left out: each of them is blind to something
            plans.sort(key=lambda plan: plan.scaling == "both")
        means = [float(np.concatenate(values).mean()) if values else np.nan for values in lifts]
        order = np.argsort(-np.array(means), kind="stable")
        self.selection_ = [(plans[index], means[index]) for index in order]
        self.selected_ = asdict(self.selection_[0][0])
        return self.selection_[0][0]

    def _lifts(
        self,
        rows: CandidateRows,
        train: NDArray[np.intp],
        held_out: NDArray[np.intp],
        plans: Sequence[Plan],
        rng: np.random.RandomState,
    ) -> list[NDArray[np.float64]]:
        """Return what every held-out row counts in the candidate lift, for each plan."""
        seen: NDArray[np.bool_] = np.asarray(rows.mask[train].any(axis=0))
        part = rows.part(train, seen)
        resolved = part.resolved_by(self._disambiguator)
        trainer = self._trainer(part.X, rng)
        unseen = UnseenRows(rows.X[held_out])
        lifts = []
        for plan in plans:
            training = trainer(plan)
            confidences = self._refined(training, resolved, plan)
            ratings = unseen.rated_by(training.fit(confidences))
            predicted = best_labels(ratings, rng=rng)
            chance = chance_of_covering(part.mask.mean(axis=0), confidences.mean(axis=0))
            hit = rows.mask[held_out][:, seen][np.arange(len(held_out)), predicted]
            lifts.append(lift_of_rows(hit, chance[predicted]))
        return lifts

    def _trainer(
        self, X: NDArray[np.float64], rng: np.random.RandomState
    ) -> Callable[[Plan], Training]:
        """Return what makes the training for a plan; plans share what they can."""
        if isinstance(self.learner, str):
            return RidgeTrainer(X, self.targets, rng)
        training = LearnerTraining(X, self._learner, self.targets, rng)
        return lambda plan: training

    def _refined(self, training: Training, resolved: Resolved, plan: Plan) -> NDArray[np.float64]:
        confidences = resolved.confidences
        if not plan.feedback or len(confidences) < OPINION_FOLDS:
            return confidences
        return feedback(
            training.opinion,
            resolved.mask,
            confidences,
            balance=BALANCE,
            turns=training.turns,
            unary=resolved.unary,
        )

    def _rates_probabilities(self) -> bool:
        return isinstance(self.learner, str) or (
            is_regressor(self.learner) or hasattr(self.learner, "predict_proba")
        )

    @available_if(_rates_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
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

    @available_if(lambda self: not self._rates_probabilities())
    def decision_function(self, X: Any) -> NDArray[np.float64]:
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


@dataclass(frozen=True)
class CandidateRows:
    """Rows with candidates among the labels and, where there are some, with weights of these."""

    X: NDArray[np.float64]
    mask: NDArray[np.bool_]
    labels: NDArray[Any]
    weights: NDArray[np.float64] | None

    def part(self, rows: NDArray[np.intp], seen: NDArray[np.bool_]) -> CandidateRows:
        """Return some of the rows and labels."""
        weights = None if self.weights is None else self.weights[rows][:, seen]
        mask = np.ascontiguousarray(self.mask[rows][:, seen])
        return CandidateRows(self.X[rows], mask, self.labels[seen], weights)

    def resolved_by(self, disambiguator: Any) -> Resolved:
        """Fit a copy of the disambiguator."""
        sets = CandidateSets(self.mask, self.labels)
        model = TrainingRows(self.X, sets, sets, self.weights).fit(clone(disambiguator))
        if not hasattr(model, "label_confidences_"):
            raise ValueError(
                f"The disambiguator {type(model).__name__} has no label_confidences_ after "
                "fit: use one of the methods of gmpll, for instance GMPLL()."
            )
        unary = None
        if self.weights is not None:
            unary = candidate_prior(self.weights, sets) ** _trust(model)
        return Resolved(model, self.mask, model.label_confidences_, unary)


@dataclass(frozen=True)
class Resolved:
    """What a disambiguator found; ``unary`` is what the weights say in the feedback."""

    model: Any
    mask: NDArray[np.bool_]
    confidences: NDArray[np.float64]
    unary: NDArray[np.float64] | None


class Training(Protocol):
    """A learner and the training rows, ready for any confidences."""

    @property
    def turns(self) -> int:
        """How often opinions are taken."""

    def fit(self, confidences: NDArray[np.float64]) -> Rater:
        """Train on confidences; return a function that rates the labels of unseen rows."""

    def opinion(self, confidences: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the learner says of every training row without having seen it."""


class RidgeTrainer:
    """Kernel ridge regressions on the same rows, in the views that GM-PLL uses."""

    def __init__(self, X: NDArray[np.float64], targets: str, rng: np.random.RandomState) -> None:
        self.X = X
        self.hard = targets == "hard"
        self._rng = rng
        self._seed = _seed(rng)
        self._views: dict[str, list[Any]] = {}
        self._kernels: dict[tuple[str, float], ConfidenceRidge] = {}
        self._regressions: dict[tuple[str, float, float], ConfidenceRidge] = {}

    def __call__(self, plan: Plan) -> RidgeTraining:
        scaling, width, ridge = plan.scaling or "all", plan.width or 1.0, plan.ridge or 0.1
        if scaling not in self._views:
            self._views[scaling] = spaces_of(self.X, scaling, np.random.RandomState(self._seed))
        views = self._views[scaling]
        if (scaling, width) not in self._kernels:
            self._kernels[scaling, width] = ConfidenceRidge(
                [view.rows for view in views],
                width=width,
                ridge=ridge,
                rng=np.random.RandomState(self._seed),
            )
        if (scaling, width, ridge) not in self._regressions:
            kernel = self._kernels[scaling, width]
            self._regressions[scaling, width, ridge] = kernel.with_ridge(ridge)
        regression = self._regressions[scaling, width, ridge]
        return RidgeTraining(views, regression, self._rng if self.hard else None)


@dataclass(frozen=True)
class RidgeTraining:
    """One kernel ridge regression; with ``ties``, on the labels found instead of confidences."""

    views: Sequence[Any]
    regression: ConfidenceRidge
    ties: np.random.RandomState | None
    turns: int = FEEDBACK_TURNS

    def fit(self, confidences: NDArray[np.float64]) -> RidgeRater:
        """Train on confidences; return a function that rates the labels of unseen rows."""
        return RidgeRater(self.views, self.regression.predictor(self._target(confidences)))

    def opinion(self, confidences: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the leave-one-out opinion, which has a closed form."""
        return self.regression.leave_one_out(self._target(confidences))

    def _target(self, confidences: NDArray[np.float64]) -> NDArray[np.float64]:
        return confidences if self.ties is None else _one_hot(confidences, self.ties)


class LearnerTraining:
    """A scikit-learn classifier or regressor."""

    turns = TURNS

    def __init__(
        self,
        X: NDArray[np.float64],
        learner: Any,
        targets: str,
        rng: np.random.RandomState,
    ) -> None:
        self.X = X
        self.learner = learner
        self.regression = is_regressor(learner)
        self.soft = targets == "soft" or (targets == "auto" and self.regression)
        self._rng = rng
        if self.regression and not get_tags(learner).target_tags.multi_output:
            self.learner = MultiOutputRegressor(learner)

    def fit(self, confidences: NDArray[np.float64]) -> LearnerRater:
        """Train on confidences; return a function that rates the labels of unseen rows."""
        return self._fit(self.X, confidences)

    def opinion(self, confidences: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return cross-validated ratings of the training rows."""
        ratings = np.zeros(confidences.shape)
        folds = KFold(OPINION_FOLDS, shuffle=True, random_state=self._rng)
        for train, held_out in folds.split(self.X):
            model = self._fit(self.X[train], confidences[train])
            ratings[held_out] = model.probabilities(self.X[held_out])
        return ratings

    def _fit(self, X: NDArray[np.float64], confidences: NDArray[np.float64]) -> LearnerRater:
        model = clone(self.learner)
        if self.regression:
            target = confidences if self.soft else _one_hot(confidences, self._rng)
            return LearnerRater(model.fit(X, target), confidences.shape[1])
        rows, labels = self._examples(confidences)
        if (labels == labels[0]).all():  # classifiers refuse to learn from a single class
            model = DummyClassifier(strategy="constant", constant=labels[0])
        argument = _weight_argument(model)
        weights = {argument: confidences[rows, labels]} if argument else {}
        return LearnerRater(model.fit(X[rows], labels, **weights), confidences.shape[1])

    def _examples(
        self, confidences: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return rows and their labels: one each, or one for every candidate."""
        if not self.soft:
            return np.arange(len(confidences)), best_labels(confidences, rng=self._rng)
        if _weight_argument(self.learner) is None:
            raise ValueError(
                f"{type(self.learner).__name__} takes no sample_weight, which targets='soft' "
                "needs: use targets='hard' or another learner."
            )
        rows, labels = np.nonzero(confidences > LEAST_CONFIDENCE)
        return rows, labels


@dataclass(frozen=True)
class RidgeRater:
    """Rate labels of unseen rows by the regression."""

    views: Sequence[Any]
    regression: RidgePredictor

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return _as_probabilities(self.regression([view.transform(X) for view in self.views]))


class UnseenRows:
    """Rows that many raters rate; regressions of the same kernel share it."""

    def __init__(self, X: NDArray[np.float64]) -> None:
        self.X = X
        self._kernels: dict[int, NDArray[np.float64]] = {}

    def rated_by(self, rater: Rater) -> NDArray[np.float64]:
        """Return what the rater says of the rows."""
        if not isinstance(rater, RidgeRater):
            return rater(self.X)
        kernel = rater.regression.kernel
        if id(kernel) not in self._kernels:
            self._kernels[id(kernel)] = kernel([view.transform(self.X) for view in rater.views])
        return _as_probabilities(self._kernels[id(kernel)] @ rater.regression.weights)


@dataclass(frozen=True)
class LearnerRater:
    """Rate labels of unseen rows by a fitted scikit-learn estimator."""

    model: Any
    n_labels: int

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        if is_regressor(self.model) or hasattr(self.model, "predict_proba"):
            return self.probabilities(X)
        scores = np.asarray(self.model.decision_function(X), dtype=np.float64)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        return aligned_columns(scores, self.model.classes_, np.arange(self.n_labels), -np.inf)

    def probabilities(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ratings between 0 and 1, by softmax if there are only decision values."""
        if is_regressor(self.model):
            values = np.asarray(self.model.predict(X), dtype=np.float64)
            return _as_probabilities(values.reshape(len(X), self.n_labels))
        return label_probabilities(self.model, X, np.arange(self.n_labels))


def _as_probabilities(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return confidences_within(np.maximum(values, 0.0), np.ones(values.shape, dtype=bool))


def _seed(rng: np.random.RandomState) -> int:
    return int(rng.randint(np.iinfo(np.int32).max))


def _one_hot(confidences: NDArray[np.float64], rng: np.random.RandomState) -> NDArray[np.float64]:
    return np.eye(confidences.shape[1])[best_labels(confidences, rng=rng)]


def _weight_argument(learner: Any) -> str | None:
    """Return the name under which ``fit`` takes weights of rows, None if it takes none."""
    if isinstance(learner, Pipeline):
        name, last = learner.steps[-1]
        return f"{name}__sample_weight" if has_fit_parameter(last, "sample_weight") else None
    return "sample_weight" if has_fit_parameter(learner, "sample_weight") else None


def _trust(model: Any) -> float:
    """Return how far a fitted method trusts weights of candidates; 1 if it does not say."""
    if hasattr(model, "trust_"):
        return float(model.trust_)
    inner = getattr(model, "estimator_", getattr(model, "disambiguator_", None))
    return 1.0 if inner is None else _trust(inner)
