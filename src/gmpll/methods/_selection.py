"""Choosing a setting from the candidate sets alone.

Every setting is fitted on part of the rows and predicts the rest, which was held out of the
matching as well. Settings are compared by the candidate lift of those predictions (see
:func:`gmpll.metrics.candidate_lift`), an estimate of their accuracy that needs no true label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from gmpll.methods._learner import ConfidenceLearner, Setting
from gmpll.metrics import chance_of_covering, lift_of_rows
from gmpll.rounding import confidences_within

__all__ = ["Selection", "alternatives", "select"]

#: The regressions that are compared, as (width, ridge): wide and stiff, wide and pliant, narrow.
REGRESSIONS = ((0.5, 0.1), (0.5, 0.01), (1.5, 0.1))
#: The settings that are compared where the scaling is left open too, as (scaling, width, ridge).
ALTERNATIVES = (
    *(("both", width, ridge) for width, ridge in REGRESSIONS),
    *(("all", width, ridge) for width in (0.5, 1.5, 5.0) for ridge in (0.1, 0.01)),
)
#: Settings are compared on no more rows than this, cut into this many parts. Fewer rows are cut
#: again and again, up to so many times: on few rows a single comparison is mostly noise.
SELECTION_ROWS = 1500
SELECTION_FOLDS = 3
MOST_REPETITIONS = 5
#: Fewer rows than this tell nothing about settings.
FEWEST_ROWS = 30


@dataclass(frozen=True)
class Selection:
    """The chosen setting and what it was chosen from.

    Attributes
    ----------
    setting : Setting
        The best one.
    scores : list of (Setting, float)
        Every setting with its held-out candidate lift, the best first.
    rows : ndarray of shape (n_held_out,)
        The rows on which the settings were compared; empty if they were not.
    held_out : ndarray of shape (n_held_out, n_classes)
        What the chosen setting says of these rows without having seen them: not negative, rows
        sum to one.
    """

    setting: Setting
    scores: list[tuple[Setting, float]]
    rows: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp), repr=False)
    held_out: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)), repr=False)


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
) -> Selection:
    """Compare settings on held-out rows.

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

    Returns
    -------
    Selection
    """
    if len(settings) == 1 or len(X) < FEWEST_ROWS:
        return Selection(settings[0], [(settings[0], np.nan)])
    lifts: dict[Setting, list[Any]] = {setting: [] for setting in settings}
    rated: dict[Setting, list[Any]] = {setting: [] for setting in settings}
    rows = []
    for train, held_out in _parts(len(X), rng):
        seen = np.asarray(mask[train].any(axis=0))
        rows.append(held_out)
        for scaling in dict.fromkeys(setting.scaling for setting in settings):
            learner = make_learner(train, seen, scaling)
            frequency = learner.mask.mean(axis=0)
            for setting in settings:
                if setting.scaling != scaling:
                    continue
                confidences = learner.confidences(setting)
                scores = learner.predictor(setting, confidences)(X[held_out])
                rated[setting].append(_probabilities(scores, seen))
                predicted = scores.argmax(axis=1)
                chance = chance_of_covering(frequency, confidences.mean(axis=0))[predicted]
                hit = mask[held_out][:, seen][np.arange(len(held_out)), predicted]
                lifts[setting].append(lift_of_rows(hit, chance))
    means = [(setting, float(np.concatenate(values).mean())) for setting, values in lifts.items()]
    means.sort(key=lambda pair: -pair[1])  # stable: of equals the one that is listed first
    best = means[0][0]
    return Selection(best, means, np.concatenate(rows), np.concatenate(rated[best]))


def _probabilities(scores: NDArray[np.float64], seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Let ratings sum to one, and give labels that were not there to be learnt nothing."""
    probabilities = np.zeros((len(scores), len(seen)))
    everything = np.ones(scores.shape, dtype=bool)
    probabilities[:, seen] = confidences_within(np.maximum(scores, 0.0), everything)
    return probabilities


def _parts(
    n_rows: int, rng: np.random.RandomState
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Cut the rows into those that settings are fitted on and those they are compared on."""
    for _ in range(min(MOST_REPETITIONS, max(1, SELECTION_ROWS // n_rows))):
        rows = rng.permutation(n_rows)[:SELECTION_ROWS]
        for train, held_out in KFold(SELECTION_FOLDS).split(rows):
            yield rows[train], rows[held_out]
