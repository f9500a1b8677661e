"""PL-LEAF: give confidences the local geometry of the features, then regress on them."""

import warnings
from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import RandomState
from sklearn.exceptions import ConvergenceWarning

from gmpll._parameters import Count, Jobs, NotNegative, Positive, Seed, Switch, with_parameters
from gmpll._sklearn import StrOptions
from gmpll._typing import Floats, Mask
from gmpll.base import BasePartialLabelClassifier, DecisionMixin
from gmpll.graph.neighbors import nearest_neighbors, warn_of_few_rows
from gmpll.graph.views import Scaling, unit_rows
from gmpll.methods._regression import KernelRegression
from gmpll.methods._simplex import (
    Solution,
    accelerated,
    confidence_step,
    deviation_from_neighbors,
    project_on_simplex,
)
from gmpll.rounding import confidences_within

#: A training kernel that takes more than this is refused.
KERNEL_LIMIT_BYTES = 16 * 2**30


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

    Attributes
    ----------
    kernel_width_ : float
        The width s that was used.
    n_iter_ : ndarray of shape (2,), int
        Iterations of the solvers of step 2 and step 3.
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        What ``transductive`` says: F, or the regressor projected on the candidates.

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
        rows = self._scaling.transform(X)

        # Steps 1 and 2: confidences that deviate least from those of the neighbours.
        directions = unit_rows(rows)
        near = nearest_neighbors(directions, self.n_neighbors, n_jobs=self.n_jobs).indices
        smooth = confidence_step(deviation_from_neighbors(directions, near), mask)
        found = self._solve("confidences", smooth, mask / mask.sum(axis=1, keepdims=True))
        # The solver's rows sum to one up to rounding errors; this makes that exact.
        confidences = confidences_within(found.point, mask)

        # Step 3: learn the confidences.
        regression = KernelRegression(
            rows, 1.0 / (2.0 * self.C1), width=self.kernel_width, remedy="make C1 smaller"
        )
        shift = regression.ridge * (self.C2 * candidate_gap(mask))
        problem = SlackProblem(regression, confidences, shift, self.epsilon)
        slack = self._solve("regressor", problem.step, np.zeros(mask.shape))
        targets = problem.regression_targets(slack.point)
        self._regressor, self.kernel_width_ = regression.regressor(targets), regression.width
        self.n_iter_ = np.array([found.n_iter, slack.n_iter])
        if self.transductive == "confidences":
            return confidences
        return project_on_simplex(regression.fitted(targets), mask)

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
        return self._regressor(self._scaling.transform(X))


def candidate_gap(mask: Mask) -> Floats:
    """Z of the objective: +1/|S| on the candidates of a row, -1/(q - |S|) on the others."""
    size = mask.sum(axis=1, keepdims=True)
    others = np.maximum(mask.shape[1] - size, 1)
    return np.where(mask, 1.0 / size, -1.0 / others)


class SlackProblem(NamedTuple):
    """Step 3 as a problem in the slacks r, one vector of length at most epsilon per row."""

    regression: KernelRegression
    targets: Floats
    shift: Floats  # what the gap adds to the targets: C2 / (2 C1) times Z of the objective
    epsilon: float

    def regression_targets(self, slack: Floats) -> Floats:
        """What the ridge regression learns for given slacks: the gap moves the targets."""
        return self.targets - slack + self.shift

    def step(self, slack: Floats) -> Floats:
        """Fit the regressor to the targets less the slacks, then find the best slacks for it."""
        residual = self.targets - self.regression.fitted(self.regression_targets(slack))
        length = np.linalg.norm(residual, axis=1, keepdims=True)
        return residual * (self.epsilon / np.maximum(length, self.epsilon or 1.0))
