"""Choosing hyperparameters from the candidate sets alone.

Every alternative is fitted on part of the rows and predicts the rest, which was held out of the
disambiguation as well. Alternatives are compared by the candidate lift of those predictions (see
:func:`gmpll.metrics.candidate_lift`), an estimate of their accuracy that needs no true label. What
adds a stage (stacking, forest) must pass a one-standard-error rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from gmpll.evidence.pipeline import CandidateRows, Hyperparameters, Pipeline, blended
from gmpll.metrics import chance_of_covering, row_lifts
from gmpll.rounding import as_probabilities

__all__ = ["Gain", "Search", "Selection", "search_space", "select"]

#: The regressions that are compared, as (width, ridge): wide and stiff, wide and pliant, narrow.
REGRESSIONS = ((0.5, 0.1), (0.5, 0.01), (1.5, 0.1))
#: What is compared where the views are left open too, as (views, width, ridge).
TWO_VIEWS = ("cosine", "rank")
ALL_VIEWS = ("cosine", "rank", "euclidean")
ALTERNATIVES = (
    *((TWO_VIEWS, width, ridge) for width, ridge in REGRESSIONS),
    *((ALL_VIEWS, width, ridge) for width in (0.5, 1.5, 5.0) for ridge in (0.1, 0.01)),
)
#: Penalties of stacking that are compared beside the best regression, of what scores and features
#: say: none first, then of scores alone, and beside the best of these of features too.
NO_STACKING = (0.0, 0.0)
STACKING = (NO_STACKING, (10.0, 0.0), (1.0, 0.0), (1.0, 10.0), (1.0, 1.0), (1.0, 0.1))
#: Shares of the forest that are compared once the rest is chosen, none first.
FOREST_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
#: They are compared with fewer trees than are grown in the end, and on no more parts than this.
N_TREES = 40
FOREST_PARTS = 9
#: What adds a stage must gain more than nothing by so many standard errors of the gain.
N_STANDARD_ERRORS = 1.0
#: On small data, which is cut again and again, the standard error is large and a forest is grown
#: in no time: a quarter of it is enough for the forest.
N_STANDARD_ERRORS_SMALL = 0.25
#: Alternatives are fitted on parts of no more rows than this, cut into this many folds. Where
#: there are further rows, each part is compared on so many more. Fewer rows are cut again and
#: again, up to so many times: on few rows a single comparison is mostly noise.
SELECTION_ROWS = 1500
SELECTION_FOLDS = 3
FURTHER_ROWS = 1000
MAX_REPETITIONS = 5
#: Fewer rows than this tell nothing about hyperparameters.
MIN_ROWS = 30

Value = TypeVar("Value")
#: Makes the stages for some of the rows and labels, in some views.
MakePipeline = Callable[[CandidateRows, tuple[str, ...]], Pipeline]


class Gain(NamedTuple):
    """By how much the held-out candidate lift was larger, and the standard error of that."""

    mean: float
    error: float


@dataclass(frozen=True)
class Search:
    """What is compared: hyperparameters first, then stacking, then shares of the forest."""

    settings: Sequence[Hyperparameters]
    stacking: Sequence[tuple[float, float]] = (NO_STACKING,)
    shares: Sequence[float] = (0.0,)

    @property
    def is_open(self) -> bool:
        """Whether there is anything to choose."""
        return len(self.settings) * len(self.stacking) * len(self.shares) > 1

    def offers(self, chosen: Hyperparameters) -> bool:
        """Whether this could have been chosen."""
        plain = replace(chosen, forest=0.0, stacking=0.0, linear=0.0)
        stacking = (chosen.stacking, chosen.linear)
        return plain in self.settings and chosen.forest in self.shares and stacking in self.stacking


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
    stacking_gains : list of ((float, float), Gain)
        The same of every stacking, with its penalties; of those with features what they gained
        over the best of the others.
    """

    chosen: Hyperparameters
    scores: list[tuple[Hyperparameters, float]]
    rows: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp), repr=False)
    held_out: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    forest_gains: dict[float, Gain] = field(default_factory=dict)
    stacking_gains: list[tuple[tuple[float, float], Gain]] = field(default_factory=list)

    def answers(self, search: Search, n_labels: int) -> bool:
        """Whether the same search over so many labels has been made and this came out."""
        compared = (bool(self.forest_gains), bool(self.stacking_gains))
        wanted = (any(search.shares), list(search.stacking) != [NO_STACKING])
        same = self.held_out.shape[1] == n_labels and compared == wanted
        return same and search.offers(self.chosen)


def search_space(
    balance: float, fixed: dict[str, Any], *, feedback: Sequence[bool] = (True,)
) -> list[Hyperparameters]:
    """List the regressions worth comparing, where some hyperparameters are fixed."""
    views = fixed.get("views")
    alternatives: Sequence[tuple[tuple[str, ...], float, float]] = ALTERNATIVES
    if views is not None:
        alternatives = [(tuple(views), width, ridge) for width, ridge in REGRESSIONS]
    open_names = ("balance", "width", "ridge", "feedback", "tau")
    given = {name: fixed[name] for name in open_names if name in fixed}
    return list(
        dict.fromkeys(
            replace(Hyperparameters(balance, names, width, ridge, feedback=fed_back), **given)
            for fed_back in feedback
            for names, width, ridge in alternatives
        )
    )


# The matrices are small, and idle threads of NumPy's linear algebra get in the way of SciPy's: on
# two cores one thread is nearly twice as fast.
@threadpool_limits.wrap(limits=1, user_api="blas")  # type: ignore[untyped-decorator]
def select(
    make_pipeline: MakePipeline,
    rows: CandidateRows,
    search: Search,
    rng: np.random.RandomState,
) -> Selection:
    """Compare regressions on held-out rows, then stacking on the best, then shares of the forest.

    Parameters
    ----------
    make_pipeline : callable
        Makes the stages for some of the rows and labels, in some views.
    rows : CandidateRows
        Rows and candidates.
    search : Search
        What to compare.
    rng : RandomState
        Draws the rows and the parts.

    Returns
    -------
    Selection
    """
    if not search.is_open or rows.n_samples < MIN_ROWS:
        return _nothing_compared(search)
    trials = _trials(make_pipeline, rows, search, rng)
    comparison = _Comparison(trials)
    chosen = max(search.settings, key=comparison.lift)  # the first of equals
    scores = {setting: comparison.lift(setting) for setting in search.settings}
    stacking_gains: list[tuple[tuple[float, float], Gain]] = []
    forest_gains: dict[float, Gain] = {}
    if any(penalty for penalty, _ in search.stacking):
        chosen, stacking_gains = _choose_stacking(comparison, chosen, search.stacking, scores)
    if any(search.shares):
        forest_gains = comparison.forest_gains(chosen, search.shares)
        for share, gain in forest_gains.items():
            scores[replace(chosen, forest=share)] = scores[chosen] + gain.mean
        small = _n_repetitions(rows.n_samples) > 1
        errors = N_STANDARD_ERRORS_SMALL if small else N_STANDARD_ERRORS
        chosen = replace(chosen, forest=_one_standard_error_rule(forest_gains, errors))
    held_out = comparison.trials[chosen]
    return Selection(
        chosen,
        sorted(scores.items(), key=lambda pair: -pair[1]),
        np.concatenate([trial.rows for trial in held_out]),
        np.concatenate([trial.probabilities() for trial in held_out]),
        forest_gains,
        stacking_gains,
    )


def _nothing_compared(search: Search) -> Selection:
    # Unless it is asked, no view is left out: each of them is blind to something.
    settings = search.settings
    widest = next((setting for setting in settings if "euclidean" in setting.views), settings[0])
    only = _with_stacking(replace(widest, forest=search.shares[0]), search.stacking[0])
    return Selection(only, [(only, np.nan)])


def _choose_stacking(
    comparison: _Comparison,
    plain: Hyperparameters,
    stacking: Sequence[tuple[float, float]],
    scores: dict[Hyperparameters, float],
) -> tuple[Hyperparameters, list[tuple[tuple[float, float], Gain]]]:
    """Compare stacking on scores alone, then beside the best of these with features too."""
    chosen = plain
    kept: dict[tuple[float, float], Gain] = {}
    all_gains: list[tuple[tuple[float, float], Gain]] = []
    on_scores = [penalties for penalties in stacking if not penalties[1]]
    on_features = [penalties for penalties in stacking if penalties[1]]
    for some in filter(None, (on_scores, on_features)):
        gains = comparison.stacking_gains(plain, some, chosen)
        for penalties, gain in gains.items():
            scores[_with_stacking(plain, penalties)] = scores[chosen] + gain.mean
        all_gains += gains.items()
        best = _one_standard_error_rule(kept | gains, N_STANDARD_ERRORS)
        chosen, kept = _with_stacking(plain, best), {best: Gain(0.0, 0.0)}
    return chosen, all_gains


def _one_standard_error_rule(gains: dict[Value, Gain], errors: float) -> Value:
    """Return what gains most, less so many standard errors of that; the first of equals.

    The parts are smaller than the whole, on which regressions catch up with forests: what is not
    better on the parts would often be worse.
    """
    least = {value: gain.mean - errors * gain.error for value, gain in gains.items()}
    return max(least, key=lambda value: least[value])


def _with_stacking(chosen: Hyperparameters, penalties: tuple[float, float]) -> Hyperparameters:
    return replace(chosen, stacking=penalties[0], linear=penalties[1])


@dataclass(frozen=True)
class _Trial:
    """What hyperparameters say of rows that were held out.

    Attributes
    ----------
    rows : ndarray of shape (n_held_out,)
        The rows.
    X : ndarray of shape (n_held_out, n_features)
        Their features.
    candidates : ndarray of shape (n_held_out, n_seen), bool
        Their candidates among the labels that were there to be learnt.
    seen : ndarray of shape (n_classes,), bool
        These labels.
    chance : ndarray of shape (n_seen,)
        How often a wrong prediction of a label is covered.
    scores : ndarray of shape (n_held_out, n_seen)
        The scores.
    pipeline : Pipeline
        The stages on the other rows,
    confidences : ndarray
        what they found there,
    out_of_sample : ndarray or None
        and the regression's leave-one-out scores of it, where stacking is compared.
    """

    rows: NDArray[np.intp]
    X: NDArray[np.float64]
    candidates: NDArray[np.bool_]
    seen: NDArray[np.bool_]
    chance: NDArray[np.float64]
    scores: NDArray[np.float64]
    pipeline: Pipeline
    confidences: NDArray[np.float64]
    out_of_sample: NDArray[np.float64] | None

    def lifts(self) -> NDArray[np.float64]:
        """Return the candidate lift of every row."""
        return row_lifts(self.candidates, self.scores.argmax(axis=1), self.chance)

    def probabilities(self) -> NDArray[np.float64]:
        """Let scores sum to one; labels that were not there to be learnt get nothing."""
        probabilities = np.zeros((len(self.scores), len(self.seen)))
        probabilities[:, self.seen] = as_probabilities(self.scores)
        return probabilities


@dataclass
class _Comparison:
    """The trials of all that is compared on the same parts."""

    trials: dict[Hyperparameters, list[_Trial]]

    def lift(self, setting: Hyperparameters) -> float:
        return float(np.concatenate([trial.lifts() for trial in self.trials[setting]]).mean())

    def stacking_gains(
        self,
        plain: Hyperparameters,
        stacking: Sequence[tuple[float, float]],
        best: Hyperparameters,
    ) -> dict[tuple[float, float], Gain]:
        """Stack on the scores of a setting with all penalties; what each gains over the best."""
        gains = {}
        for penalties in stacking:
            setting = _with_stacking(plain, penalties)
            if penalties[0]:
                self.trials[setting] = [
                    self._stacked(trial, setting) for trial in self.trials[plain]
                ]
            gains[penalties] = _gain(self.trials[setting], self.trials[best])
        return gains

    def _stacked(self, trial: _Trial, setting: Hyperparameters) -> _Trial:
        stacked = trial.pipeline.stacked(setting, trial.confidences, trial.out_of_sample)
        return replace(trial, scores=stacked(trial.scores, trial.X))

    def forest_gains(self, best: Hyperparameters, shares: Sequence[float]) -> dict[float, Gain]:
        """Give the forest each share beside the best setting."""
        compared = self.trials[best][:FOREST_PARTS]
        of_trees = [
            trial.pipeline.forest(trial.confidences, N_TREES)(trial.X) for trial in compared
        ]
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


def _gain(trials: Sequence[_Trial], others: Sequence[_Trial]) -> Gain:
    """Compare two settings row by row."""
    rows = np.concatenate([trial.rows for trial in trials])
    pairs = zip(trials, others, strict=True)
    gain = np.concatenate([trial.lifts() - other.lifts() for trial, other in pairs])
    # A row that was held out several times is still one row.
    _, which, times = np.unique(rows, return_inverse=True, return_counts=True)
    by_row = np.bincount(which, gain) / times
    return Gain(float(by_row.mean()), float(by_row.std() / np.sqrt(len(by_row))))


def _trials(
    make_pipeline: MakePipeline,
    rows: CandidateRows,
    search: Search,
    rng: np.random.RandomState,
) -> dict[Hyperparameters, list[_Trial]]:
    """Fit every setting on every part; settings of the same views share what they can."""
    stacks = any(penalty for penalty, _ in search.stacking)
    trials: dict[Hyperparameters, list[_Trial]] = {setting: [] for setting in search.settings}
    for train, held_out in _parts(rows.n_samples, rng):
        seen = np.asarray(rows.mask_on_host(train).any(axis=0))
        X, candidates = rows.X_on_host(held_out), rows.mask_on_host(held_out)[:, seen]
        for views in dict.fromkeys(setting.views for setting in search.settings):
            pipeline = make_pipeline(rows.part(train, seen), views)
            score = pipeline.scorer_of(X)
            light = pipeline.without_kernels()
            for setting in search.settings:
                if setting.views != views:
                    continue
                P = pipeline.confidences(setting)
                trials[setting].append(
                    _Trial(
                        rows=held_out,
                        X=X,
                        candidates=candidates,
                        seen=seen,
                        chance=chance_of_covering(pipeline.rows.mask.mean(axis=0), P.mean(axis=0)),
                        scores=score(setting, P),
                        pipeline=light,
                        confidences=P,
                        out_of_sample=(
                            pipeline.out_of_sample_scores(setting, P) if stacks else None
                        ),
                    )
                )
    return trials


def _parts(
    n_rows: int, rng: np.random.RandomState
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Cut the rows into those that are fitted on and those that are compared on.

    Rows beyond those that are cut up are not fitted on; each part is compared on some of them too.
    """
    for _ in range(_n_repetitions(n_rows)):
        order = rng.permutation(n_rows)
        rows = order[:SELECTION_ROWS]
        others = order[SELECTION_ROWS:][: SELECTION_FOLDS * FURTHER_ROWS]
        further = np.array_split(others, SELECTION_FOLDS)
        for (train, held_out), more in zip(
            KFold(SELECTION_FOLDS).split(rows), further, strict=True
        ):
            yield rows[train], np.concatenate([rows[held_out], more])


def _n_repetitions(n_rows: int) -> int:
    return min(MAX_REPETITIONS, max(1, SELECTION_ROWS // n_rows))
