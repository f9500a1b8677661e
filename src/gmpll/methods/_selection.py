"""Choosing a setting from the candidate sets alone.

Every setting is fitted on part of the rows and predicts the rest, which was held out of the
matching as well. Settings are compared by the candidate lift of those predictions (see
:func:`gmpll.metrics.candidate_lift`), an estimate of their accuracy that needs no true label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from gmpll.methods._learner import ConfidenceLearner, ForestRater, Reader, Setting, blended
from gmpll.metrics import chance_of_covering, lift_of_rows
from gmpll.rounding import confidences_within

__all__ = ["Gain", "Selection", "alternatives", "select"]

#: The regressions that are compared, as (width, ridge): wide and stiff, wide and pliant, narrow.
REGRESSIONS = ((0.5, 0.1), (0.5, 0.01), (1.5, 0.1))
#: The settings that are compared where the scaling is left open too, as (scaling, width, ridge).
ALTERNATIVES = (
    *(("both", width, ridge) for width, ridge in REGRESSIONS),
    *(("all", width, ridge) for width in (0.5, 1.5, 5.0) for ridge in (0.1, 0.01)),
)
#: The readouts that are compared beside the best regression, as penalties of what ratings and
#: features say: none first, then of ratings alone, and beside the best of these of features too.
READOUTS = ((0.0, 0.0), (10.0, 0.0), (1.0, 0.0), (1.0, 10.0), (1.0, 1.0), (1.0, 0.1))
#: Shares of the forest that are compared once the rest is chosen, none first.
FOREST_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
#: They are compared with fewer trees than are grown in the end, and on no more parts than this.
N_TREES = 40
FOREST_PARTS = 9
#: A readout, and a share, must gain more than none by so many standard errors of the gain.
ERRORS_LESS = 1.0
#: So many for a share on rows that are few enough to be cut again and again: the error is large
#: there, and a forest is grown in no time.
ERRORS_LESS_OF_FEW = 0.25
#: Settings are fitted on parts of no more rows than this, cut into this many parts. Where there
#: are further rows, each part is compared on so many more. Fewer rows are cut again and again, up
#: to so many times: on few rows a single comparison is mostly noise.
SELECTION_ROWS = 1500
SELECTION_FOLDS = 3
MORE_ROWS = 1000
MOST_REPETITIONS = 5
#: Fewer rows than this tell nothing about settings.
FEWEST_ROWS = 30


Value = TypeVar("Value")


class Gain(NamedTuple):
    """By how much the held-out candidate lift was larger, and the standard error of that."""

    mean: float
    error: float


@dataclass(frozen=True)
class Selection:
    """The chosen setting and what it was chosen from.

    Attributes
    ----------
    setting : Setting
        The best one; there is a readout, and a forest, only if it gains more than the standard
        error of that. For a forest on few rows a quarter of the error is enough.
    scores : list of (Setting, float)
        Every setting with its held-out candidate lift, the best first; with a readout or a forest
        that of the regression and the gain.
    rows : ndarray of shape (n_held_out,)
        The rows on which the settings were compared; empty if they were not.
    held_out : ndarray of shape (n_held_out, n_classes)
        What the chosen setting says of these rows without having seen them: not negative, rows
        sum to one.
    gains : dict from float to Gain
        What every share of the forest gained over none; empty if they were not compared.
    readout_gains : list of ((float, float), Gain)
        The same of every readout, with its penalties; of those that ask features what they gained
        over the surest of the others.
    """

    setting: Setting
    scores: list[tuple[Setting, float]]
    rows: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp), repr=False)
    held_out: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    gains: dict[float, Gain] = field(default_factory=dict)
    readout_gains: list[tuple[tuple[float, float], Gain]] = field(default_factory=list)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({"gains": {}, "readout_gains": []} | state)  # older saved ones have none


def alternatives(balance: float, scaling: str = "auto") -> list[Setting]:
    """List the settings worth comparing."""
    if scaling == "auto":
        return [Setting(balance, width, ridge, name) for name, width, ridge in ALTERNATIVES]
    return [Setting(balance, width, ridge, scaling) for width, ridge in REGRESSIONS]


# The matrices are small, and idle threads of NumPy's linear algebra get in the way of SciPy's: on
# two cores one thread is nearly twice as fast.
@threadpool_limits.wrap(limits=1, user_api="blas")  # type: ignore[untyped-decorator]
def select(
    make_learner: Callable[[NDArray[np.intp], NDArray[np.bool_], str], ConfidenceLearner],
    X: NDArray[np.float64],
    mask: NDArray[np.bool_],
    settings: Sequence[Setting],
    rng: np.random.RandomState,
    shares: Sequence[float] = (0.0,),
    readouts: Sequence[tuple[float, float]] = ((0.0, 0.0),),
) -> Selection:
    """Compare settings on held-out rows, then readouts of the best one, then shares of the forest.

    Parameters
    ----------
    make_learner : callable
        Makes a :class:`ConfidenceLearner` from the numbers of some rows, the labels that these
        rows contain, and a scaling.
    X : ndarray of shape (n_samples, n_features)
        Rows.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.
    settings : sequence of Setting
        What to compare.
    rng : RandomState
        Draws the rows and the parts.
    shares : sequence of float, default=(0.0,)
        Shares of the forest to compare.
    readouts : sequence of (float, float), default=((0.0, 0.0),)
        Readouts to compare, as penalties of what ratings and features say.

    Returns
    -------
    Selection
    """
    if len(settings) * len(shares) * len(readouts) == 1 or len(X) < FEWEST_ROWS:
        # Unless it is asked, no view is left out: each of them is blind to something.
        widest = next((setting for setting in settings if setting.scaling == "all"), settings[0])
        only = _with_readout(replace(widest, forest=shares[0]), readouts[0])
        return Selection(only, [(only, np.nan)])
    reads = any(penalty for penalty, _ in readouts)
    trials: dict[Setting, list[Trial]] = {setting: [] for setting in settings}
    for train, held_out in _parts(len(X), rng):
        seen = np.asarray(mask[train].any(axis=0))
        for scaling in dict.fromkeys(setting.scaling for setting in settings):
            learner = make_learner(train, seen, scaling)
            unseen = [view.transform(X[held_out]) for view in learner.views]
            for setting in settings:
                if setting.scaling != scaling:
                    continue
                confidences = learner.confidences(setting)
                trials[setting].append(
                    Trial(
                        rows=held_out,
                        candidates=mask[held_out][:, seen],
                        seen=seen,
                        chance=chance_of_covering(
                            learner.mask.mean(axis=0), confidences.mean(axis=0)
                        ),
                        scores=learner.regression(setting, confidences).of_views(unseen),
                        trees=learner.trees_on(confidences) if any(shares) else None,
                        readers=learner.readers_on(setting, confidences) if reads else None,
                    )
                )
    lifts = {setting: _mean_lift(trials[setting]) for setting in settings}
    chosen = max(settings, key=lambda setting: lifts[setting])  # the first of equals
    gains: dict[float, Gain] = {}
    readout_gains: list[tuple[tuple[float, float], Gain]] = []
    if reads:
        of_ratings = [penalties for penalties in readouts if not penalties[1]]
        of_features = [penalties for penalties in readouts if penalties[1]]
        plain = chosen
        kept: dict[tuple[float, float], Gain] = {}
        for some in filter(None, (of_ratings, of_features)):
            gains_of_some = _gains_of_readouts(plain, some, trials, X, chosen)
            for penalties, gain in gains_of_some.items():
                lifts[_with_readout(plain, penalties)] = lifts[chosen] + gain.mean
            readout_gains += gains_of_some.items()
            surest = _surest(kept | gains_of_some, ERRORS_LESS)
            chosen, kept = _with_readout(plain, surest), {surest: Gain(0.0, 0.0)}
    if any(shares):
        gains = _gains_of_shares(chosen, shares, trials, X)
        for share, gain in gains.items():
            lifts[replace(chosen, forest=share)] = lifts[chosen] + gain.mean
        errors = ERRORS_LESS_OF_FEW if _repetitions(len(X)) > 1 else ERRORS_LESS
        chosen = replace(chosen, forest=_surest(gains, errors))
    return Selection(
        chosen,
        sorted(lifts.items(), key=lambda pair: -pair[1]),
        np.concatenate([trial.rows for trial in trials[chosen]]),
        np.concatenate([_probabilities(trial.scores, trial.seen) for trial in trials[chosen]]),
        gains,
        readout_gains,
    )


def _surest(gains: dict[Value, Gain], errors: float) -> Value:
    """Return what gains most, less so many errors of that; the first of equals.

    The parts are smaller than the whole, on which regressions catch up with forests: what is not
    better on the parts would often be worse.
    """
    least = {value: gain.mean - errors * gain.error for value, gain in gains.items()}
    return max(least, key=lambda value: least[value])


def _with_readout(setting: Setting, penalties: tuple[float, float]) -> Setting:
    return replace(setting, readout=penalties[0], linear=penalties[1])


def _gains_of_readouts(
    plain: Setting,
    readouts: Sequence[tuple[float, float]],
    trials: dict[Setting, list[Trial]],
    X: NDArray[np.float64],
    best: Setting,
) -> dict[tuple[float, float], Gain]:
    """Read a setting's ratings in every way, and add these trials to the others."""
    gains = {}
    for penalties in readouts:
        read = _with_readout(plain, penalties)
        if penalties[0]:
            trials[read] = [
                replace(trial, scores=trial.readers(read)(trial.scores, X[trial.rows]))
                for trial in trials[plain]
                if trial.readers
            ]
        gains[penalties] = _gain(trials[read], trials[best])
    return gains


def _gains_of_shares(
    best: Setting,
    shares: Sequence[float],
    trials: dict[Setting, list[Trial]],
    X: NDArray[np.float64],
) -> dict[float, Gain]:
    """Give the forest each share beside the best setting, and add these trials to the others."""
    compared = trials[best][:FOREST_PARTS]
    of_trees = [trial.trees(N_TREES)(X[trial.rows]) for trial in compared if trial.trees]
    gains = {}
    for share in shares:
        if share:
            trials[replace(best, forest=share)] = [
                replace(trial, scores=blended(trial.scores, rated, share))
                for trial, rated in zip(compared, of_trees, strict=True)
            ]
        gains[share] = _gain(trials[replace(best, forest=share)][: len(compared)], compared)
    return gains


def _gain(trials: Sequence[Trial], others: Sequence[Trial]) -> Gain:
    """Compare two settings row by row."""
    rows = np.concatenate([trial.rows for trial in trials])
    pairs = zip(trials, others, strict=True)
    gain = np.concatenate([trial.lifts() - other.lifts() for trial, other in pairs])
    # A row that was held out several times is still one row.
    _, which, times = np.unique(rows, return_inverse=True, return_counts=True)
    by_row = np.bincount(which, gain) / times
    return Gain(float(by_row.mean()), float(by_row.std() / np.sqrt(len(by_row))))


@dataclass(frozen=True)
class Trial:
    """What a setting says of rows that were held out.

    Attributes
    ----------
    rows : ndarray of shape (n_held_out,)
        The rows.
    candidates : ndarray of shape (n_held_out, n_seen), bool
        Their candidates among the labels that were there to be learnt.
    seen : ndarray of shape (n_classes,), bool
        These labels.
    chance : ndarray of shape (n_seen,)
        How often a wrong prediction of a label is covered.
    scores : ndarray of shape (n_held_out, n_seen)
        The ratings.
    trees : callable or None
        Grows so many trees on what the setting found for the other rows.
    readers : callable or None
        Learns from the same, with a setting's penalties, what ratings mean.
    """

    rows: NDArray[np.intp]
    candidates: NDArray[np.bool_]
    seen: NDArray[np.bool_]
    chance: NDArray[np.float64]
    scores: NDArray[np.float64]
    trees: Callable[[int], ForestRater] | None
    readers: Callable[[Setting], Reader] | None

    def lifts(self) -> NDArray[np.float64]:
        """Return the candidate lift of every row."""
        predicted = self.scores.argmax(axis=1)
        hit = self.candidates[np.arange(len(predicted)), predicted]
        return lift_of_rows(hit, self.chance[predicted])


def _mean_lift(trials: Sequence[Trial]) -> float:
    return float(np.concatenate([trial.lifts() for trial in trials]).mean())


def _probabilities(scores: NDArray[np.float64], seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Let ratings sum to one, and give labels that were not there to be learnt nothing."""
    probabilities = np.zeros((len(scores), len(seen)))
    everything = np.ones(scores.shape, dtype=bool)
    probabilities[:, seen] = confidences_within(np.maximum(scores, 0.0), everything)
    return probabilities


def _parts(
    n_rows: int, rng: np.random.RandomState
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Cut the rows into those that settings are fitted on and those they are compared on.

    Rows beyond those that are cut up are not fitted on; each part is compared on some of them too.
    """
    for _ in range(_repetitions(n_rows)):
        order = rng.permutation(n_rows)
        rows = order[:SELECTION_ROWS]
        others = order[SELECTION_ROWS:][: SELECTION_FOLDS * MORE_ROWS]
        further = np.array_split(others, SELECTION_FOLDS)
        for (train, held_out), more in zip(
            KFold(SELECTION_FOLDS).split(rows), further, strict=True
        ):
            yield rows[train], np.concatenate([rows[held_out], more])


def _repetitions(n_rows: int) -> int:
    return min(MOST_REPETITIONS, max(1, SELECTION_ROWS // n_rows))
