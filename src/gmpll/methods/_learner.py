"""Matching, regression and forest on what it found, for any setting, sharing what can be shared.

:class:`gmpll.GMPLL` fits one setting on all rows; choosing it without true labels fits many of
them on parts of the rows (:mod:`gmpll.methods._selection`). Both go through this class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from gmpll.evidence.forest import N_TREES, Forest, grow_forest, out_of_bag_opinion
from gmpll.evidence.ridge import ConfidenceRidge, RidgePredictor
from gmpll.evidence.stacking import Readout, fit_readout
from gmpll.graph.views import PositionSpace
from gmpll.matching import Affinity, Matching, match
from gmpll.matching.feedback import FEEDBACK_TURNS, feedback
from gmpll.rounding import confidences_within
from gmpll.side_information import Prior, trust_in_weights

__all__ = [
    "ConfidenceLearner",
    "Setting",
    "blended",
    "cooccurrence_similarity",
    "features_follow",
    "ordered_labels",
]

#: How often regression and forest are asked together after the regression alone.
FOREST_TURNS = 2


@dataclass(frozen=True)
class Setting:
    """What can be chosen without true labels.

    Attributes
    ----------
    balance : float
        Exponent of the class-mass correction.
    width : float
        Width of the regression's kernel.
    ridge : float
        Weight of the regression's squared norm.
    scaling : str
        In which features rows are compared, see :class:`gmpll.GMPLL`.
    forest : float
        Share of the forest in the opinion of regression and forest.
    readout : float
        Penalty of the readout of the regression's ratings; 0 if they are taken as they are.
    linear : float
        Penalty of what the features say in that readout; 0 if they are not asked.
    """

    balance: float = 0.5
    width: float = 1.5
    ridge: float = 0.1
    scaling: str = "both"
    forest: float = 0.0
    readout: float = 0.0
    linear: float = 0.0


class ConfidenceLearner:
    """The matching of some rows, and regressions on it.

    Parameters
    ----------
    views : sequence of spaces
        Each has ``rows`` and ``transform``.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.
    relate : callable
        Makes the relation between the rows (a graph) from the views' rows.
    make_affinity : callable
        Makes the affinity from that relation, the mask and a label similarity (or None).
    similarity : ndarray of shape (n_classes, n_classes) or None
        Similarity of the labels, None if they are all different.
    max_iter, tol
        Limits of the matching.
    rng : RandomState
        Draws the landmarks of the regressions.
    prior : Prior, default=Prior()
        What is likely beforehand; nothing by default.
    start : ndarray of shape (n_samples, n_classes), default=None
        Where the matching starts; where an earlier one ended makes it short.
    make_table : callable, optional
        Makes the space in which a forest sees the rows; needed where a setting asks for one.
    """

    def __init__(
        self,
        views: Sequence[Any],
        mask: NDArray[np.bool_],
        relate: Callable[[Sequence[NDArray[np.float64]]], Any],
        make_affinity: Callable[..., Affinity],
        *,
        similarity: NDArray[np.float64] | None,
        max_iter: int,
        tol: float,
        rng: np.random.RandomState,
        prior: Prior = Prior(),  # noqa: B008 (it is frozen)
        start: NDArray[np.float64] | None = None,
        make_table: Callable[[], Any] = lambda: None,
    ) -> None:
        self.views = views
        self._make_table = make_table
        self.mask = mask
        self.max_iter = max_iter
        self.tol = tol
        self.relation = relate([view.rows for view in views])
        self._seed = rng.randint(np.iinfo(np.int32).max)
        self.affinity = make_affinity(self.relation, mask, similarity)
        self._spread = Spread(similarity)
        self._prior = prior
        self._start = start
        self._kernels: dict[float, ConfidenceRidge] = {}
        self._regressions: dict[tuple[float, float], ConfidenceRidge] = {}  # the last one asked for
        self._matchings: dict[float, Matching] = {}
        self._trusts: dict[float, float] = {}

    @cached_property
    def table(self) -> Any:
        """The rows as a forest sees them."""
        return self._make_table()

    def ridge(self, setting: Setting) -> ConfidenceRidge:
        """Return the regression, ready for any confidences."""
        if setting.width not in self._kernels:
            self._kernels[setting.width] = ConfidenceRidge(
                [view.rows for view in self.views],
                width=setting.width,
                ridge=setting.ridge,
                rng=np.random.RandomState(self._seed),
            )
        which = (setting.width, setting.ridge)
        if which not in self._regressions:
            self._regressions = {which: self._kernels[setting.width].with_ridge(setting.ridge)}
        return self._regressions[which]

    def matching(self, setting: Setting) -> Matching:
        """Match on the graph alone."""
        if setting.balance not in self._matchings:
            unary = self.unary(setting)
            self._matchings[setting.balance] = self._match(setting.balance, unary, self._start)
        return self._matchings[setting.balance]

    def _match(
        self,
        balance: float,
        unary: NDArray[np.float64] | None,
        start: NDArray[np.float64] | None = None,
    ) -> Matching:
        if start is None and unary is not None:
            start = confidences_within(unary, self.mask)
        return match(
            self.affinity,
            self.mask,
            balance=balance,
            max_iter=self.max_iter,
            tol=self.tol,
            start=start,
            unary=unary,
            expected_mass=self._prior.expected_mass(len(self.mask)),
        )

    def unary(self, setting: Setting) -> NDArray[np.float64] | None:
        """Return what multiplies the support in every turn; None if candidates have no weights."""
        trust = self.trust(setting)
        if trust is None or self._prior.candidates is None:
            return None
        return np.where(self.mask, self._prior.candidates**trust, 0.0)

    def trust(self, setting: Setting) -> float | None:
        """Return the exponent of the candidates' weights, None if there are none.

        Where it is to be estimated, the rows are matched without the weights first.
        """
        if self._prior.candidates is None or self._prior.trust is not None:
            return None if self._prior.candidates is None else self._prior.trust
        if setting.balance not in self._trusts:
            unaided = self._match(setting.balance, None)
            self._trusts[setting.balance] = trust_in_weights(
                self._prior.candidates, unaided.probabilities, self.mask
            )
        return self._trusts[setting.balance]

    def confidences(self, setting: Setting) -> NDArray[np.float64]:
        """Match, then refine by the opinion of the regression, and of the forest if any."""
        ridge = self.ridge(setting)

        def refined(
            opinion: Callable[[NDArray[np.float64]], NDArray[np.float64]],
            P: NDArray[np.float64],
            turns: int,
        ) -> NDArray[np.float64]:
            return feedback(
                lambda P: self._spread(opinion(P)),
                self.mask,
                P,
                balance=setting.balance,
                turns=turns,
                unary=self.unary(setting),
                expected_mass=self._prior.expected_mass(len(self.mask)),
            )

        def of_both(P: NDArray[np.float64]) -> NDArray[np.float64]:
            of_trees = out_of_bag_opinion(self.table.rows, P, self._seed)
            return blended(ridge.leave_one_out(P), of_trees, setting.forest)

        P = self.matching(setting).probabilities
        P = refined(ridge.leave_one_out, P, FEEDBACK_TURNS)
        return refined(of_both, P, FOREST_TURNS) if setting.forest else P

    def support(self, P: NDArray[np.float64]) -> NDArray[np.floating]:
        """Return the support of every candidate; elsewhere it has no meaning."""
        packed = self.affinity.packed(self.mask) if hasattr(self.affinity, "packed") else None
        if packed is None:
            return self.affinity.apply(P)
        return packed.unpack(packed.apply(packed.pack(P)))

    def predictor(
        self, setting: Setting, confidences: NDArray[np.float64]
    ) -> LabelRater | BlendedRater:
        """Return a function that rates the labels of unseen rows."""
        rater = self.regression(setting, confidences)
        if not setting.forest:
            return rater
        trees = ForestRater.grown(
            lambda: self.table, self._spread, confidences, self._seed, N_TREES
        )
        return BlendedRater(rater, trees, setting.forest)

    def regression(self, setting: Setting, confidences: NDArray[np.float64]) -> LabelRater:
        """Return the regression's part of the predictor."""
        reader = None
        if setting.readout:
            reader = self.readers_on(setting, confidences)(setting)
        ratings = self.ridge(setting).predictor(confidences)
        return LabelRater(self.views, ratings, self._spread, reader)

    def readers_on(
        self, setting: Setting, confidences: NDArray[np.float64]
    ) -> Callable[[Setting], Reader]:
        """Return a function that learns, with any penalties, what the regression's ratings mean."""
        ratings = self._spread(self.ridge(setting).leave_one_out(confidences))
        return partial(Reader.fitted, self._make_table, ratings, confidences)

    def trees_on(self, confidences: NDArray[np.float64]) -> Callable[[int], ForestRater]:
        """Return a function that grows so many trees, and holds nothing else of the matching."""
        return partial(ForestRater.grown, self._make_table, self._spread, confidences, self._seed)


@dataclass(frozen=True)
class Spread:
    """Let similar labels share their scores."""

    similarity: NDArray[np.float64] | None

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.similarity is None:
            return scores
        return scores @ (self.similarity / self.similarity.sum(axis=0))


@dataclass(frozen=True)
class LabelRater:
    """Rate labels of unseen rows by the regression."""

    views: Sequence[Any]
    regression: RidgePredictor
    spread: Spread
    reader: Reader | None = None

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        ratings = self.of_views([view.transform(X) for view in self.views])
        return ratings if self.reader is None else self.reader(ratings, X)

    def of_views(self, rows: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Rate rows that lie in the views already, without the reader."""
        return self.spread(self.regression(rows))


@dataclass(frozen=True)
class Reader:
    """Read the ratings of unseen rows and, if the readout asks them, their features."""

    readout: Readout
    table: Any

    @classmethod
    def fitted(
        cls,
        make_table: Callable[[], Any],
        ratings: NDArray[np.float64],
        confidences: NDArray[np.float64],
        setting: Setting,
    ) -> Reader:
        """Fit the readout."""
        table = make_table() if setting.linear else None
        rows = None if table is None else table.rows
        readout = fit_readout(ratings, confidences, setting.readout, rows, setting.linear)
        return cls(readout, table)

    def __call__(self, ratings: NDArray[np.float64], X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.readout(ratings, None if self.table is None else self.table.transform(X))


@dataclass(frozen=True)
class ForestRater:
    """Rate labels of unseen rows by trees."""

    table: Any
    forest: Forest
    spread: Spread

    @classmethod
    def grown(
        cls,
        make_table: Callable[[], Any],
        spread: Spread,
        confidences: NDArray[np.float64],
        seed: int,
        n_trees: int,
    ) -> ForestRater:
        """Grow the trees."""
        table = make_table()
        return cls(table, grow_forest(table.rows, confidences, seed, n_trees), spread)

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.spread(self.forest(self.table.transform(X)))


@dataclass(frozen=True)
class BlendedRater:
    """Rate labels of unseen rows by regression and trees."""

    regression: LabelRater
    trees: ForestRater
    share: float

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return blended(self.regression(X), self.trees(X), self.share)


def blended(
    of_kernel: NDArray[np.float64], of_trees: NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    """Return the mean of two opinions; ratings below zero count as zero."""
    return (1.0 - share) * np.maximum(of_kernel, 0.0) + share * of_trees


def cooccurrence_similarity(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Cosine between the columns of the candidate matrix: labels that share sets are similar.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.methods._learner import cooccurrence_similarity
    >>> cooccurrence_similarity(np.array([[True, True, False], [False, True, True]])).round(2)
    array([[1.  , 0.71, 0.  ],
           [0.71, 1.  , 0.71],
           [0.  , 0.71, 1.  ]])
    """
    sets = mask.astype(np.float64)
    sets /= np.maximum(np.sqrt(sets.sum(axis=0)), 1.0)
    similarity = np.minimum(sets.T @ sets, 1.0)
    np.fill_diagonal(similarity, 1.0)
    return similarity


#: Sets are called ordered if their labels lie this much closer together than in random sets.
ORDERED_GAP = 0.5

#: A border between two labels is a break if less than this share of the usual sets crosses it.
BREAK_SHARE = 0.5

#: Features follow the labels if rows that look alike lie this much closer together than others.
FOLLOWING_GAP = 0.9

#: No more rows than these are compared with each other to see whether features follow.
MOST_COMPARED = 1000


def ordered_labels(labels: NDArray[Any], mask: NDArray[np.bool_]) -> bool:
    """Whether the labels are numbers and candidate sets gather along the number line.

    Annotators of an ordered quantity (an age, a grade) disagree by a little: the candidates of a
    row lie close together. Sets of unordered labels, and randomly added candidates, do not care
    about the numbers that stand for the labels. The mean gap between the candidates of a row is
    compared with that of sets of the same sizes drawn by the labels' frequencies.

    Sets of unordered labels lie close together too where labels that are easily confused have
    been numbered one after the other. But such groups end somewhere, and sets do not cross the
    border between two groups. In an order they cross all borders: none is a break.

    Parameters
    ----------
    labels : ndarray of shape (n_classes,)
        The labels.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.methods._learner import ordered_labels
    >>> ages = np.arange(20)
    >>> ordered_labels(ages, np.abs(ages[:, None] - ages) <= 1)
    True
    >>> ordered_labels(ages, np.abs(ages[:, None] - ages) % 7 == 0)
    False
    >>> ordered_labels(ages, ages[:, None] // 5 == ages // 5)  # four groups of five
    False
    """
    if labels.dtype.kind not in "iuf" or len(labels) < 3:
        return False
    sizes = mask.sum(axis=1)
    ambiguous = mask[sizes > 1].astype(np.float64)
    if not len(ambiguous):
        return False
    gaps = np.abs(labels[:, None].astype(np.float64) - labels[None, :])
    pairs = sizes[sizes > 1] * (sizes[sizes > 1] - 1)
    within = ((ambiguous @ gaps) * ambiguous).sum() / pairs.sum()
    frequency = ambiguous.sum(axis=0) / ambiguous.sum()
    other = 1.0 - np.square(frequency).sum()  # two different labels are drawn
    apart = float(frequency @ gaps @ frequency) / other
    if within >= ORDERED_GAP * apart:
        return False
    return not _breaks(mask[sizes > 1][:, np.argsort(labels)])


def _breaks(mask: NDArray[np.bool_]) -> bool:
    """Whether clearly fewer sets than usual cross one of the borders between adjacent columns.

    Of the sets that contain one of the two labels at a border, those count that have labels on
    both sides. Chance is allowed for: two standard deviations of that number.
    """
    at_border = mask[:, :-1] | mask[:, 1:]
    borders = np.arange(at_border.shape[1])
    first = mask.argmax(axis=1)[:, None]
    last = mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)[:, None]
    near = at_border.sum(axis=0)
    crossing = (at_border & (first <= borders) & (borders < last)).sum(axis=0)
    crossing, near = crossing[near > 0], near[near > 0]
    usual = np.median(crossing / near) * near
    return bool((crossing + 2.0 * np.sqrt(crossing + 1.0) < BREAK_SHARE * usual).any())


def features_follow(X: NDArray[np.float64], labels: NDArray[Any], mask: NDArray[np.bool_]) -> bool:
    """Whether rows that look alike have numbers near each other as labels.

    Candidates of neighbouring numbers do not make an order: the features must change with the
    numbers too. Rows with a common candidate say nothing about that, so every row is compared
    with the one that looks most like it among those which share no candidate with it. In an
    order its label is still nearer than those of the others without a common candidate.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features.
    labels : ndarray of shape (n_classes,)
        The labels, which are numbers.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.

    Returns
    -------
    bool
        True also where all rows share candidates, because then nothing speaks against it.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.methods._learner import features_follow
    >>> ages = np.arange(20)
    >>> guesses = np.abs(ages[:, None] - ages) <= 1
    >>> features_follow(ages[:, None] * 0.1, ages, guesses)
    True
    >>> features_follow((ages[:, None] * 9 % 20) * 0.1, ages, guesses)
    False
    """
    rows = np.linspace(0, len(X) - 1, min(len(X), MOST_COMPARED)).astype(np.intp)
    sets = mask[rows].astype(np.float64)
    distinct = sets @ sets.T == 0
    compared = distinct.any(axis=1)
    if not compared.any():
        return True
    centre = sets @ labels.astype(np.float64) / sets.sum(axis=1)
    gaps = np.abs(centre[:, None] - centre)[compared]
    distinct = distinct[compared]
    places = PositionSpace(X[rows].astype(np.float64)).rows
    distances = euclidean_distances(places[compared], places, squared=True)
    alike = np.where(distinct, distances, np.inf).argmin(axis=1)
    near = gaps[np.arange(len(gaps)), alike]
    usual = (gaps * distinct).sum(axis=1) / distinct.sum(axis=1)
    return bool(near.mean() < FOLLOWING_GAP * usual.mean())
