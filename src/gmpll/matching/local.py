"""Affinity on a sparse graph: only neighbours with similar labels support each other."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll._threads import balanced_blocks, in_threads, n_threads
from gmpll.matching.affinity import AffinityStatistics, check_label_similarity
from gmpll.matching.same_label import SameLabelAffinity

__all__ = ["LocalAffinity"]

#: Edges that a thread multiplies at a time.
BLOCK_EDGES = 2**22
#: Edges between assignments are kept if there are at most this many for an edge of the graph: they
#: take that many times the memory of the graph.
MOST_SHARED = 4.0
#: Below this many labels for a shared one, products with whole rows of labels are as fast.
LABELS_PER_SHARED = 3.0
#: Edges on which the number of shared labels is estimated.
SHARED_SAMPLE = 10_000


class LocalAffinity:
    r"""``K_ab = A2_ll' W_ij``: a neighbour's equal (or similar) label is support.

    Unlike the full graph there are no dissimilarity edges.

    Parameters
    ----------
    weights : csr_array of shape (n_samples, n_samples)
        Non-negative, symmetric weights of a graph, see :class:`gmpll.graph.local.LocalGraph`.
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.
    label_similarity : ndarray of shape (n_classes, n_classes), default=None
        The identity by default.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from gmpll.matching import LocalAffinity
    >>> weights = sp.csr_array(np.array([[0.0, 0.5], [0.5, 0.0]]))
    >>> mask = np.array([[True, True], [True, False]])
    >>> LocalAffinity(weights, mask).apply(mask / mask.sum(axis=1, keepdims=True))
    array([[0.5 , 0.  ],
           [0.25, 0.25]])
    """

    def __init__(
        self,
        weights: sp.csr_array,
        mask: NDArray[np.bool_],
        label_similarity: NDArray[np.floating] | None = None,
    ) -> None:
        self.weights = weights
        self.mask = mask
        self.label_similarity = (
            None
            if label_similarity is None
            else check_label_similarity(label_similarity, mask.shape[1])
        )
        self._packed: SameLabelAffinity | None = None

    def apply(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return K p."""
        return self._spread_labels(_product(self.weights, P))

    def packed(self, mask: NDArray[np.bool_]) -> SameLabelAffinity | None:
        """Return the same affinity on the candidates alone, None where that would gain nothing.

        Parameters
        ----------
        mask : ndarray of shape (n_samples, n_classes), bool
            Candidates of the matching; they must be those of the affinity.
        """
        if self._packed is None and mask is self.mask and self._few_shared():
            self._packed = SameLabelAffinity(self.weights, mask)
        return self._packed if mask is self.mask else None

    def row_sums(self) -> NDArray[np.floating]:
        """Return the sum of the affinities of every assignment."""
        return np.where(self.mask, self.apply(self.mask.astype(np.float64)), 0.0)

    def statistics(self) -> AffinityStatistics:
        """Return mean and deviation over all pairs of assignments."""
        sets = self.mask.astype(np.float64)
        similarity = check_label_similarity(self.label_similarity, sets.shape[1])
        squared = _product(self.weights.power(2), sets) @ similarity**2
        return AffinityStatistics.from_sums(
            int(self.mask.sum()), float(self.row_sums().sum()), float((squared * sets).sum())
        )

    def _few_shared(self) -> bool:
        """Whether neighbours share few of the labels, so that most products would be with zero."""
        if self.label_similarity is not None or self.weights.nnz == 0:
            return False
        every = max(1, self.weights.nnz // SHARED_SAMPLE)
        entries = np.arange(0, self.weights.nnz, every)
        owners = np.searchsorted(self.weights.indptr, entries, side="right") - 1
        both = self.mask[owners] & self.mask[self.weights.indices[entries]]
        shared = float(both.sum()) / len(entries)
        return shared <= min(MOST_SHARED, self.mask.shape[1] / LABELS_PER_SHARED)

    def _spread_labels(self, support: NDArray[np.floating]) -> NDArray[np.floating]:
        return support if self.label_similarity is None else support @ self.label_similarity


def _product(weights: sp.csr_array, P: NDArray[np.floating]) -> NDArray[np.float64]:
    """Multiply in the precision of the weights, blocks of rows in parallel."""
    n_rows = weights.shape[0]
    if n_threads() == 1 or weights.nnz < BLOCK_EDGES:
        return np.asarray(weights @ P, dtype=np.float64)
    operand = np.asarray(P, dtype=weights.dtype)
    product = np.empty((n_rows, P.shape[1]))

    def multiply(block: slice) -> None:
        product[block] = weights[block] @ operand

    in_threads(multiply, balanced_blocks(n_rows, BLOCK_EDGES * n_rows // weights.nnz))
    return product
