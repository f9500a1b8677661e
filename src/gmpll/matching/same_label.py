r"""The local affinity, assignment by assignment.

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
from gmpll.matching.affinity import AffinityStatistics

__all__ = ["SameLabelAffinity"]

#: Entries that a thread multiplies at a time; below, a thread costs more than it gains.
BLOCK_ENTRIES = 2**21


class _Block(NamedTuple):
    """Some rows of the matrix of one label: ``support[rows] = matrix @ p[columns]``."""

    rows: slice
    columns: slice
    matrix: sp.csr_array


class SameLabelAffinity:
    """Affinity between assignments of the same label, on vectors over the assignments.

    Parameters
    ----------
    weights : csr_array of shape (n_samples, n_samples)
        Non-negative, symmetric weights of a graph.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.

    Attributes
    ----------
    mask : ndarray of shape (n_assignments,), bool
        All true: there is nothing but candidates.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from gmpll.matching.same_label import SameLabelAffinity
    >>> weights = sp.csr_array(np.array([[0.0, 0.5], [0.5, 0.0]]))
    >>> affinity = SameLabelAffinity(weights, np.array([[True, True], [True, False]]))
    >>> p = affinity.pack(np.array([[0.5, 0.5], [1.0, 0.0]]))
    >>> p, affinity.apply(p)
    (array([0.5, 1. , 0.5]), array([0.5 , 0.25, 0.  ]))
    """

    def __init__(self, weights: sp.csr_array, mask: NDArray[np.bool_]) -> None:
        self._shape = mask.shape
        self._dtype = weights.dtype
        instances = [np.flatnonzero(column).astype(np.int32) for column in mask.T]
        self._counts = np.array([len(rows) for rows in instances])
        self._instance = np.concatenate(instances)
        self.mask = np.ones(len(self._instance), dtype=bool)
        matrices = in_threads(lambda rows: weights[rows][:, rows], instances)
        starts = np.concatenate([[0], np.cumsum(self._counts)])
        self._blocks = [
            block
            for start, matrix in zip(starts, matrices, strict=False)
            for block in _row_blocks(matrix, int(start))
        ]

    def apply(self, P: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return K p."""
        return self._weighted(P, None)

    def weighted_support(self, P: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return p times K p, assignment by assignment."""
        return self._weighted(P, P)

    def _weighted(
        self, P: NDArray[np.floating], factors: NDArray[np.floating] | None
    ) -> NDArray[np.float64]:
        p = P.astype(self._dtype, copy=False)
        support = np.empty(len(p))

        def multiply(block: _Block) -> None:
            product = block.matrix @ p[block.columns]
            support[block.rows] = product if factors is None else product * factors[block.rows]

        if sum(block.matrix.nnz for block in self._blocks) < BLOCK_ENTRIES:
            for block in self._blocks:
                multiply(block)
        else:
            in_threads(multiply, self._blocks)
        return support

    def row_sums(self) -> NDArray[np.float64]:
        """Return the sum of the affinities of every assignment."""
        return self.apply(np.ones(len(self.mask)))

    def statistics(self) -> AffinityStatistics:
        """Return mean and deviation over all pairs of assignments."""
        entries = [block.matrix.data.astype(np.float64) for block in self._blocks]
        return AffinityStatistics.from_sums(
            len(self.mask),
            float(sum(values.sum() for values in entries)),
            float(sum(values @ values for values in entries)),
        )

    def class_mass(self, P: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return for every assignment the sum over all instances with its label."""
        return np.repeat(self._masses(P), self._counts)

    def correction(self, P: NDArray[np.floating], balance: float) -> NDArray[np.float64]:
        """Return the same to the power of ``balance``, one where there is no mass."""
        mass = self._masses(P)
        return np.repeat(np.where(mass > 0, mass, 1.0) ** balance, self._counts)

    def _masses(self, P: NDArray[np.floating]) -> NDArray[np.float64]:
        ends = np.cumsum(self._counts)
        return np.array([P[end - n : end].sum() for n, end in zip(self._counts, ends, strict=True)])

    def normalise(
        self, support: NDArray[np.floating], fallback: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Let instances sum to one; an instance without any support keeps its probabilities."""
        total = np.bincount(self._instance, weights=support, minlength=self._shape[0])
        unsupported = np.flatnonzero(total <= 0)
        total[unsupported] = 1.0
        result = support / total[self._instance]
        if unsupported.size:
            total[unsupported] = 0.0
            np.copyto(result, fallback, where=total[self._instance] == 0)
        return result

    def pack(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Leave out what is not a candidate."""
        P = np.broadcast_to(P, self._shape)
        return P[self._instance, self._label]

    def unpack(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Put the zeros back in."""
        result = np.zeros(self._shape, dtype=P.dtype)
        result[self._instance, self._label] = P
        return result

    @property
    def _label(self) -> NDArray[np.intp]:
        return np.repeat(np.arange(self._shape[1]), self._counts)


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
