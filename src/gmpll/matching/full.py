r"""The paper's affinity between all pairs of assignments, Eqs. (5) and (6), never built.

With :math:`A` the instance similarity and :math:`v = A^2_{l l'}` the label similarity,

.. math:: K_{ab} = v A_{ij} + (1 - v)(1 - A_{ij})

which is the paper's rule for :math:`v \in \{0, 1\}`. K is then standardised and thresholded
entry by entry. So an entry depends on the instances through :math:`A_{ij}` and on the labels
through the *level* :math:`v` alone; with :math:`F_v` the m x m matrix of the final affinities at
level v, and :math:`B_v` the 0/1 matrix of the label pairs at that level,

.. math:: K p \;=\; \sum_v F_v P B_v
          \;=\; F_{v_0} P \mathbf 1 + \sum_{v \ne v_0} (F_v - F_{v_0}) P B_v

because the :math:`B_v` sum to the matrix of ones. The rows of P sum to one, so that the first term
is the same in every iteration. The products are what array libraries differ in:
:mod:`gmpll.matching.full_tiles` makes them tile by tile in any of them, and
:mod:`gmpll.matching.full_blocks` (NumPy) and :mod:`gmpll.matching.full_tensors` (PyTorch) do better
where they can.

Mean and deviation need no K either: :math:`K - \tfrac12 = (2v - 1)\,c/2` with c the cosine, sums of
c over groups of pairs are inner products of sums of rows, and sums of :math:`c^2` those of sums of
outer products :math:`x_i x_i^\top`.

Precisions
----------
``"highest"``
    Double precision on NumPy arrays, elsewhere that of the rows. On tensors by PyTorch's own
    products, which ``torch.set_float32_matmul_precision`` rules.
``"high"``
    Single precision. On CUDA with Triton every factor of a product is the sum of two half-precision
    numbers, together 22 bits, and products are accumulated in single precision: about single
    precision, on the tensor cores. The default for single-precision rows on CUDA.
``"half"``
    On CUDA with Triton only. Every factor is rounded to half precision (11 bits), products are
    accumulated in single precision. Rounded to nearest, it is no less exact than TF32, and twice as
    fast.

Below double precision an affinity next to the threshold may fall on its other side, where it jumps
from beta to 0: in single precision, where that happens, probabilities differ from those of double
precision by up to about 1e-3, elsewhere by about 1e-7.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmpll.arrays import Array, array_namespace, device, evaluated, is_torch_array
from gmpll.matching.affinity import AffinityStatistics, DenseLayout, check_label_similarity
from gmpll.matching.assignments import AssignmentAffinity
from gmpll.matching.full_blocks import BlockProduct
from gmpll.matching.full_tiles import LabelLevels, TiledProduct, widest

#: An elementwise operation on an assignment pair costs about as much as this many
#: multiply-adds of a matrix product; decides how a label similarity of many levels is handled.
ELEMENTWISE_COST = 40
PRECISIONS = ("highest", "high", "half")


def full_affinity(
    rows: Array,
    mask: Array,
    *,
    alpha: float = 0.0,
    beta: float = 0.6,
    label_similarity: Array | None = None,
    precision: str | None = None,
) -> FullAffinity | AssignmentAffinity:
    """Return the paper's affinity as the operator that suits its parameters.

    Parameters
    ----------
    rows : array of shape (n_samples, n_features)
        Instances as rows of length one (or zero), see :mod:`gmpll.graph.views`. A Dask array has
        chunks of rows; what is made at a time is a tile of chunk x chunk.
    mask : array of shape (n_samples, n_classes), bool
        Candidates, of the same library.
    alpha : float, default=0.0
        Weight of the imbalance bias, Eq. (6). The bias depends on both assignments, so with it
        the affinity is evaluated pair by pair, for NumPy arrays only.
    beta : float, default=0.6
        Standardised affinities below this are dropped.
    label_similarity : array of shape (n_classes, n_classes), default=None
        Prior label similarity in [0, 1], Eq. (2); the identity by default.
    precision : {"highest", "high", "half"}, default=None
        See :mod:`gmpll.matching.full`; by default as high as it has to be.

    Returns
    -------
    FullAffinity or AssignmentAffinity

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.matching import full_affinity, match
    >>> rows = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> mask = np.array([[True, False], [True, True], [False, True]])
    >>> match(full_affinity(rows, mask, beta=0.3), mask).probabilities.round(2)
    array([[1., 0.],
           [1., 0.],
           [0., 1.]])
    """
    on_numpy = isinstance(rows, np.ndarray)
    if alpha > 0 and not on_numpy:
        raise ValueError(
            f"alpha={alpha} is available for NumPy arrays only: use alpha=0, or pass NumPy arrays."
        )
    options: dict[str, Any] = {"beta": beta, "label_similarity": label_similarity}
    n_samples, n_classes = mask.shape
    if on_numpy:
        levels = LabelLevels(check_label_similarity(label_similarity, n_classes))
        by_level = len(levels.others) * n_samples**2 * n_classes
        by_pair = ELEMENTWISE_COST * int(mask.sum()) ** 2
        if alpha > 0 or (by_level > by_pair and not levels.only_equal):
            return AssignmentAffinity(rows, mask, alpha=alpha, **options)
    return FullAffinity(rows, mask, precision=precision, **options)


class FullAffinity:
    """All-pairs affinity by levels of the label similarity (no imbalance bias).

    Parameters
    ----------
    rows, mask, beta, label_similarity, precision
        As in :func:`full_affinity`.
    **options
        Of the product of the array library: ``tile``, the rows of a tile; ``store_bytes``, the
        memory in which tiles may be kept between iterations (0 makes them anew every time); on
        tensors ``fused``, whether to use the Triton kernels.

    Attributes
    ----------
    statistics : AffinityStatistics
        Mean and deviation over all pairs of assignments.
    product : TiledProduct
        Multiplies probabilities with the affinity.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.matching import FullAffinity
    >>> rows = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> mask = np.array([[True, False], [True, True], [False, True]])
    >>> affinity = FullAffinity(rows, mask, beta=0.3)
    >>> support = affinity.apply(mask / mask.sum(axis=1, keepdims=True))
    >>> np.where(mask, support, 0.0).round(2)
    array([[1.55, 0.  ],
           [1.43, 1.17],
           [0.  , 1.43]])
    """

    def __init__(
        self,
        rows: Array,
        mask: Array,
        *,
        beta: float = 0.6,
        label_similarity: Array | None = None,
        precision: str | None = None,
        **options: Any,
    ) -> None:
        self.beta = beta
        self.similarity = check_label_similarity(label_similarity, mask.shape[1])
        self.statistics = affinity_statistics(rows, mask, self.similarity)
        if precision is not None and precision not in PRECISIONS:
            raise ValueError(
                f"precision={precision!r} is unknown: choose one of {', '.join(PRECISIONS)}."
            )
        product: Any = BlockProduct if isinstance(rows, np.ndarray) else TiledProduct
        if is_torch_array(rows):
            from gmpll.matching.full_tensors import tensor_product as product
        self.product = product(
            rows,
            mask,
            LabelLevels(self.similarity),
            self.statistics,
            beta=beta,
            precision=precision,
            **options,
        )

    @property
    def layout(self) -> DenseLayout:
        """Where the probabilities stand."""
        return self.product.layout

    def apply(self, p: Array) -> Array:
        """Return K p."""
        return self.product(p)

    def to_queries(self, queries: Array, P: Array) -> Array:
        """Return the support of unseen rows of length one or zero, (n_queries, n_classes).

        P are the (n_samples, n_classes) probabilities of the instances of this affinity. The unseen
        ones do not support each other.
        """
        return self.product.to_queries(queries, P)


def affinity_statistics(
    rows: Array, mask: Array, similarity: NDArray[np.float64]
) -> AffinityStatistics:
    """Return mean and deviation of K over all pairs of assignments, in double precision."""
    xp = array_namespace(rows)
    wide = xp.astype(rows, widest(rows))
    sets = xp.astype(mask, wide.dtype)
    signs = _like(2.0 * similarity - 1.0, wide)
    by_label = sets.T @ wide
    # A zero row is fully similar to itself, although its inner product is not one.
    alone = sets[~xp.any(wide != 0, axis=1)]
    total = xp.sum((signs @ by_label) * by_label) + xp.sum((alone @ signs) * alone)
    squares = _sum_of_squares(wide, sets, (2.0 * similarity - 1.0) ** 2)
    squares = squares + xp.sum((alone @ signs**2) * alone)
    found = evaluated(total, squares, xp.sum(xp.astype(mask, xp.int64)))
    total, squares, u = (float(value) for value in found)
    around_half = AffinityStatistics.from_sums(int(u), 0.5 * total, 0.25 * squares)
    return AffinityStatistics(int(u), around_half.mean + 0.5, around_half.std)


def _sum_of_squares(rows: Array, sets: Array, weights: NDArray[np.float64]) -> Array:
    """Return the sum of c_ij^2 over all pairs of assignments, weighted by their labels."""
    xp = array_namespace(rows)
    n_samples, n_features = rows.shape
    if np.all(weights == 1.0):
        # Then every entry is as far from one half as any other of the same two instances.
        weighted = rows * xp.sqrt(xp.sum(sets, axis=1, keepdims=True))
        few_features = n_features <= n_samples
        gram = weighted.T @ weighted if few_features else weighted @ weighted.T
        return xp.sum(gram**2)
    if n_features > n_samples:
        return xp.sum(((rows @ rows.T) ** 2 @ sets) * (sets @ _like(weights, sets)))
    # The weights as a sum of outer products: each needs sums of outer products of rows only.
    strengths, vectors = np.linalg.eigh(weights)
    sides = sets @ _like(vectors, sets)
    total = 0.0
    for number, strength in enumerate(strengths.tolist()):
        moment = (rows * sides[:, number, None]).T @ rows
        total = total + strength * xp.sum(moment**2)
    return total


def _like(values: NDArray[np.float64], array: Array) -> Array:
    """Bring values to the library, the device and the precision of an array."""
    return array_namespace(array).asarray(values, dtype=array.dtype, device=device(array))
