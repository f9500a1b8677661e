"""Kernel ridge regression with a free intercept, and what methods that alternate with it share."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.random import RandomState
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.utils import gen_batches

from gmpll._parameters import Count, NotNegative, Positive, Seed, Switch, with_parameters
from gmpll._typing import Floats
from gmpll.base import BasePartialLabelClassifier, DecisionMixin
from gmpll.graph.views import Scaling, unit_rows

#: Unseen rows are handled in blocks whose kernel takes about this many bytes.
BLOCK_BYTES = 2**26
#: Up to this many rows all of them carry a coefficient; of more, half as many landmarks do.
EXACT_ROWS = 6000
#: What the kernel between rows and landmarks may take.
LANDMARK_BYTES = 2**30


class Regressor(NamedTuple):
    """The function k(x) A + b of the rows that carry a coefficient."""

    rows: Floats
    gamma: float
    coefficients: Floats
    intercept: Floats

    def __call__(self, queries: Floats) -> Floats:
        """Score rows, in blocks."""
        scores: Floats = np.tile(self.intercept, (len(queries), 1))
        if len(self.rows):
            for part in gen_batches(len(queries), max(1, BLOCK_BYTES // (8 * len(self.rows)))):
                kernel = rbf_kernel(queries[part], self.rows, gamma=self.gamma)
                scores[part] += kernel @ self.coefficients
        return scores


class KernelRegression:
    """Regression of targets on fixed rows: ``min |T - K A - 1 b|^2 + ridge tr(A' K A)``.

    K is a Gaussian kernel whose width is the mean distance of two rows unless it is given. With
    ``rng`` only some of very many rows, drawn as landmarks, carry a coefficient. ``remedy`` ends
    the sentence that is raised where the kernel is singular.
    """

    def __init__(
        self,
        rows: Floats,
        ridge: float,
        *,
        remedy: str,
        width: float | None = None,
        rng: RandomState | None = None,
    ) -> None:
        self.ridge = ridge
        self._rows, self._to_landmarks = rows, None
        if rng is not None and len(rows) > EXACT_ROWS:
            n_landmarks = min(EXACT_ROWS // 2, max(1, LANDMARK_BYTES // (8 * len(rows))))
            self._rows = rows[np.sort(rng.permutation(len(rows))[:n_landmarks])]
        matrix, self.width = training_kernel(self._rows, width)
        if self._rows is rows:
            matrix.flat[:: len(rows) + 1] += ridge
        else:
            # The intercept leaves the normal equations when kernel and targets are centred.
            self._to_landmarks = rbf_kernel(rows, self._rows, gamma=1.0 / (2.0 * self.width**2))
            self._mean = self._to_landmarks.mean(axis=0)
            self._to_landmarks -= self._mean
            matrix *= ridge
            matrix += self._to_landmarks.T @ self._to_landmarks
            matrix.flat[:: n_landmarks + 1] += 1e-10 * np.trace(matrix) / n_landmarks
        try:
            # The transpose of a symmetric C-ordered matrix is what LAPACK can overwrite.
            self._factor = scipy.linalg.cho_factor(
                matrix.T, lower=True, overwrite_a=True, check_finite=False
            )
        except scipy.linalg.LinAlgError:
            raise ValueError(
                f"The kernel of the training rows is singular to working precision: {remedy}."
            ) from None
        if self._to_landmarks is None:
            self._of_ones = self._solve(np.ones(len(rows)))

    def coefficients(self, targets: Floats) -> tuple[Floats, Floats]:
        """Return A and b."""
        if self._to_landmarks is not None:
            mean = targets.mean(axis=0)
            solved = self._solve(self._to_landmarks.T @ (targets - mean))
            return solved, mean - self._mean @ solved
        solved = self._solve(targets)
        intercept = solved.sum(axis=0) / self._of_ones.sum()
        return solved - self._of_ones[:, None] * intercept, intercept

    def fitted(self, targets: Floats) -> Floats:
        """Return K A + 1 b; the kernel has been overwritten, but the residual is ``ridge`` A."""
        if self._to_landmarks is not None:
            mean = targets.mean(axis=0)
            return self._to_landmarks @ self._solve(self._to_landmarks.T @ (targets - mean)) + mean
        return targets - self.ridge * self.coefficients(targets)[0]

    def regressor(self, targets: Floats) -> Regressor:
        """Return the regression as a function of any rows."""
        return Regressor(self._rows, 1.0 / (2.0 * self.width**2), *self.coefficients(targets))

    def _solve(self, right: Floats) -> Floats:
        return scipy.linalg.cho_solve(self._factor, right, check_finite=False)


def training_kernel(rows: Floats, width: float | None = None) -> tuple[Floats, float]:
    """RBF kernel of the rows and its width, in the memory of one square matrix."""
    m = rows.shape[0]
    kernel = euclidean_distances(rows)
    if width is None:
        mean = kernel.sum() / max(m * (m - 1), 1)
        width = float(mean) if mean > 0 else 1.0  # all rows coincide: any width will do
    np.square(kernel, out=kernel)
    kernel *= -1.0 / (2.0 * width**2)
    return np.exp(kernel, out=kernel), width


@with_parameters
class ConfidenceRegression(DecisionMixin, BasePartialLabelClassifier):
    """A method that alternates between confidences and the regression that learns them.

    ``_fit`` ends with ``_regressor``, whose scores of unseen rows decide.

    Parameters
    ----------
    max_iter : int, default=50
        Largest number of iterations; reaching it is a regular end and gives no warning.
    tol : float, default=1e-3
        The iterations end when no confidence changes by more than this.
    unit_rows : bool, default=False
        Whether rows are scaled to length one (after z-scoring).

    Attributes
    ----------
    n_iter_ : int
        Number of iterations.
    """

    regularization: Positive = 0.05
    max_iter: Count = 50
    tol: NotNegative = 1e-3
    unit_rows: Switch = False
    standardize: Switch = True
    random_state: Seed = None

    def _features(self, X: Floats) -> Floats:
        """Scale rows as the parameters say, by the statistics of the training rows."""
        rows = self._scaling.transform(X)
        return unit_rows(rows) if self.unit_rows else rows

    def _fit_features(self, X: Floats) -> Floats:
        self._scaling = Scaling(X, standardize=self.standardize)
        return self._features(X)

    def _regression(self, rows: Floats, rng: RandomState, weight: float = 1.0) -> KernelRegression:
        """Return the regression of targets whose errors have this weight."""
        ridge = self.regularization / weight
        return KernelRegression(rows, ridge, remedy="raise regularization", rng=rng)

    def _alternate(self, confidences: Floats, iteration: Callable[[Floats], Floats]) -> Floats:
        """Iterate until no confidence changes by more than ``tol``."""
        for n_iter in range(1, self.max_iter + 1):
            previous, confidences = confidences, iteration(confidences)
            self.n_iter_ = n_iter
            if np.abs(confidences - previous).max() <= self.tol:
                break
        return confidences

    def _scores(self, X: Floats) -> Floats:
        return self._regressor(self._features(X))
