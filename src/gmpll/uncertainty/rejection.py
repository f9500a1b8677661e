"""The reject option: rows in doubt are left unanswered."""

from dataclasses import field
from typing import Annotated, Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from gmpll._meta import TrainingRows
from gmpll._parameters import Learner, Seed, with_parameters
from gmpll._sklearn import Integral, Interval, Real
from gmpll._typing import AnyFloats, Mask
from gmpll.uncertainty.wrapper import PartialLabelWrapper


def coverage_threshold(confidence: AnyFloats, coverage: float) -> float:
    """Return the largest of the confidences that at least this share of the rows reaches.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.uncertainty.rejection import coverage_threshold
    >>> coverage_threshold(np.array([0.9, 0.2, 0.5, 0.7]), coverage=0.5)
    0.7
    """
    answered = int(np.ceil(coverage * len(confidence) - 1e-9))
    return float(np.sort(confidence)[-max(answered, 1)])


@with_parameters
class RejectingClassifier(PartialLabelWrapper):
    """Classifier with a reject option: answer only where the confidence reaches a level.

    The level is given as such, or as the share of rows that are to be answered, which is then set
    on predictions of rows that were held out of fitting. No true label is needed: which rows are
    doubtful, and how many, can be read off without. How *right* the answers are can not.

    Parameters
    ----------
    threshold : float in [0, 1], default=None
        Least probability of the predicted label; it reads as one if the estimator is a
        :class:`gmpll.CalibratedPartialClassifier`.
    coverage : float in (0, 1], default=0.9
        Share of rows to be answered; not used if ``threshold`` is given.
    reject_label : object, default=None
        What ``predict`` returns for the others.
    cv : int, default=3
        Number of parts that are held out in turn to find the level for ``coverage``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, without ``reject_label``.
    threshold_ : float
        The level.

    Notes
    -----
    Held-out models have seen fewer rows than the final one and are a little less sure: the
    share that is answered tends to be larger than asked for. ``score`` counts rejected rows as not
    covered; :func:`gmpll.uncertainty.reliability.accuracy_coverage_curve` tells the two apart.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll import PLKNN, RejectingClassifier
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> y = ["low", "low", "low", "high", "high", "high"]
    >>> model = RejectingClassifier(PLKNN(n_neighbors=3, weights="uniform"), threshold=0.9)
    >>> model.fit(X, y).predict([[0.1], [2.6], [5.1]]).tolist()
    ['low', None, 'high']
    """

    estimator: Learner = field(default=None, kw_only=False)
    threshold: Annotated[float | None, None, Interval(Real, 0, 1, closed="both")] = None
    coverage: Annotated[float, Interval(Real, 0, 1, closed="right")] = 0.9
    reject_label: Annotated[Any, object] = None
    cv: Annotated[int, Interval(Integral, 2, None, closed="left")] = 3
    random_state: Seed = None

    def _fit(self, data: TrainingRows, rng: RandomState) -> None:
        if self.reject_label in data.sets.classes.tolist():
            raise ValueError(
                f"reject_label={self.reject_label!r} is one of the labels in y: rejected rows "
                "could not be told from answered ones. Choose another."
            )
        inner = self._inner(rng)
        self.estimator_ = data.fit(inner)
        if self.threshold is not None:
            self.threshold_ = float(self.threshold)
            return
        held_out = self._held_out(inner, data, rng)
        self.threshold_ = coverage_threshold(held_out.max(axis=1), self.coverage)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of unseen rows, ``reject_label`` where confidence is too low.

        The result is of the labels' type if ``reject_label`` is of that kind too, else objects.
        """
        answered = self.accepts(X)
        predicted = np.asarray(self.estimator_.predict(X))
        rejected = np.array([self.reject_label])
        same_kind = rejected.dtype.kind == predicted.dtype.kind
        kept = predicted.astype(np.result_type(predicted, rejected) if same_kind else object)
        kept[~answered] = self.reject_label
        return kept

    def accepts(self, X: Any) -> Mask:
        """Whether the confidence in the prediction of each row reaches the level."""
        return self.predict_proba(X).max(axis=1) >= self.threshold_
