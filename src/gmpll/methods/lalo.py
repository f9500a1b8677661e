"""LALO: confidences follow a regression and, a little, their neighbours on a graph."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState

from gmpll._parameters import Count, Jobs, NotNegative, with_parameters
from gmpll._typing import Floats, Mask
from gmpll.engines import engine_of
from gmpll.graph.neighbors import nearest_neighbors, warn_of_few_rows
from gmpll.methods._regression import ConfidenceRegression
from gmpll.methods._simplex import accelerated, project_on_simplex


@with_parameters
class LALO(ConfidenceRegression):
    r"""Leveraging latent label distributions for partial label learning (LALO).

    The candidates of a row have a hidden distribution. A kernel regression learns it, and it is
    drawn to what the regression says and to the distributions of the row's neighbours. With the
    confidences :math:`P` on the simplices of the candidates and the fitted values F

    .. math:: \min_{P, f} \; |P - F|^2 + \lambda \|f\|_K^2 + \mu \, \mathrm{tr}(P^\top (I - N) P)

    where :math:`N = D^{-1/2} A D^{-1/2}`, :math:`A_{ij} = a_{ij} + a_{ji}`, D has the row sums of
    A, and :math:`a_{ij} = \exp(-\|x_i - x_j\|^2 / \sigma^2)` where j is one of the k nearest
    neighbours of i, 0 elsewhere; :math:`\sigma` is the mean distance to the k-th neighbour. Two
    steps alternate: kernel ridge regression with a free intercept, and the confidences for its F.

    Parameters
    ----------
    regularization : float, default=0.05
        Weight :math:`\lambda` of the norm of the regression, positive.
    smoothness : float, default=0.005
        Weight :math:`\mu` of the graph. The authors' value makes the graph almost inert; try up to
        1 where neighbours are to matter.

    Notes
    -----
    Time is O(m^2 d + m^3) once and O(m^2 q) per iteration; the graph costs a few products of
    O(m k q) beside that. Memory is O(m^2). From 6000 rows on 3000 of them, drawn by
    ``random_state``, carry the coefficients of the regression. The kernel is Gaussian; its width is
    the mean distance of two training rows.

    Neighbours that have each other for neighbours count twice, as in the authors' package, and the
    regression that predicts is that of the last iteration: it has learned the confidences before
    the last step.

    References
    ----------
    .. [1] L. Feng and B. An, "Leveraging latent label distributions for partial label learning",
       IJCAI 2018, 2107-2113.

    Examples
    --------
    >>> from gmpll import LALO
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = LALO(random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.88
    """

    smoothness: NotNegative = 0.005
    n_neighbors: Count = 10
    n_jobs: Jobs = None

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        warn_of_few_rows("LALO", self.n_neighbors, len(X))
        rows = self._fit_features(X)
        graph = neighbor_graph(rows, self.n_neighbors, self.n_jobs)
        regression = self._regression(rows, rng)
        # No eigenvalue of the graph is below -1: with this curvature a gradient step is safe.
        mu, curvature = self.smoothness, 1.0 + 2.0 * self.smoothness
        learned = confidences = mask / mask.sum(axis=1, keepdims=True)

        def iteration(confidences: Floats) -> Floats:
            nonlocal learned
            learned = confidences
            fitted = regression.fitted(confidences)

            def step(P: Floats) -> Floats:
                half_gradient = P - fitted + mu * (P - graph @ P)
                return project_on_simplex(P - half_gradient / curvature, mask)

            return accelerated(step, confidences).point

        confidences = self._alternate(confidences, iteration)
        self._regressor = regression.regressor(learned)
        return confidences


def neighbor_graph(rows: Floats, n_neighbors: int, n_jobs: int | None) -> sp.csr_array:
    """Return N, the normalised weights between rows and their nearest neighbours."""
    distances, near = nearest_neighbors(rows, n_neighbors, n_jobs=n_jobs)
    width = distances[:, -1].mean() if distances.shape[1] else 0.0
    weights = np.exp(-((distances / (width or 1.0)) ** 2))  # all rows coincide: all weigh 1
    one_sided: Any = engine_of(rows).query_weights(near, weights, len(rows))
    both = (one_sided + one_sided.T).tocsr()
    degrees = both.sum(axis=1)
    scale = sp.diags_array(1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0)))
    return (scale @ both @ scale).tocsr()
