"""Sets of labels that contain the true one with a stated probability."""

from dataclasses import field
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.utils.validation import check_is_fitted

from gmpll._columns import sets_of_known_labels
from gmpll._meta import TrainingRows, label_probabilities, rows_of
from gmpll._parameters import Learner, Seed, with_parameters
from gmpll._sklearn import Integral, Interval, Real, StrOptions
from gmpll._typing import Floats, Mask
from gmpll.evidence.temperature import candidate_temperature, temper
from gmpll.rounding import confidences_within
from gmpll.uncertainty.wrapper import PartialLabelWrapper

__all__ = ["ConformalPartialClassifier", "conformal_rank"]

#: Scores closer than this are equal: the last digits of a probability depend on the batch.
SCORE_TOLERANCE = 1e-12


def conformal_rank(n_samples: int, confidence_level: float) -> int:
    """Rank of the calibration score up to which labels are kept, ceil((n + 1) level).

    Beyond ``n_samples``, no smaller set than that of all labels can promise the level.

    Examples
    --------
    >>> from gmpll.uncertainty.conformal import conformal_rank
    >>> conformal_rank(99, 0.9), conformal_rank(5, 0.9)
    (90, 6)
    """
    return int(np.ceil((n_samples + 1) * confidence_level - SCORE_TOLERANCE))


class CalibratedPart(NamedTuple):
    """A model and the sorted scores of rows that it has not seen."""

    model: Any
    scores: Floats
    mass: Floats  # mass[i] is the weight of the first i scores; the whole is the number of rows

    def mass_below(self, X: Any, classes: NDArray[Any]) -> Floats:
        """Return the weight of the calibration scores that are less than those of each label."""
        scores = 1.0 - label_probabilities(self.model, X, classes)
        return self.mass[np.searchsorted(self.scores, scores - SCORE_TOLERANCE, side="left")]


@with_parameters
class ConformalPartialClassifier(PartialLabelWrapper):
    r"""Predict sets of labels that contain the true one with a stated probability.

    Rows are set aside that take no part in fitting. A label l of an unseen row x is kept if its
    score :math:`1 - p_l(x)` is at most that of rank :math:`\lceil (n + 1)(1 - \alpha) \rceil` on
    these rows. Split conformal prediction takes the scores of their *true* labels. These are among
    the candidates, so a set made with the scores of the worst candidates contains the set that
    the true labels would have given, row by row, and inherits its guarantee. The better the
    probabilities of the estimator order the labels, the smaller the sets.

    Parameters
    ----------
    confidence_level : float, default=0.9
        The probability :math:`1 - \alpha` with which a set is to contain the true label.
    mode : {"guaranteed", "approximate", "optimistic"}, default="guaranteed"
        Whose score a calibration row contributes.

        * ``"guaranteed"``: that of its worst candidate. Holds for every estimator and all
          candidates, as long as calibration and unseen rows are exchangeable and the truth is
          among the candidates. Conservative: ambiguous rows make large sets.
        * ``"approximate"``: those of all candidates, weighted by their probabilities according to
          the estimator and a temperature fitted to the calibration rows. No guarantee.
        * ``"optimistic"``: that of its best candidate. A set contains *some* candidate with the
          stated probability, the true label less often. For comparison.
    test_size : float, default=0.25
        Share of the rows set aside for calibration; not used with ``cv``.
    cv : int, default=None
        Cross-conformal (CV+): every row calibrates the model fitted without its part, and all
        ``cv`` models vote. The proven level of the guaranteed mode then falls to about
        :math:`1 - 2\alpha`, though it is usually near :math:`1 - \alpha`.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all rows but those for calibration (with ``cv``, on all rows); it makes
        ``predict`` and ``predict_proba``.
    n_calibration_ : int
        Number of calibration rows.
    calibration_rows_ : ndarray of shape (n_calibration_,), int
        Which of the rows given to ``fit`` they were; empty after :meth:`calibrate`.

    Notes
    -----
    The guarantee is over the draw of calibration and unseen rows together, not for every single
    row or label. No smaller threshold than that of the guaranteed mode is valid without assumptions
    on the candidates: a world in which the truth always is the worst one shows the same data.

    Rows whose true label is known count in full in every mode. :meth:`calibrate` with such rows
    alone gives ordinary, exact conformal sets, provided they are drawn like the unseen ones: rows
    that were easy to annotate are not.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gmpll import ConformalPartialClassifier, PLKNN
    >>> from gmpll.datasets import random_candidates
    >>> X, y = load_iris(return_X_y=True)
    >>> candidates = random_candidates(y, p=0.2, r=1, random_state=0)
    >>> model = ConformalPartialClassifier(PLKNN(), confidence_level=0.8, random_state=0)
    >>> model = model.fit(X[::2], candidates[::2])
    >>> sets = model.predict_set(X[1::2])
    >>> sets[:2]
    array([[ True, False, False],
           [ True, False, False]])
    >>> bool(sets[range(75), y[1::2]].mean() >= 0.8)
    True
    """

    estimator: Learner = field(default=None, kw_only=False)
    confidence_level: Annotated[float, Interval(Real, 0, 1, closed="neither")] = field(
        default=0.9, kw_only=False
    )
    mode: Annotated[str, StrOptions({"guaranteed", "approximate", "optimistic"})] = "guaranteed"
    test_size: Annotated[float, Interval(Real, 0, 1, closed="neither")] = 0.25
    cv: Annotated[int | None, None, Interval(Integral, 2, None, closed="left")] = None
    random_state: Seed = None

    def _fit(self, data: TrainingRows, rng: RandomState) -> None:
        inner = self._inner(rng)
        n_samples = len(data.sets.mask)
        if n_samples < 2:
            data.fit(clone(inner))  # whatever else is wrong is said first
            raise ValueError(
                "Conformal sets need rows for fitting and rows for calibration, but got "
                "n_samples=1."
            )
        splitter: Any
        if self.cv is None:
            n_held_out = min(max(1, round(self.test_size * n_samples)), n_samples - 1)
            splitter = ShuffleSplit(1, test_size=n_held_out, random_state=rng)
        else:
            splitter = KFold(min(self.cv, n_samples), shuffle=True, random_state=rng)
        self._parts = []
        for train, held_out in splitter.split(np.zeros(n_samples)):
            model, mask = data.fit(clone(inner), train), data.sets.mask[held_out]
            self._parts.append(self._calibrated(model, rows_of(data.X, held_out), mask))
        self.estimator_ = self._parts[0].model if self.cv is None else data.fit(inner)
        self.calibration_rows_ = np.arange(n_samples) if self.cv else np.sort(held_out)
        self.n_calibration_ = len(self.calibration_rows_)

    def calibrate(self, X: Any, y: Any) -> Self:
        """Calibrate the fitted model anew, on other rows.

        They took no part in ``fit`` and are drawn like those to be predicted. Labels that ``fit``
        did not see are an error. With true labels the sets are exact.
        """
        check_is_fitted(self)
        n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
        mask = sets_of_known_labels(y, self.classes_, n_samples=n_samples).mask
        self._parts = [self._calibrated(self.estimator_, X, mask)]
        self.calibration_rows_ = np.empty(0, dtype=np.intp)
        self.n_calibration_ = len(mask)
        return self

    def predict_set(self, X: Any, candidates: Any = None) -> Mask:
        """Return the labels that may be true, as a mask with columns in the order of ``classes_``.

        If the rows come with ``candidates``, labels outside are dropped. That costs no coverage:
        the true label is inside. A row can be empty: no label fits it as well as calibration rows
        are used to.
        """
        check_is_fitted(self)
        mass = np.sum([part.mass_below(X, self.classes_) for part in self._parts], axis=0)
        kept = mass < conformal_rank(self.n_calibration_, self.confidence_level)
        if candidates is not None:
            kept &= sets_of_known_labels(candidates, self.classes_, n_samples=len(kept)).mask
        return kept

    def _calibrated(self, model: Any, X: Any, mask: Mask) -> CalibratedPart:
        """Collect the scores of the candidates that have weight; a row weighs one in all."""
        probabilities = label_probabilities(model, X, self.classes_)
        scores = 1.0 - probabilities
        if self.mode == "approximate":
            chosen = temper(probabilities, candidate_temperature(probabilities, mask))
        else:
            inside = np.where(mask, scores, np.nan)
            extreme = np.nanmax if self.mode == "guaranteed" else np.nanmin
            chosen = (inside == extreme(inside, axis=1, keepdims=True)).astype(np.float64)
        weights = confidences_within(chosen, mask)
        counted = weights > 0
        order = np.argsort(scores[counted])
        mass = np.cumsum(weights[counted][order])
        return CalibratedPart(model, scores[counted][order], np.concatenate([[0.0], mass]))
