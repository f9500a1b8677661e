r"""Kernel ridge regression on label confidences, with leave-one-out predictions in closed form.

The kernel K is the mean of one rational quadratic kernel per view of the features,

.. math:: k(x, z) = \Bigl(1 + \frac{\|x - z\|^2}{\operatorname{median} d^2}\Bigr)^{-1} ,

a mixture of Gaussian kernels of all widths, so that no width has to be chosen, and of the linear
kernel :math:`x^\top z / \operatorname{mean} \|x\|^2` of the features in their own units, about
their means: that labels lie on the sides of planes is nothing to be learnt bump by bump, and where
features are principal components or embeddings their spread says which of them matter. With
:math:`A = (K + \lambda I)^{-1}` the coefficients for confidences Y are AY, and what the regression
would say of row i had it not seen it is

.. math:: f_{-i}(x_i) = y_i - \frac{(A Y)_i}{A_{ii}} .

For many rows the kernel is replaced by its Nystroem approximation on a random subset of them
(landmarks). With R the m x n kernel between rows and landmarks, and :math:`N = L L^\top` the kernel
between landmarks, row i has the features :math:`z_i = L^{-1} r_i`. With :math:`A = (Z^\top Z +
\lambda I)^{-1}` their coefficients are :math:`A Z^\top Y`, and

.. math:: f_{-i}(x_i) = \frac{f(x_i) - h_i y_i}{1 - h_i}, \qquad h_i = z_i^\top A z_i .
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from gmpll import _lapack
from gmpll._threads import balanced_blocks, in_threads, one_blas_thread
from gmpll._typing import Floats, Places
from gmpll.arrays import (
    Array,
    array_namespace,
    beside,
    device,
    inverse_of_positive,
    submatrix,
    to_host,
)
from gmpll.engines import engine_of

__all__ = [
    "EXACT_ROWS",
    "KernelRidge",
    "LandmarkKernel",
    "RidgePredictor",
    "number_of_landmarks",
]

#: Up to this many rows all of them carry a coefficient: inverting their kernel takes no longer than
#: the products with the landmarks of more rows.
EXACT_ROWS = 3000
#: Landmarks of many rows; a few more rows than carry a coefficient each have more of them.
MANY_LANDMARKS = 2000
#: Rows of a block that a triangle is mirrored by.
MIRRORED_ROWS = 128
BELOW = np.tri(MIRRORED_ROWS, k=-1, dtype=bool)
#: Added to the diagonal of the kernel between landmarks: copies of a row make it singular.
JITTER = 1e-6
#: A hundred times this is added to the diagonal of a matrix that rounding made indefinite.
TINY_SHIFT = 1e-10
#: Rows of a block that normal equations are summed up from, and of one whose kernel is made in the
#: processor's cache.
GRAM_ROWS = 2**13
KERNEL_ROWS = 256
#: Rows on which typical distances and lengths are measured.
SCALE_SAMPLE = 500
#: Squared distances of rows below this part of their squared lengths are rounding errors.
SAME_ROW = 1e-12


class KernelRidge:
    """Kernel ridge regression from views of the features to label confidences.

    Parameters
    ----------
    views : sequence of arrays of shape (n_samples, n_features_v)
        The training rows in each view, of any engine.
    ridge : float, default=0.1
        Weight of the squared norm, positive.
    variances : ndarray of shape (n_features_v,), default=None
        What the features of the last view count in the linear kernel; all the same by default.
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
        variances: Floats | None = None,
        rng: np.random.RandomState,
    ) -> None:
        self.ridge = ridge
        self._engine = engine_of(views[0])
        n_samples = views[0].shape[0]
        self.n_landmarks = number_of_landmarks(n_samples)
        chosen = np.sort(rng.permutation(n_samples)[: self.n_landmarks])
        everything = self.n_landmarks == n_samples
        landmarks = views if everything else [rows[chosen, :] for rows in views]
        self._kernel = LandmarkKernel.of(views, self._engine.small(*landmarks), rng, variances)
        # Rounding must not make the kernel between landmarks indefinite.
        self._gram = replace(self._kernel, is_double=True)(*self._kernel.landmarks)
        self._features = self._root = None
        if self.n_landmarks < n_samples:
            self._root = _cholesky(self._gram)
            features_of = partial(_features_of, self._kernel, _single(self._root))
            (self._features,) = self._engine.keep(self._engine.map_rows(features_of, *views))
            self._gram = _product_with_itself(self._features)

    def with_ridge(self, ridge: float) -> KernelRidge:
        """Return the same regression with another weight of the norm; the kernel is shared."""
        return self if ridge == self.ridge else self._changed(ridge=ridge)

    def part(self, rows: Places) -> KernelRidge:
        """Return the regression on some of the rows, where all carry a coefficient, on the host."""
        gram = to_host(self.between(rows, rows))
        return self._changed(_gram=gram, _engine=engine_of(gram))

    def parts(self, rows: Places) -> KernelRidge:
        """Return the same where the rows are; (n_parts, n_rows) places are several regressions."""
        return self._changed(_gram=self.between(rows, rows))

    def _changed(self, **changes: Any) -> KernelRidge:
        other = copy.copy(self)
        for name in ("inverse", "leverage", "_factor"):
            other.__dict__.pop(name, None)
        vars(other).update(changes)
        return other

    def between(self, some: Places, others: Places) -> Array:
        """Return the kernel between training rows, where all carry a coefficient."""
        if self._features is not None:
            raise ValueError("Only some of the rows are landmarks.")
        return submatrix(self._gram, some, others)

    @cached_property
    def inverse(self) -> Array:
        """A, of the rows or of the features."""
        if isinstance(self._gram, np.ndarray):
            return _inverse_of(_factor_of(self._gram, self.ridge))
        return inverse_of_positive(self._gram + self.ridge * _identity(self._gram))

    @cached_property
    def _factor(self) -> Floats:
        """The upper triangle U with :math:`A^{-1} = U^T U`, of NumPy arrays; below is no zero."""
        return _factor_of(self._gram, self.ridge)

    @cached_property
    def leverage(self) -> Array:
        """How much a row's own value enters its fitted value, (n_samples,)."""
        if self._features is None:
            return 1.0 - self.ridge * _diagonal(self.inverse)
        return self._leverage(self._features)

    def _leverage(self, features: Array) -> Array:
        if isinstance(features, np.ndarray):  # half the work
            triangle = _like(self._factor.T, features)
            own = partial(_squares_of_solutions, triangle)
        else:
            inverse = _like(self.inverse, features)
            own = partial(_products_with_themselves, inverse)
        (leverage,) = self._engine.keep(self._engine.map_rows(own, features))
        return leverage

    @property
    def kernel(self) -> LandmarkKernel:
        """The kernel between any rows, in the views, and the landmarks."""
        return self._kernel

    def coefficients(self, confidences: Array) -> Array:
        """Fit the regression to confidences of the training rows."""
        target = confidences
        if self._features is not None:
            target = _cross_product(self._features, _like(confidences, self._features))
        (target,) = self._engine.small(target)
        if self._features is not None and isinstance(self._gram, np.ndarray):
            solution = np.array(target, dtype=np.float64, order="F")
            _lapack.solve(self._factor, solution)
            return solution
        return self.inverse @ _double(target)

    def leave_one_out(self, confidences: Array, some: Places | slice = slice(None)) -> Array:
        """Return the scores of every training row, or of some, by the regression without it."""
        every = isinstance(some, slice)
        if self._features is None:
            scale = _diagonal(self.inverse)[..., None]  # made by all cores
            with one_blas_thread():  # few columns: threads would wait for each other
                left_out = confidences - self.coefficients(confidences) / scale
            return left_out if every else left_out[some]
        rows = self._features if every else self._features[some, :]
        own = (self.leverage if every else self._leverage(rows))[:, None]
        rest = array_namespace(own).clip(1.0 - own, min=float(np.finfo(float).eps))
        with one_blas_thread():
            weights = _like(self.coefficients(confidences), rows)
            fitted = self._engine.map_rows(lambda block: block @ weights, rows)
        return (fitted - own * confidences[some]) / rest

    def predictor(self, confidences: Array) -> RidgePredictor:
        """Fit the regression to confidences and return it without the training rows."""
        weights = self.coefficients(confidences)
        if self._root is not None:
            weights = _solved(self._root.T, weights, lower=False)
        return RidgePredictor(self._kernel, weights)


def number_of_landmarks(n_samples: int) -> int:
    """Return how many of the rows carry a coefficient: all, then gradually fewer.

    Examples
    --------
    >>> from gmpll.evidence.ridge import number_of_landmarks
    >>> [number_of_landmarks(n_samples) for n_samples in (500, 3000, 3001, 4000, 10**6)]
    [500, 3000, 2999, 2000, 2000]
    """
    if n_samples <= EXACT_ROWS:
        return n_samples
    return max(min(MANY_LANDMARKS, EXACT_ROWS), 2 * EXACT_ROWS - n_samples)


def _features_of(kernel: LandmarkKernel, root: Array, *views: Array) -> Array:
    return _solved(root, kernel(*views).T, lower=True).T


def _like(array: Array, other: Array) -> Array:
    """Return an array in the precision of another."""
    return array_namespace(array).astype(array, other.dtype, copy=False)


def _double(array: Array) -> Array:
    xp = array_namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def _single(array: Array) -> Array:
    xp = array_namespace(array)
    return xp.astype(array, xp.float32, copy=False)


def _diagonal(matrix: Array) -> Array:
    return array_namespace(matrix).linalg.diagonal(matrix)


def _cross_product(rows: Array, values: Array) -> Array:
    """Return ``rows.T @ values``; of NumPy arrays in blocks, in parallel."""
    if not isinstance(rows, np.ndarray):
        return rows.T @ values
    blocks = balanced_blocks(len(rows), GRAM_ROWS)
    return np.sum(in_threads(lambda part: rows[part].T @ values[part], blocks), axis=0)


def _product_with_itself(rows: Array) -> Array:
    """Return ``rows.T @ rows`` in double precision; of NumPy arrays one triangle is computed."""
    if isinstance(rows, np.ndarray):
        blocks = balanced_blocks(len(rows), GRAM_ROWS)
        product = _lapack.product_with_transpose
        return _mirrored(sum(in_threads(lambda part: _double(product(rows[part].T)), blocks)))
    (gram,) = engine_of(rows).small(rows.T @ rows)
    return _double(gram)


def _cholesky(kernel: Array) -> Array:
    """Return the root L of the kernel between landmarks, of which some may be equal."""
    if isinstance(kernel, np.ndarray):
        root = _shifted(kernel, JITTER)
        if not _lapack.factorise(root, lower=True):
            raise np.linalg.LinAlgError("The kernel between landmarks is not positive definite.")
        return np.tril(root)
    return array_namespace(kernel).linalg.cholesky(kernel + JITTER * _identity(kernel))


def _identity(like: Array) -> Array:
    return array_namespace(like).eye(like.shape[-1], dtype=like.dtype, device=device(like))


def _solved(triangle: Array, right: Array, *, lower: bool) -> Array:
    """Solve a triangular system of equations."""
    if isinstance(right, np.ndarray):
        solution = np.array(right, order="F")
        if triangle.flags.f_contiguous:
            _lapack.solve_triangle(triangle, solution, lower=lower)
        else:
            _lapack.solve_triangle(triangle.T, solution, lower=not lower, transposed=True)
        return solution
    return array_namespace(right).linalg.solve_triangular(triangle, right, upper=not lower)


def _squares_of_solutions(triangle: Array, rows: Array) -> Array:
    return (_solved(triangle, rows.T, lower=True) ** 2).sum(0)


def _products_with_themselves(inverse: Array, rows: Array) -> Array:
    return (rows @ inverse * rows).sum(1)


def _factor_of(matrix: Floats, diagonal: float) -> Floats:
    """Return the upper factor of a positive semi-definite matrix, its diagonal raised."""
    factor = _shifted(matrix, diagonal)
    if _lapack.factorise(factor):
        return factor
    # Rounding made it indefinite: a larger shift is needed.
    return _factor_of(matrix, 100.0 * max(diagonal, TINY_SHIFT))


def _inverse_of(factor: Floats) -> Floats:
    """Turn an upper triangle into the inverse of the matrix that it is a factor of, in place."""
    _lapack.invert(factor)
    return _mirrored(factor)


def _shifted(matrix: Floats, diagonal: float) -> Floats:
    """Return a symmetric matrix with a number added to its diagonal, as LAPACK wants it."""
    shifted = matrix.copy()
    np.einsum("ii->i", shifted)[:] += diagonal
    return shifted if shifted.flags.f_contiguous else shifted.T


def _mirrored(upper: Floats) -> Floats:
    """Write the upper triangle of a matrix over its lower one, in place."""
    for start in range(0, len(upper), MIRRORED_ROWS):
        rows = slice(start, start + MIRRORED_ROWS)
        upper[rows, :start] = upper[:start, rows].T
        block = upper[rows, rows]
        np.copyto(block, block.T.copy(), where=BELOW[: len(block), : len(block)])
    return upper


@dataclass(frozen=True)
class LandmarkKernel:
    """The kernel between rows and landmarks: see the module.

    Attributes
    ----------
    landmarks : list of arrays of shape (n_landmarks, n_features_v)
        The landmarks in every view.
    scales : list of float
        Median squared distance of the rows in every view.
    weights : ndarray of shape (n_features_v,)
        What the features of the last view count in the linear kernel.
    is_double : bool
        Whether it is computed in double precision, or in single.
    """

    landmarks: list[Any]
    scales: list[float]
    weights: Floats
    is_double: bool = True

    @classmethod
    def of(
        cls,
        views: Sequence[Array],
        landmarks: Sequence[Array],
        rng: np.random.RandomState,
        variances: Floats | None = None,
    ) -> LandmarkKernel:
        """Measure the scales on a sample of rows, which is brought to the host."""
        chosen = rng.permutation(views[0].shape[0])[:SCALE_SAMPLE]
        samples = [engine_of(rows).rows_on_host(rows, chosen).astype(float) for rows in views]
        squares = (samples[-1] ** 2).mean(axis=0)
        weights = np.ones(len(squares)) if variances is None else variances
        weights = weights / (float(weights @ squares) or 1.0)
        scales = [_median_squared_distance(sample) for sample in samples]
        return cls(list(landmarks), scales, weights, views[0].shape[0] <= EXACT_ROWS)

    def __call__(self, *views: Array) -> Array:
        """Return the kernel between rows and landmarks."""
        landmarks = [self._precise(each) for each in self.landmarks]
        lengths = [(each**2).sum(1) for each in landmarks]
        n_rows = len(views[0])
        if n_rows <= KERNEL_ROWS or not isinstance(views[0], np.ndarray):
            return self._of_block(views, landmarks, lengths)
        kernel = np.empty((n_rows, len(landmarks[0])), dtype=landmarks[0].dtype)

        def fill(block: slice) -> None:
            kernel[block] = self._of_block([rows[block] for rows in views], landmarks, lengths)

        in_threads(fill, balanced_blocks(n_rows, KERNEL_ROWS))
        return kernel

    def _of_block(
        self, views: Sequence[Array], landmarks: Sequence[Array], lengths: Sequence[Array]
    ) -> Array:
        """Return the kernel of some rows; ``lengths`` are squared ones, of the landmarks."""
        total: Any = None
        for rows, others, squared, scale in zip(
            views, landmarks, lengths, self.scales, strict=True
        ):
            rows = self._precise(rows)
            terms = rows @ others.T
            terms *= -2.0 / scale
            terms += squared[None, :] / scale
            terms += (rows**2).sum(1)[:, None] / scale + 1.0
            terms = 1.0 / array_namespace(terms).clip(terms, min=1.0)
            total = terms if total is None else total + terms
        linear = (rows * _like(beside(self.weights, rows), rows)) @ others.T
        return (total + linear) / (len(self.scales) + 1)

    def _precise(self, rows: Array) -> Array:
        xp = array_namespace(rows)
        return xp.astype(rows, xp.float64 if self.is_double else xp.float32, copy=False)


@dataclass(frozen=True)
class RidgePredictor:
    """A fitted regression: the kernel to the landmarks and their weights."""

    kernel: LandmarkKernel
    weights: Any

    def __call__(self, views: Sequence[Array]) -> Array:
        """Score the labels of unseen rows."""
        return engine_of(views[0]).map_rows(self._of_block, *views)

    def _of_block(self, *views: Array) -> Array:
        kernel = self.kernel(*views)
        return _double(kernel @ _like(self.weights, kernel))


def _median_squared_distance(rows: Floats) -> float:
    """Return the median squared distance of different rows; 1 if there is none."""
    lengths = (rows**2).sum(axis=1)
    of_both = np.add.outer(lengths, lengths)
    distances = of_both - 2.0 * (rows @ rows.T)
    distances[distances < SAME_ROW * of_both] = 0.0
    distances = distances[np.triu_indices(len(rows), 1)]
    return (float(np.median(distances)) if len(distances) else 0.0) or 1.0
