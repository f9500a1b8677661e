"""GM-PLL on PyTorch tensors: tensors in, tensors out, on the device of the rows.

The pipeline of :class:`gmpll.GMPLL` for ``prediction="independent"`` in the paper's features,
z-scores compared by their direction: z-scored rows -> graph -> matching -> labels; unseen rows are
voted for by the neighbours that reconstruct them best and matched against the training rows.

Three small things visit the host: the candidates once, to look at their sizes and order, the ties
that are drawn, and of every unseen row the k x k matrix of its reconstruction problem, which the
active-set solver of :mod:`gmpll.graph.reconstruction` solves there.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config  # type: ignore[attr-defined]
from sklearn.utils import check_random_state

from gmpll.arrays import is_torch_array, to_host

__all__ = [
    "fit_tensors",
    "keeps_tensors",
    "predict_proba_tensors",
    "predict_tensors",
    "predicts_tensors",
]


def keeps_tensors(X: Any) -> bool:
    """Whether X is a tensor that scikit-learn was told not to convert.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from gmpll.methods._tensor_fit import keeps_tensors
    >>> keeps_tensors(torch.zeros(2, 2))  # outside config_context(array_api_dispatch=True)
    False
    """
    return bool(get_config()["array_api_dispatch"]) and is_torch_array(X)


def fit_tensors(model: Any, X: Any, y: Any, **knowledge: Any) -> Any:
    """Fit a :class:`gmpll.GMPLL` on tensors.

    Parameters
    ----------
    model : GMPLL
        With ``prediction="independent"`` (the default of ``graph="full"``), ``alpha=0``,
        ``scaling`` "auto" or "standard" and no ``class_prior``.
    X : tensor of shape (n_samples, n_features)
        Features. Single and double precision are kept, everything else becomes single.
    y : tensor of shape (n_samples, n_classes)
        Candidates, 0/1 or boolean, on the device of X. The labels are the column numbers.
    **knowledge
        What else ``fit`` takes; all of it must be None.

    Returns
    -------
    model
    """
    _refuse_what_is_missing(model, knowledge)
    rows = _checked_rows(X)
    mask = _checked_mask(y, rows)
    model.n_features_in_ = rows.shape[1]
    model.classes_ = _columns(mask)
    rng = check_random_state(model.random_state)
    fitted = _TensorMatching(model, rows, mask, rng)

    model._tensor_matching = fitted
    model.prediction_ = "independent"
    model.r_ = fitted.r
    model.n_iter_ = fitted.matching.n_iter
    model.converged_ = fitted.matching.converged
    model.objective_path_ = fitted.matching.objective_path
    model.selection_ = fitted.selection
    model.selected_ = asdict(fitted.selection.setting)
    model.trust_ = None
    model.label_confidences_ = fitted.with_unseen_labels(fitted.matching.probabilities)
    model.label_support_ = fitted.with_unseen_labels(fitted.support)
    model.labels_ = fitted.seen_labels[fitted.found]
    return model


def predicts_tensors(model: Any, X: Any) -> bool:
    """Whether unseen rows are tensors to be kept, as those that the model was fitted on must be."""
    if keeps_tensors(X):
        return True
    if getattr(model, "_tensor_matching", None) is not None:
        raise ValueError(
            "This model was fitted on tensors: predict with tensors too, inside "
            "sklearn.config_context(array_api_dispatch=True)."
        )
    return False


def predict_proba_tensors(model: Any, X: Any) -> Any:
    """Probability of every label for unseen rows, (n_samples, n_classes), as a tensor."""
    fitted = _fitted_on_tensors(model)
    return fitted.with_unseen_labels(fitted.scores(_checked_like(model, X, fitted)))


def predict_tensors(model: Any, X: Any) -> Any:
    """Label of unseen rows as a tensor."""
    from gmpll.rounding import best_labels

    fitted = _fitted_on_tensors(model)
    scores = fitted.scores(_checked_like(model, X, fitted))
    return fitted.seen_labels[best_labels(scores, priority=fitted.priority)]


class _TensorMatching:
    """The matching of the training rows, and all that rating unseen rows takes."""

    def __init__(self, model: Any, X: Any, mask: Any, rng: np.random.RandomState) -> None:
        from gmpll.graph.tensors import TensorDirectionSpace
        from gmpll.matching import match, uniform_start
        from gmpll.methods._learner import Setting
        from gmpll.methods._selection import Selection
        from gmpll.methods.gmpll import DEFAULT_BALANCE, assigned_set_size
        from gmpll.rounding import best_labels, confidences_within

        balance = DEFAULT_BALANCE if isinstance(model.balance, str) else float(model.balance)
        self.model = model.get_params()
        setting = Setting(balance, scaling="standard")
        self.selection = Selection(setting, [(setting, np.nan)])
        self.seen = mask.any(dim=0)
        self.seen_labels = model.classes_[self.seen]
        self.priority = rng.permutation(len(self.seen_labels))
        mask = mask[:, self.seen]
        on_host = to_host(mask)
        self.r = assigned_set_size(on_host) if model.r == "auto" else int(model.r)
        self.similarity = _label_similarity(model, X, on_host, to_host(self.seen))

        self.space = TensorDirectionSpace(X)
        self.graph = self._relate()
        affinity = self._affinity(mask)
        self.matching = match(
            affinity,
            mask,
            balance=balance,
            max_iter=model.max_iter,
            tol=model.tol,
            start=uniform_start(mask, X.dtype),
        )
        confidences = self.matching.probabilities
        self.support = confidences_within(affinity.apply(confidences), mask)
        self.found = best_labels(confidences.masked_fill(~mask, -np.inf), rng=rng)
        self.matched = _one_hot(self.found, mask.shape[1])
        if self.model["graph"] == "full":
            self._matched_affinity = self._affinity(self.matched)

    def scores(self, X: Any) -> Any:
        """Rate the labels that some training row contains for unseen rows."""
        from gmpll.rounding import confidences_within

        queries = self.space.transform(X)
        vote = self._vote(queries)
        if self.r == 1:
            return vote
        candidates = self._assigned_candidates(vote)
        support = vote * self._support_of(queries)
        mass = self.matched.sum(dim=0).clamp(min=1).to(support.dtype)
        support = support / mass**self.selection.setting.balance
        supported = (support * candidates).any(dim=1, keepdim=True)
        return confidences_within(support.where(supported, vote), candidates)

    def with_unseen_labels(self, values: Any) -> Any:
        """Add columns of zeros for the labels that no training row contains."""
        if bool(self.seen.all()):
            return values
        full = values.new_zeros((len(values), len(self.seen)))
        full[:, self.seen] = values
        return full

    def _relate(self) -> Any:
        from gmpll.graph.tensors import TensorLocalGraph

        if self.model["graph"] == "full":
            return None
        return TensorLocalGraph(self.space.rows, self.model["graph_neighbors"])

    def _affinity(self, mask: Any) -> Any:
        from gmpll.matching.tensors import TensorLocalAffinity, tensor_full_affinity

        if self.graph is not None:
            return TensorLocalAffinity(self.graph.weights, mask, self.similarity)
        return tensor_full_affinity(
            self.space.rows, mask, beta=self.model["beta"], label_similarity=self.similarity
        )

    def _vote(self, queries: Any) -> Any:
        """OP (4): the neighbours vote with the weights that reconstruct the query best."""
        from gmpll.graph.tensors import query_blocks, tensor_nearest_neighbors

        rows = self.space.rows
        near = tensor_nearest_neighbors(rows, self.model["n_neighbors"], queries).indices
        vote = queries.new_zeros((len(queries), len(self.seen_labels)))
        for block in query_blocks(queries, near.shape[1] * rows.shape[1]):
            offsets = queries[block, None, :] - rows[near[block]]
            weights = _simplex_weights(offsets @ offsets.mT)
            vote[block] = vote[block].scatter_add(1, self.found[near[block]], weights)
        return vote

    def _assigned_candidates(self, vote: Any) -> Any:
        """Keep the r best labels that got a vote."""
        by_priority = self.found.new_tensor(np.argsort(-self.priority))
        order = by_priority[(-vote[:, by_priority]).argsort(dim=1, stable=True)]
        kept = (vote > 0).new_zeros(vote.shape).scatter(1, order[:, : self.r], True)
        return kept & (vote > 0)

    def _support_of(self, queries: Any) -> Any:
        """Return how much the matched training rows support every label of unseen rows."""
        from gmpll.matching.tensors import TensorLocalAffinity

        matched = self.matched.to(queries.dtype)
        if self.graph is None:
            return self._matched_affinity.to_queries(queries, matched)
        weights = self.graph.to_queries(queries)
        return TensorLocalAffinity(weights, self.matched, self.similarity).apply(matched)


def _simplex_weights(gram: Any) -> Any:
    """Solve the small reconstruction problems on the host."""
    from gmpll.graph.reconstruction import nonnegative_quadratic

    problems = to_host(gram).astype(np.float64)
    weights = nonnegative_quadratic(problems, np.zeros(problems.shape[:2]), sum_to_one=True)
    return gram.new_tensor(weights)


def _one_hot(found: Any, n_classes: int) -> Any:
    return (found < 0).new_zeros((len(found), n_classes)).scatter(1, found[:, None], True)


def _columns(mask: Any) -> Any:
    return (mask[0] | True).nonzero()[:, 0]


def _label_similarity(
    model: Any, X: Any, mask: NDArray[np.bool_], seen: NDArray[np.bool_]
) -> NDArray[np.float64] | None:
    """Return the similarity of the labels that some row contains, None if all differ."""
    from gmpll.matching.affinity import check_label_similarity
    from gmpll.methods._learner import (
        cooccurrence_similarity,
        features_follow,
        ordered_labels,
    )

    if model.label_similarity is None:
        return None
    if isinstance(model.label_similarity, str):
        labels = np.flatnonzero(seen)
        ordered = model.graph == "local" and ordered_labels(labels, mask)
        follow = ordered and features_follow(to_host(X), labels, mask)
        return cooccurrence_similarity(mask) if follow else None
    return check_label_similarity(model.label_similarity, len(seen))[np.ix_(seen, seen)]


def _refuse_what_is_missing(model: Any, knowledge: dict[str, Any]) -> None:
    prediction = model.prediction
    if prediction == "auto":
        prediction = "ridge" if model.graph == "local" else "independent"
    given = [name for name, value in knowledge.items() if value is not None]
    refused = {
        f"prediction={prediction!r}; set prediction='independent'": prediction != "independent",
        f"alpha={model.alpha}; set alpha=0": model.alpha != 0,
        f"scaling={model.scaling!r}; set scaling='standard'": model.scaling
        not in ("auto", "standard"),
        "class_prior; leave it out": getattr(model, "class_prior", None) is not None,
        f"{', '.join(given)}; leave it out": bool(given),
    }
    for what, is_refused in refused.items():
        if is_refused:
            raise ValueError(f"Tensors cannot be fitted with {what}, or pass NumPy arrays.")


def _checked_rows(X: Any) -> Any:
    import torch

    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X has shape {tuple(X.shape)}: it must be (n_samples, n_features), neither of them 0."
        )
    rows = X if X.dtype in (torch.float32, torch.float64) else X.to(torch.float32)
    if not bool(rows.isfinite().all()):
        raise ValueError("Input X contains NaN or infinity: remove or impute such entries.")
    return rows


def _checked_mask(y: Any, rows: Any) -> Any:
    if not is_torch_array(y) or y.ndim != 2 or y.device != rows.device:
        raise ValueError(
            "X is a tensor, so y must be a tensor of shape (n_samples, n_classes) on the same "
            "device with 0 and 1 (or booleans) for the candidates."
        )
    if len(y) != len(rows):
        raise ValueError(f"X has {len(rows)} rows, but y has {len(y)}.")
    mask = y != 0
    if not bool((y == mask).all()):
        raise ValueError("Entries of a candidate matrix must be 0 or 1.")
    empty = (~mask.any(dim=1)).nonzero()
    if len(empty):
        raise ValueError(
            f"Row {int(empty[0])} has an empty candidate set: every row needs at least one "
            "candidate. Drop such rows, or give them all labels if nothing is known."
        )
    return mask


def _fitted_on_tensors(model: Any) -> _TensorMatching:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if getattr(model, "_tensor_matching", None) is None:
        raise ValueError("This model was fitted on NumPy arrays: predict with NumPy arrays.")
    return model._tensor_matching


def _checked_like(model: Any, X: Any, fitted: _TensorMatching) -> Any:
    rows = _checked_rows(X)
    known = fitted.space.rows
    if rows.shape[1] != known.shape[1]:
        raise ValueError(
            f"X has {rows.shape[1]} features, but {type(model).__name__} is expecting "
            f"{known.shape[1]} features as input."
        )
    if rows.device != known.device:
        raise ValueError(f"X is on {rows.device}, but the model was fitted on {known.device}.")
    return rows.to(known.dtype)
