"""PL-AGGD: the graph is learned from features and confidences, and both learn from each other."""

from collections.abc import Callable

import numpy as np
from numpy.random import RandomState

from gmpll._parameters import Count, Jobs, NotNegative, with_parameters
from gmpll._typing import Floats, Mask
from gmpll.graph.neighbors import nearest_neighbors, warn_of_few_rows
from gmpll.graph.views import unit_rows
from gmpll.methods._regression import ConfidenceRegression
from gmpll.methods._simplex import (
    accelerated,
    confidence_step,
    deviation_from_neighbors,
    project_on_simplex,
)

#: What draws the confidences of an iteration, and how strongly, given the confidences before and
#: what the regression makes of them.
Pull = Callable[[Floats, Floats], tuple[Floats, float]]


@with_parameters
class PLAGGD(ConfidenceRegression):
    r"""Partial label learning by adaptive graph guided disambiguation (PL-AGGD).

    Rows that reconstruct each other should have confidences that do so too. Here the graph is not
    fixed: it is learned again from the features *and* the confidences, so that a neighbour whose
    labels do not fit loses its weight. A kernel regression learns the confidences, pulls at them in
    turn, and predicts.

    With the confidences :math:`P` on the simplices of the candidates, the rows :math:`u_i` scaled
    to length one, and weights :math:`w_i` on the simplex over the k nearest neighbours of row i,

    .. math:: \min_{P, W, f} \; \sum_i \|p_i - f(x_i)\|^2 + \gamma \|f\|_K^2
              + \lambda \sum_i \Bigl\|u_i - \sum_j w_{ij} u_j\Bigr\|^2
              + \mu \sum_i \Bigl\|p_i - \sum_j w_{ij} p_j\Bigr\|^2 .

    Three convex steps alternate: the graph W, the confidences P, and f, kernel ridge regression
    with a free intercept. At the start the graph is that of the features alone, and P the smoothest
    confidences on it.

    Parameters
    ----------
    regularization : float, default=0.05
        Weight :math:`\gamma` of the norm of the regression, positive.
    feature_weight : float, default=1.0
        Weight :math:`\lambda` of the features in the graph.
    label_weight : float, default=1.0
        Weight :math:`\mu` of the confidences in the graph, and of the graph against the regression.
        With 0 the graph has no say after the start.
    max_iter : int, default=10
        Largest number of iterations; reaching it is a regular end and gives no warning.
    unit_rows : bool, default=False
        Whether regressions, too, work on rows of length one.

    Attributes
    ----------
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        P.

    Notes
    -----
    Time is O(m^2 d + m^3) once; an iteration takes O(m k^2 (d + q + k)) for the graph, O(m k q) per
    step of the confidences and O(m^2 q) for the regression. Memory is O(m^2). From 6000 rows on
    3000 of them, drawn by ``random_state``, carry the coefficients of the regression. The kernel is
    Gaussian; its width is the mean distance of two training rows.

    The graph is one reconstruction problem of ten unknowns per row, solved exactly, on features and
    confidences put side by side; the confidences are found by accelerated projected gradients. The
    largest score of ``decision_function`` among the candidates was a little more often right than
    ``labels_`` on two real-world data sets.

    References
    ----------
    .. [1] D.-B. Wang, L. Li and M.-L. Zhang, "Adaptive graph guided disambiguation for partial
       label learning", KDD 2019, 83-91.

    Examples
    --------
    >>> from gmpll import PLAGGD
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = PLAGGD(random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.84
    """

    feature_weight: NotNegative = 1.0
    label_weight: NotNegative = 1.0
    n_neighbors: Count = 10
    max_iter: Count = 10
    n_jobs: Jobs = None

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        warn_of_few_rows(type(self).__name__, self.n_neighbors, len(X))
        rows = self._fit_features(X)
        directions = unit_rows(rows)
        near = nearest_neighbors(directions, self.n_neighbors, n_jobs=self.n_jobs).indices
        regression = self._regression(rows, rng)
        pull = self._pull(rows, mask, rng)

        def iteration(confidences: Floats) -> Floats:
            # The graph reconstructs features and confidences with the same weights.
            described = [
                self.feature_weight**0.5 * directions,
                self.label_weight**0.5 * confidences,
            ]
            target, strength = pull(confidences, regression.fitted(confidences))
            if self.label_weight == 0:
                return project_on_simplex(target, mask)
            deviation = deviation_from_neighbors(np.hstack(described), near)
            step = confidence_step(deviation, mask, strength / self.label_weight, target)
            return accelerated(step, confidences).point

        smooth = confidence_step(deviation_from_neighbors(directions, near), mask)
        start = accelerated(smooth, mask / mask.sum(axis=1, keepdims=True)).point
        confidences = self._alternate(start, iteration)
        self._regressor = regression.regressor(confidences)
        return confidences

    def _pull(self, rows: Floats, mask: Mask, rng: RandomState) -> Pull:
        """Say what draws the confidences beside their neighbours."""
        return lambda confidences, fitted: (fitted, 1.0)
