r"""Kernel ridge regression on label confidences, with leave-one-out predictions in closed form.

The kernel K is the mean of one rational quadratic kernel per view of the features,

.. math:: k(x, z) = \Bigl(1 + \frac{\|x - z\|^2}{\operatorname{median} d^2}\Bigr)^{-1} ,

a mixture of Gaussian kernels of all widths, so that no width has to be chosen. With
:math:`A = (K + \lambda I)^{-1}` the coefficients for confidences Y are AY, and what the regression
would say of row i had it not seen it is

.. math:: f_{-i}(x_i) = y_i - \frac{(A Y)_i}{A_{ii}} .

For many rows the kernel is replaced by its Nystroem approximation on a random subset of them
(landmarks). With R the m x n kernel between rows and landmarks and N the n x n kernel between
landmarks, the coefficients are :math:`(R^\top R + \lambda N)^{-1} R^\top Y`, and

.. math:: f_{-i}(x_i) = \frac{f(x_i) - h_i y_i}{1 - h_i}, \qquad
          h_i = r_i^\top (R^\top R + \lambda N)^{-1} r_i .
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from gmpll.arrays import Array, array_namespace, device, to_host
from gmpll.engines import engine_of

__all__ = ["EXACT_ROWS", "KernelRidge", "LandmarkKernel", "RidgePredictor"]

#: Up to this many rows all of them carry a coefficient: inverting their kernel takes no longer than
#: the products with half as many landmarks.
EXACT_ROWS = 6000
#: Most landmarks of more rows, and the size that the kernel between rows and landmarks may have.
MAX_LANDMARKS = 3000
KERNEL_BYTES = 2**29
#: Rows of a block that a triangle is mirrored by.
MIRRORED_ROWS = 512
#: Added to the diagonal of the normal equations, relative to its mean: copies of a row make them
#: singular.
JITTER = 1e-10
#: Rows from which the typical distance is measured.
DISTANCE_SAMPLE = 500


class KernelRidge:
    """Kernel ridge regression from views of the features to label confidences.

    Parameters
    ----------
    views : sequence of arrays of shape (n_samples, n_features_v)
        The training rows in each view, of any engine.
    ridge : float, default=0.1
        Weight of the squared norm, positive.
    rng : RandomState
        Draws the landmarks.

    Attributes
    ----------
    n_landmarks : int
        Rows that carry a coefficient; all of them if there are few.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.evidence.ridge import KernelRidge
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> ridge = KernelRidge([X], rng=np.random.RandomState(0))
    >>> ridge.leave_one_out(np.array([[1.0], [1.0], [0.0], [0.0]])).ravel() > 0.5
    array([ True,  True, False, False])
    """

    def __init__(
        self,
        views: Sequence[Array],
        *,
        ridge: float = 0.1,
        rng: np.random.RandomState,
    ) -> None:
        self.ridge = ridge
        self._engine = engine_of(views[0])
        n_samples = views[0].shape[0]
        self.n_landmarks = _number_of_landmarks(n_samples)
        chosen = np.sort(rng.permutation(n_samples)[: self.n_landmarks])
        everything = self.n_landmarks == n_samples
        landmarks = views if everything else [rows[chosen, :] for rows in views]
        self._kernel = LandmarkKernel(
            list(self._engine.small(*landmarks)),
            [_typical_squared_distance(rows, rng) for rows in views],
        )
        self._between = self._kernel(*self._kernel.landmarks)
        self._to_landmarks = self._gram = None
        if self.n_landmarks < n_samples:
            (self._to_landmarks,) = self._engine.keep(self._engine.map_rows(self._kernel, *views))
            self._gram = _gram(self._to_landmarks)

    def with_ridge(self, ridge: float) -> KernelRidge:
        """Return the same regression with another weight of the norm; the kernel is shared."""
        return self if ridge == self.ridge else self._changed(ridge=ridge)

    def part(self, rows: NDArray[np.intp]) -> KernelRidge:
        """Return the regression on some of the rows, where all carry a coefficient."""
        return self._changed(_between=self.between(rows, rows))

    def _changed(self, **changes: Any) -> KernelRidge:
        other = copy.copy(self)
        for name in ("inverse", "leverage"):
            other.__dict__.pop(name, None)
        vars(other).update(changes)
        return other

    def between(self, some: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the kernel between training rows, on the host, where all carry a coefficient."""
        if self._to_landmarks is not None:
            raise ValueError("Only some of the rows are landmarks.")
        return to_host(self._between)[np.ix_(some, others)]

    @cached_property
    def inverse(self) -> Array:
        """A, or the inverse of the normal equations of the landmarks."""
        if self._gram is None:
            return _inverse(self._between, self.ridge)
        normal = self._gram + self.ridge * self._between
        return _inverse(normal, JITTER * float(_diagonal(normal).mean()))

    @cached_property
    def leverage(self) -> Array:
        """How much a row's own value enters its fitted value, (n_samples,)."""
        if self._gram is None:
            return 1.0 - self.ridge * _diagonal(self.inverse)
        inverse = self.inverse
        (leverage,) = self._engine.keep(
            self._engine.map_rows(lambda rows: (rows @ inverse * rows).sum(1), self._to_landmarks)
        )
        return leverage

    @property
    def kernel(self) -> LandmarkKernel:
        """The kernel between any rows, in the views, and the landmarks."""
        return self._kernel

    def coefficients(self, confidences: Array) -> Array:
        """Fit the regression to confidences of the training rows."""
        target = confidences if self._to_landmarks is None else self._to_landmarks.T @ confidences
        (target,) = self._engine.small(target)
        return self.inverse @ _double(target)

    def leave_one_out(self, confidences: Array) -> Array:
        """Return the scores of every training row by the regression without it."""
        coefficients = self.coefficients(confidences)
        if self._to_landmarks is None:
            return confidences - coefficients / _diagonal(self.inverse)[:, None]
        own = self.leverage[:, None]
        rest = array_namespace(own).clip(1.0 - own, min=float(np.finfo(float).eps))
        return (self._to_landmarks @ coefficients - own * confidences) / rest

    def predictor(self, confidences: Array) -> RidgePredictor:
        """Fit the regression to confidences and return it without the training rows."""
        return RidgePredictor(self._kernel, self.coefficients(confidences))


def _number_of_landmarks(n_samples: int) -> int:
    most = n_samples if n_samples <= EXACT_ROWS else MAX_LANDMARKS
    return min(most, max(1, KERNEL_BYTES // (8 * n_samples)))


def _double(array: Array) -> Array:
    xp = array_namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def _diagonal(matrix: Array) -> Array:
    return array_namespace(matrix).linalg.diagonal(matrix)


def _gram(rows: Array) -> Array:
    """Return ``rows.T @ rows``; of NumPy arrays one triangle is computed, the other is a copy."""
    if isinstance(rows, np.ndarray):
        return _mirrored(scipy.linalg.blas.dsyrk(1.0, rows, trans=True))
    (gram,) = engine_of(rows).small(rows.T @ rows)
    return gram


def _inverse(matrix: Array, diagonal: float) -> Array:
    """Invert a positive semi-definite matrix with a positive number added to its diagonal."""
    if not isinstance(matrix, np.ndarray):
        xp = array_namespace(matrix)
        identity = xp.eye(matrix.shape[0], dtype=matrix.dtype, device=device(matrix))
        return xp.linalg.inv(matrix + diagonal * identity)
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += diagonal
    factor, failed = scipy.linalg.lapack.dpotrf(shifted, lower=False, overwrite_a=True)
    if failed:  # rounding made it indefinite: a larger shift is needed
        return _inverse(matrix, 100.0 * max(diagonal, JITTER))
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=False, overwrite_c=True)
    return _mirrored(inverse)


def _mirrored(upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """Write the upper triangle of a matrix over its lower one, in place."""
    for start in range(0, len(upper), MIRRORED_ROWS):
        rows = slice(start, start + MIRRORED_ROWS)
        upper[rows, :start] = upper[:start, rows].T
        block = upper[rows, rows]
        block[:] = np.triu(block) + np.triu(block, 1).T
    return upper


@dataclass(frozen=True)
class LandmarkKernel:
    """Mean over the views of the kernel between rows and landmarks, in double precision."""

    landmarks: list[Any]
    scales: list[float]

    def __call__(self, *views: Array) -> Array:
        """Return the kernel between rows and landmarks."""
        total: Any = 0.0
        for rows, landmarks, scale in zip(views, self.landmarks, self.scales, strict=True):
            kernel = _squared_distances(rows, landmarks)
            kernel /= scale
            kernel += 1.0
            total = total + 1.0 / kernel
        return total / len(self.scales)


def _squared_distances(rows: Array, landmarks: Array) -> Array:
    rows, landmarks = _double(rows), _double(landmarks)
    if isinstance(rows, np.ndarray):
        return euclidean_distances(rows, landmarks, squared=True)
    xp = array_namespace(rows)
    lengths = xp.sum(rows**2, axis=1)[:, None] + xp.sum(landmarks**2, axis=1)[None, :]
    return xp.clip(lengths - 2.0 * (rows @ landmarks.T), min=0.0)


@dataclass(frozen=True)
class RidgePredictor:
    """A fitted regression: the kernel to the landmarks and their weights."""

    kernel: LandmarkKernel
    weights: Any

    def __call__(self, views: Sequence[Array]) -> Array:
        """Score the labels of unseen rows."""
        return engine_of(views[0]).map_rows(self._of_block, *views)

    def _of_block(self, *views: Array) -> Array:
        return self.kernel(*views) @ self.weights


def _typical_squared_distance(rows: Array, rng: np.random.RandomState) -> float:
    """Return the median squared distance of some rows, which are brought to the host."""
    chosen = rng.permutation(rows.shape[0])[:DISTANCE_SAMPLE]
    sample = engine_of(rows).rows_on_host(rows, chosen).astype(np.float64)
    distances = euclidean_distances(sample, squared=True)
    median = (
        float(np.median(distances[~np.eye(len(sample), dtype=bool)])) if len(sample) > 1 else 0.0
    )
    return median if median > 0 else 1.0
