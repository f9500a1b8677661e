r"""What annotators' votes say about the labels: a model of every annotator, joined with features.

A vote of annotator w on an item of label l comes from one of three sources: w *looks* and votes l,
w *guesses* v with probability :math:`g_w[l, v]`, or w votes *against* l, for any other label:

.. math:: A_w[l, v] = \theta_{w1}\, 1[v = l] + \theta_{w2}\, g_w[l, v]
          + \theta_{w3}\, \frac{1[v \ne l]}{q - 1} .

Few votes say little, so that everything is drawn towards something simpler, with a strength in
votes: the shares :math:`\theta_w` of an annotator towards those of all; what w guesses towards what
all guess on items of label l; this towards what all guess on any item; and that towards guesses
without preference. The simplest member of the family, one accuracy for all, is the majority vote
with a class prior. An annotator with one vote is the average annotator, one with twenty votes has a
skill, one with hundreds of votes has habits; votes without names are those of the average one.
Where features check the votes, an annotator has a whole matrix of their own, drawn towards
:math:`A_w`; from votes alone it could not be told from labels that are mixed up.

The probability of the label of item i is

.. math:: P_{il} \propto p_i(l) \prod_w A_w[l, v_{iw}],

where :math:`p_i` is the class prior or, with features, softmax(aF + b) of scores F that a learner
gives the item without having seen it. The parameters follow from P and P from the parameters, in
turn (expectation maximization, Dawid and Skene 1979), with two differences. First one accuracy for
all is fitted, and all else starts from the labels that it finds: otherwise a frequent label and a
popular guess, or a rare label and the mistakes on a frequent one, are taken for each other. And in
the likelihood of a vote the parameters are estimated *from the other votes*. A vote therefore never
confirms itself, and the resulting likelihood of left-out votes says how much to smooth (the
strengths) and how far to believe the features (a and b): scores that do not predict votes get
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
from scipy.special import logsumexp, softmax

from gmpll.candidates import VotedCandidates, candidates_from_votes

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

Matrix = NDArray[np.float64]
OutOfSample = Callable[[Matrix], Matrix]

#: Share of right votes before anything is known, that of votes against the label (where annotators
#: have names), and how many votes that is worth.
PRIOR_ACCURACY = 0.8
PRIOR_AGAINST = 0.02
PRIOR_VOTES = 10.0
#: Items that equal shares of all labels are worth in the class prior.
PRIOR_ITEMS = 2.0
#: Votes that the simpler model is worth: in an annotator's shares of the sources, in an annotator's
#: guesses, in the guesses on items of a label (where an item counts as one vote), in a row of an
#: annotator's own matrix. The search for them starts here, which is worth some votes in it.
SHARES, GUESSES, LABEL_GUESSES, ROWS = range(4)
STRENGTHS = (5.0, 5.0, 30.0, 20.0)
STRENGTH_VOTES = 10.0
MIN_STRENGTH, MAX_STRENGTH = 2.0, 1e4
#: The same for guesses on any item, which are drawn towards guesses without preference.
POPULAR_STRENGTH = 50.0
#: A strength at which nothing of one's own is left.
ALIKE = 1e15
#: Iterations with one accuracy for all.
ALIKE_ITERATIONS = 10
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
        Votes that the average annotator is worth in what is known of one; infinite without names.
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
    the result is the vote. With two labels and no names it is the majority vote, unless the class
    prior says otherwise. An annotator who gave an item several labels has a share of a vote for
    each of them; one with a single vote is the average annotator. An item without votes has the
    class prior, or what its features say.

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
    >>> bool(ann > eve)
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
        alone = fitted.evidence
        # The votes alone may have let one label absorb another: the likelihood tells which start
        # was better. Where neither gains over the votes alone, these stand.
        for start in (fitted.posterior, crowd.start()) if learners else ():
            other = _Crowd(voted, len(classes))
            found = self._iterate(other, start, _FeaturePrior(learners))
            gain = found.evidence - fitted.evidence
            if gain.mean() > gain.std() / np.sqrt(len(gain)):
                crowd, fitted = other, found
                self.feature_weight_ = fitted.weights
                self.feature_gain_ = float((fitted.evidence - alone).mean())
        self.posterior_ = fitted.posterior
        self.feature_prior_ = np.exp(fitted.log_prior)
        self.class_prior_ = _class_prior(fitted.posterior)
        self.log_likelihood_ = float(fitted.evidence.mean())
        self.strength_ = float(crowd.strengths[SHARES]) if crowd.named else np.inf
        voted_for = (crowd.counts > 0) | (crowd.counts == 0).all(axis=1, keepdims=True)
        self.outside_probability_ = np.where(voted_for, 0.0, self.posterior_).sum(axis=1)
        matrices = crowd.matrices()
        self.annotators_ = Annotators(
            names=names,
            classes=classes,
            votes=crowd.votes_of_annotators(),
            accuracy=matrices.right_votes() @ self.class_prior_,
            agreement=crowd.agreement(),
            _confusion=matrices.of,
        )
        return self

    def _iterate(self, crowd: _Crowd, posterior: Matrix, features: _FeaturePrior | None) -> _Fit:
        """Alternate between the parameters and the probabilities until these stay."""
        checked = 0.0
        alike = ALIKE_ITERATIONS if features is None else 0
        for iteration in range(self.max_iter):
            if iteration == alike:
                crowd.release()
            crowd.estimate(posterior, checked)
            from_votes = crowd.log_likelihood()
            trust = crowd.trust(checked)
            log_prior = _log_class_prior(posterior, trust)
            evidence = logsumexp(log_prior + from_votes, axis=1)
            if features is not None:
                without, entropy = evidence, -(_class_prior(posterior) * log_prior).sum(axis=1)
                by_votes = np.exp(log_prior + from_votes - evidence[:, None])
                log_prior = features.fit(trust * posterior + (1.0 - trust) * by_votes, from_votes)
                evidence = logsumexp(log_prior + from_votes, axis=1)
                explained = (evidence - without).mean() / max(entropy.mean(), 1e-12)
                checked = float(np.clip(explained, 0.0, 1.0))
            before, posterior = posterior, np.exp(log_prior + from_votes - evidence[:, None])
            self.n_iter_ += 1
            change = np.abs(posterior - before).sum(axis=1).mean()
            if change < self.tol and iteration > alike + 3:
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
    total = posterior.sum(axis=0) + PRIOR_ITEMS / posterior.shape[1]
    return total / total.sum()


def _log_class_prior(posterior: Matrix, trust: Matrix) -> Matrix:
    """Return for every item the logarithm of the class prior that the other items show."""
    known = trust * posterior
    others = np.maximum(known.sum(axis=0) - known, 0.0) + PRIOR_ITEMS / known.shape[1]
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


class _Block(NamedTuple):
    """Votes of some pairs (annotator, label), sorted by pair."""

    item: NDArray[np.intp]
    label: NDArray[np.intp]
    who: NDArray[np.intp]
    weight: Matrix
    pair: NDArray[np.intp]  # numbered within the block
    pairs: slice
    to_pairs: sp.csr_array
    to_items: sp.csr_array


class _Pairs(NamedTuple):
    """What was found about the pairs of a block, for true labels in columns."""

    votes: Matrix  # those that features check
    looks: NDArray[np.float64]  # share of the right votes
    guess: Matrix  # share of all votes


class _Crowd:
    """The parameters of all annotators, and what votes say by them.

    No array has more cells than the votes of one block, the annotators or the items have labels.
    """

    def __init__(self, votes: sp.csr_array, n_classes: int) -> None:
        self.n_annotators = votes.shape[1] // n_classes
        self.named = self.n_annotators > 1
        self.counts = np.zeros((votes.shape[0], n_classes))
        self._read(votes.tocoo(), n_classes)
        voters = self._voters()
        self._alone = voters <= 1
        #: Votes on an item share what is hard about it: in what is guessed on items of a label
        #: they count as one.
        self._per_item = 1.0 / np.maximum(voters, 1)[:, None]
        self._votes_alone = np.bincount(
            self._who, self._weight * self._alone[self._item], self.n_annotators
        )
        self._accuracy = max(PRIOR_ACCURACY, 1.0 / n_classes)
        against = PRIOR_AGAINST if self.named else 0.0
        looks = (self._accuracy - 1.0 / n_classes) / max(1.0 - 1.0 / n_classes, 1e-12)
        self._prior = np.array([looks, 1.0 - looks - against, against])
        self._shares = np.tile(self._prior, (self.n_annotators, 1))
        self._guessed = np.zeros((self.n_annotators, n_classes))
        self._label_guesses = np.full((n_classes, n_classes), 1.0 / n_classes)
        self.strengths = np.full(4, ALIKE)
        self._popular_strength = ALIKE

    def release(self) -> None:
        """Let annotators and labels differ."""
        self.strengths = np.array(STRENGTHS)
        if not self.named:
            self.strengths[[SHARES, GUESSES, ROWS]] = ALIKE
        self._popular_strength = POPULAR_STRENGTH

    def _read(self, votes: sp.coo_array, n_classes: int) -> None:
        """Sort the votes by annotator and label and cut them into blocks."""
        order = np.argsort(votes.col, kind="stable")
        item, column = votes.row[order].astype(np.intp), votes.col[order].astype(np.int64)
        weight = votes.data[order].astype(float)
        who, label = (column // n_classes).astype(np.intp), (column % n_classes).astype(np.intp)
        if self.named:  # several labels of one annotator for one item share a vote
            _, ballot = np.unique(item * self.n_annotators + who, return_inverse=True)
            weight = weight / np.bincount(ballot)[ballot]
        np.add.at(self.counts, (item, label), weight)
        columns, pair = np.unique(column, return_inverse=True)
        self._item, self._who, self._label, self._weight = item, who, label, weight
        self._pair_who, self._pair_label = np.divmod(columns.astype(np.intp), n_classes)
        ends = np.searchsorted(pair, np.arange(len(columns) + 1))
        self._blocks = []
        for first, last in _parts(ends, max(1, BLOCK_CELLS // n_classes)):
            part = slice(ends[first], ends[last])
            own, numbers = pair[part] - first, np.arange(ends[last] - ends[first])
            to_pairs = (last - first, len(self.counts))
            to_items = (len(self.counts), len(numbers))
            self._blocks.append(
                _Block(
                    item=item[part],
                    label=label[part],
                    who=who[part],
                    weight=weight[part],
                    pair=own,
                    pairs=slice(first, last),
                    to_pairs=sp.csr_array((weight[part], (own, item[part])), shape=to_pairs),
                    to_items=sp.csr_array((weight[part], (item[part], numbers)), shape=to_items),
                )
            )

    def _voters(self) -> NDArray[np.intp]:
        """Count the annotators of every item; votes without names count one by one."""
        if not self.named:
            return np.ceil(self.counts.sum(axis=1)).astype(np.intp)
        ballots = np.unique(self._item * self.n_annotators + self._who)
        return np.bincount(ballots // self.n_annotators, minlength=len(self.counts))

    def start(self) -> Matrix:
        """Return probabilities from votes that all count the same."""
        n_classes = self.counts.shape[1]
        wrong = max((1.0 - self._accuracy) / max(n_classes - 1, 1), 1e-12)
        return softmax(self.counts * np.log(self._accuracy / wrong), axis=1)

    def trust(self, checked: float) -> Matrix:
        """Return how far the probabilities of every item are more than a repeated single vote.

        Nobody else says whether the vote on an item with a single one is right, and features may
        be as wrong as the vote: such votes count by the share of the uncertainty about votes that
        features take away, ``checked``, and for the rest they are as good as votes usually are.
        """
        return np.where(self._alone, checked, 1.0)[:, None]

    def estimate(self, posterior: Matrix, checked: float) -> None:
        """Estimate the parameters from the probabilities of the labels."""
        n_annotators, n_classes = self._guessed.shape
        known = self._known = posterior * self.trust(checked)
        unchecked = (1.0 - checked) * self._votes_alone
        sources = np.zeros((n_annotators, 3))
        guesses = np.zeros((n_classes, n_classes))  # votes in rows, true labels in columns
        self._item_guesses = np.zeros_like(known)
        self._pairs = []
        self._checked = checked
        self._by_label = np.zeros_like(self._guessed)
        guessed = np.zeros_like(self._guessed)
        for block in self._blocks:
            who, label = self._pair_who[block.pairs], self._pair_label[block.pairs]
            votes = block.to_pairs @ known
            looks, guess = self._sources(who, label)
            guess_votes = votes * guess
            looked = votes[np.arange(len(label)), label] * looks
            total = guess_votes.sum(axis=1)
            np.add.at(guesses, label, (block.to_pairs @ (known * self._per_item)) * guess)
            guessed[who, label] = total
            against = np.maximum(votes.sum(axis=1) - looked - total, 0.0)
            np.add.at(sources, who, np.stack([looked, total, against], axis=1))
            self._item_guesses += block.to_items @ (
                (known * self._per_item)[block.item] * guess[block.pair]
            )
            np.add.at(self._by_label, who, checked * votes)
            self._pairs.append(_Pairs(checked * votes, looks, guess))
        self._source_votes, self._guessed, self._guess_votes = sources, guessed, guesses

        prior_votes = PRIOR_VOTES + unchecked.sum()
        self._usual = sources.sum(axis=0) + prior_votes * self._prior
        self._usual /= self._usual.sum()
        self._unchecked = unchecked
        own = (self.strengths[SHARES] + unchecked)[:, None]
        self._shares = (sources + own * self._usual) / (sources.sum(axis=1, keepdims=True) + own)
        popular = guesses.sum(axis=1) + self._popular_strength / n_classes
        self._popular = popular / popular.sum()
        strength = self.strengths[LABEL_GUESSES]
        center = guesses + strength * self._popular[:, None]
        self._label_guesses = (center / (guesses.sum(axis=0) + strength)).T

    def _sources(
        self, who: NDArray[np.intp], label: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], Matrix]:
        """Return by which share pairs look (if they are right) and guess (for true labels)."""
        strength = self.strengths[GUESSES]
        own, among = self._guessed[who, label], self._guessed.sum(axis=1)[who]
        guess = own[:, None] + strength * self._label_guesses.T[label]
        guess *= (self._shares[who, 1] / (among + strength))[:, None]
        against = self._shares[who, 2] / max(len(self._label_guesses) - 1, 1)
        numbers = np.arange(len(label))
        total = guess + against[:, None]
        total[numbers, label] += self._shares[who, 0] - against
        return self._shares[who, 0] / total[numbers, label], guess / np.maximum(total, 1e-300)

    def log_likelihood(self) -> Matrix:
        """Return the log-probability of every item's votes for every label.

        What the parameters owe to the vote itself is taken out of them. The strengths move towards
        the largest likelihood of the votes.
        """
        total = np.zeros_like(self.counts)
        came, expected = np.zeros((2, 4))
        for block, pairs in zip(self._blocks, self._pairs, strict=True):
            value, levels = self._left_out(block, pairs)
            total += block.to_items @ np.log(np.maximum(value, 1e-300))
            for number, level in enumerate(levels):
                from_center = level.from_center()
                came[number] += from_center[0]
                expected[number] += from_center[1]
        came += STRENGTH_VOTES * np.array(STRENGTHS) / self.strengths
        moved = self.strengths * (came / (expected + STRENGTH_VOTES)) ** 2
        bounded = np.clip(moved, MIN_STRENGTH, MAX_STRENGTH)
        self.strengths = np.where(self.strengths < ALIKE, bounded, ALIKE)
        return total

    def _left_out(self, block: _Block, pairs: _Pairs) -> tuple[Matrix, list[_Level]]:
        """Return the probability of every vote of a block by the other votes."""
        item, label, who = block.item, block.label, block.who
        numbers = np.arange(len(item))
        known = self._known[item] * block.weight[:, None]
        guessed = known * pairs.guess[block.pair]
        own_guesses, own = guessed.sum(axis=1), known.sum(axis=1)
        looked = known[numbers, label] * pairs.looks[block.pair]
        mine = np.stack([looked, own_guesses, np.maximum(own - looked - own_guesses, 0.0)], axis=1)

        same = (self.counts[item, label] / block.weight)[:, None]
        by_label = _Level(
            votes=self._guess_votes[label] - guessed * same * self._per_item[item],
            among=self._guess_votes.sum(axis=0) - self._item_guesses[item],
            strength=self.strengths[LABEL_GUESSES],
            center=self._popular[label][:, None],
            weight=guessed * self._per_item[item],
        )
        by_annotator = _Level(
            votes=(self._guessed[who, label] - own_guesses)[:, None],
            among=(self._guessed.sum(axis=1)[who] - own_guesses)[:, None],
            strength=self.strengths[GUESSES],
            center=by_label.value(),
            weight=guessed,
        )
        shares = _Level(
            votes=self._source_votes[who] - mine,
            among=(self._source_votes.sum(axis=1)[who] - own)[:, None],
            strength=(self.strengths[SHARES] + self._unchecked[who])[:, None],
            center=self._usual,
            weight=mine,
        )
        share = shares.value()
        against = share[:, 2] / max(self.counts.shape[1] - 1, 1)
        value = share[:, 1:2] * by_annotator.value() + against[:, None]
        value[numbers, label] += share[:, 0] - against
        row = _Level(
            votes=pairs.votes[block.pair] - self._checked * known,
            among=self._by_label[who] - self._checked * known,
            strength=self.strengths[ROWS],
            center=value,
            weight=self._checked * known,
        )
        return row.value(), [shares, by_annotator, by_label, row]

    def matrices(self) -> _Matrices:
        """Return the parameters without the votes."""
        return _Matrices(
            shares=self._shares,
            guessed=self._guessed,
            label_guesses=self._label_guesses,
            pair_who=self._pair_who,
            pair_label=self._pair_label,
            pair_votes=np.concatenate([self.counts[:0], *(pairs.votes for pairs in self._pairs)]),
            by_label=self._by_label,
            strengths=self.strengths,
        )

    def votes_of_annotators(self) -> NDArray[np.intp]:
        """Count the votes; those without names count by their weights."""
        if not self.named:
            return np.array([round(self.counts.sum())])
        return np.bincount(self._who, minlength=self.n_annotators)

    def agreement(self) -> NDArray[np.float64]:
        """Return the share of the others' votes on an annotator's items that are equal."""
        own = self._weight if self.named else np.ones(len(self._weight))
        others = self._weight * (self.counts.sum(axis=1)[self._item] - own)
        equal = self._weight * (self.counts[self._item, self._label] - own)
        total = np.bincount(self._who, others, self.n_annotators)
        agreed = np.bincount(self._who, equal, self.n_annotators)
        return np.divide(agreed, total, out=np.full(len(total), np.nan), where=total > 1e-9)


class _Level(NamedTuple):
    """Votes for something among others, drawn towards a center."""

    votes: Matrix
    among: Matrix
    strength: Any
    center: Matrix
    weight: Matrix  # how much of each vote went through this level

    def value(self) -> Matrix:
        votes, among = np.maximum(self.votes, 0.0), np.maximum(self.among, 0.0)
        return (votes + self.strength * self.center) / (among + self.strength)

    def from_center(self) -> tuple[float, float]:
        """Return how many votes came from the center, and how many would be expected to.

        The likelihood of the left-out votes is largest where the two are equal (Minka 2000).
        """
        center = self.strength * self.center
        came = center / np.maximum(np.maximum(self.votes, 0.0) + center, 1e-300)
        expected = self.strength / (np.maximum(self.among, 0.0) + self.strength)
        return float((self.weight * came).sum()), float((self.weight * expected).sum())


class _Matrices(NamedTuple):
    """What the confusion matrices of all annotators are made of."""

    shares: Matrix
    guessed: Matrix
    label_guesses: Matrix
    pair_who: NDArray[np.intp]
    pair_label: NDArray[np.intp]
    pair_votes: Matrix
    by_label: Matrix
    strengths: Matrix

    def of(self, annotator: int) -> Matrix:
        """Return the confusion matrix of an annotator."""
        n_classes = len(self.label_guesses)
        looks, guesses, against = self.shares[annotator]
        own, strength = self.guessed[annotator], self.strengths[GUESSES]
        guess = (own + strength * self.label_guesses) / (own.sum() + strength)
        right = np.eye(n_classes)
        found = looks * right + guesses * guess + against * (1.0 - right) / max(n_classes - 1, 1)
        found *= self.strengths[ROWS]
        mine = self.pair_who == annotator
        found[:, self.pair_label[mine]] += self.pair_votes[mine].T
        return found / found.sum(axis=1, keepdims=True)

    def right_votes(self) -> Matrix:
        """Return for annotators and labels how probable a right vote is."""
        strength = self.strengths[GUESSES]
        guess = self.guessed + strength * self.label_guesses.diagonal()
        guess /= self.guessed.sum(axis=1, keepdims=True) + strength
        right = self.strengths[ROWS] * (self.shares[:, :1] + self.shares[:, 1:2] * guess)
        numbers = np.arange(len(self.pair_label))
        right[self.pair_who, self.pair_label] += self.pair_votes[numbers, self.pair_label]
        return right / (self.by_label + self.strengths[ROWS])


def _parts(ends: NDArray[np.intp], most: int) -> Iterator[tuple[int, int]]:
    """Cut pairs into runs with at most so many votes, or a single pair."""
    first = 0
    while first < len(ends) - 1:
        last = int(np.searchsorted(ends, ends[first] + most, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last
