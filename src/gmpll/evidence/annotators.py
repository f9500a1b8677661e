r"""What annotators' votes say about the labels: a model of every annotator, joined with features.

Annotator w gives an item of label l the vote v with probability :math:`A_w[l, v]`. The row l of
this *confusion matrix* has a Dirichlet prior of strength s around

.. math:: (1 - h_w)\, \frac{M[l, v]\, e^{t_w 1[v = l]}}{1 + M[l, l] (e^{t_w} - 1)} + h_w\, g_w[v],

the confusion matrix M of all annotators together, moved by the annotator's skill :math:`t_w` (log
odds of a right vote, normal around 0) and mixed with a habit :math:`g_w`, a vote that does not
depend on the item. M is itself drawn towards one in which all labels are equally hard. So an
annotator with one vote is the average annotator, one with fifty votes has a skill, and only one
with hundreds of votes has a matrix of their own.

The probability of the label of item i is

.. math:: P_{il} \propto p_i(l) \prod_w A_w[l, v_{iw}],

where :math:`p_i` is the class prior or, with features, softmax(aF + b) of scores F that a learner
gives the item without having seen it. The parameters follow from P and P from the parameters, in
turn (expectation maximization, Dawid and Skene 1979), with one difference: in the likelihood of an
item the matrices are estimated *from the other items*. The votes of an item therefore never confirm
themselves, and the resulting likelihood of left-out items says how much to smooth (the strengths of
the priors) and how far to believe the features (a and b): scores that do not predict votes get
a = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp, softmax

from gmpll.candidates import VotedCandidates, candidates_from_votes

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

__all__ = ["AggregatedVotes", "AnnotatorModel", "Annotators", "aggregate_votes"]

Matrix = NDArray[np.float64]
OutOfSample = Callable[[Matrix], Matrix]

#: Share of right votes before anything is known, and how many votes that is worth.
PRIOR_ACCURACY = 0.8
PRIOR_VOTES = 10.0
#: The same for the share of votes that are habit, and for an annotator's own share.
PRIOR_HABIT = 0.05
OWN_HABIT_VOTES = 4.0
#: Votes by habit that the habits of all are worth in an annotator's own.
HABIT_STRENGTH = 2.0
#: Items that are added to every label in the class prior.
PRIOR_ITEMS = 10.0
#: Variance of the annotators' skills before it is estimated, and how many annotators that is worth.
SKILL_VARIANCE = 1.0
SKILL_ANNOTATORS = 20.0
#: Log-normal priors of the strengths (in votes): of an annotator's own matrix, which the data
#: easily move, and of the pooled one, where votes that depend on each other would mislead.
STRENGTH = 20.0
STRENGTH_SPREAD = 2.0
POOLED_STRENGTH = 200.0
POOLED_STRENGTH_SPREAD = 0.3
#: The strengths are at least so many votes for each label, and at most so many in all.
MIN_STRENGTH_PER_LABEL = 1.0 / 3.0
MAX_STRENGTH = 1e4
#: Iterations from one estimate of the strengths to the next.
STRENGTH_INTERVAL = 3
#: Precision of the normal prior of the offsets of the feature scores.
OFFSET_PRECISION = 0.1
#: Votes times labels that are in memory at once.
BLOCK_CELLS = 2**22


class AnnotatorModel:
    """Find the labels of items from votes, and how good every annotator is.

    Parameters
    ----------
    max_iter : int, default=100
        Most iterations for the votes alone, and again with features.
    tol : float, default=1e-3
        Iterations end when the probabilities of an item change by less than this in sum, on
        average over the items.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_items, n_classes)
        Probability of every label, also of those that nobody voted for.
    classes_ : ndarray of shape (n_classes,)
        The labels of the columns.
    class_prior_ : ndarray of shape (n_classes,)
        Estimated share of the labels.
    annotators_ : Annotators
        What was found about every annotator; ``annotators_.to_frame()`` is a table.
    outside_probability_ : ndarray of shape (n_items,)
        How probable it is that nobody voted for the right label; 0 for an item without votes.
    feature_weight_ : ndarray of shape (n_scores,)
        The scale a of every kind of feature scores, 0 if they do not predict votes; empty without.
    feature_gain_ : float
        By how much the log-likelihood of an item's votes rose, on average, when features joined.
    feature_prior_ : ndarray of shape (n_items, n_classes)
        What features (without: the class prior) say before votes are heard.
    strength_ : float
        Votes per label that the average annotator is worth in the confusion matrix of one.
    log_likelihood_ : float
        Mean log-likelihood of the votes of an item, given those of the others.
    n_iter_ : int
        Iterations in all.

    Notes
    -----
    Votes alone cannot tell an honest crowd from one that errs together: most annotators are taken
    to be right more often than by chance. A single hostile annotator among honest ones counts
    inversely; if all are hostile, the result is what they agree on. An item with a single vote says
    nothing about its annotator unless features do, so that with one vote per item and no features
    the result is the vote. An annotator who gave an item several labels has a share of a vote for
    each of them.

    Examples
    --------
    >>> from gmpll import candidates_from_votes
    >>> from gmpll.evidence.annotators import AnnotatorModel
    >>> items = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    >>> labels = ["cat", "cat", "dog", "dog", "dog", "cat"] * 2
    >>> votes = candidates_from_votes(items, labels, ["ann", "bob", "eve"] * 4)
    >>> model = AnnotatorModel().fit(votes)
    >>> model.classes_[model.posterior_.argmax(axis=1)].tolist()
    ['cat', 'dog', 'cat', 'dog']
    >>> ann, bob, eve = model.annotators_.accuracy
    >>> bool(ann > 0.5 > eve)
    True
    """

    posterior_: Matrix
    classes_: NDArray[Any]
    class_prior_: Matrix
    annotators_: Annotators
    outside_probability_: Matrix
    feature_weight_: Matrix
    feature_gain_: float
    feature_prior_: Matrix
    strength_: float
    log_likelihood_: float
    n_iter_: int

    def __init__(self, *, max_iter: int = 100, tol: float = 1e-3) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def fit(
        self,
        votes: VotedCandidates | ArrayLike,
        out_of_sample: OutOfSample | Sequence[OutOfSample] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        votes : VotedCandidates or array of shape (n_items, n_classes)
            What :func:`gmpll.candidates_from_votes` returns, or numbers of votes per label.
        out_of_sample : callable or sequence of callables, default=None
            Takes the probabilities (n_items, n_classes) and returns scores of the same shape, those
            of an item by a learner that was not trained on that item, for instance
            ``KernelRidge.leave_one_out``.

        Returns
        -------
        AnnotatorModel
            The fitted model.
        """
        voted, classes, names = _read_votes(votes)
        learners = [out_of_sample] if callable(out_of_sample) else list(out_of_sample or ())
        crowd = _Crowd(voted, len(classes))
        self.classes_ = classes
        self.n_iter_ = 0
        self.feature_weight_ = np.zeros(len(learners))
        self.feature_gain_ = 0.0
        fitted = self._iterate(crowd, crowd.start(), None)
        if learners:
            # The votes alone may have let one label absorb another, and the plain votes may be
            # those of hostile annotators: the likelihood tells which start was better.
            alone = fitted.evidence
            for start in (crowd.start(), fitted.posterior):
                other = _Crowd(voted, len(classes))
                found = self._iterate(other, start, _FeaturePrior(learners))
                gain = found.evidence - fitted.evidence
                if gain.mean() > gain.std() / np.sqrt(len(gain)):
                    crowd, fitted = other, found
            if fitted.weights.size:  # else the votes stand alone
                self.feature_weight_ = fitted.weights
                self.feature_gain_ = float((fitted.evidence - alone).mean())
        self.posterior_ = fitted.posterior
        self.feature_prior_ = np.exp(fitted.log_prior)
        self.class_prior_ = _class_prior(fitted.posterior)
        self.log_likelihood_ = float(fitted.evidence.mean())
        self.strength_ = crowd.strength
        voted_for = (crowd.counts > 0) | (crowd.counts == 0).all(axis=1, keepdims=True)
        self.outside_probability_ = np.where(voted_for, 0.0, self.posterior_).sum(axis=1)
        self.annotators_ = Annotators(
            names=names,
            classes=classes,
            votes=crowd.votes_of_annotators(),
            accuracy=crowd.right_votes() @ self.class_prior_,
            agreement=crowd.agreement(),
            _confusion=crowd.confusion,
        )
        return self

    def _iterate(self, crowd: _Crowd, posterior: Matrix, features: _FeaturePrior | None) -> _Fit:
        """Alternate between the parameters and the probabilities until these stay."""
        checked = 0.0
        for iteration in range(self.max_iter):
            crowd.estimate(posterior, checked)
            from_votes = crowd.log_likelihood(
                update_strengths=iteration % STRENGTH_INTERVAL == STRENGTH_INTERVAL - 1
            )
            trust = crowd.trust(checked)
            log_prior = _log_class_prior(posterior, trust)
            evidence = logsumexp(log_prior + from_votes, axis=1)
            if features is not None:
                without, entropy = evidence, -(_class_prior(posterior) * log_prior).sum(axis=1)
                by_votes = np.exp(log_prior + from_votes - evidence[:, None])
                log_prior = features.fit(trust * posterior + (1.0 - trust) * by_votes, from_votes)
                evidence = logsumexp(log_prior + from_votes, axis=1)
                checked = float(np.clip((evidence - without).mean() / entropy.mean(), 0.0, 1.0))
            before, posterior = posterior, np.exp(log_prior + from_votes - evidence[:, None])
            self.n_iter_ += 1
            change = np.abs(posterior - before).sum(axis=1).mean()
            if change < self.tol and iteration >= STRENGTH_INTERVAL:
                break
        if features is None:
            return _Fit(posterior, log_prior, evidence, np.zeros(0))
        # A learner that is trained on what it said itself can agree with itself: what features are
        # worth is measured by one that is trained on the votes.
        trained_on = softmax(_log_class_prior(posterior, trust) + from_votes, axis=1)
        honest = logsumexp(
            _FeaturePrior(features.learners).fit(trained_on, from_votes) + from_votes, axis=1
        )
        return _Fit(posterior, log_prior, honest, features.weights)


class _Fit(NamedTuple):
    posterior: Matrix
    log_prior: Matrix
    evidence: NDArray[np.float64]  # log-likelihood of the votes of every item
    weights: Matrix


@dataclass(frozen=True)
class Annotators:
    """What was found about the annotators.

    Attributes
    ----------
    names : ndarray of shape (n_annotators,) or None
        None if the votes had no names: then there is one annotator, all of them together.
    classes : ndarray of shape (n_classes,)
        The labels.
    votes : ndarray of shape (n_annotators,), int
        Number of votes.
    accuracy : ndarray of shape (n_annotators,)
        Estimated probability that a vote is right.
    agreement : ndarray of shape (n_annotators,)
        Share of the others' votes on the same items that are equal; NaN where there are none.

    Examples
    --------
    >>> from gmpll.evidence.annotators import aggregate_votes
    >>> found = aggregate_votes([0, 0, 1, 1], ["a", "a", "b", "b"], ["ann", "bob"] * 2).annotators
    >>> found.agreement.tolist()
    [1.0, 1.0]
    >>> found.confusion("ann").shape
    (2, 2)
    """

    names: NDArray[Any] | None
    classes: NDArray[Any]
    votes: NDArray[np.intp]
    accuracy: Matrix
    agreement: Matrix
    _confusion: Callable[[int], Matrix] = field(repr=False)

    def __len__(self) -> int:
        return len(self.votes)

    def confusion(self, annotator: Any = None) -> Matrix:
        """Return an annotator's estimated confusion matrix, true labels in rows, votes in columns.

        Parameters
        ----------
        annotator : default=None
            The name; None for votes without names.
        """
        names = [None] if self.names is None else self.names.tolist()
        if annotator not in names:
            raise ValueError(f"There is no annotator {annotator!r} among the votes.")
        return self._confusion(names.index(annotator))

    def to_frame(self, *, confusion: bool = True) -> pd.DataFrame:
        """Return a pandas table with a row for every annotator.

        Parameters
        ----------
        confusion : bool, default=True
            Whether to have a column of confusion matrices (n_classes, n_classes); turn it off for
            many annotators and labels.
        """
        import pandas as pd

        columns: dict[str, Any] = {
            "votes": self.votes,
            "accuracy": self.accuracy,
            "agreement": self.agreement,
        }
        if confusion:
            columns["confusion"] = [self._confusion(number) for number in range(len(self))]
        index = ["all"] if self.names is None else self.names.tolist()
        return pd.DataFrame(columns, index=pd.Index(index, name="annotator"))


class AggregatedVotes(NamedTuple):
    """Labels found from votes alone.

    Attributes
    ----------
    items : ndarray of shape (n_items,)
        The items, in the order of their first vote.
    labels : ndarray of shape (n_items,)
        The most probable label of every item.
    probabilities : ndarray of shape (n_items, n_classes)
        Probability of every label.
    classes : ndarray of shape (n_classes,)
        The labels of the columns.
    annotators : Annotators
        What was found about the annotators.
    """

    items: NDArray[Any]
    labels: NDArray[Any]
    probabilities: Matrix
    classes: NDArray[Any]
    annotators: Annotators


def aggregate_votes(
    items: Iterable[Any],
    labels: Iterable[Any],
    annotators: Iterable[Any] | None = None,
    weights: ArrayLike | None = None,
) -> AggregatedVotes:
    """Find the labels of items where there is nothing but votes.

    Parameters
    ----------
    items, labels, annotators, weights
        As in :func:`gmpll.candidates_from_votes`.

    Returns
    -------
    AggregatedVotes
        Items, labels, probabilities and annotators.

    Examples
    --------
    >>> from gmpll.evidence.annotators import aggregate_votes
    >>> found = aggregate_votes(["x", "x", "x", "y"], ["cat", "cat", "dog", "dog"])
    >>> found.labels.tolist()
    ['cat', 'dog']
    """
    voted = candidates_from_votes(items, labels, annotators, weights)
    model = AnnotatorModel().fit(voted)
    best = model.classes_[model.posterior_.argmax(axis=1)]
    return AggregatedVotes(voted.items, best, model.posterior_, model.classes_, model.annotators_)


def _read_votes(votes: Any) -> tuple[sp.csr_array, NDArray[Any], NDArray[Any] | None]:
    """Return a row of votes for every item, the labels and the names of the annotators."""
    if isinstance(votes, VotedCandidates):
        classes = votes.candidates.classes
        if votes.votes is None:
            return sp.csr_array(votes.weights), classes, None
        return votes.votes, classes, votes.annotators
    counts = np.asarray(votes, dtype=float)
    if counts.ndim != 2 or not counts.size:
        raise ValueError(
            f"Numbers of votes have the shape {counts.shape}: a row per item and a column per "
            "label are needed."
        )
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        row, column = np.argwhere(~(np.isfinite(counts) & (counts >= 0)))[0]
        raise ValueError(
            f"The number of votes is {counts[row, column]} in row {row}, column {column}: it must "
            "not be negative."
        )
    return sp.csr_array(counts), np.arange(counts.shape[1]), None


def _class_prior(posterior: Matrix) -> Matrix:
    total = posterior.sum(axis=0) + PRIOR_ITEMS
    return total / total.sum()


def _log_class_prior(posterior: Matrix, trust: Matrix) -> Matrix:
    """Return for every item the logarithm of the class prior that the other items show."""
    known = trust * posterior
    others = np.maximum(known.sum(axis=0) - known, 0.0) + PRIOR_ITEMS
    return np.log(others / others.sum(axis=1, keepdims=True))


class _FeaturePrior:
    """Softmax of scaled out-of-sample scores, fitted to the likelihood of the votes."""

    def __init__(self, learners: list[OutOfSample]) -> None:
        self.learners = learners
        self.weights = np.zeros(0)
        self._offsets = np.zeros(0)

    def fit(self, posterior: Matrix, from_votes: Matrix) -> Matrix:
        """Refit learners, scales and offsets; return the log-probabilities of the labels."""
        scores = np.stack([self._scores(learner, posterior) for learner in self.learners])
        if not self.weights.size:
            spread = np.maximum(scores.std(axis=(1, 2)), 1e-12)
            self.weights = 1.0 / (len(scores) * spread)
            self._offsets = np.log(_class_prior(posterior))
            self._offsets -= self._offsets.mean()
        n_scores = len(scores)

        def loss(parameters: Matrix) -> tuple[float, Matrix]:
            offsets = parameters[n_scores:]
            logits = np.tensordot(parameters[:n_scores], scores, 1) + offsets
            surplus = softmax(logits, axis=1) - softmax(logits + from_votes, axis=1)
            value = (logsumexp(logits, axis=1) - logsumexp(logits + from_votes, axis=1)).sum()
            gradient = [
                np.einsum("kil,il->k", scores, surplus),
                surplus.sum(axis=0) + OFFSET_PRECISION * offsets,
            ]
            penalty = 0.5 * OFFSET_PRECISION * (offsets**2).sum()
            return float(value + penalty), np.concatenate(gradient)

        found = minimize(
            loss,
            np.concatenate([self.weights, self._offsets]),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * n_scores + [(None, None)] * len(self._offsets),
            options={"maxiter": 30},
        ).x
        self.weights, self._offsets = found[:n_scores], found[n_scores:]
        logits = np.tensordot(self.weights, scores, 1) + self._offsets
        return logits - logsumexp(logits, axis=1, keepdims=True)

    @staticmethod
    def _scores(learner: OutOfSample, posterior: Matrix) -> Matrix:
        scores = np.asarray(learner(posterior), dtype=float)
        if scores.shape != posterior.shape:
            raise ValueError(
                f"The out-of-sample scores have the shape {scores.shape}, but there are "
                f"{posterior.shape[0]} items and {posterior.shape[1]} labels."
            )
        if not np.isfinite(scores).all():
            row = int(np.argmin(np.isfinite(scores).all(axis=1)))
            raise ValueError(f"The out-of-sample scores of item {row} are not finite.")
        return scores


@dataclass(frozen=True)
class _Block:
    """Votes of some pairs (annotator, label), sorted by pair."""

    item: NDArray[np.intp]
    label: NDArray[np.intp]
    who: NDArray[np.intp]
    weight: Matrix
    pair: NDArray[np.intp]  # numbered within the block
    pairs: slice
    pair_label: NDArray[np.intp]
    pair_who: NDArray[np.intp]
    is_right: NDArray[np.bool_]  # (pairs, labels): whether the vote is that label
    to_pairs: sp.csr_array
    to_items: sp.csr_array


@dataclass
class _Counts:
    """Expected numbers of votes, and the shares of them that are habit."""

    by_annotator: Matrix  # (annotators, true labels)
    careful_by_annotator: Matrix
    careful_right: Matrix
    pooled: Matrix  # (votes, true labels)
    careful: Matrix
    habit: Matrix  # (pairs,)
    habit_share: list[Matrix]  # (pairs, true labels), for every block


class _Crowd:
    """The confusion matrices of all annotators, and what votes say by them.

    No array has more cells than the votes of one block, the annotators or the items have labels.
    """

    def __init__(self, votes: sp.csr_array, n_classes: int) -> None:
        n_items, n_columns = votes.shape
        self.n_annotators = n_columns // n_classes
        self.counts = np.zeros((n_items, n_classes))
        self._read(votes.tocoo(), n_classes)
        #: Whether annotators differ; votes without names are those of one.
        self._differ = self.n_annotators > 1
        self._alone = self._voters() == 1
        self._votes_alone = np.bincount(
            self._who, self._weight * self._alone[self._item], self.n_annotators
        )
        rate = max(PRIOR_ACCURACY, 1.0 / n_classes)
        self.pooled = np.full((n_classes, n_classes), (1.0 - rate) / max(n_classes - 1, 1))
        np.fill_diagonal(self.pooled, rate)
        self.strength = STRENGTH
        self.pooled_strength = POOLED_STRENGTH
        self._skill = np.zeros(self.n_annotators)
        self._skill_variance = SKILL_VARIANCE
        self._habit_rate = np.full(self.n_annotators, PRIOR_HABIT if self._differ else 0.0)
        self._habit = np.full(len(self._pair_label), 1.0 / n_classes)

    def _read(self, votes: sp.coo_array, n_classes: int) -> None:
        """Sort the votes by annotator and label and cut them into blocks."""
        order = np.argsort(votes.col, kind="stable")
        item, column = votes.row[order].astype(np.intp), votes.col[order].astype(np.int64)
        weight = votes.data[order].astype(float)
        who, label = (column // n_classes).astype(np.intp), (column % n_classes).astype(np.intp)
        if self.n_annotators > 1:  # several labels of one annotator for one item share a vote
            _, ballot = np.unique(item * self.n_annotators + who, return_inverse=True)
            weight = weight / np.bincount(ballot)[ballot]
        np.add.at(self.counts, (item, label), weight)
        columns, pair = np.unique(column, return_inverse=True)
        self._item, self._who, self._label, self._weight = item, who, label, weight
        self._pair_who = (columns // n_classes).astype(np.intp)
        self._pair_label = (columns % n_classes).astype(np.intp)
        ends = np.searchsorted(pair, np.arange(len(columns) + 1))
        self._blocks = [
            self._block(pair, slice(first, last), slice(ends[first], ends[last]), n_classes)
            for first, last in _parts(ends, max(1, BLOCK_CELLS // n_classes))
        ]

    def _block(self, pair: NDArray[np.intp], pairs: slice, part: slice, n_classes: int) -> _Block:
        item, weight, own = self._item[part], self._weight[part], pair[part] - pairs.start
        n_items, n_votes = len(self.counts), len(item)
        numbers = np.arange(n_votes)
        pair_label = self._pair_label[pairs]
        return _Block(
            item=item,
            label=self._label[part],
            who=self._who[part],
            weight=weight,
            pair=own,
            pairs=pairs,
            pair_label=pair_label,
            pair_who=self._pair_who[pairs],
            is_right=pair_label[:, None] == np.arange(n_classes),
            to_pairs=sp.csr_array((weight, (own, item)), shape=(len(pair_label), n_items)),
            to_items=sp.csr_array((weight, (item, numbers)), shape=(n_items, n_votes)),
        )

    def _voters(self) -> NDArray[np.intp]:
        """Count the annotators of every item; votes without names count one by one."""
        if self.n_annotators == 1:
            return np.ceil(self.counts.sum(axis=1)).astype(np.intp)
        ballots = np.unique(self._item * self.n_annotators + self._who)
        return np.bincount(ballots // self.n_annotators, minlength=len(self.counts))

    def start(self) -> Matrix:
        """Return probabilities from votes that all count the same."""
        n_classes = self.counts.shape[1]
        rate = max(PRIOR_ACCURACY, 1.0 / n_classes)
        odds = rate / max((1.0 - rate) / max(n_classes - 1, 1), 1e-12)
        return softmax(self.counts * np.log(odds), axis=1)

    def _careful(self, block: _Block) -> Matrix:
        """Return how probable the pairs' votes are, habit aside, for every true label."""
        pooled = self.pooled.T[block.pair_label]
        lift = np.exp(self._skill[block.pair_who])[:, None]
        return _moved(pooled, self.pooled.diagonal(), lift, block.is_right)

    def _habit_share(self, block: _Block) -> Matrix:
        """Return which share of the pairs' votes is habit, for every true label."""
        rate = self._habit_rate[block.pair_who][:, None]
        habit = rate * self._habit[block.pairs][:, None]
        return habit / (habit + (1.0 - rate) * self._careful(block))

    def trust(self, checked: float) -> Matrix:
        """Return how far the probabilities of every item are more than a repeated single vote."""
        return np.where(self._alone, checked, 1.0)[:, None]

    def estimate(self, posterior: Matrix, checked: float) -> None:
        """Estimate the parameters from the probabilities of the labels.

        Nobody else says whether the vote on an item with a single one is right, and features may
        be as wrong as the vote: such votes count by the share of the uncertainty about votes that
        features take away, ``checked``, and for the rest they are as good as votes usually are.
        """
        self._known = posterior * self.trust(checked)
        self._unchecked = (1.0 - checked) * self._votes_alone
        counts = self._count()
        self._counts = counts
        self._estimate_pooled(counts)
        if self._differ:
            self._estimate_skills(counts)
            self._estimate_habits(counts)

    def _count(self) -> _Counts:
        n_classes = self.counts.shape[1]
        per_annotator = (self.n_annotators, n_classes)
        counts = _Counts(
            by_annotator=np.zeros(per_annotator),
            careful_by_annotator=np.zeros(per_annotator),
            careful_right=np.zeros(per_annotator),
            pooled=np.zeros((n_classes, n_classes)),
            careful=np.zeros((n_classes, n_classes)),
            habit=np.zeros(len(self._pair_label)),
            habit_share=[],
        )
        for block in self._blocks:
            votes = block.to_pairs @ self._known
            share = self._habit_share(block) if self._differ else np.zeros_like(votes)
            careful = votes * (1.0 - share)
            numbers = np.arange(len(votes))
            np.add.at(counts.by_annotator, block.pair_who, votes)
            np.add.at(counts.careful_by_annotator, block.pair_who, careful)
            counts.careful_right[block.pair_who, block.pair_label] = careful[
                numbers, block.pair_label
            ]
            np.add.at(counts.pooled, block.pair_label, votes)
            np.add.at(counts.careful, block.pair_label, careful)
            counts.habit[block.pairs] = (votes * share).sum(axis=1)
            counts.habit_share.append(share)
        return counts

    def _estimate_pooled(self, counts: _Counts) -> None:
        """Draw the pooled confusion matrix towards equally hard labels and popular mistakes."""
        careful = counts.careful.T
        right = careful.diagonal()
        prior_votes = PRIOR_VOTES + self._unchecked.sum()
        rate = (right.sum() + prior_votes * PRIOR_ACCURACY) / (careful.sum() + prior_votes)
        mistakes = careful.sum(axis=0) - right + 1.0
        others = np.maximum(mistakes.sum() - mistakes, 1e-12)
        self._even = (1.0 - rate) * mistakes / others[:, None]
        np.fill_diagonal(self._even, rate)
        strength = self._even_votes()
        prior, total = strength * self._even, careful.sum(axis=1, keepdims=True) + strength
        self.pooled = np.clip((careful + prior) / total, 1e-12, 1.0 - 1e-12)

    def _even_votes(self) -> float:
        """Return the votes per label for which all labels are equally hard."""
        return self.pooled_strength + float(self._unchecked.sum()) / len(self.pooled)

    def _usual_votes(self) -> NDArray[np.float64]:
        """Return the votes per label for which skill and habit tell all about an annotator."""
        return self.strength + self._unchecked / len(self.pooled)

    def _estimate_skills(self, counts: _Counts) -> None:
        """Find the mode of every skill by Newton's method, and the variance of the skills."""
        usual = logit(self.pooled.diagonal())
        votes, right = counts.careful_by_annotator, counts.careful_right
        variance = PRIOR_ACCURACY * (1.0 - PRIOR_ACCURACY)
        prior = 1.0 / self._skill_variance + variance * self._unchecked
        for _ in range(3):
            rate = expit(usual + self._skill[:, None])
            slope = (right - votes * rate).sum(axis=1) - self._skill * prior
            precision = (votes * rate * (1.0 - rate)).sum(axis=1) + prior
            self._skill = np.clip(self._skill + np.clip(slope / precision, -1.0, 1.0), -12.0, 12.0)
        self._right_rate, self._skill_precision = rate, precision
        squares = (self._skill**2 + 1.0 / precision).sum() + SKILL_ANNOTATORS * SKILL_VARIANCE
        self._skill_variance = float(squares / (self.n_annotators + SKILL_ANNOTATORS))

    def _estimate_habits(self, counts: _Counts) -> None:
        """Estimate how many votes of every annotator are habit, and which."""
        self._habit_votes = np.bincount(self._pair_who, counts.habit, self.n_annotators)
        votes = counts.by_annotator.sum(axis=1)
        prior_votes = PRIOR_VOTES + self._unchecked.sum()
        total = self._habit_votes.sum() + prior_votes * PRIOR_HABIT
        self._usual_rate = total / (votes.sum() + prior_votes)
        self._rate_votes = OWN_HABIT_VOTES + self._unchecked
        own = self._habit_votes + self._rate_votes * self._usual_rate
        self._habit_rate = own / (votes + self._rate_votes)
        popular = np.bincount(self._pair_label, counts.habit, self.counts.shape[1]) + 1.0
        self._popular = popular / popular.sum()
        among = self._habit_votes[self._pair_who] + HABIT_STRENGTH
        self._habit = (counts.habit + HABIT_STRENGTH * self._popular[self._pair_label]) / among

    def log_likelihood(self, *, update_strengths: bool = False) -> Matrix:
        """Return the log-probability of every item's votes for every label.

        What the parameters owe to the item itself is taken out of them. If asked for, the
        strengths of the priors then make a Newton step towards the largest likelihood.
        """
        total = np.zeros_like(self.counts)
        pooled = self._counts.pooled.T
        share = self._counts.careful.T / np.maximum(pooled, 1e-12)
        given: Matrix = np.asarray(sp.csr_array(self.counts) @ share.T)
        slopes = np.zeros((2, 2))
        for block, habit_share in zip(self._blocks, self._counts.habit_share, strict=True):
            likelihood = self._left_out(block, habit_share, share, given)
            total += block.to_items @ np.log(np.maximum(likelihood.value, 1e-300))
            if update_strengths:
                weight = self._known[block.item] * block.weight[:, None]
                strengths = self._usual_votes()[block.who][:, None]
                slopes += likelihood.slopes(weight, strengths, self._even_votes())
        if update_strengths:
            if self._differ:
                self.strength = self._bounded(
                    _newton_step(self.strength, slopes[0], STRENGTH, STRENGTH_SPREAD)
                )
            self.pooled_strength = self._bounded(
                _newton_step(
                    self.pooled_strength, slopes[1], POOLED_STRENGTH, POOLED_STRENGTH_SPREAD
                )
            )
        return total

    def _bounded(self, strength: float) -> float:
        return min(max(strength, MIN_STRENGTH_PER_LABEL * len(self.pooled)), MAX_STRENGTH)

    def _left_out(
        self, block: _Block, habit_share: Matrix, share: Matrix, given: Matrix
    ) -> _Likelihood:
        """Return the probability of every vote of a block by the votes on other items."""
        known, label = self._known[block.item], block.label
        counts, careful = self._counts, self._counts.careful.T
        same = self.counts[block.item, label][:, None]
        votes = np.maximum(careful.T[label] - known * same * share.T[label], 0.0)
        among = np.maximum(careful.sum(axis=1) - known * given[block.item], 0.0)
        even, strength = self._even.T[label], self._even_votes()
        pooled = (votes + strength * even) / (among + strength)
        level = _Level(votes, among, even)
        if not self._differ:
            return _Likelihood(pooled, level, None, None)

        own = known * block.weight[:, None]
        own_habit = habit_share[block.pair]
        is_right = block.is_right[block.pair]
        right = careful.diagonal() - known * self.counts[block.item] * share.diagonal()
        usual = (np.maximum(right, 0.0) + strength * self._even.diagonal()) / (among + strength)
        lift = np.exp(self._left_out_skill(block, own * (1.0 - own_habit), is_right))[:, None]
        moved = _moved(pooled, usual, lift, is_right)

        own_votes = (own * own_habit).sum(axis=1)
        habit_votes = np.maximum(self._habit_votes[block.who] - own_votes, 0.0)
        all_votes = counts.by_annotator.sum(axis=1)[block.who] - own.sum(axis=1)
        rate_votes = self._rate_votes[block.who]
        rate = habit_votes + rate_votes * self._usual_rate
        rate /= np.maximum(all_votes, 0.0) + rate_votes
        habit = np.maximum(counts.habit[block.pairs][block.pair] - own_votes, 0.0)
        habit += HABIT_STRENGTH * self._popular[label]
        habit *= rate / (habit_votes + HABIT_STRENGTH)
        careful_part = (1.0 - rate)[:, None] * moved
        center = careful_part + habit[:, None]

        pairs = block.to_pairs @ self._known
        annotator = _Level(
            np.maximum(pairs[block.pair] - own, 0.0),
            np.maximum(counts.by_annotator[block.who] - own, 0.0),
            center,
        )
        own_strength = self._usual_votes()[block.who][:, None]
        value = (annotator.votes + own_strength * center) / (annotator.among + own_strength)
        return _Likelihood(value, level, annotator, careful_part)

    def _left_out_skill(
        self, block: _Block, own: Matrix, is_right: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Take a vote out of its annotator's skill, by one step of Newton's method back."""
        rate = self._right_rate[block.who]
        slope = (own * (is_right - rate)).sum(axis=1)
        precision = self._skill_precision[block.who] - (own * rate * (1.0 - rate)).sum(axis=1)
        return self._skill[block.who] - slope / np.maximum(precision, 1.0 / self._skill_variance)

    def confusion(self, annotator: int) -> Matrix:
        """Return the confusion matrix of an annotator."""
        if not self._differ:
            return self.pooled / self.pooled.sum(axis=1, keepdims=True)
        n_classes = len(self.pooled)
        is_right = np.eye(n_classes, dtype=bool)
        usual = self.pooled.diagonal()[:, None]
        careful = _moved(self.pooled, usual, np.exp(self._skill[annotator]), is_right)
        rate = self._habit_rate[annotator]
        center = (1.0 - rate) * careful + rate * self._habit_of(annotator)
        votes = np.zeros((n_classes, n_classes))
        mine = self._who == annotator
        np.add.at(
            votes.T,
            self._label[mine],
            self._known[self._item[mine]] * self._weight[mine][:, None],
        )
        strength = self._usual_votes()[annotator]
        found = (votes + strength * center) / (votes.sum(axis=1, keepdims=True) + strength)
        return found / found.sum(axis=1, keepdims=True)

    def _habit_of(self, annotator: int) -> NDArray[np.float64]:
        among = self._habit_votes[annotator] + HABIT_STRENGTH
        habit = HABIT_STRENGTH * self._popular / among
        mine = self._pair_who == annotator
        habit[self._pair_label[mine]] = self._habit[mine]
        return habit

    def right_votes(self) -> Matrix:
        """Return for annotators and labels how probable a right vote is."""
        if not self._differ:
            return self.confusion(0).diagonal()[None, :]
        lift = np.exp(self._skill)[:, None]
        careful = _moved(self.pooled.diagonal(), self.pooled.diagonal(), lift, np.array(True))
        among = self._habit_votes + HABIT_STRENGTH
        habit = HABIT_STRENGTH * self._popular / among[:, None]
        habit[self._pair_who, self._pair_label] = self._habit
        rate = self._habit_rate[:, None]
        right = np.zeros_like(habit)
        np.add.at(
            right,
            (self._who, self._label),
            self._weight * self._known[self._item, self._label],
        )
        center = (1.0 - rate) * careful + rate * habit
        strength = self._usual_votes()[:, None]
        return (right + strength * center) / (self._counts.by_annotator + strength)

    def votes_of_annotators(self) -> NDArray[np.intp]:
        """Count the votes; those without names count by their weights."""
        if not self._differ:
            return np.array([round(self.counts.sum())])
        return np.bincount(self._who, minlength=self.n_annotators)

    def agreement(self) -> NDArray[np.float64]:
        """Return the share of the others' votes on an annotator's items that are equal."""
        own = self._weight if self._differ else np.ones(len(self._weight))
        weight = self._weight
        others = weight * (self.counts.sum(axis=1)[self._item] - own)
        equal = weight * (self.counts[self._item, self._label] - own)
        total = np.bincount(self._who, others, self.n_annotators)
        agreed = np.bincount(self._who, equal, self.n_annotators)
        return np.divide(agreed, total, out=np.full(len(total), np.nan), where=total > 1e-9)


class _Level(NamedTuple):
    """A level of the hierarchy: votes for a label, among how many, and what they are drawn to."""

    votes: Matrix
    among: Matrix
    center: Matrix

    def slope(self, weight: Matrix, strength: float | Matrix) -> float:
        """Return the derivative of the log-likelihood by the logarithm of the strength."""
        prior = strength * self.center
        gain = prior / np.maximum(self.votes + prior, 1e-300) - strength / (self.among + strength)
        return float((weight * gain).sum())


class _Likelihood(NamedTuple):
    value: Matrix
    pooled: _Level
    annotator: _Level | None
    careful: Matrix | None

    def slopes(self, weight: Matrix, strength: Matrix, pooled_strength: float) -> Matrix:
        """Return the derivatives at both strengths, and a little beyond them."""
        own = [0.0, 0.0]
        if self.annotator is not None and self.careful is not None:
            own = [self.annotator.slope(weight, s) for s in _with_next(strength)]
            total = self.annotator.votes + strength * self.annotator.center
            weight = weight * strength * self.careful / np.maximum(total, 1e-300)
        return np.array([own, [self.pooled.slope(weight, s) for s in _with_next(pooled_strength)]])


def _with_next(strength: Any) -> tuple[Any, Any]:
    """Return a strength and one that is a little larger."""
    return strength, strength * np.exp(0.2)


def _newton_step(
    strength: float, slopes: NDArray[np.float64], usual: float, spread: float
) -> float:
    """Move a strength towards the largest likelihood times prior, by at most a factor of two."""
    distance = np.log(np.array(_with_next(strength)) / usual)
    first, second = slopes - distance / spread**2
    curvature = (second - first) / 0.2
    step = -first / curvature if curvature < 0 else np.sign(first)
    return float(strength * np.exp(np.clip(step, -0.7, 0.7)))


def _moved(votes: Matrix, right: Matrix, lift: Any, is_right: NDArray[np.bool_]) -> Matrix:
    """Multiply the odds of right votes; wrong ones keep their proportions."""
    return votes * np.where(is_right, lift, 1.0) / (1.0 + right * (lift - 1.0))


def _parts(ends: NDArray[np.intp], most: int) -> Iterator[tuple[int, int]]:
    """Cut pairs into runs with at most so many votes, or a single pair."""
    first = 0
    while first < len(ends) - 1:
        last = int(np.searchsorted(ends, ends[first] + most, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last
