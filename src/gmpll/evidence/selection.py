"""Choosing hyperparameters from the candidate sets alone.

Some of the rows are cut into folds. Every alternative is fitted on all folds but one and predicts
the rows of that one, whose candidates were held out of the disambiguation as well; graph and kernel
between the rows are computed once and cut. The exponent of the class prior is chosen by the
likelihood of the held-out sets, all else by the candidate lift of the predictions (see
:func:`gmpll.metrics.candidate_lift`), an estimate of their accuracy that needs no true label. The
share of the forest is compared on all rows, by the predictions of the trees that did not draw a row
beside those of the regression without it. What adds a stage (stacking, forest) must pass a
one-standard-error rule, and so must a smaller ridge.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from sklearn.model_selection import KFold

from gmpll._threads import in_threads, one_blas_thread
from gmpll._typing import Floats, Mask, Places
from gmpll.arrays import Array, is_torch_array, submatrix, to_host
from gmpll.evidence.forest import FEW_TREES, N_TREES
from gmpll.evidence.pipeline import (
    SET_RIDGE,
    GraphMatching,
    Hyperparameters,
    Pipeline,
    blended,
    shared_scores,
    some_rows,
)
from gmpll.evidence.set_model import TAUS, likeliest_tau
from gmpll.evidence.stacking import fit_stacker
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
#: Shares of the forest that are compared once the rest is chosen, none first; it makes fit and
#: prediction slower, so that a gain of less than this is not worth it.
FOREST_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
MIN_FOREST_GAIN = 0.003
#: What adds a stage must gain more than nothing by so many standard errors of the gain.
N_STANDARD_ERRORS = 1.0
#: All trees are grown only if the first few gain this part of what a forest must gain.
PART_OF_FEW = 0.5
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

    def excess(self, least: float) -> float:
        """Return by how much it is above its standard error and the least that is worth it."""
        return self.mean - max(N_STANDARD_ERRORS * self.error, least)


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
        error of that, and a forest only if that is worth its time.
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


def select(
    pipeline: Pipeline, part: Pipeline, search: Search, rng: np.random.RandomState
) -> Selection:
    """Compare taus on held-out rows, then ridges and feedback, stacking; shares of the forest.

    Parameters
    ----------
    pipeline : Pipeline
        The stages of all rows.
    part : Pipeline
        Those of the rows that are cut into folds: of tensors where they are, else on the host.
    search : Search
        What to compare.
    rng : RandomState
        Draws the folds.
    """
    chosen, found = search.first, _Comparison()
    is_compared = search.is_open and part.rows.n_samples >= MIN_ROWS
    if is_compared:
        chosen, found = _by_folds(part, search, rng)
    trials = found.trials.get(chosen, [])
    if search.plain.ridge is None and pipeline.learner is None:
        ridge = SET_RIDGE if chosen.ridge is None else chosen.ridge  # too few rows to choose
        chosen = pipeline.stiffened(replace(chosen, ridge=ridge), part.rows.n_samples)
    if not is_compared:
        return Selection(chosen, [(chosen, np.nan)])
    forest_gains: dict[float, Gain] = {}
    if any(search.shares):
        forest_gains = _forest_gains(pipeline, chosen, search.shares)
        for share, gain in forest_gains.items():
            found.scores[replace(chosen, forest=share)] = _mean_lift(trials) + gain.mean
        best = _one_standard_error_rule(forest_gains, MIN_FOREST_GAIN)
        chosen = replace(chosen, forest=best)
    if chosen.forest:
        trials = in_threads(partial(_with_trees, part=part, share=chosen.forest), trials)
    return Selection(
        chosen,
        sorted(found.scores.items(), key=lambda pair: -pair[1]),
        np.concatenate([trial.rows for trial in trials]),
        np.concatenate([as_probabilities(trial.scores) for trial in trials]),
        forest_gains,
        found.stacking_gains,
    )


# The matrices are small: folds are worked on in parallel, each in one thread.
@one_blas_thread()
def _by_folds(
    part: Pipeline, search: Search, rng: np.random.RandomState
) -> tuple[Hyperparameters, _Comparison]:
    """Choose tau, ridge, feedback and stacking on rows that are held out."""
    cuts = list(_parts(part.rows.n_samples, rng))
    on_device = is_torch_array(part.rows.mask)
    folds: _Folds = _FoldsAtOnce(part, cuts) if on_device else _FoldsInThreads(part, cuts)
    tau = search.taus[0]
    if len(search.taus) > 1:
        tau, _ = likeliest_tau(folds.set_likelihoods())
    ridges: Sequence[float | None] = (search.plain.ridge,)
    asked = ridges
    if search.plain.ridge is None and part.learner is None:
        ridges, asked = RIDGES, RIDGES[1:3]
    found = _Comparison(folds)
    while asked:  # of the ridges next to the best one those that were not tried
        settings = [
            replace(search.plain, ridge=ridge, feedback=fed_back, tau=tau)
            for ridge, fed_back in itertools.product(asked, search.feedback)
        ]
        found.trials |= dict(zip(settings, folds.trials(settings), strict=True))
        found.scores |= {setting: _mean_lift(found.trials[setting]) for setting in settings}
        chosen = found.stiffest()
        place = ridges.index(chosen.ridge)
        tried = {setting.ridge for setting in found.scores}
        asked = [ridge for ridge in ridges[max(place - 1, 0) : place + 2] if ridge not in tried]
    if any(search.stacking):
        chosen = replace(chosen, stacking=found.best_stacking(chosen, search.stacking))
    return chosen, found


def _mean_lift(trials: Sequence[_Trial]) -> float:
    return float(np.concatenate([trial.lifts() for trial in trials]).mean())


def _one_standard_error_rule(gains: dict[Value, Gain], least: float = 0.0) -> Value:
    """Return what gains most, less its standard error or the least gain that is worth it."""
    excess = {value: gain.excess(least) if value else 0.0 for value, gain in gains.items()}
    return max(excess, key=lambda value: excess[value])  # the first of equals


@dataclass(frozen=True)
class _Trial:
    """What hyperparameters say of rows that were held out, on the host.

    ``candidates`` are theirs, ``chance`` is how often a wrong prediction of a label is covered;
    ``confidences`` were found for the rows that were fitted on.
    """

    train: Places
    rows: Places
    candidates: Mask
    chance: Floats
    scores: Floats
    confidences: Floats

    def lifts(self) -> Floats:
        """Return the candidate lift of every row."""
        return row_lifts(self.candidates, self.scores.argmax(axis=1), self.chance)


class _Folds(Protocol):
    """Rows that are fitted on and rows that are held out, again and again."""

    def set_likelihoods(self) -> dict[float, Floats]:
        """Return the log-likelihoods of all held-out sets for every tau."""

    def trials(self, settings: Sequence[Hyperparameters]) -> list[list[_Trial]]:
        """Try settings on all folds."""

    def stacked(
        self, plain: Hyperparameters, trials: list[_Trial], penalties: Sequence[float]
    ) -> list[list[_Trial]]:
        """Stack logistic regressions with these penalties on the trials of a setting."""


class _FoldsInThreads:
    """One fold after the other on the host, several at a time."""

    def __init__(self, whole: Pipeline, cuts: Sequence[tuple[Places, Places]]) -> None:
        self._is_given = whole.learner is not None
        self._folds = self._each(lambda rows: _Fold(whole, *rows), cuts)

    def set_likelihoods(self) -> dict[float, Floats]:
        found = self._each(_Fold.set_likelihoods, self._folds)
        return {tau: np.concatenate([each[tau] for each in found]) for tau in TAUS}

    def trials(self, settings: Sequence[Hyperparameters]) -> list[list[_Trial]]:
        pairs = itertools.product(settings, self._folds)
        found = iter(self._each(lambda pair: pair[1].trial(pair[0]), pairs))
        return [list(itertools.islice(found, len(self._folds))) for _ in settings]

    def stacked(
        self, plain: Hyperparameters, trials: list[_Trial], penalties: Sequence[float]
    ) -> list[list[_Trial]]:
        def stack(asked: tuple[float, tuple[_Fold, _Trial]]) -> _Trial:
            penalty, (fold, trial) = asked
            return replace(trial, scores=fold.stacked(plain, trial, penalty))

        pairs = itertools.product(penalties, zip(self._folds, trials, strict=True))
        found = iter(in_threads(stack, pairs))
        return [list(itertools.islice(found, len(trials))) for _ in penalties]

    def _each(self, function: Callable[[Any], Value], items: Iterable[Any]) -> list[Value]:
        """Apply a function in parallel unless a learner of the user draws numbers."""
        return [function(item) for item in items] if self._is_given else in_threads(function, items)


class _Fold:
    """Rows that are fitted on and rows that are held out; or those of several folds at once."""

    def __init__(self, whole: Pipeline, train: Places, held_out: Places) -> None:
        self._whole, self._train, self.held_out = whole, train, held_out
        self._fitted = self._cut()
        self._candidates = some_rows(whole.rows.mask, held_out)

    def _cut(self) -> Pipeline:
        return self._whole.part(self._train)

    @cached_property
    def kernel(self) -> Array:
        """The regression's kernel from the rows that are fitted on to those that are held out."""
        return self._whole.regression(Hyperparameters()).between(self.held_out, self._train)

    def _edges(self) -> Any:
        """Return the edges of the graph from the held-out rows to those that are fitted on."""
        matching = self._whole.disambiguated
        assert isinstance(matching, GraphMatching)
        return matching.weights[self.held_out][:, self._train]

    def trial(self, setting: Hyperparameters) -> _Trial:
        """Fit on some rows and score the others."""
        P = self._fitted.confidences(setting)
        scores, mask = self.scores(setting, P), self._fitted.rows.mask
        return _trial(self._train, self.held_out, self._candidates, mask, scores, P)

    def stacked(self, plain: Hyperparameters, trial: _Trial, penalty: float) -> Floats:
        """Return the scores of the held-out rows after stacking."""
        P = trial.confidences
        stacker = fit_stacker(self._fitted.out_of_sample_scores(plain, P), P, penalty)
        return stacker(trial.scores)

    def scores(self, setting: Hyperparameters, P: Array) -> Array:
        """Score the held-out rows by the user's learner or the regression."""
        if self._fitted.learner is not None:
            return self._fitted.learner.fit(P)(self._whole.rows.X[self.held_out])
        scores = self.kernel @ self._fitted.regression(setting).coefficients(P)
        return shared_scores(scores, self._whole.rows.similarity)

    def set_likelihoods(self) -> dict[float, Floats]:
        """Return the log-likelihoods of the held-out sets for every tau."""
        fitted = self._fitted.disambiguated
        assert isinstance(fitted, GraphMatching)
        of_rows = self._edges(), self.kernel, self._candidates
        return fitted.relations.held_out_likelihoods(TAUS, *of_rows)


def _trial(
    train: Places, rows: Places, candidates: Mask, mask: Mask, scores: Floats, P: Floats
) -> _Trial:
    chance = chance_of_covering(mask.mean(axis=0), P.mean(axis=0))
    return _Trial(train, rows, candidates, chance, scores, P)


class _FoldsAtOnce(_Fold):
    """All folds together, which have one size, as further axes of tensors."""

    def __init__(self, whole: Pipeline, cuts: Sequence[tuple[Places, Places]]) -> None:
        train, held_out = (np.array(rows) for rows in zip(*cuts, strict=True))
        super().__init__(whole, train, held_out)
        masks = self._candidates, self._fitted.rows.mask
        self._on_host = train, held_out, *map(to_host, masks)
        self._found: dict[Hyperparameters, tuple[Array, Array]] = {}

    def _cut(self) -> Pipeline:
        return self._whole.parts(self._train)

    def _edges(self) -> Array:
        matching = self._whole.disambiguated
        assert isinstance(matching, GraphMatching)
        return submatrix(matching.dense_weights, self.held_out, self._train)

    def trials(self, settings: Sequence[Hyperparameters]) -> list[list[_Trial]]:
        return [self._trials(setting) for setting in settings]

    def _trials(self, setting: Hyperparameters) -> list[_Trial]:
        P = self._fitted.confidences(setting)
        scores = self.scores(setting, P)
        self._found[setting] = P, scores
        folds = zip(*self._on_host, to_host(scores), to_host(P), strict=True)
        return [_trial(*fold) for fold in folds]

    def stacked(  # type: ignore[override]
        self, plain: Hyperparameters, trials: list[_Trial], penalties: Sequence[float]
    ) -> list[list[_Trial]]:
        P, scores = self._found[plain]
        own = self._fitted.out_of_sample_scores(plain, P)
        stacker = fit_stacker(own, P, np.array(penalties)[:, None])
        return [
            [replace(trial, scores=of_fold) for trial, of_fold in zip(trials, each, strict=True)]
            for each in to_host(stacker(scores))
        ]


@dataclass
class _Comparison:
    """The trials of all that is compared on the same folds, and their mean candidate lift."""

    folds: _Folds | None = None
    trials: dict[Hyperparameters, list[_Trial]] = field(default_factory=dict)
    scores: dict[Hyperparameters, float] = field(default_factory=dict)
    stacking_gains: dict[float, Gain] = field(default_factory=dict)

    def stiffest(self) -> Hyperparameters:
        """Return the best setting, with the largest ridge that is not surely behind it."""
        best = max(self.scores, key=lambda setting: (self.scores[setting], setting.ridge or 0.0))
        alike = [setting for setting in self.scores if setting.feedback == best.feedback]
        behind = {
            setting: _gain_of_trials(self.trials[best], self.trials[setting]) for setting in alike
        }
        open_ones = [setting for setting in alike if behind[setting].excess(0.0) <= 0.0]
        return max(open_ones, key=lambda setting: setting.ridge or 0.0)

    def best_stacking(self, plain: Hyperparameters, penalties: Sequence[float]) -> float:
        """Stack on the scores of a setting without, with all penalties; return the best one."""
        settings = [replace(plain, stacking=penalty) for penalty in penalties]
        stacked = [setting for setting in settings if setting.stacking]
        trials = self.trials[plain]
        assert self.folds is not None
        found = self.folds.stacked(plain, trials, [setting.stacking for setting in stacked])
        self.trials |= dict(zip(stacked, found, strict=True))
        for setting in settings:
            gain = _gain_of_trials(self.trials[setting], trials)
            self.stacking_gains[setting.stacking] = gain
            self.scores[setting] = self.scores[plain] + gain.mean
        return _one_standard_error_rule(self.stacking_gains)


def _forest_gains(
    pipeline: Pipeline, chosen: Hyperparameters, shares: Sequence[float]
) -> dict[float, Gain]:
    """Compare shares of the forest by what regression and trees say of rows they have not seen.

    Both are trained on the confidences before the feedback: those after it are the regression's
    own. Most trees are grown only if the first few gain half of what a forest must gain.
    """
    stages = pipeline if pipeline.sample is None else pipeline.sample.stages
    P = stages.disambiguated.probabilities(chosen.tau)
    scores = stages.out_of_sample_scores(chosen, P)
    if chosen.stacking:
        scores = stages.stacker(chosen, P)(scores)
    scores, mask = to_host(scores), to_host(stages.rows.mask)
    chance = chance_of_covering(mask.mean(axis=0), to_host(P).mean(axis=0))

    def lifts(predicted: Floats) -> Floats:
        return row_lifts(mask, predicted.argmax(axis=1), chance)

    plain, gains = lifts(scores), {}
    for n_trees in (FEW_TREES, N_TREES):
        of_trees = shared_scores(stages.out_of_bag(chosen, P, n_trees), stages.rows.similarity)
        gains = {
            share: _gain(lifts(blended(scores, of_trees, share)) - plain if share else 0.0 * plain)
            for share in shares
        }
        few = [Gain(gain.mean / PART_OF_FEW, gain.error) for gain in gains.values()]
        if all(gain.excess(MIN_FOREST_GAIN) <= 0.0 for gain in few):
            break
    return gains


def _with_trees(trial: _Trial, part: Pipeline, share: float) -> _Trial:
    """Let a few trees on the confidences that were fitted have their share in the scores."""
    of_trees = part.trees_on(trial.train, trial.confidences, trial.rows)
    return replace(trial, scores=blended(trial.scores, of_trees, share))


def _gain_of_trials(trials: Sequence[_Trial], others: Sequence[_Trial]) -> Gain:
    """Compare two settings row by row."""
    rows = np.concatenate([trial.rows for trial in trials])
    pairs = zip(trials, others, strict=True)
    gain = np.concatenate([trial.lifts() - other.lifts() for trial, other in pairs])
    # A row that was held out several times is still one row.
    _, which, times = np.unique(rows, return_inverse=True, return_counts=True)
    return _gain(np.bincount(which, gain) / times)


def _gain(by_row: Floats) -> Gain:
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
    [498, 999, 1998, 3000]
    """
    of_many = min(n_samples // ROWS_FOR_ONE_COMPARED, MAX_SELECTION_ROWS)
    n_compared = min(n_samples, max(SELECTION_ROWS, of_many))
    return n_compared - n_compared % SELECTION_FOLDS or n_compared  # folds of one size


def _n_repetitions(n_rows: int) -> int:
    return min(MAX_REPETITIONS, max(1, COMPARED_ROWS // n_rows))
