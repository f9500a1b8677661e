r"""What annotators' votes say about the labels: a model of every annotator, joined with features.

Annotator w votes v on an item of label l with probability :math:`A_w[l, v]`. Each row of this
confusion matrix has a Dirichlet prior around

.. math:: \theta_w 1[v = l] + (1 - \theta_w)\, g_w[l, v]:

w *looks* and votes l, or *guesses*. The strength of the prior is a number of votes, as in all that
follows: the share :math:`\theta_w` of looks is drawn towards that of all annotators, what w guesses
towards what all guess on items of label l, and this towards what all guess on any item. So an
annotator with one vote is the average annotator, one with twenty votes has a skill, and one with
hundreds of votes has a matrix of their own. Votes without names are those of one annotator.

Votes on one item are not independent given its label: hard items confuse everybody. They come from
a distribution of the item's own, with a Dirichlet prior of strength c around that of its label.
However many they are, they then count for no more than about c independent votes. Labels come from
the class prior or, with features, from softmax(aF + b) of scores F that a learner gives the item
without having seen it.

Labels are found by Gibbs sampling: in every sweep a label is drawn for every item, from its
probability given the labels of the *other* items, from which the parameters are counted.
(Expectation maximization, as of Dawid and Skene 1979, counts probabilities instead; there the
uncertainty of labels looks like habits of annotators, which then confirm themselves.) All strengths
move towards the largest likelihood of the votes given the drawn labels (Minka 2000), a and b
towards that of the votes alone: scores that do not predict votes get a = 0. The probability of a
label is the mean over the later sweeps. In the first ones all have the same accuracy: otherwise a
frequent label and a popular guess are taken for each other.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, logsumexp, softmax

from gmpll._typing import Floats, Places
from gmpll.candidates import VotedCandidates, candidates_from_votes

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

OutOfSample = Callable[[Floats], Floats]

#: Share of right votes before anything is known, and how many votes that is worth.
PRIOR_ACCURACY = 0.8
PRIOR_VOTES = 1000.0
#: Items that every label is taken to have had before, in the class prior, and most for all labels.
PRIOR_ITEMS = 4.0
MAX_PRIOR_ITEMS = 40.0
#: Votes that guesses without preference are worth in what all guess.
POPULAR_STRENGTH = 200.0
#: Where the search for the other strengths starts, and how many votes that is worth in it.
STRENGTHS = {"looks": 5.0, "habits": 10.0, "label": 30.0, "rows": 50.0, "item": 50.0}
STRENGTH_VOTES = 10.0
MIN_STRENGTH, MIN_ITEM_STRENGTH, MAX_STRENGTH = 2.0, 40.0, 1e4
#: Sweeps with one accuracy for all, and those that are not counted.
ALIKE_SWEEPS = 15
BURN_IN = 30
FEATURE_BURN_IN = 15
#: Precision of the normal prior of the offsets of the feature scores.
OFFSET_PRECISION = 0.1
#: Votes times labels that are in memory at once.
BLOCK_CELLS = 2**22


class AnnotatorModel:
    """Find the labels of items from votes, and how good every annotator is.

    Parameters
    ----------
    n_samples : int, default=100
        Number of sweeps over which probabilities are averaged; with features half of it.
    random_state : int, default=0
        Seed of the drawn labels.

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
    item_strength_ : float
        Independent votes that all votes on an item are worth at most.
    log_likelihood_ : float
        Mean log-likelihood of the votes of an item, given those of the others.
    n_iter_ : int
        Sweeps in all.

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

    def __init__(self, *, n_samples: int = 100, random_state: int = 0) -> None:
        self.n_samples = n_samples
        self.random_state = random_state

    def fit(
        self,
        votes: VotedCandidates | ArrayLike,
        out_of_sample: OutOfSample | Sequence[OutOfSample] | None = None,
        start: Floats | None = None,
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
        start : array of shape (n_items, n_classes), default=None
            Probabilities that were found otherwise, for instance from features and the sets of
            labels that items were given. Learners are trained on what the votes alone say and on
            these first; the start is kept from which the votes become likelier.
        """
        voted, classes, names = _read_votes(votes)
        learners = [out_of_sample] if callable(out_of_sample) else list(out_of_sample or ())
        crowd = _Crowd(voted, len(classes), np.random.default_rng(self.random_state))
        self.classes_ = classes
        self.n_iter_ = 0
        self.feature_weight_ = np.zeros(len(learners))
        self.feature_gain_ = 0.0
        fitted = self._sweep(crowd, crowd.start(), None)
        if learners:
            starts = [fitted.posterior] if start is None else [fitted.posterior, start]
            tries = [self._sweep(crowd.copy(), P, _FeaturePrior(learners)) for P in starts]
            found = max(tries, key=lambda each: each.evidence.mean())
            gain = found.evidence - fitted.evidence
            if gain.mean() > gain.std() / np.sqrt(len(gain)):  # else the votes alone stand
                fitted = found
                self.feature_weight_ = fitted.weights
                self.feature_gain_ = float(gain.mean())
        self.posterior_ = fitted.posterior
        self.feature_prior_ = fitted.prior
        self.class_prior_ = _class_prior(fitted.posterior)
        self.log_likelihood_ = float(fitted.evidence.mean())
        strengths = fitted.matrices.strengths
        self.strength_ = strengths["looks"] if crowd.named else np.inf
        self.item_strength_ = strengths["item"]
        voted_for = (crowd.counts > 0) | (crowd.counts == 0).all(axis=1, keepdims=True)
        self.outside_probability_ = np.where(voted_for, 0.0, self.posterior_).sum(axis=1)
        self.annotators_ = Annotators(
            names=names,
            classes=classes,
            votes=crowd.votes_of_annotators(),
            accuracy=fitted.matrices.right_votes() @ self.class_prior_,
            agreement=crowd.agreement(),
            _confusion=fitted.matrices.of,
        )
        return self

    def _sweep(self, crowd: _Crowd, posterior: Floats, features: _FeaturePrior | None) -> _Fit:
        """Draw labels and count parameters in turn; average over the later sweeps."""
        checked, alone = 0.0, features is None
        burn_in = BURN_IN if alone else FEATURE_BURN_IN
        n_samples = self.n_samples if alone else max(1, self.n_samples // 2)
        sums = np.zeros((3, *posterior.shape))
        for sweep in range(burn_in + n_samples):
            log_prior = crowd.draw(posterior, checked)
            from_votes = crowd.log_likelihood(alike=alone and sweep < ALIKE_SWEEPS)
            evidence = logsumexp(log_prior + from_votes, axis=1, keepdims=True)
            if features is not None:
                without, entropy = evidence, -(np.exp(log_prior) * log_prior).sum(axis=1)
                by_votes = np.exp(log_prior + from_votes - evidence)
                known = crowd.trust * posterior + (1.0 - crowd.trust) * by_votes
                log_prior = features.fit(known, from_votes)
                evidence = logsumexp(log_prior + from_votes, axis=1, keepdims=True)
                explained = (evidence - without).mean() / max(entropy.mean(), 1e-12)
                checked = float(np.clip(explained, 0.0, 1.0))
            posterior = np.exp(log_prior + from_votes - evidence)
            if sweep >= burn_in:
                sums += np.stack([posterior, np.exp(log_prior), from_votes])
                crowd.keep_sample()
        self.n_iter_ += burn_in + n_samples
        posterior, prior, from_votes = sums / n_samples
        # A learner that is trained on what it said itself can agree with itself: what features are
        # worth is measured by one that is trained on the votes.
        log_prior = np.log(_class_prior(crowd.trust * posterior))
        if features is not None:
            by_votes = softmax(log_prior + from_votes, axis=1)
            log_prior = _FeaturePrior(features.learners).fit(by_votes, from_votes)
        evidence = logsumexp(log_prior + from_votes, axis=1)
        weights = np.zeros(0) if features is None else features.weights
        return _Fit(posterior, prior, evidence, weights, crowd.matrices())


class _Fit(NamedTuple):
    posterior: Floats
    prior: Floats
    evidence: Floats  # log-likelihood of the votes of every item
    weights: Floats
    matrices: _Matrices


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
    votes: Places
    accuracy: Floats
    agreement: Floats
    _confusion: Callable[[int], Floats] = field(repr=False)

    def __len__(self) -> int:
        return len(self.votes)

    def confusion(self, annotator: Any = None) -> Floats:
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
    probabilities: Floats
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
    bad = np.argwhere(~(np.isfinite(counts) & (counts >= 0)))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"The number of votes is {counts[row, column]} in row {row}, column {column}: it must "
            "not be negative."
        )
    return sp.csr_array(counts), np.arange(counts.shape[1]), None


def _table(values: Floats, rows: Places, columns: Places, shape: tuple[int, int]) -> Floats:
    found = np.bincount(rows * shape[1] + columns, values, shape[0] * shape[1])
    return np.asarray(found, dtype=float).reshape(shape)


def _prior_items(n_classes: int) -> float:
    return min(PRIOR_ITEMS, MAX_PRIOR_ITEMS / n_classes)


def _class_prior(posterior: Floats) -> Floats:
    total = posterior.sum(axis=0) + _prior_items(posterior.shape[1])
    return total / total.sum()


class _FeaturePrior:
    """Softmax of scaled out-of-sample scores, fitted to the likelihood of the votes."""

    def __init__(self, learners: list[OutOfSample]) -> None:
        self.learners = learners
        self.weights = np.zeros(0)
        self._offsets = np.zeros(0)

    def fit(self, posterior: Floats, from_votes: Floats) -> Floats:
        """Refit learners, scales and offsets; return the log-probabilities of the labels."""
        scores = np.stack([self._scores(learner, posterior) for learner in self.learners])
        if not self.weights.size:
            spread = np.maximum(scores.std(axis=(1, 2)), 1e-12)
            self.weights = 1.0 / (len(scores) * spread)
            self._offsets = np.log(_class_prior(posterior))
            self._offsets -= self._offsets.mean()
        n_scores = len(scores)

        def loss(parameters: Floats) -> tuple[float, Floats]:
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
    def _scores(learner: OutOfSample, posterior: Floats) -> Floats:
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


class _Strength:
    """Votes that a prior is worth, moved to where the votes are most likely."""

    def __init__(self, start: float, least: float = MIN_STRENGTH) -> None:
        self.start, self.least, self.value = start, least, start
        self._came = self._expected = self._total = 0.0

    def add(self, weight: Floats, votes: Floats, among: Floats, center: Floats) -> None:
        """Add votes, each equal to so many others among so many others."""
        drawn = self.value * center
        came = weight * drawn / np.maximum(votes + drawn, 1e-300)
        self.add_sums(came.sum(), (weight * self.value / (among + self.value)).sum(), weight.sum())

    def add_sums(self, came: float, expected: float, total: float) -> None:
        """Add numbers of votes: from the center of the prior, expected from there, in all."""
        self._came += came
        self._expected += expected
        self._total += total

    def move(self) -> None:
        """Multiply by the ratio of the odds; where they are equal the likelihood is largest."""
        share = self.value / (self.value + self.start)
        odds = (self._came + STRENGTH_VOTES / 2) / (self._expected + STRENGTH_VOTES * share)
        odds *= max(self._total - self._expected, 0.0) + STRENGTH_VOTES * (1.0 - share)
        odds /= max(self._total - self._came, 0.0) + STRENGTH_VOTES / 2
        self.value = float(np.clip(self.value * np.clip(odds, 0.2, 5.0), self.least, MAX_STRENGTH))
        self._came = self._expected = self._total = 0.0


class _Crowd:
    """The votes, labels that are drawn, and the parameters that are counted from these."""

    def __init__(self, votes: sp.csr_array, n_classes: int, rng: np.random.Generator) -> None:
        self.n_annotators = votes.shape[1] // n_classes
        self.named = self.n_annotators > 1
        self._rng = rng
        self._read(votes, n_classes)
        self._accuracy = max(PRIOR_ACCURACY, 1.0 / n_classes)
        self._looks = (self._accuracy - 1.0 / n_classes) / max(1.0 - 1.0 / n_classes, 1e-12)
        self._shares = np.full(self.n_annotators, self._looks)
        self._habits = np.zeros((self.n_annotators, n_classes))
        self._label_guesses = np.full((n_classes, n_classes), 1.0 / n_classes)
        self._from_label = np.ones(len(self._item))
        self.strengths = {name: _Strength(start) for name, start in STRENGTHS.items()}
        self.strengths["item"].least = MIN_ITEM_STRENGTH
        self._sums: list[Any] = [0.0] * 5
        self._n_kept = 0

    def _read(self, votes: sp.csr_array, n_classes: int) -> None:
        """Read the votes, sorted by item; a cell is an item and a label that it got."""
        n_items = votes.shape[0]
        table = sp.csr_array(votes).tocoo()
        order = np.lexsort((table.col % n_classes, table.row))
        item, column = table.row[order].astype(np.intp), table.col[order].astype(np.intp)
        who, label = np.divmod(column, n_classes)
        weight = table.data[order].astype(float)
        voters = np.ceil(np.bincount(item, weight, n_items))
        if self.named:  # several labels of one annotator for one item share a vote
            ballots, ballot = np.unique(item * self.n_annotators + who, return_inverse=True)
            weight = weight / np.bincount(ballot)[ballot]
            voters = np.bincount(ballots // self.n_annotators, minlength=n_items)
        self._item, self._who, self._label, self._weight = item, who, label, weight
        self._alone = voters <= 1
        self.counts = _table(weight, item, label, (n_items, n_classes))
        pairs, self._pair = np.unique(column, return_inverse=True)
        self._pair_who, self._pair_label = np.divmod(pairs, n_classes)
        first = np.searchsorted(item, np.arange(n_items))
        part = first // max(1, BLOCK_CELLS // n_classes)
        bounds = [*first[np.unique(part, return_index=True)[1]], len(item)]
        self._blocks = [slice(*ends) for ends in itertools.pairwise(bounds) if ends[0] < ends[1]]

    def copy(self) -> _Crowd:
        """Return the same votes with parameters that change on their own."""
        other = copy.copy(self)
        other.strengths = copy.deepcopy(self.strengths)
        other._from_label = self._from_label.copy()
        return other

    def start(self) -> Floats:
        """Return probabilities from votes that all count the same."""
        wrong = max((1.0 - self._accuracy) / max(self.counts.shape[1] - 1, 1), 1e-12)
        return softmax(self.counts * np.log(self._accuracy / wrong), axis=1)

    def draw(self, posterior: Floats, checked: float) -> Floats:
        """Draw labels; return the logarithm of the class prior that the other items show.

        Nobody else says whether a single vote is right: it counts by the share of the uncertainty
        about votes that features take away, ``checked``; else it is as good as votes usually are.
        """
        self.trust = np.where(self._alone, checked, 1.0)[:, None]
        below = posterior.cumsum(axis=1)
        drawn = self._rng.random((len(posterior), 1)) * below[:, -1:]
        self._labels = (below[:, :-1] <= drawn).sum(axis=1)
        known = np.zeros_like(posterior)
        np.put_along_axis(known, self._labels[:, None], self.trust, axis=1)
        others = np.maximum(known.sum(axis=0) - known, 0.0)
        others += _prior_items(posterior.shape[1])
        return np.log(others / others.sum(axis=1, keepdims=True))

    def _thin(self, votes: Floats, share: Floats) -> Floats:
        """Draw which votes are kept, each with the probability ``share``."""
        whole, share = np.floor(votes).astype(np.int64), np.clip(share, 0.0, 1.0)
        kept = self._rng.binomial(whole, share)
        return kept + (votes - whole) * (self._rng.random(len(votes)) < share)

    def _count(self, alike: bool) -> None:
        """Count the parameters from the drawn labels."""
        n_annotators, n_classes = self._habits.shape
        who, label, true = self._who, self._label, self._labels[self._item]
        trust = self.trust[self._item, 0]
        votes = self._votes = trust * self._thin(self._weight, self._from_label)
        strength = self.strengths["habits"].value
        guess = self._habits[who, label] + strength * self._label_guesses[true, label]
        guess *= (1.0 - self._shares[who]) / (self._habits.sum(axis=1)[who] + strength)
        looks = np.where(label == true, self._shares[who], 0.0)
        looked = self._looked = self._thin(votes, looks / np.maximum(looks + guess, 1e-300))
        guesses = self._guesses = votes - looked

        self._looks_of, self._guesses_of, self._unchecked = (
            np.bincount(who, part, n_annotators)
            for part in (looked, guesses, (1.0 - trust) * self._weight)
        )
        prior = PRIOR_VOTES + self._unchecked.sum()
        self._usual = (looked.sum() + prior * self._looks) / (votes.sum() + prior)
        self._label_votes = _table(guesses, true, label, (n_classes, n_classes))
        self._row_votes = _table(votes, who, true, (n_annotators, n_classes))
        shape = (len(self._pair_who), n_classes)
        self._pair_votes = sp.csr_array((votes, (self._pair, true)), shape=shape)
        popular = self._label_votes.sum(axis=0) + POPULAR_STRENGTH / n_classes
        self._popular = popular / popular.sum()
        self._shares = np.full(n_annotators, self._usual)
        if alike:
            return
        strength = self.strengths["label"].value
        self._label_guesses = self._label_votes + strength * self._popular
        self._label_guesses /= self._label_votes.sum(axis=1, keepdims=True) + strength
        if self.named:
            own = self.strengths["looks"].value + self._unchecked
            self._shares = self._looks_of + own * self._usual
            self._shares /= self._looks_of + self._guesses_of + own
            self._habits = _table(guesses, who, label, (n_annotators, n_classes))

    def log_likelihood(self, alike: bool) -> Floats:
        """Return the log-probability of every item's votes for every label, left out itself."""
        self._count(alike)
        prior = self.strengths["item"]
        among, strength, came = self.counts.sum(axis=1), prior.value, 0.0
        total = (
            np.zeros_like(self.counts) - (gammaln(strength + among) - gammaln(strength))[:, None]
        )
        for part in self._blocks:
            item, label, weight = self._item[part], self._label[part], self._weight[part]
            _, first, cell = np.unique(
                item * total.shape[1] + label, return_index=True, return_inverse=True
            )
            votes = np.add.reduceat(weight, first)
            logs = weight[:, None] * np.log(np.maximum(self._left_out(part, cell, alike), 1e-300))
            center = np.exp(np.add.reduceat(logs, first) / votes[:, None])
            drawn = strength * center
            items, starts = np.unique(item[first], return_index=True)
            of_cells, more = np.log(drawn), votes != 1.0
            of_cells[more] = gammaln(drawn[more] + votes[more, None]) - gammaln(drawn[more])
            total[items] += np.add.reduceat(of_cells, starts)
            # Votes that come from the distribution of the label and do not repeat another one.
            drawn = drawn[np.arange(len(first)), self._labels[item[first]]]
            from_label = drawn * (digamma(drawn + votes) - digamma(drawn))
            self._from_label[part] = (from_label / votes)[cell]
            came += from_label.sum()
        if not alike:
            expected = strength * (digamma(strength + among) - digamma(strength)).sum()
            prior.add_sums(came, expected, among.sum())
            for moving in self.strengths.values():
                moving.move()
        return total

    def _left_out(self, part: slice, cell: Places, alike: bool) -> Floats:
        """Return the probability of the votes of a block for all labels, by other items."""
        item, who, label = self._item[part], self._who[part], self._label[part]
        votes, looked, guesses = self._votes[part], self._looked[part], self._guesses[part]
        numbers = np.arange(len(who))
        own = (numbers, self._labels[item])  # only there has the item itself been counted
        looks = np.full((len(who), 1), self._usual)
        value = np.full((len(who), self.counts.shape[1]), 1.0 / self.counts.shape[1])
        if not alike:
            counted, among = self._label_votes.T[label], self._label_votes.sum(axis=1) + 0.0 * value
            counted[own] -= np.bincount(cell, guesses)[cell]
            among[own] -= np.bincount(item, guesses)[item]
            value = self._drawn("label", guesses, counted, among, self._popular[label, None], own)
        if self.named and not alike:
            counted = (self._habits[who, label] - guesses)[:, None]
            among = (self._habits.sum(axis=1)[who] - guesses)[:, None]
            value = self._drawn("habits", guesses, counted, among, value, own)
            mine = np.stack([looked, guesses], axis=1)
            counted = np.stack([self._looks_of, self._guesses_of], axis=1)[who] - mine
            among = counted.sum(axis=1, keepdims=True)
            usual = np.array([self._usual, 1.0 - self._usual])
            self.strengths["looks"].add(mine, counted, among, usual)
            strength = self.strengths["looks"].value + self._unchecked[who, None]
            looks = (counted[:, :1] + strength * self._usual) / (among + strength)
        value *= 1.0 - looks
        value[numbers, label] += looks[:, 0]
        if self.named and not alike:
            counted, among = self._pair_votes[self._pair[part]].toarray(), self._row_votes[who]
            counted[own] -= votes
            among[own] -= votes
            value = self._drawn("rows", votes, counted, among, value, own)
        return value

    def _drawn(
        self, name: str, weight: Floats, counted: Floats, among: Floats, center: Floats, own: Any
    ) -> Floats:
        """Return shares of votes drawn towards a center; say of ``own`` ones what that explains."""
        prior = self.strengths[name]
        arrays = np.broadcast_arrays(counted, among, center)
        prior.add(weight, *(array[own] for array in arrays))
        return (counted + prior.value * center) / (among + prior.value)

    def keep_sample(self) -> None:
        """Add the parameters of this sweep to those of earlier ones."""
        mine = float(self.named)
        rows = (mine * self._pair_votes, mine * self._row_votes)
        now = (self._shares, mine * self._habits, self._label_guesses, *rows)
        self._sums = [total + value for total, value in zip(self._sums, now, strict=True)]
        self._n_kept += 1

    def matrices(self) -> _Matrices:
        """Return the mean parameters of the sweeps that were kept since the last call."""
        means: list[Any] = [total / self._n_kept for total in self._sums]
        self._sums, self._n_kept = [0.0] * 5, 0
        strengths = {name: prior.value for name, prior in self.strengths.items()}
        return _Matrices(*[*means, self._pair_who, self._pair_label, strengths])

    def votes_of_annotators(self) -> Places:
        """Count the votes; those without names count by their weights."""
        if not self.named:
            return np.array([round(self.counts.sum())])
        return np.bincount(self._who, minlength=self.n_annotators)

    def agreement(self) -> Floats:
        """Return the share of the others' votes on an annotator's items that are equal."""
        own = self._weight if self.named else np.ones(len(self._weight))
        others = self._weight * (self.counts.sum(axis=1)[self._item] - own)
        equal = self._weight * (self.counts[self._item, self._label] - own)
        total = np.bincount(self._who, others, self.n_annotators)
        agreed = np.bincount(self._who, equal, self.n_annotators)
        return np.divide(agreed, total, out=np.full(len(total), np.nan), where=total > 1e-9)


class _Matrices(NamedTuple):
    """What the confusion matrices of all annotators are made of."""

    shares: Floats
    habits: Floats
    label_guesses: Floats
    pair_votes: sp.csr_array
    row_votes: Floats
    pair_who: Places
    pair_label: Places
    strengths: dict[str, float]

    def of(self, annotator: int) -> Floats:
        """Return the confusion matrix of an annotator."""
        habits, strength = self.habits[annotator], self.strengths["habits"]
        found = (habits + strength * self.label_guesses) / (habits.sum() + strength)
        found *= 1.0 - self.shares[annotator]
        found[np.diag_indices_from(found)] += self.shares[annotator]
        found *= self.strengths["rows"]
        mine = np.flatnonzero(self.pair_who == annotator)
        found[:, self.pair_label[mine]] += self.pair_votes[mine].toarray().T
        return found / found.sum(axis=1, keepdims=True)

    def right_votes(self) -> Floats:
        """Return for annotators and labels how probable a right vote is."""
        strength, looks = self.strengths["habits"], self.shares[:, None]
        guess = self.habits + strength * self.label_guesses.diagonal()
        guess /= self.habits.sum(axis=1, keepdims=True) + strength
        right = self.strengths["rows"] * (looks + (1.0 - looks) * guess)
        votes = self.pair_votes.tocoo()
        hits = votes.col == self.pair_label[votes.row]
        np.add.at(right, (self.pair_who[votes.row], votes.col), hits * votes.data)
        return right / (self.row_votes + self.strengths["rows"])
