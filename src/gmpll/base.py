"""What all methods share: checking the input, the label space, rounding and prediction.

A method's own file holds only its idea: ``_fit`` turns clean features and a clean mask into
confidences of the candidates, ``_scores`` scores every label for unseen rows.
"""

import warnings
from abc import ABCMeta, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gmpll._columns import sets_by_name
from gmpll._progress import printing
from gmpll._sklearn import fit_context
from gmpll._typing import Floats, Mask, Places
from gmpll.arrays import Array, array_namespace, from_host
from gmpll.candidates import CandidateSets, as_candidates
from gmpll.engines import engine_of
from gmpll.engines.inputs import check_features, keeps_library, labels_of, on_host
from gmpll.metrics import covering_rate
from gmpll.rounding import best_labels
from gmpll.side_information import apply_constraints, candidate_prior, votes_as_weights

#: Sparse features are made dense for z-scoring; more than this is refused with advice.
DENSE_LIMIT_BYTES = 8 * 2**30
#: What the arrays of a library are called.
LIBRARIES = {"numpy": "NumPy arrays", "torch": "tensors", "dask": "Dask arrays"}


class BasePartialLabelClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of every partial label learner in this library.

    A subclass assigns its parameters in ``__init__``, limits them in ``_parameter_constraints``
    and writes two methods:

    ``_fit(X, mask, rng)``
        X is a finite float array, mask a boolean (n_samples, n_labels) array in which every row
        *and every column* has a True: labels that no row contains have been taken out. Returns
        the confidences, (n_samples, n_labels), zero outside the mask, rows summing to one.
    ``_scores(X)``
        Scores the same labels for unseen rows, larger is better.

    Together with :class:`ProbabilityMixin` or :class:`DecisionMixin` that makes a complete
    scikit-learn classifier. Most methods have some of these parameters.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours k; all there are, with a warning, if there are fewer.
    standardize : bool, default=True
        Whether features are z-scored with the statistics of the training rows.
    n_jobs : int, default=None
        Threads, mostly of the search for neighbours, as in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        Breaks ties between labels, and draws what the method draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, also those that no training row contains (they are never predicted).
    labels_ : ndarray of shape (n_samples,)
        The label found for every training row, always one of its candidates.
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        Confidence of every candidate; zero outside the candidates, rows sum to one.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names, if X has string column names.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"random_state": ["random_state"]}
    #: Whether ``_fit`` and ``_scores`` also take tensors and Dask arrays.
    _takes_any_library: ClassVar[bool] = False

    classes_: NDArray[Any]
    labels_: NDArray[Any]
    label_confidences_: Floats
    n_features_in_: int

    @abstractmethod
    def _fit(self, X: Floats, mask: Mask, rng: np.random.RandomState) -> Floats:
        """Learn from candidates; return their confidences."""

    @abstractmethod
    def _scores(self, X: Floats) -> Floats:
        """Score the labels that ``_fit`` saw for unseen rows."""

    def _prepare_prediction(self, labels: Places) -> None:
        """Learn what prediction needs of the labels found, given as columns of the mask."""

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, gold: Any = None, impossible: Any = None) -> Self:
        """Learn from rows with candidate labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : candidate sets
            A 0/1 matrix, sparse matrix or DataFrame with a column per label, a sequence of label
            sets, or a label vector; see :func:`gmpll.as_candidates`. Of what
            :func:`gmpll.candidates_from_votes` returns the weights count as well in methods that
            take them, see :meth:`gmpll.PartialLabelClassifier.fit`.
        gold : array-like of shape (n_samples,), default=None
            Labels that are known for certain; None, NaN or -1 where there is none (-1 is a label
            if y has it). A known label becomes the only candidate of its row, also if it was
            none before.
        impossible : candidate sets that may be empty, default=None
            Labels that a row cannot have, as a sequence of sets (None for none), or as a matrix,
            sparse matrix or DataFrame of 0 and 1 with a column per label.
        """
        return self._fit_sets(X, y, gold=gold, impossible=impossible)

    def _fit_sets(
        self, X: Any, y: Any, *, gold: Any, impossible: Any, candidate_weight: Any = None
    ) -> Self:
        """Fit; what goes wrong, or is interrupted, leaves the estimator as it was before."""
        fitted = type(self).__new__(type(self))
        fitted.__dict__.update(self.__dict__)
        with printing(type(self).__name__, int(getattr(self, "verbose", 0))):
            fitted._fit_in_place(X, y, gold, impossible, candidate_weight)
        self.__dict__ = fitted.__dict__  # all or nothing
        return self

    def _fit_in_place(
        self, X: Any, y: Any, gold: Any, impossible: Any, candidate_weight: Any
    ) -> None:
        """Fit; a method whose ``fit`` takes candidate weights gets their prior in ``_fit``."""
        y, candidate_weight = votes_as_weights(self, on_host(y), candidate_weight)
        features = self._check_X(X, reset=True)
        self._library = engine_of(features).name
        sets = as_candidates(y, n_samples=features.shape[0])
        sets = apply_constraints(sets, gold=gold, impossible=impossible)
        mask, self.classes_ = sets
        self._seen = mask.any(axis=0)
        rng = check_random_state(getattr(self, "random_state", None))
        self._priority = rng.permutation(int(self._seen.sum()))

        seen_mask = from_host(np.ascontiguousarray(mask[:, self._seen]), features)
        priors: dict[str, Any] = {}
        if candidate_weight is not None:
            prior = self._prior_of(on_host(candidate_weight), sets)[:, self._seen]
            priors["prior"] = from_host(prior, features)
        confidences = self._fit(features, seen_mask, rng, **priors)
        self._with_confidences(confidences, seen_mask, rng)

    def _prior_of(self, candidate_weight: Any, sets: CandidateSets) -> Floats:
        """Return what ``_fit`` gets of the weights of candidates."""
        return candidate_prior(candidate_weight, sets)

    def _with_confidences(
        self, confidences: Array, mask: Array, rng: np.random.RandomState
    ) -> Self:
        """Take confidences of the training rows for what was learned."""
        inside = array_namespace(confidences).where(mask | (confidences > 0), confidences, -np.inf)
        (found,) = engine_of(confidences).keep(best_labels(inside, rng=rng))
        self.label_confidences_ = self._with_unseen_labels(confidences, 0.0)
        self.labels_ = labels_of(found, self.classes_[self._seen])
        self._prepare_prediction(found)
        return self

    def fit_predict(self, X: Any, y: Any, **knowledge: Any) -> NDArray[Any]:
        """Fit, and return the label found for every training row (transductive use)."""
        return self.fit(X, y, **knowledge).labels_

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of unseen rows.

        Ties are broken by an order of the labels drawn in ``fit`` with ``random_state``.
        """
        return self._best(self._checked_scores(X))

    def _best(self, scores: Array) -> NDArray[Any]:
        found = best_labels(scores, priority=self._priority)
        return labels_of(found, self.classes_[self._seen])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, if y are the true labels; ``sample_weight`` says how much each row counts.

        Candidates may be given in any form that ``fit`` takes. With sets of several the score is
        the covering rate, the share of rows whose prediction is one of their candidates, and a
        warning says so: it is no accuracy, but never below it where the truth is a candidate.
        """
        predicted, y = on_host(self.predict(X)), on_host(y)
        sets = sets_by_name(y, self.classes_)
        if (sets.mask.sum(axis=1) > 1).any():
            warnings.warn(
                "The score of candidate sets is their covering rate and no accuracy: give the true "
                "labels, or score with gmpll.model_selection.true_label_scorer, or without true "
                "labels with candidate_lift_scorer.",
                UserWarning,
                stacklevel=2,
            )
        return covering_rate(sets, predicted, sample_weight)

    def _check_X(self, X: Any, *, reset: bool) -> Array:
        if self._takes_any_library and keeps_library(X):
            return check_features(self, X, reset=reset)
        # One order in memory: sums in another order would differ in their last digits.
        checked = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float64, order="C"
        )
        if not isinstance(checked, np.ndarray):
            n_bytes = checked.shape[0] * checked.shape[1] * 8
            if n_bytes > DENSE_LIMIT_BYTES:
                raise ValueError(
                    f"The sparse X of shape {checked.shape} would take {n_bytes / 2**30:.0f} GiB "
                    "as a dense array, which z-scoring needs: reduce it first, for instance with "
                    "sklearn.decomposition.TruncatedSVD."
                )
            checked = checked.toarray()
        return checked

    def _checked_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        features = self._check_X(X, reset=False)
        library = engine_of(features).name
        if library == self._library:
            return self._scores(features)
        if self._library == "numpy" and library == "dask":  # one partition after the other
            return engine_of(features).map_rows(self._scores, features)
        dispatch = ", inside sklearn.config_context(array_api_dispatch=True)"
        raise ValueError(
            f"This model was fitted on {LIBRARIES[self._library]}, but X is of "
            f"{LIBRARIES[library]}: pass what fit got{dispatch * (self._library == 'torch')}."
        )

    def _with_unseen_labels(self, values: Array, fill: float) -> Array:
        if self._seen.all():
            return values
        xp = array_namespace(values)
        column = xp.full_like(values[:, :1], fill)
        places = np.where(self._seen, np.cumsum(self._seen) - 1, values.shape[1])
        return xp.concat([values, column], axis=1)[:, places]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = self._takes_any_library
        return tags


class ProbabilityMixin:
    """For methods whose ``_scores`` are probabilities."""

    def predict_proba(self, X: Any) -> Floats:
        """Probability of every label for unseen rows; columns in the order of ``classes_``."""
        scores = self._checked_scores(X)  # type: ignore[attr-defined]
        return self._with_unseen_labels(scores, 0.0)  # type: ignore[attr-defined]

    def predict_both(self, X: Any) -> tuple[NDArray[Any], Floats]:
        """Return what ``predict`` and ``predict_proba`` do, in the time that one of them takes."""
        scores = self._checked_scores(X)  # type: ignore[attr-defined]
        return self._best(scores), self._with_unseen_labels(scores, 0.0)  # type: ignore[attr-defined]


class DecisionMixin:
    """For methods whose ``_scores`` are no probabilities."""

    def decision_function(self, X: Any) -> Floats:
        """Score of every label for unseen rows, larger is better.

        Columns are in the order of ``classes_``; a label that no training row contains has
        ``-inf``. With two labels, as usual in scikit-learn, it is the score of the second minus
        that of the first.
        """
        scores = self._checked_scores(X)  # type: ignore[attr-defined]
        scores = self._with_unseen_labels(scores, -np.inf)  # type: ignore[attr-defined]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
