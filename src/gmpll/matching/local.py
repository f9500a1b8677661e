"""Affinity on a sparse graph: only neighbours with similar labels support each other."""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from gmpll._threads import balanced_blocks, in_threads, n_threads
from gmpll.arrays import Array, beside, is_torch_array
from gmpll.matching.affinity import DenseLayout, PackedLayout, check_label_similarity

#: Edges that a thread multiplies at a time; below, a thread costs more than it gains.
BLOCK_EDGES = 2**21
#: Edges between assignments are kept if there are at most this many for an edge of the graph: they
#: take that many times the memory of the graph.
MAX_SHARED = 4.0
#: Below this many labels for a shared one, products with whole rows of labels are as fast.
LABELS_PER_SHARED = 3.0
#: Edges on which the number of shared labels is estimated.
SHARED_SAMPLE = 10_000


class LocalAffinity:
    r"""``K_ab = A2_ll' W_ij``: a neighbour's equal (or similar) label is support.

    Unlike the full graph there are no dissimilarity edges. Where different labels have nothing in
    common, K falls into one symmetric matrix per label: the graph between the instances that have
    it among their candidates. With few candidates out of many labels these take a small part of the
    n_classes products of :math:`W P`. Probabilities are packed then, and those of one label stay in
    the processor's cache.

    The weights of the graph, (n_samples, n_samples), are symmetric and not negative: a csr_array,
    a sparse CSR tensor, or anything with ``weights @ P``. The label similarity is the identity by
    default.

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

    def __init__(self, weights: Any, mask: Array, label_similarity: Array | None = None) -> None:
        self.weights = weights
        self.mask = mask
        self.label_similarity = label_similarity
        if label_similarity is not None:
            self.label_similarity = check_label_similarity(label_similarity, mask.shape[1])

    @cached_property
    def layout(self) -> DenseLayout:
        """Where the probabilities stand: packed where that makes products faster."""
        return PackedLayout(self.mask) if self._few_shared() else DenseLayout()

    def apply(self, p: Array) -> Array:
        """Return K p."""
        if isinstance(self.layout, PackedLayout):
            return _product(self._packed_weights, p)
        return self.to_queries(self.weights, p)

    def to_queries(self, queries: Any, P: Array) -> Array:
        """Return the support of unseen instances by these; ``queries`` are weights of edges."""
        support = _product(queries, P)
        similarity = self.label_similarity
        return support if similarity is None else support @ beside(similarity, support)

    @cached_property
    def _packed_weights(self) -> sp.csr_array:
        """K itself, of packed assignments: the matrices of the labels along its diagonal."""
        assert isinstance(self.layout, PackedLayout)
        counts = self.layout.counts
        starts = np.cumsum(counts) - counts
        instances = np.split(self.layout.instance, starts[1:])
        parts = in_threads(lambda rows: self.weights[rows][:, rows], instances)
        pairs = zip(parts, starts.tolist(), strict=True)
        columns = np.concatenate([part.indices + start for part, start in pairs])
        ends = np.cumsum(np.concatenate([[0], *(np.diff(part.indptr) for part in parts)]))
        narrow = np.int32 if ends[-1] <= np.iinfo(np.int32).max else np.int64
        places = columns.astype(narrow, copy=False), ends.astype(narrow)
        data = np.concatenate([part.data for part in parts])
        return sp.csr_array((data, *places), shape=2 * self.layout.instance.shape)

    def _few_shared(self) -> bool:
        """Whether neighbours share few of the labels, so that most products would be with zero."""
        known = self.label_similarity is None and isinstance(self.weights, sp.csr_array)
        if not known or self.weights.nnz == 0:
            return False
        every = max(1, self.weights.nnz // SHARED_SAMPLE)
        entries = np.arange(0, self.weights.nnz, every)
        owners = np.searchsorted(self.weights.indptr, entries, side="right") - 1
        both = self.mask[owners] & self.mask[self.weights.indices[entries]]
        shared = float(both.sum()) / len(entries)
        return shared <= min(MAX_SHARED, self.mask.shape[1] / LABELS_PER_SHARED)


def _product(weights: Any, P: Array) -> Array:
    """Multiply in the precision of the weights; NumPy arrays in blocks of rows, in parallel."""
    if is_torch_array(P):
        return (weights @ P.to(weights.dtype)).to(P.dtype)
    if not isinstance(weights, sp.csr_array):
        return weights @ P
    operand = np.asarray(P, dtype=weights.dtype)
    if weights.nnz < BLOCK_EDGES or n_threads() == 1:
        return np.asarray(weights @ operand, dtype=np.float64)
    n_rows = weights.shape[0]
    product = np.empty((n_rows, *P.shape[1:]))

    def multiply(block: slice) -> None:
        ends = weights.indptr[block.start : block.stop + 1]
        held = slice(ends[0], ends[-1])
        entries = weights.data[held], weights.indices[held], ends - ends[0]
        rows = sp.csr_array(entries, shape=(len(ends) - 1, weights.shape[1]))  # no copy of them
        product[block] = rows @ operand

    in_threads(multiply, balanced_blocks(n_rows, BLOCK_EDGES * n_rows // weights.nnz))
    return product
