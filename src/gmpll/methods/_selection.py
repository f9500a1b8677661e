"""Choosing a setting from the candidate sets alone.

Every setting is fitted on part of the rows and predicts the rest, which was held out of the
matching as well. Settings are compared by the candidate lift of those predictions (see
:func:`gmpll.metrics.candidate_lift`), an estimate of their accuracy that needs no true label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from gmpll.methods._learner import ConfidenceLearner, Setting
from gmpll.metrics import chance_of_covering, lift_of_rows

__all__ = ["Selection", "alternatives", "select"]

#: The regressions that are compared, as (width, ridge): wide and stiff, wide and pliant, narrow.
REGRESSIONS = ((0.5, 0.1), (0.5, 0.01), (1.5, 0.1))
#: Settings are compared on no more rows than this, cut into this many parts.
SELECTION_ROWS = 1500
SELECTION_FOLDS = 3
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
    """

    setting: Setting
    scores: list[tuple[Setting, float]]


def alternatives(balance: float) -> list[Setting]:
    """List the settings worth comparing."""
    return [Setting(balance, width, ridge) for width, ridge in REGRESSIONS]


def select(
    make_learner: Callable[[NDArray[np.intp], NDArray[np.bool_]], ConfidenceLearner],
    X: NDArray[np.float64],
    mask: NDArray[np.bool_],
    settings: Sequence[Setting],
    rng: np.random.RandomState,
) -> Selection:
    """Compare settings on held-out rows.

    Parameters
    ----------
    make_learner : callable
        Makes a :class:`ConfidenceLearner` from the numbers of some rows and the labels that these
        rows contain.
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
    rows = rng.permutation(len(X))[:SELECTION_ROWS]
    folds = KFold(SELECTION_FOLDS).split(rows)
    lifts: dict[Setting, list[Any]] = {setting: [] for setting in settings}
    for train, held_out in ((rows[a], rows[b]) for a, b in folds):
        seen = mask[train].any(axis=0)
        learner = make_learner(train, seen)
        frequency = learner.mask.mean(axis=0)
        for setting in settings:
            confidences = learner.confidences(setting)
            predicted = learner.predictor(setting, confidences)(X[held_out]).argmax(axis=1)
            chance = chance_of_covering(frequency, confidences.mean(axis=0))[predicted]
            hit = mask[held_out][:, seen][np.arange(len(held_out)), predicted]
            lifts[setting].append(lift_of_rows(hit, chance))
    means = [(setting, float(np.concatenate(values).mean())) for setting, values in lifts.items()]
    means.sort(key=lambda pair: -pair[1])  # stable: of equals the one that is listed first
    return Selection(means[0][0], means)
