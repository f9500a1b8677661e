"""Rows that come after the fit: resolved against the fitted ones, or learned from as well."""

import copy
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gmpll._columns import check_same_labels, sets_of_known_labels, unique_labels
from gmpll._progress import begin, plan, printing
from gmpll._sklearn import fit_context
from gmpll._typing import Floats, Mask
from gmpll.candidates import CandidateSets
from gmpll.evidence.pipeline import (
    N_GRAPH_VIEWS,
    CandidateRows,
    GraphMatching,
    Pipeline,
    set_regression,
)
from gmpll.graph.new_rows import edges_of_new_rows
from gmpll.matching import match
from gmpll.matching.clamped import ClampedAffinity
from gmpll.methods._fit_state import Resolution, grown_views, warm_probabilities
from gmpll.methods.gmpll import is_local_matching
from gmpll.rounding import best_labels, confidences_within
from gmpll.side_information import (
    Prior,
    apply_constraints,
    candidate_prior,
    class_shares,
    votes_as_weights,
)

#: Added to the scores of new rows: they may be wrong where they give a label nothing.
SCORE_FLOOR = 1e-3


def _grows(model: Any) -> bool:
    if model.disambiguator is not None and not is_local_matching(model.disambiguator):
        raise AttributeError(
            "resolve and partial_fit need the matching on local graphs: leave disambiguator out, "
            "or call fit with all rows."
        )
    if not isinstance(model.learner, str):
        raise AttributeError("resolve and partial_fit need learner='auto': call fit with all rows.")
    return True


class IncrementalMixin:
    """For :class:`gmpll.PartialLabelClassifier` with its own matching and learner."""

    @available_if(_grows)
    def resolve(self: Any, X: Any, y: Any, *, candidate_weight: Any = None) -> Resolution:
        """Find the labels of new rows with candidates, without learning from them.

        The new rows are matched against the training rows, whose confidences stay as they are,
        and among themselves: rows that come together support each other. The scores of the
        predictor multiply the support. The model does not change.

        Only available with the default disambiguator and learner.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : candidate sets
            In any form that ``fit`` takes; a matrix has a column per label of ``classes_``. None
            in a sequence of sets stands for all labels that some training row contains. A label
            of ``classes_`` that no training row contains is supported by new rows alone; any
            other label is refused.
        candidate_weight : array-like, sparse matrix or DataFrame, default=None
            Of shape (n_samples, n_classes), as in ``fit``. They count as much as those of the
            training rows; if these had none, as much as the hyperparameter ``weight_exponent``
            says, which is 1 unless it is given.

        Returns
        -------
        Resolution
            With ``labels`` of shape (n_samples,), always candidates, and ``confidences`` of shape
            (n_samples, n_classes).

        Examples
        --------
        >>> from gmpll import PartialLabelClassifier
        >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
        >>> y = [{"a", "b"}, {"a"}, {"a", "c"}, {"b", "c"}, {"b"}, {"a", "b"}]
        >>> model = PartialLabelClassifier(random_state=0).fit(X, y)
        >>> model.resolve([[0.15], [4.9]], [{"a", "b"}, {"a", "b"}]).labels
        array(['a', 'b'], dtype='<U1')
        """
        self._check_grows()
        features = self._check_X(X, reset=False)
        y, candidate_weight = votes_as_weights(self, y, candidate_weight, self.classes_)
        sets = sets_of_known_labels(y, self.classes_, n_samples=len(features), possible=self._seen)
        affinity: Any = ClampedAffinity(
            edges_of_new_rows(
                self._graph, [view.transform(features) for view in self._views[:N_GRAPH_VIEWS]]
            ),
            self.label_confidences_,
            self.matching_.similarity,
        )
        priors = self._priors_of_new(features, sets, candidate_weight)
        matching = match(
            affinity,
            sets.mask,
            max_iter=self._options.max_iter,
            tol=self._options.tol,
            start=confidences_within(priors, sets.mask),
            priors=priors,
            expected_mass=self._expected_mass(self.n_samples_seen_ + len(features)),
        )
        scores = np.where(sets.mask, matching.probabilities, -np.inf)
        # Seeded by the order drawn in fit: the same rows get the same labels every time.
        found = best_labels(scores, rng=np.random.RandomState(self._priority))
        return Resolution(self.classes_[found], matching.probabilities)

    @available_if(_grows)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self: Any,
        X: Any,
        y: Any,
        classes: Any = None,
        *,
        gold: Any = None,
        impossible: Any = None,
        candidate_weight: Any = None,
    ) -> Any:
        """Learn from more rows with candidate labels; those learned from before are kept.

        The first call is ``fit``. Later calls match all rows, old and new, and train regression
        and forest on what is found. The result is that of a ``fit`` with all rows in which
        everything that the first call chose is given, but for the trees, which are drawn anew. The
        matching starts from what the model of all candidate sets says, so that early mistakes are
        not carried on, unless ``warm_start=True``.

        What the first call chose stays as it is until the next ``fit``: the hyperparameters in
        ``selected_``, whether labels are ordered, and the scaling of the
        features by the statistics of the first rows. Call ``fit`` with all rows when the first ones
        are not typical of the later ones.

        Only available with the default disambiguator and learner.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features of the new rows.
        y : candidate sets
            In any form that ``fit`` takes; once ``classes_`` is settled, a matrix has a column for
            each of them.
        classes : array-like of shape (n_classes,), default=None
            All labels, also those that come later; only needed in the first call, and there only
            if its y does not show them all. ``classes_`` has them in this order.
        gold, impossible, candidate_weight
            Of the new rows, as in ``fit``.

        Returns
        -------
        self

        Examples
        --------
        >>> from gmpll import PartialLabelClassifier
        >>> model = PartialLabelClassifier(random_state=0)
        >>> model = model.partial_fit([[0.0], [0.2], [5.0], [5.2]], [{"a"}, {"a"}, {"b"}, {"b"}])
        >>> model = model.partial_fit([[5.1], [0.1]], [{"a", "b"}, {"a", "b"}])
        >>> model.labels_.tolist(), model.n_samples_seen_
        (['a', 'a', 'b', 'b', 'b', 'a'], 6)
        """
        knowledge = {"gold": gold, "impossible": impossible}
        labels = self.classes_ if hasattr(self, "classes_") else unique_labels(classes)
        y, candidate_weight = votes_as_weights(self, y, candidate_weight, labels)
        if not hasattr(self, "classes_"):
            if labels is not None:
                y = sets_of_known_labels(y, labels)
            return self.fit(X, y, **knowledge, candidate_weight=candidate_weight)
        self._check_grows()
        check_same_labels(classes, self.classes_)
        features = self._check_X(X, reset=False)
        sets = sets_of_known_labels(y, self.classes_, n_samples=len(features), possible=self._seen)
        sets = apply_constraints(sets, **knowledge)
        prior = None if candidate_weight is None else candidate_prior(candidate_weight, sets)
        with printing(type(self).__name__, int(self.verbose)):
            grown = copy.copy(self)._grow(features, sets, prior)
        vars(self).update(vars(grown))  # all or nothing
        return self

    def _check_grows(self: Any) -> None:
        check_is_fitted(self)
        if self._state is None:
            raise ValueError(
                "resolve and partial_fit need a model that was fitted on NumPy arrays: fit it on "
                "those, or call fit with all rows."
            )

    def _grow(self: Any, X: Floats, sets: CandidateSets, prior: Floats | None) -> Any:
        """Learn from all rows where X is new, with the views and the setting that there are."""
        rng = check_random_state(self.random_state)
        views = grown_views(self._views, X)
        graph = self._options.graph(views[:N_GRAPH_VIEWS], rng)
        table = self._table
        if table is not None:
            (table,) = grown_views([table], X)
        self._seen = self._seen | sets.mask.any(axis=0)
        self._priority = rng.permutation(int(self._seen.sum()))
        labels = self.classes_[self._seen]
        state = self._state.over(labels).with_rows(
            X, sets.mask[:, self._seen], None if prior is None else prior[:, self._seen]
        )
        priors = self._priors(state.prior, keep_exponent=True)
        rows = CandidateRows(
            views[0].rows, state.mask, labels, priors, self._similarity_of(state.mask)
        )
        start = warm_probabilities(state, state.mask, labels) if self.warm_start else None
        seed = rng.randint(np.iinfo(np.int32).max)
        with plan(self._costs(rows, table is not None)):
            begin("regression")
            regression = set_regression(views, seed)
            related = GraphMatching(rows, views, graph, regression, self._options, seed, start)
            pipeline = Pipeline(rows, views, related, regression, seed, lambda: table)
            confidences = self._learned(pipeline, self.selection_.chosen, state.batches)
        return self._with_confidences(confidences, state.mask, rng)

    def _priors_of_new(self: Any, X: Floats, sets: CandidateSets, weights: Any) -> Floats:
        """Return what is known of new rows beside their neighbours."""
        priors = self._scores_of_new(X, sets.mask)
        if weights is None:
            return priors
        exponent = self.selected_["weight_exponent"]
        if exponent is None:
            given = (self.hyperparameters or {}).get("weight_exponent")
            exponent = 1.0 if given is None else given
        return np.where(sets.mask, priors * candidate_prior(weights, sets) ** exponent, 0.0)

    def _scores_of_new(self: Any, X: Floats, mask: Mask) -> Floats:
        scores = np.zeros(mask.shape)
        scores[:, self._seen] = np.maximum(self.predictor_(X), 0.0)
        # Of labels that it has not seen the predictor knows nothing: they are taken for average.
        known = mask & self._seen
        average = np.where(known, scores, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        scores[:, ~self._seen] = average[:, None]
        return np.where(mask, scores + SCORE_FLOOR, 0.0)

    def _expected_mass(self: Any, n_samples: int) -> Floats | None:
        if self.class_prior is None:
            return None
        every = np.ones(len(self.classes_), dtype=bool)
        shares = class_shares(self.class_prior, self.classes_, every)
        return Prior(classes=shares).expected_mass(n_samples)
