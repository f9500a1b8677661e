"""PL-LEAF: give confidences the local geometry of the features, then regress on them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.random import RandomState
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.utils import gen_batches

from gmpll._parameters import Count, Jobs, NotNegative, Positive, Seed, Switch, with_parameters
from gmpll._sklearn import StrOptions
from gmpll._typing import Floats, Mask
from gmpll.base import BasePartialLabelClassifier, DecisionMixin
from gmpll.engines import engine_of
from gmpll.graph.neighbors import nearest_neighbors, warn_of_few_rows
from gmpll.graph.reconstruction import reconstruction_weights
from gmpll.graph.views import Scaling, unit_rows
from gmpll.rounding import confidences_within

__all__ = ["PLLEAF"]

#: A training kernel that takes more than this is refused.
KERNEL_LIMIT_BYTES = 16 * 2**30
#: Unseen rows are handled in blocks whose kernel takes about this many bytes.
BLOCK_BYTES = 2**26


@with_parameters
class PLLEAF(DecisionMixin, BasePartialLabelClassifier):
    r"""Partial label learning via feature-aware disambiguation (PL-LEAF).

    If a row lies between certain neighbours, its label confidences should lie between theirs in
    the same proportions. The confidences that fit best are found first; then a kernel regressor
    for all labels at once learns them, and what it says about unseen rows is their score.

    1. Graph: on z-scored rows of length one every row is reconstructed from its k nearest
       neighbours, :math:`\min_{w_i} \|x_i - \sum_j w_{ij} x_j\|^2` with :math:`w_i \ge 0`,
       :math:`\sum_j w_{ij} = 1`.
    2. Confidences:

       .. math:: \min_F \sum_i \|f_i - \sum_j w_{ij} f_j\|^2 \quad\text{s.t.}\quad
                 F_{ic} \ge 0,\ F_{ic} = 0 \text{ for } c \notin S_i,\ \sum_c F_{ic} = 1.

    3. Regressor :math:`f(x) = \sum_i \beta_i \kappa(x_i, x) + b` on the z-scored rows, with
       :math:`u_i = \|f_i - f(x_i)\|`, :math:`(t)_+ = \max(t, 0)` and the kernel matrix K:

       .. math:: \min_{\beta, b} \tfrac12 \mathrm{tr}(\beta^\top K \beta)
                 + C_1 \sum_i (u_i - \varepsilon)_+^2
                 - C_2 \sum_i \Bigl( \tfrac{1}{|S_i|} \sum_{c \in S_i} f_c(x_i)
                 - \tfrac{1}{q - |S_i|} \sum_{c \notin S_i} f_c(x_i) \Bigr).

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours k; all there are, with a warning, if there are fewer.
    C1 : float, default=10.0
        Weight of the distance between confidences and regressor.
    C2 : float, default=1.0
        Weight of the gap between candidates and other labels.
    epsilon : float, default=0.1
        Distance between confidences and regressor that costs nothing.
    kernel_width : float, default=None
        Width s of the kernel :math:`\kappa(x, x') = \exp(-\|x - x'\|^2 / (2 s^2))`; by default
        the mean distance of two training rows.
    transductive : {"confidences", "model"}, default="confidences"
        What decides on the training rows: the confidences of step 2, or the regressor of step 3
        at the training rows, projected on the simplex of the candidates.
    max_iter : int, default=5000
        Largest number of iterations of each of the two solvers.
    tol : float, default=1e-8
        The solvers end when an iteration changes no entry by more than this.
    standardize, n_jobs, random_state
        As in every method, see :class:`gmpll.base.BasePartialLabelClassifier`.

    Attributes
    ----------
    kernel_width_ : float
        The width s that was used.
    n_iter_ : ndarray of shape (2,), int
        Iterations of the solvers of step 2 and step 3.
    classes_, labels_, label_confidences_, n_features_in_, feature_names_in_
        See :class:`gmpll.base.BasePartialLabelClassifier`. The confidences are what
        ``transductive`` says: F, or the regressor projected on the candidates.

    Notes
    -----
    Time is O(m^2 d) for the neighbours, O(m k^2 (k + d)) for the weights, O(k s) per iteration
    of step 2, where s counts all candidates of all rows, O(m^3) once and O(m^2 q) per
    iteration of step 3. Memory is 8 m^2 bytes for the kernel (2.4 GB for 17,472 rows); more than
    16 GiB is refused.

    Both problems are convex and are solved to optimality by accelerated projected gradients. For
    step 3, :math:`(u_i - \varepsilon)_+` is the distance of the residual to a ball: with a slack
    :math:`r_i` in that ball the problem is kernel ridge regression of F - r with the same matrix
    every time, so one Cholesky factor serves all iterations.

    What was chosen where the literature leaves room is listed on the page :doc:`/methods`.

    References
    ----------
    .. [1] M.-L. Zhang, B.-B. Zhou and X.-Y. Liu, "Partial label learning via feature-aware
       disambiguation", KDD 2016, 1335-1344.

    Examples
    --------
    >>> from gmpll import PLLEAF
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = PLLEAF(random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.79
    """

    n_neighbors: Count = 10
    C1: Positive = 10.0
    C2: NotNegative = 1.0
    epsilon: NotNegative = 0.1
    kernel_width: Positive | None = None
    transductive: Annotated[str, StrOptions({"confidences", "model"})] = "confidences"
    max_iter: Count = 5000
    tol: NotNegative = 1e-8
    standardize: Switch = True
    n_jobs: Jobs = None
    random_state: Seed = None

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        n_bytes = 8 * len(X) ** 2
        if n_bytes > KERNEL_LIMIT_BYTES:
            raise ValueError(
                f"PL-LEAF needs a kernel of {n_bytes / 2**30:.0f} GiB for {len(X)} training rows, "
                f"more than the limit of {KERNEL_LIMIT_BYTES // 2**30} GiB: train on fewer rows or "
                "take a method without a kernel, such as IPAL."
            )
        warn_of_few_rows("PLLEAF", self.n_neighbors, len(X))
        self._scaling = Scaling(X, standardize=self.standardize)
        self._rows = self._scaling.transform(X)

        # Steps 1 and 2: confidences that deviate least from those of the neighbours.
        deviation = deviation_from_neighbors(unit_rows(self._rows), self.n_neighbors, self.n_jobs)
        smooth = ConfidenceProblem(deviation, mask)
        found = self._solve("confidences", smooth.step, mask / mask.sum(axis=1, keepdims=True))
        # The solver's rows sum to one up to rounding errors; this makes that exact.
        confidences = confidences_within(found.point, mask)

        # Step 3: learn the confidences.
        kernel, self.kernel_width_ = training_kernel(self._rows, self.kernel_width)
        problem = RegressionProblem(
            kernel, confidences, candidate_gap(mask), C1=self.C1, C2=self.C2, epsilon=self.epsilon
        )
        slack = self._solve("regressor", problem.step, np.zeros(mask.shape))
        self._coefficients, self._intercept = problem.coefficients(slack.point)
        self.n_iter_ = np.array([found.n_iter, slack.n_iter])
        if self.transductive == "confidences":
            return confidences
        return project_on_simplex(problem.fitted(slack.point, self._coefficients), mask)

    def _solve(self, what: str, step: Callable[[Floats], Floats], start: Floats) -> Solution:
        solution = accelerated(step, start, max_iter=self.max_iter, tol=self.tol)
        if not solution.converged:
            warnings.warn(
                f"The {what} of PL-LEAF still changed by {solution.change:.1e} in iteration "
                f"{solution.n_iter}: increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return solution

    def _scores(self, X: Floats) -> Floats:
        queries, gamma = self._scaling.transform(X), 1.0 / (2.0 * self.kernel_width_**2)
        scores = np.empty((len(queries), len(self._intercept)))
        for part in gen_batches(len(queries), max(1, BLOCK_BYTES // (8 * len(self._rows)))):
            kernel = rbf_kernel(queries[part], self._rows, gamma=gamma)
            scores[part] = kernel @ self._coefficients + self._intercept
        return scores


def deviation_from_neighbors(rows: Floats, n_neighbors: int, n_jobs: int | None) -> sp.csr_array:
    """Matrix I - W that turns values of the rows into deviations from their reconstruction."""
    near = nearest_neighbors(rows, n_neighbors, n_jobs=n_jobs).indices
    weights = reconstruction_weights(rows, rows, near, sum_to_one=True)
    graph: Any = engine_of(rows).query_weights(near, weights, len(rows))
    return sp.eye_array(len(rows), format="csr") - graph


def candidate_gap(mask: Mask) -> Floats:
    """Z of the objective: +1/|S| on the candidates of a row, -1/(q - |S|) on the others."""
    size = mask.sum(axis=1, keepdims=True)
    others = np.maximum(mask.shape[1] - size, 1)
    return np.where(mask, 1.0 / size, -1.0 / others)


def training_kernel(rows: Floats, width: float | None) -> tuple[Floats, float]:
    """RBF kernel of the rows and its width, in the memory of one square matrix."""
    m = rows.shape[0]
    kernel = euclidean_distances(rows)
    if width is None:
        mean = kernel.sum() / max(m * (m - 1), 1)
        width = float(mean) if mean > 0 else 1.0  # all rows coincide: any width will do
    np.square(kernel, out=kernel)
    kernel *= -1.0 / (2.0 * width**2)
    return np.exp(kernel, out=kernel), width


class ConfidenceProblem:
    """Step 2: confidences on the candidates that deviate least; ``deviation`` is I - W."""

    def __init__(self, deviation: sp.csr_array, mask: Mask) -> None:
        self._deviation, self._adjoint, self._mask = deviation, deviation.T.tocsr(), mask
        # diag(|A|' |A| 1) - A'A is diagonally dominant. So these curvatures, one per row, are a
        # safe step; a single one for all would be dictated by the row with most followers.
        size_of = abs(deviation)
        self._curvature = (size_of.T @ size_of.sum(axis=1))[:, None]

    def step(self, confidences: Floats) -> Floats:
        """Projected gradient step."""
        half_gradient = self._adjoint @ (self._deviation @ confidences)
        return project_on_simplex(confidences - half_gradient / self._curvature, self._mask)


class RegressionProblem:
    """Step 3 as a problem in the slacks r, one vector of length at most epsilon per row.

    ``gap`` is the matrix Z. The kernel is overwritten, to hold one square matrix only.
    """

    def __init__(
        self, kernel: Floats, targets: Floats, gap: Floats, *, C1: float, C2: float, epsilon: float
    ) -> None:
        self._targets, self._pull, self._epsilon = targets, C2 * gap, epsilon
        self._ridge = 1.0 / (2.0 * C1)
        kernel.flat[:: kernel.shape[0] + 1] += self._ridge
        try:
            # The transpose of a symmetric C-ordered matrix is what LAPACK can overwrite.
            self._factor = scipy.linalg.cho_factor(
                kernel.T, lower=True, overwrite_a=True, check_finite=False
            )
        except scipy.linalg.LinAlgError:
            raise ValueError(
                f"The kernel of PL-LEAF is singular to working precision with C1={C1}: "
                "make C1 smaller."
            ) from None
        self._of_ones = self._solve(np.ones(targets.shape[0]))

    def coefficients(self, slack: Floats) -> tuple[Floats, Floats]:
        """Best beta and b for given slacks: ridge regression with an unpenalised intercept."""
        solved = self._solve(self._targets - slack + self._ridge * self._pull)
        intercept = solved.sum(axis=0) / self._of_ones.sum()
        return solved - self._of_ones[:, None] * intercept, intercept

    def fitted(self, slack: Floats, coefficients: Floats) -> Floats:
        """K beta + b, read off the optimality condition: the kernel has been overwritten."""
        return self._targets - slack + self._ridge * (self._pull - coefficients)

    def step(self, slack: Floats) -> Floats:
        """Fit the regressor to the targets less the slacks, then find the best slacks for it."""
        coefficients, _ = self.coefficients(slack)
        residual = self._targets - self.fitted(slack, coefficients)
        length = np.linalg.norm(residual, axis=1, keepdims=True)
        return residual * (self._epsilon / np.maximum(length, self._epsilon or 1.0))

    def _solve(self, right: Floats) -> Floats:
        return scipy.linalg.cho_solve(self._factor, right, check_finite=False)


def project_on_simplex(values: Floats, mask: Mask) -> Floats:
    """Nearest non-negative rows that sum to one and are zero outside the mask.

    The mask has at least one place in every row; values outside do not matter.
    """
    inside = np.where(mask, values, -np.inf)
    # The projection does not feel a shift of the row; this one keeps the sums below exact.
    inside -= inside.max(axis=1, keepdims=True)
    falling = -np.sort(-inside, axis=1)
    # If the s largest are the positive ones, subtracting this threshold makes them sum to one.
    thresholds = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, falling.shape[1] + 1)
    n_positive = np.count_nonzero(falling > thresholds, axis=1)
    threshold = np.take_along_axis(thresholds, n_positive[:, None] - 1, axis=1)
    return np.maximum(inside - threshold, 0.0)


class Solution(NamedTuple):
    """Where an iteration ended."""

    point: Floats
    n_iter: int
    change: float
    converged: bool


def accelerated(
    step: Callable[[Floats], Floats], start: Floats, *, max_iter: int, tol: float
) -> Solution:
    """Repeat projected gradient steps, with momentum that restarts when it points uphill.

    The length of a step must be safe anywhere. The end is reached when a step changes no entry by
    more than ``tol``: such a point is optimal.
    """
    point = ahead = start
    momentum = 1.0
    for n_iter in range(1, max_iter + 1):
        new = step(ahead)
        change = float(np.abs(new - ahead).max())
        if change <= tol:
            return Solution(new, n_iter, change, True)
        if np.vdot(ahead - new, new - point) > 0:
            momentum, ahead = 1.0, new
        else:
            grown = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            ahead = new + (momentum - 1.0) / grown * (new - point)
            momentum = grown
        point = new
    return Solution(point, max_iter, change, False)
