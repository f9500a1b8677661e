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
is the same in every iteration. :mod:`gmpll.matching.full_tiles` makes the products tile by tile in
any array library; :mod:`gmpll.matching.full_blocks` (NumPy) and :mod:`gmpll.matching.full_tensors`
(PyTorch) do better where they can.

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

from typing import Any

import numpy as np

from gmpll.arrays import Array, is_torch_array
from gmpll.matching.affinity import check_label_similarity
from gmpll.matching.assignments import AssignmentAffinity
from gmpll.matching.full_blocks import BlockAffinity
from gmpll.matching.full_tiles import FullAffinity, LabelLevels

#: An elementwise operation on an assignment pair costs about as much as this many
#: multiply-adds of a matrix product; decides how a label similarity of many levels is handled.
ELEMENTWISE_COST = 40


def full_affinity(
    rows: Array,
    mask: Array,
    *,
    alpha: float = 0.0,
    beta: float = 0.6,
    label_similarity: Array | None = None,
    precision: str | None = None,
    **options: Any,
) -> FullAffinity | AssignmentAffinity:
    """Return the paper's affinity as the operator that suits its parameters.

    Alpha, beta and the label similarity are those of :class:`gmpll.GMPLL`; the bias by alpha
    depends on both assignments, so that the affinity is evaluated pair by pair, for NumPy arrays
    only. Rows and mask are of the same library; a Dask array has chunks of rows, and a tile of
    chunk x chunk is made at a time.

    Parameters
    ----------
    rows : array of shape (n_samples, n_features)
        Instances as rows of length one (or zero), see :mod:`gmpll.graph.views`.
    mask : array of shape (n_samples, n_classes), bool
        Candidates.
    alpha, beta : float, default=0.0 and 0.6
        Weight of the imbalance bias, Eq. (6), and the threshold.
    label_similarity : array of shape (n_classes, n_classes), default=None
        Eq. (2); the identity by default.
    precision : {"highest", "high", "half"}, default=None
        See :mod:`gmpll.matching.full`; by default as high as it has to be.
    **options
        Of the array library: ``tile``, the rows of a tile; ``store_bytes``, the memory in which
        tiles may be kept between iterations (0 makes them anew every time); on tensors ``fused``,
        whether to use the Triton kernels. A pair by pair evaluation takes none of them.

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
    given: dict[str, Any] = {"beta": beta, "label_similarity": label_similarity}
    n_samples, n_classes = mask.shape
    if on_numpy:
        levels = LabelLevels(check_label_similarity(label_similarity, n_classes))
        by_level = len(levels.others) * n_samples**2 * n_classes
        by_pair = ELEMENTWISE_COST * int(mask.sum()) ** 2
        if alpha > 0 or (by_level > by_pair and not levels.only_equal):
            return AssignmentAffinity(rows, mask, alpha=alpha, **given)
    kind: Any = BlockAffinity if on_numpy else FullAffinity
    if is_torch_array(rows):
        from gmpll.matching.full_tensors import tensor_affinity as kind
    return kind(rows, mask, precision=precision, **given, **options)
