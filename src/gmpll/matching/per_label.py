r"""The local affinity, label by label.

Where different labels have nothing in common, :math:`K_{ab} = W_{ij}` for two assignments of the
same label and zero otherwise: K falls into one symmetric matrix per label, the graph between the
instances that have it among their candidates. With few candidates out of many labels that is a
small part of the n_classes products that :math:`W P` takes, and the probabilities of one label
stay in the processor's cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll._threads import balanced_blocks, in_threads
from gmpll.matching.packed import PackedLayout

__all__ = ["PerLabelAffinity"]

#: Entries that a thread multiplies at a time; below, a thread costs more than it gains.
BLOCK_ENTRIES = 2**21


class _Block(NamedTuple):
    """Some rows of the matrix of one label: ``support[rows] = matrix @ p[columns]``."""

    rows: slice
    columns: slice
    matrix: sp.csr_array


class PerLabelAffinity:
    """Affinity between assignments of the same label, on packed probabilities.

    Parameters
    ----------
    weights : csr_array of shape (n_samples, n_samples)
        Non-negative, symmetric weights of a graph.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from gmpll.matching.per_label import PerLabelAffinity
    >>> weights = sp.csr_array(np.array([[0.0, 0.5], [0.5, 0.0]]))
    >>> affinity = PerLabelAffinity(weights, np.array([[True, True], [True, False]]))
    >>> p = affinity.layout.pack(np.array([[0.5, 0.5], [1.0, 0.0]]))
    >>> p, affinity.apply(p)
    (array([0.5, 1. , 0.5]), array([0.5 , 0.25, 0.  ]))
    """

    def __init__(self, weights: sp.csr_array, mask: NDArray[np.bool_]) -> None:
        self.layout = PackedLayout(mask)
        self._dtype = weights.dtype
        ends = np.cumsum(self.layout.counts)
        instances = np.split(self.layout.instance, ends[:-1])
        matrices = in_threads(lambda rows: weights[rows][:, rows], instances)
        self._blocks = [
            block
            for start, matrix in zip(ends - self.layout.counts, matrices, strict=True)
            for block in _row_blocks(matrix, int(start))
        ]

    def apply(self, p: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return K p."""
        operand = p.astype(self._dtype, copy=False)
        support = np.empty(len(p))

        def multiply(block: _Block) -> None:
            support[block.rows] = block.matrix @ operand[block.columns]

        if sum(block.matrix.nnz for block in self._blocks) < BLOCK_ENTRIES:
            for block in self._blocks:
                multiply(block)
        else:
            in_threads(multiply, self._blocks)
        return support


def _row_blocks(matrix: sp.csr_array, start: int) -> list[_Block]:
    """Cut the matrix of a label into blocks of rows that share its memory."""
    n_rows = matrix.shape[0]
    if n_rows == 0:
        return []
    columns = slice(start, start + n_rows)
    largest = BLOCK_ENTRIES * n_rows // max(1, matrix.nnz)
    blocks = []
    for rows in balanced_blocks(n_rows, largest):
        ends = matrix.indptr[rows.start : rows.stop + 1]
        entries = slice(ends[0], ends[-1])
        part = sp.csr_array(
            (matrix.data[entries], matrix.indices[entries], ends - ends[0]),
            shape=(rows.stop - rows.start, n_rows),
        )
        blocks.append(_Block(slice(start + rows.start, start + rows.stop), columns, part))
    return blocks
