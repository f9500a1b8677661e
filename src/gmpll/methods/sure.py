"""SURE: a regression teaches itself, and a clear winner among the candidates is rewarded."""

import numpy as np
from numpy.random import RandomState

from gmpll._parameters import NotNegative, with_parameters
from gmpll._typing import Floats, Mask
from gmpll.methods._regression import ConfidenceRegression
from gmpll.methods._simplex import project_on_simplex
from gmpll.rounding import best_labels, one_hot


@with_parameters
class SURE(ConfidenceRegression):
    r"""Partial label learning with self-guided retraining (SURE).

    A kernel regression learns the confidences, and its fitted values become the next confidences.
    A reward for the largest confidence of a row lets one candidate win. With the confidences
    :math:`p_i` on the simplex over the candidates :math:`S_i`

    .. math:: \min_{P, f} \; \sum_i \|p_i - f(x_i)\|^2 + \beta \|f\|_K^2
              - \lambda \sum_i \max_{c \in S_i} p_{ic} .

    Two steps alternate: kernel ridge regression with a free intercept, and, with the candidate
    :math:`j_i` that it scores highest, :math:`p_i = \mathrm{simplex}(f(x_i) + \tfrac{\lambda}{2}
    e_{j_i})`, the projection on the simplex.

    Parameters
    ----------
    regularization : float, default=0.05
        Weight :math:`\beta` of the norm of the regression, positive.
    reward : float, default=0.3
        Weight :math:`\lambda` of the largest confidence. With 2 or more a row has a single
        candidate left after the first iteration wherever the regression prefers one.

    Notes
    -----
    Time is O(m^2 d + m^3) once and O(m^2 q) per iteration, memory O(m^2). From 6000 rows on 3000 of
    them, drawn by ``random_state``, carry the coefficients of the regression: O(m c^2) time for c
    of them. The kernel is Gaussian; its width is the mean distance of two training rows.

    The published quadratic programme per row has the further constraint that no confidence exceeds
    that of :math:`j_i`. It never binds: the projection keeps the order, and coordinate :math:`j_i`
    is the largest already. Nor is the choice of :math:`j_i` an approximation: to exchange a better
    and a worse scored label never raises the objective. As in the authors' package the first
    targets are the zeros and ones of the candidate sets, whose rows do not sum to one.

    References
    ----------
    .. [1] L. Feng and B. An, "Partial label learning with self-guided retraining", AAAI
       Conference on Artificial Intelligence 33, 2019, 3542-3549.

    Examples
    --------
    >>> from gmpll import SURE
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = SURE(random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.86
    """

    reward: NotNegative = 0.3

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        regression = self._regression(self._fit_features(X), rng)

        def iteration(confidences: Floats) -> Floats:
            return rewarded(regression.fitted(confidences), mask, self.reward, rng)

        confidences = self._alternate(mask.astype(np.float64), iteration)
        self._regressor = regression.regressor(confidences)
        return confidences


def rewarded(scores: Floats, mask: Mask, reward: float, rng: RandomState) -> Floats:
    """Return the confidences that are best for the scores: near them, with a clear winner."""
    winner = best_labels(np.where(mask, scores, -np.inf), rng=rng)
    return project_on_simplex(scores + reward / 2 * one_hot(winner, mask.shape[1]), mask)
