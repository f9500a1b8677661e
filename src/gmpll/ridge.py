r"""Kernel ridge regression on label confidences, with its leave-one-out opinion in closed form.

The kernel is the mean of one Gaussian kernel per view of the features. For many rows it is
replaced by its Nystroem approximation on a random subset of them (landmarks): with
:math:`\Phi` the m x r feature matrix, the coefficients for confidences Y are
:math:`(\Phi^\top\Phi + \lambda I)^{-1}\Phi^\top Y`. What the regression would say of row i had it
not seen it is

.. math:: f_{-i}(x_i) = \frac{f(x_i) - h_i y_i}{1 - h_i}, \qquad
          h_i = \phi_i^\top (\Phi^\top\Phi + \lambda I)^{-1} \phi_i .
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

__all__ = ["ConfidenceRidge", "LandmarkKernel", "RidgePredictor"]

#: Most landmarks, and the size that the feature matrix may have.
MAX_LANDMARKS = 1500
FEATURE_BYTES = 2**29
#: Directions of the kernel with less than this share of the largest eigenvalue are dropped.
RANK_TOLERANCE = 1e-10
#: Rows from which the typical distance is measured.
DISTANCE_SAMPLE = 500


class ConfidenceRidge:
    """Kernel ridge regression from views of the features to label confidences.

    Parameters
    ----------
    views : sequence of ndarray of shape (n_samples, n_features_v)
        The training rows in each view.
    width : float, default=1.0
        The kernel of a view is ``exp(-width d^2 / median(d^2))``.
    ridge : float, default=0.1
        Weight of the squared norm.
    rng : RandomState
        Draws the landmarks.

    Attributes
    ----------
    features : ndarray of shape (n_samples, rank)
        Nystroem features of the training rows.
    leverage : ndarray of shape (n_samples,)
        How much a row's own value enters its fitted value.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.ridge import ConfidenceRidge
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> ridge = ConfidenceRidge([X], width=8.0, rng=np.random.RandomState(0))
    >>> ridge.leave_one_out(np.array([[1.0], [1.0], [0.0], [0.0]])).ravel() > 0.5
    array([ True,  True, False, False])
    """

    def __init__(
        self,
        views: Sequence[NDArray[np.float64]],
        *,
        width: float = 1.0,
        ridge: float = 0.1,
        rng: np.random.RandomState,
    ) -> None:
        n_samples = views[0].shape[0]
        n_landmarks = min(n_samples, MAX_LANDMARKS, max(1, FEATURE_BYTES // (8 * n_samples)))
        chosen = np.sort(rng.permutation(n_samples)[:n_landmarks])
        self._kernel = LandmarkKernel(
            [rows[chosen] for rows in views],
            [width / _typical_squared_distance(rows, rng) for rows in views],
        )
        values, vectors = scipy.linalg.eigh(self._kernel(self._kernel.landmarks))
        kept = values > RANK_TOLERANCE * values[-1]
        self._to_features = vectors[:, kept] / np.sqrt(values[kept])
        self.features = self._kernel(views) @ self._to_features
        self._gram = self.features.T @ self.features
        self._regularize(ridge)

    def with_ridge(self, ridge: float) -> ConfidenceRidge:
        """Return the same regression with another weight of the norm; the kernel is shared."""
        if ridge == self.ridge:
            return self
        other = copy.copy(self)
        other._regularize(ridge)
        return other

    def _regularize(self, ridge: float) -> None:
        self.ridge = ridge
        regularized = self._gram + ridge * np.eye(len(self._gram))
        self._inverse = scipy.linalg.inv(regularized, overwrite_a=True, check_finite=False)
        self.leverage = np.einsum("ij,ij->i", self.features @ self._inverse, self.features)

    def coefficients(self, confidences: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fit the regression to confidences of the training rows."""
        return self._inverse @ (self.features.T @ confidences)

    def leave_one_out(self, confidences: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the regression says of every training row without having seen it."""
        fitted = self.features @ self.coefficients(confidences)
        own = self.leverage[:, None]
        return (fitted - own * confidences) / np.maximum(1.0 - own, np.finfo(float).eps)

    def predictor(self, confidences: NDArray[np.float64]) -> RidgePredictor:
        """Fit the regression to confidences and return it without the training rows."""
        weights = self._to_features @ self.coefficients(confidences)
        return RidgePredictor(self._kernel, weights)


@dataclass(frozen=True)
class LandmarkKernel:
    """Mean over the views of a Gaussian kernel between rows and landmarks."""

    landmarks: list[NDArray[np.float64]]
    gammas: list[float]

    def __call__(self, views: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the kernel between rows and landmarks."""
        total = np.zeros((views[0].shape[0], self.landmarks[0].shape[0]))
        for rows, landmarks, gamma in zip(views, self.landmarks, self.gammas, strict=True):
            kernel = euclidean_distances(rows, landmarks, squared=True)
            kernel *= -gamma
            total += np.exp(kernel, out=kernel)
        total /= len(self.gammas)
        return total


@dataclass(frozen=True)
class RidgePredictor:
    """A fitted regression: the kernel to the landmarks and their weights."""

    kernel: LandmarkKernel
    weights: NDArray[np.float64]

    def __call__(self, views: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Rate the labels of unseen rows."""
        return self.kernel(views) @ self.weights


def _typical_squared_distance(rows: NDArray[np.float64], rng: np.random.RandomState) -> float:
    sample = rows[rng.permutation(rows.shape[0])[:DISTANCE_SAMPLE]]
    distances = euclidean_distances(sample, squared=True)
    median = (
        float(np.median(distances[~np.eye(len(sample), dtype=bool)])) if len(sample) > 1 else 0.0
    )
    return median if median > 0 else 1.0
