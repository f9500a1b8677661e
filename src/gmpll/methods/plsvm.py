"""PL-SVM: the best candidate has to beat the best other label by a margin."""

from typing import ClassVar

import numpy as np

from gmpll._parameters import Count, NotNegative, Positive, with_parameters
from gmpll._typing import Floats, Mask
from gmpll.methods._linear import LinearScorer


@with_parameters
class PLSVM(LinearScorer):
    r"""Partial label support vector machine (PL-SVM), trained by PL-Pegasos.

    Every label has a linear score. For a training row the candidate of highest score is taken
    for the truth, and it has to beat the best label outside the set by a margin of one.

    With the scores :math:`w_c^\top x` and the candidate set :math:`S_i` of row i the objective is

    .. math:: f(W) = \frac{\lambda}{2} \|W\|_F^2 + \frac{1}{m} \sum_i \max\Bigl(0,\;
              1 - \max_{c \in S_i} w_c^\top x_i + \max_{c \notin S_i} w_c^\top x_i \Bigr) .

    Where every set has one label this is the multi-class SVM of Crammer and Singer. A row whose
    set holds all labels has no loss.

    Parameters
    ----------
    regularization : float, default=0.01
        :math:`\lambda`. ``PLSVM.REGULARIZATION_GRID`` is the grid of the literature.
    max_iter : int, default=1000
        Number of steps.
    tol : float or None, default=None
        Stop as soon as a step changes the objective by at most this much. The objective may stand
        still for a step long before the end, therefore None, which makes all steps.

    Attributes
    ----------
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start and after every step. It need not fall with every step.
    objective_ : float
        The objective of ``weights_``, the best on the path after the start.
    n_iter_ : int
        Number of steps made.

    Notes
    -----
    Step t follows a sub-gradient of f over all rows by :math:`1 / (\lambda t)` and then projects
    the weights onto the ball of radius :math:`1 / \sqrt{\lambda}`, in which the minimum lies. A
    step is two matrix products, O(m q d) time and O(m q) memory.

    The first maximum makes f non-convex as soon as a set has two labels. Each label has its own
    bias, through a constant feature (and so a regularised one). The answer is the best of the steps
    without the start. For a kernel, put ``sklearn.kernel_approximation.Nystroem`` before. Tune
    :math:`\lambda` where it matters, for instance with ``GridSearchCV``: ``score`` needs no truth.

    What was chosen where the literature leaves room is listed on the page :doc:`/methods`.

    References
    ----------
    .. [1] N. Nguyen and R. Caruana, "Classification with partial labels", Proceedings of the
       14th ACM SIGKDD International Conference on Knowledge Discovery and Data Mining, 2008,
       551-559.

    Examples
    --------
    >>> from gmpll import PLSVM
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = PLSVM(random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.84
    """

    #: Values of ``regularization`` to choose from.
    REGULARIZATION_GRID: ClassVar[tuple[float, ...]] = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)

    regularization: Positive = 0.01
    max_iter: Count = 1000
    tol: NotNegative | None = None

    def _learn(self, rows: Floats, mask: Mask) -> Floats:
        """Return the best weights of the PL-Pegasos path."""
        decay = self.regularization
        weights = best = np.zeros((mask.shape[1], rows.shape[1]))
        value, pull = objective(weights, rows, mask, decay)
        # The start is never the answer: it scores all labels alike.
        path, lowest = [value], np.inf
        for step in range(1, self.max_iter + 1):
            weights = (1.0 - 1.0 / step) * weights + pull / (decay * step)
            weights = within_ball(weights, decay**-0.5)
            value, pull = objective(weights, rows, mask, decay)
            if value < lowest:
                best, lowest = weights, value
            path.append(value)
            if self.tol is not None and abs(path[-1] - path[-2]) <= self.tol:
                break
        self.objective_path_ = np.array(path)
        self.objective_ = lowest
        self.n_iter_ = len(path) - 1
        return best


def objective(
    weights: Floats, rows: Floats, mask: Mask, regularization: float
) -> tuple[float, Floats]:
    """Return the objective and the direction in which the mean hinge loss falls; ties share."""
    scores = rows @ weights.T
    inside = np.where(mask, scores, -np.inf)
    outside = np.where(mask, -np.inf, scores)
    # Without a label outside the set the second maximum is -inf and the loss zero.
    hinge = np.maximum(0.0, 1.0 - inside.max(axis=1) + outside.max(axis=1))
    missed = np.flatnonzero(hinge > 0.0)
    shares = shares_of_best(inside[missed]) - shares_of_best(outside[missed])
    value = 0.5 * regularization * np.vdot(weights, weights) + hinge.mean()
    return float(value), shares.T @ rows[missed] / rows.shape[0]


def shares_of_best(scores: Floats) -> Floats:
    """Return 1 for the largest score of each row, shared equally where several are largest."""
    tied = scores == scores.max(axis=1, keepdims=True)
    return tied / tied.sum(axis=1, keepdims=True)


def within_ball(weights: Floats, radius: float) -> Floats:
    """Project onto the Frobenius ball around zero."""
    length = np.linalg.norm(weights)
    return weights * (radius / length) if length > radius else weights
