"""Choosing hyperparameters from the candidate sets alone.

Some of the rows are cut into folds. Every alternative is fitted on all folds but one and predicts
the rows of that one, whose candidates were held out of the disambiguation as well; graph and kernel
between the rows are computed once and cut. The exponent of the class prior is chosen by the
likelihood of the held-out sets, all else by the candidate lift of the predictions (see
:func:`gmpll.metrics.candidate_lift`), an estimate of their accuracy that needs no true label. What
adds a stage (stacking, forest) must pass a one-standard-error rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.model_selection import KFold

from gmpll._threads import in_threads, one_blas_thread
from gmpll._typing import Floats, Mask, Places
from gmpll.evidence.pipeline import (
    GraphMatching,
    Hyperparameters,
    Pipeline,
    blended,
    shared_scores,
)
from gmpll.evidence.set_model import TAUS, likeliest_tau
from gmpll.metrics import chance_of_covering, row_lifts
from gmpll.rounding import as_probabilities

__all__ = ["Gain", "Search", "Selection", "n_compared_rows", "select"]

#: The views that are taken unless others are asked for: each is blind to something.
ALL_VIEWS = ("cosine", "rank", "euclidean")
#: Weights of the regression's norm, the stiffest first: those in the middle are compared, then the
#: next beyond the better one.
RIDGES = (0.3, 0.1, 0.03, 0.01)
#: Penalties of stacking that are compared, none first.
STACKING = (0.0, 10.0, 1.0)
#: Shares of the forest that are compared once the rest is chosen, none first, with fewer trees than
#: are grown in the end, the most of them only if the first few gain anything, and on no more folds
#: than this.
FOREST_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
N_TREES = 40
FEW_TREES = 10
FOREST_FOLDS = 9
#: What adds a stage must gain more than nothing by so many standard errors of the gain.
N_STANDARD_ERRORS = 1.0
#: On small data, which is cut again and again, the standard error is large and a forest is grown
#: in no time: a quarter of it is enough for the forest.
N_STANDARD_ERRORS_SMALL = 0.25
#: Rows that are cut into folds: all up to so many, of many rows one in fifty, and at most so many.
#: Few rows are cut again and again, until so many were held out, but not too often: on few rows a
#: single comparison is mostly noise.
SELECTION_ROWS = 1000
ROWS_FOR_ONE_COMPARED = 50
MAX_SELECTION_ROWS = 3000
COMPARED_ROWS = 1500
SELECTION_FOLDS = 3
MAX_REPETITIONS = 5
#: Fewer rows than this tell nothing about hyperparameters.
MIN_ROWS = 30

Value = TypeVar("Value")


class Gain(NamedTuple):
    """By how much the held-out candidate lift was larger, and the standard error of that."""

    mean: float
    error: float


@dataclass(frozen=True)
class Search:
    """What is compared: tau, then ridges with feedback or none, stacking, shares of the forest."""

    plain: Hyperparameters  # what is fixed
    feedback: Sequence[bool] = (True,)
    taus: Sequence[float | None] = (None,)  # all of TAUS, or one
    stacking: Sequence[float] = (0.0,)
    shares: Sequence[float] = (0.0,)

    @property
    def is_open(self) -> bool:
        """Whether there is anything to choose."""
        return any(
            len(options) > 1 for options in (self.feedback, self.taus, self.stacking, self.shares)
        )

    @property
    def first(self) -> Hyperparameters:
        """What is taken where nothing can be compared."""
        return replace(
            self.plain,
            feedback=self.feedback[0],
            tau=self.taus[0],
            stacking=self.stacking[0],
            forest=self.shares[0],
        )

    def offers(self, chosen: Hyperparameters) -> bool:
        """Whether this could have been chosen."""
        ridge = chosen.ridge if self.plain.ridge is None else self.plain.ridge
        return (
            chosen.feedback in self.feedback
            and chosen.tau in self.taus
            and chosen.stacking in self.stacking
            and chosen.forest in self.shares
            and (chosen.views, chosen.ridge) == (self.plain.views, ridge)
        )


@dataclass(frozen=True)
class Selection:
    """The chosen hyperparameters and what they were chosen from.

    Attributes
    ----------
    chosen : Hyperparameters
        The best ones; there is stacking, and a forest, only if it gains more than the standard
        error of that. For a forest on few rows a quarter of the error is enough.
    scores : list of (Hyperparameters, float)
        Every alternative with its held-out candidate lift, the best first; with stacking or a
        forest that of the regression and the gain.
    rows : ndarray of shape (n_held_out,)
        The rows on which they were compared; empty if nothing was compared.
    held_out : ndarray of shape (n_held_out, n_classes)
        What the chosen ones say of these rows without having seen them: not negative, rows sum to
        one.
    forest_gains : dict from float to Gain
        What every share of the forest gained over none; empty if they were not compared.
    stacking_gains : dict from float to Gain
        The same of every penalty of stacking.
    """

    chosen: Hyperparameters
    scores: list[tuple[Hyperparameters, float]]
    rows: Places = field(default_factory=lambda: np.zeros(0, dtype=np.intp), repr=False)
    held_out: Floats = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    forest_gains: dict[float, Gain] = field(default_factory=dict)
    stacking_gains: dict[float, Gain] = field(default_factory=dict)

    def answers(self, search: Search, n_labels: int) -> bool:
        """Whether the same search over so many labels has been made and this came out."""
        compared = (bool(self.forest_gains), bool(self.stacking_gains))
        wanted = (any(search.shares), any(search.stacking))
        same = self.held_out.shape[1] == n_labels and compared == wanted
        return same and search.offers(self.chosen)


# The matrices are small: folds are worked on in parallel, each in one thread.
@one_blas_thread()
def select(pipeline: Pipeline, search: Search, rng: np.random.RandomState) -> Selection:
    """Compare taus on held-out rows, then ridges and feedback, stacking, shares of the forest.

    Parameters
    ----------
    pipeline : Pipeline
        The stages of the rows that are cut into folds, on the host.
    search : Search
        What to compare.
    rng : RandomState
        Draws the folds.
    """
    n_rows = pipeline.rows.n_samples
    if not search.is_open or n_rows < MIN_ROWS:
        return Selection(search.first, [(search.first, np.nan)])
    folds = _each(lambda part: _Fold(pipeline, *part), _parts(n_rows, rng), pipeline)
    tau = search.taus[0]
    if len(search.taus) > 1:
        found = _each(_Fold.set_likelihoods, folds, pipeline)
        tau, _ = likeliest_tau({tau: np.concatenate([each[tau] for each in found]) for tau in TAUS})
    ridges: Sequence[float | None] = (search.plain.ridge,)
    if ridges == (None,) and pipeline.learner is None:
        ridges = RIDGES
    comparison = _Comparison({})
    scores: dict[Hyperparameters, float] = {}
    asked = ridges[1:3] or ridges
    while asked:  # of the ridges next to the best one those that were not tried
        settings = [
            replace(search.plain, ridge=ridge, feedback=fed_back, tau=tau)
            for ridge, fed_back in itertools.product(asked, search.feedback)
        ]
        pairs = list(itertools.product(settings, folds))
        trials = _each(lambda pair: pair[1].trial(pair[0]), pairs, pipeline)
        for (setting, _), trial in zip(pairs, trials, strict=True):
            comparison.trials.setdefault(setting, []).append(trial)
        scores |= {setting: _mean_lift(comparison.trials[setting]) for setting in settings}
        chosen = max(scores, key=lambda setting: (scores[setting], setting.ridge or 0.0))
        place = ridges.index(chosen.ridge)
        tried = {setting.ridge for setting in scores}
        asked = [ridge for ridge in ridges[max(place - 1, 0) : place + 2] if ridge not in tried]

    stacking_gains: dict[float, Gain] = {}
    forest_gains: dict[float, Gain] = {}
    if any(search.stacking):
        stacking_gains = comparison.stacking_gains(chosen, search.stacking)
        base = scores[chosen]
        for penalty, gain in stacking_gains.items():
            scores[replace(chosen, stacking=penalty)] = base + gain.mean
        best = _one_standard_error_rule(stacking_gains, N_STANDARD_ERRORS)
        chosen = replace(chosen, stacking=best)
    if any(search.shares):
        small = _n_repetitions(n_rows) > 1
        errors = N_STANDARD_ERRORS_SMALL if small else N_STANDARD_ERRORS
        forest_gains = comparison.forest_gains(chosen, search.shares, errors)
        base = scores[chosen]
        for share, gain in forest_gains.items():
            scores[replace(chosen, forest=share)] = base + gain.mean
        chosen = replace(chosen, forest=_one_standard_error_rule(forest_gains, errors))
    held_out = comparison.trials[chosen]
    return Selection(
        chosen,
        sorted(scores.items(), key=lambda pair: -pair[1]),
        np.concatenate([trial.rows for trial in held_out]),
        np.concatenate([as_probabilities(trial.scores) for trial in held_out]),
        forest_gains,
        stacking_gains,
    )


def _mean_lift(trials: Sequence[_Trial]) -> float:
    return float(np.concatenate([trial.lifts() for trial in trials]).mean())


def _each(
    function: Callable[[Any], Value], items: Iterable[Any], pipeline: Pipeline
) -> list[Value]:
    """Apply a function to all folds, in parallel unless a learner of the user draws numbers."""
    if pipeline.learner is not None:
        return [function(item) for item in items]
    return in_threads(function, items)


def _one_standard_error_rule(gains: dict[Value, Gain], errors: float) -> Value:
    """Return what gains most, less so many standard errors of that; the first of equals.

    The parts are smaller than the whole, on which regressions catch up with forests: what is not
    better on the parts would often be worse.
    """
    least = {value: gain.mean - errors * gain.error for value, gain in gains.items()}
    return max(least, key=lambda value: least[value])


@dataclass(frozen=True)
class _Trial:
    """What hyperparameters say of rows that were held out.

    ``candidates`` are theirs, ``chance`` is how often a wrong prediction of a label is covered;
    ``confidences`` were found for the other rows.
    """

    rows: Places
    candidates: Mask
    chance: Floats
    scores: Floats
    fitted: Pipeline
    table: Any
    confidences: Floats

    def lifts(self) -> Floats:
        """Return the candidate lift of every row."""
        return row_lifts(self.candidates, self.scores.argmax(axis=1), self.chance)


class _Fold:
    """Rows that are fitted on and rows that are held out."""

    def __init__(self, whole: Pipeline, train: Places, held_out: Places) -> None:
        self._whole, self._train, self.held_out = whole, train, held_out
        self._fitted = whole.part(train)
        self._candidates = whole.rows.mask[held_out]

    @cached_property
    def kernel(self) -> Floats:
        """The regression's kernel from the rows that are fitted on to those that are held out."""
        return self._whole.regression(Hyperparameters()).between(self.held_out, self._train)

    def trial(self, setting: Hyperparameters) -> _Trial:
        """Fit on some rows and score the others."""
        P = self._fitted.confidences(setting)
        return _Trial(
            rows=self.held_out,
            candidates=self._candidates,
            chance=chance_of_covering(self._fitted.rows.mask.mean(axis=0), P.mean(axis=0)),
            scores=self.scores(setting, P),
            fitted=self._fitted,
            table=lambda: self._whole.table.rows[self.held_out],
            confidences=P,
        )

    def scores(self, setting: Hyperparameters, P: Floats) -> Floats:
        """Score the held-out rows by the user's learner or the regression."""
        if self._fitted.learner is not None:
            return self._fitted.learner.fit(P)(self._whole.rows.X[self.held_out])
        scores = self.kernel @ self._fitted.regression(setting).coefficients(P)
        return shared_scores(scores, self._whole.rows.similarity)

    def set_likelihoods(self) -> dict[float, Floats]:
        """Return the log-likelihoods of the held-out sets for every tau."""
        whole, fitted = self._whole.disambiguated, self._fitted.disambiguated
        assert isinstance(whole, GraphMatching)
        assert isinstance(fitted, GraphMatching)
        edges = whole.weights[self.held_out][:, self._train]
        return fitted.relations.held_out_likelihoods(TAUS, edges, self.kernel, self._candidates)


@dataclass
class _Comparison:
    """The trials of all that is compared on the same parts."""

    trials: dict[Hyperparameters, list[_Trial]]

    def stacking_gains(
        self, plain: Hyperparameters, penalties: Sequence[float]
    ) -> dict[float, Gain]:
        """Stack on the scores of a setting with all penalties; what each gains over none."""
        gains = {}
        for penalty in penalties:
            setting = replace(plain, stacking=penalty)
            if penalty:
                self.trials[setting] = in_threads(
                    partial(_stacked, setting=setting), self.trials[plain]
                )
            gains[penalty] = _gain(self.trials[setting], self.trials[plain])
        return gains

    def forest_gains(
        self, best: Hyperparameters, shares: Sequence[float], errors: float
    ) -> dict[float, Gain]:
        """Give the forest each share beside the best setting.

        Most trees are grown only if the first few gain half of the standard errors that a forest
        must gain to be taken.
        """
        compared = self.trials[best][:FOREST_FOLDS]
        few = in_threads(partial(_by_trees, n_trees=FEW_TREES), compared)
        gains = self._gains_of(few, best, shares)
        if all(gain.mean <= 0.5 * errors * gain.error for gain in gains.values()):
            return gains
        more = in_threads(partial(_by_trees, n_trees=N_TREES - FEW_TREES, first=False), compared)
        few_count = FEW_TREES / N_TREES
        both = [few_count * a + (1.0 - few_count) * b for a, b in zip(few, more, strict=True)]
        return self._gains_of(both, best, shares)

    def _gains_of(
        self, of_trees: Sequence[Floats], best: Hyperparameters, shares: Sequence[float]
    ) -> dict[float, Gain]:
        compared = self.trials[best][: len(of_trees)]
        gains = {}
        for share in shares:
            setting = replace(best, forest=share)
            if share:
                self.trials[setting] = [
                    replace(trial, scores=blended(trial.scores, scores, share))
                    for trial, scores in zip(compared, of_trees, strict=True)
                ]
            gains[share] = _gain(self.trials[setting][: len(compared)], compared)
        return gains


def _by_trees(trial: _Trial, n_trees: int, first: bool = True) -> Floats:
    """Return what trees on the confidences that were fitted say of the rows held out."""
    return trial.fitted.trees_on(trial.table(), trial.confidences, n_trees, first=first)


def _stacked(trial: _Trial, setting: Hyperparameters) -> _Trial:
    stacker = trial.fitted.stacker(setting, trial.confidences)
    return replace(trial, scores=stacker(trial.scores))


def _gain(trials: Sequence[_Trial], others: Sequence[_Trial]) -> Gain:
    """Compare two settings row by row."""
    rows = np.concatenate([trial.rows for trial in trials])
    pairs = zip(trials, others, strict=True)
    gain = np.concatenate([trial.lifts() - other.lifts() for trial, other in pairs])
    # A row that was held out several times is still one row.
    _, which, times = np.unique(rows, return_inverse=True, return_counts=True)
    by_row = np.bincount(which, gain) / times
    return Gain(float(by_row.mean()), float(by_row.std() / np.sqrt(len(by_row))))


def _parts(n_rows: int, rng: np.random.RandomState) -> Iterator[tuple[Places, Places]]:
    """Cut the rows into those that are fitted on and those that are compared on."""
    for _ in range(_n_repetitions(n_rows)):
        yield from KFold(SELECTION_FOLDS, shuffle=True, random_state=rng).split(np.empty(n_rows))


def n_compared_rows(n_samples: int) -> int:
    """Return how many of the rows are cut into folds.

    Examples
    --------
    >>> from gmpll.evidence.selection import n_compared_rows
    >>> [n_compared_rows(n_samples) for n_samples in (500, 50_000, 100_000, 10**6)]
    [500, 1000, 2000, 3000]
    """
    of_many = min(n_samples // ROWS_FOR_ONE_COMPARED, MAX_SELECTION_ROWS)
    return min(n_samples, max(SELECTION_ROWS, of_many))


def _n_repetitions(n_rows: int) -> int:
    return min(MAX_REPETITIONS, max(1, COMPARED_ROWS // n_rows))
