"""Rows that come after the fit: resolved against the fitted ones, or learned from as well."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gmpll._columns import sets_of_known_labels
from gmpll._sklearn import fit_context
from gmpll.candidates import CandidateSets
from gmpll.graph.growing import GrowingGraphs, edges_of_new_rows
from gmpll.matching import match
from gmpll.matching.anchored import AnchoredAffinity
from gmpll.methods._learner import ConfidenceLearner
from gmpll.methods._standing import Resolution, grown_views, warm_probabilities
from gmpll.rounding import best_labels, confidences_within
from gmpll.side_information import Prior, candidate_prior, class_shares, narrowed, votes_as_weights

__all__ = ["GrowingMixin"]

#: Added to the regression's opinions of new rows: it may be wrong where it gives a label nothing.
OPINION_FLOOR = 1e-3


def _on_local_graph(model: Any) -> bool:
    if model.graph != "local":
        raise AttributeError(
            "resolve and partial_fit need graph='local': on the full graph every row is related "
            "to every other, so that new rows change all affinities; call fit with all rows."
        )
    return True


class GrowingMixin:
    """For :class:`gmpll.GMPLL` on the local graph."""

    @available_if(_on_local_graph)
    def resolve(self: Any, X: Any, y: Any, *, candidate_weight: Any = None) -> Resolution:
        """Find the labels of new rows with candidates, without learning from them.

        The new rows are matched against the training rows, whose confidences stay as they are,
        and among themselves: rows that come together support each other. The opinion of the
        regression, or of regression and forest, multiplies the support where there is one. The
        model does not change.

        Only available with ``graph="local"``.

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
            training rows; if these had none, as much as ``trust`` says, where ``"auto"`` is 1.

        Returns
        -------
        Resolution
            With ``labels`` of shape (n_samples,), always candidates, and ``confidences`` of shape
            (n_samples, n_classes).

        Examples
        --------
        >>> from gmpll import GMPLL
        >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
        >>> y = [{"a", "b"}, {"a"}, {"a", "c"}, {"b", "c"}, {"b"}, {"a", "b"}]
        >>> model = GMPLL(random_state=0).fit(X, y)
        >>> model.resolve([[0.15], [4.9]], [{"a", "b"}, {"a", "b"}]).labels
        array(['a', 'b'], dtype='<U1')
        """
        _check_grows(self)
        features = self._check_X(X, reset=False)
        y, candidate_weight = votes_as_weights(self, y, candidate_weight, self.classes_)
        sets = sets_of_known_labels(y, self.classes_, n_samples=len(features), possible=self._seen)
        affinity: Any = AnchoredAffinity(
            edges_of_new_rows(self._relation, [view.transform(features) for view in self._views]),
            self.label_confidences_,
            self._similarity_of_all_labels(),
        )
        unary = self._unary_of_new(features, sets, candidate_weight)
        matching = match(
            affinity,
            sets.mask,
            balance=self.selected_["balance"],
            max_iter=self.max_iter,
            tol=self.tol,
            start=None if unary is None else confidences_within(unary, sets.mask),
            unary=unary,
            expected_mass=self._expected_mass(self.n_samples_seen_ + len(features)),
        )
        scores = np.where(sets.mask, matching.probabilities, -np.inf)
        # Seeded by the order drawn in fit: the same rows get the same labels every time.
        found = best_labels(scores, rng=np.random.RandomState(self._priority))
        return Resolution(self.classes_[found], matching.probabilities)

    @available_if(_on_local_graph)
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

        The first call is ``fit``. Later calls add the rows to the graph, where only the neighbours
        of the new rows are searched, match all rows again and train regression and forest on what
        is found. The result is that of a ``fit`` with all rows in which everything that the first
        call chose is given, but for the trees, which are drawn anew. The matching starts from
        equal confidences, so that early mistakes are not carried on, unless ``warm_start=True``.

        What the first call chose stays as it is until the next ``fit``: the setting in
        ``selected_``, the trust in weights, whether features follow ordered labels, and the
        scaling of the features, so that rows which come later are scaled by the statistics of
        the first ones. Call ``fit`` with all rows when
        the first ones are not typical of the later ones.

        Only available with ``graph="local"``.

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
        >>> from gmpll import GMPLL
        >>> model = GMPLL(random_state=0)
        >>> model = model.partial_fit([[0.0], [0.2], [5.0], [5.2]], [{"a"}, {"a"}, {"b"}, {"b"}])
        >>> model = model.partial_fit([[5.1], [0.1]], [{"a", "b"}, {"a", "b"}])
        >>> model.labels_.tolist(), model.n_samples_seen_
        (['a', 'a', 'b', 'b', 'b', 'a'], 6)
        """
        knowledge = {"gold": gold, "impossible": impossible}
        labels = self.classes_ if hasattr(self, "classes_") else _unique_labels(classes)
        y, candidate_weight = votes_as_weights(self, y, candidate_weight, labels)
        if not hasattr(self, "classes_"):
            if labels is not None:
                y = sets_of_known_labels(y, labels)
            return self.fit(X, y, **knowledge, candidate_weight=candidate_weight)
        _check_grows(self)
        _check_same_labels(classes, self.classes_)
        features = self._check_X(X, reset=False)
        sets = sets_of_known_labels(y, self.classes_, n_samples=len(features), possible=self._seen)
        sets = narrowed(sets, **knowledge)
        prior = None if candidate_weight is None else candidate_prior(candidate_weight, sets)
        grown = copy.copy(self)._grow(features, sets, prior)
        vars(self).update(vars(grown))  # all or nothing
        return self

    def _grow(
        self: Any,
        X: NDArray[np.float64],
        sets: CandidateSets,
        prior: NDArray[np.float64] | None,
    ) -> Any:
        """Learn from all rows where X is new, with the views and the setting that there are."""
        rng = check_random_state(self.random_state)
        graph = GrowingGraphs.of(self._relation, random_state=rng)
        views, added = grown_views(self._views, X)
        table = getattr(self, "_table", None)  # older saved models have none
        if table is not None:
            (table,), _ = grown_views([table], X)
        self._seen = self._seen | sets.mask.any(axis=0)
        self._priority = rng.permutation(int(self._seen.sum()))
        labels = self.classes_[self._seen]
        standing = self._standing.over(labels).with_rows(
            X, sets.mask[:, self._seen], None if prior is None else prior[:, self._seen]
        )
        beliefs = self._prepared(standing.mask, standing.prior, keep_trust=True)
        start = None
        if self.warm_start:
            start = warm_probabilities(standing, standing.mask, labels)
        learner = ConfidenceLearner(
            views,
            standing.mask,
            lambda _: graph.with_rows(added),
            self._affinity,
            similarity=self._similarity,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
            prior=beliefs,
            start=start,
            make_table=lambda: table,
        )
        confidences = self._learned(learner, self.selection_.setting, beliefs, standing.batches)
        return self._with_confidences(confidences, standing.mask, rng)

    def _unary_of_new(
        self: Any, X: NDArray[np.float64], sets: CandidateSets, weights: Any
    ) -> NDArray[np.float64] | None:
        """Return what is known of new rows beside their neighbours."""
        unary = self._opinion_of_new(X, sets.mask) if self.prediction_ == "ridge" else None
        if weights is None:
            return unary
        trust = self.trust_ if isinstance(self.trust, str) else float(self.trust)
        weighed = candidate_prior(weights, sets) ** (1.0 if trust is None else trust)
        return np.where(sets.mask, weighed if unary is None else unary * weighed, 0.0)

    def _opinion_of_new(
        self: Any, X: NDArray[np.float64], mask: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        opinion = np.zeros(mask.shape)
        opinion[:, self._seen] = np.maximum(self._predictor(X), 0.0)
        # Of labels that it has not seen the regression knows nothing: they are taken for average.
        rated = mask & self._seen
        average = np.where(rated, opinion, 0.0).sum(axis=1) / np.maximum(rated.sum(axis=1), 1)
        opinion[:, ~self._seen] = average[:, None]
        return np.where(mask, opinion + OPINION_FLOOR, 0.0)

    def _similarity_of_all_labels(self: Any) -> NDArray[np.float64] | None:
        """Return the similarity of the labels; one that no row contains is like no other."""
        if self._similarity is None:
            return None
        similarity = np.eye(len(self.classes_))
        similarity[np.ix_(self._seen, self._seen)] = self._similarity
        return similarity

    def _expected_mass(self: Any, n_samples: int) -> NDArray[np.float64] | None:
        if self.class_prior is None:
            return None
        every = np.ones(len(self.classes_), dtype=bool)
        shares = class_shares(self.class_prior, self.classes_, every)
        return Prior(classes=shares).expected_mass(n_samples)


def _check_grows(model: Any) -> None:
    check_is_fitted(model)
    if getattr(model, "_tensor_matching", None) is not None:
        raise ValueError(
            "This model was fitted on tensors, to which no rows can be added: fit it on NumPy "
            "arrays for resolve and partial_fit."
        )


def _unique_labels(classes: Any) -> NDArray[Any] | None:
    if classes is None:
        return None
    labels = np.asarray(classes)
    if labels.ndim != 1 or len(set(labels.tolist())) != len(labels):
        raise ValueError("classes must be a sequence of labels, each of them once.")
    return labels


def _check_same_labels(classes: Any, settled: NDArray[Any]) -> None:
    labels = _unique_labels(classes)
    if labels is not None and labels.tolist() != settled.tolist():
        raise ValueError(
            f"classes is {labels.tolist()}, but the labels of this model are "
            f"{settled.tolist()} since the first call: leave classes out, or call fit."
        )
