"""Affinity on a sparse graph: only neighbours with similar labels support each other."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll._threads import balanced_blocks, in_threads, n_threads
from gmpll.arrays import Array, array_namespace, device, is_torch_array
from gmpll.matching.affinity import DenseLayout, PackedLayout, check_label_similarity

#: Edges that a thread multiplies at a time.
BLOCK_EDGES = 2**22
#: The same of the entries of one label; below, a thread costs more than it gains.
BLOCK_ENTRIES = 2**21
#: Edges between assignments are kept if there are at most this many for an edge of the graph: they
#: take that many times the memory of the graph.
MAX_SHARED = 4.0
#: Below this many labels for a shared one, products with whole rows of labels are as fast.
LABELS_PER_SHARED = 3.0
#: Edges on which the number of shared labels is estimated.
SHARED_SAMPLE = 10_000


class _Block(NamedTuple):
    """Some rows of the matrix of one label: ``support[rows] = matrix @ p[columns]``."""

    rows: slice
    columns: slice
    matrix: sp.csr_array


class PerLabelAffinity:
    r"""Affinity between assignments of the same label, on packed probabilities.

    Where different labels have nothing in common, :math:`K_{ab} = W_{ij}` for two assignments of
    the same label and zero otherwise: K falls into one symmetric matrix per label, the graph
    between the instances that have it among their candidates. With few candidates out of many
    labels that is a small part of the n_classes products that :math:`W P` takes, and the
    probabilities of one label stay in the processor's cache.
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
    """Cut the matrix of a label, whose first assignment is ``start``, into blocks of rows."""
    n_rows = matrix.shape[0]
    columns = slice(start, start + n_rows)
    return [
        _Block(slice(start + rows.start, start + rows.stop), columns, matrix[rows])
        for rows in balanced_blocks(n_rows, BLOCK_ENTRIES * n_rows // max(1, matrix.nnz))
    ]


class LocalAffinity:
    r"""``K_ab = A2_ll' W_ij``: a neighbour's equal (or similar) label is support.

    Unlike the full graph there are no dissimilarity edges.

    Parameters
    ----------
    weights : csr_array, sparse CSR tensor, or anything with ``weights @ P``
        Non-negative, symmetric weights of a graph, (n_samples, n_samples).
    mask : array of shape (n_samples, n_classes), bool
        Candidates.
    label_similarity : array of shape (n_classes, n_classes), default=None
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

    def __init__(self, weights: Any, mask: Array, label_similarity: Array | None = None) -> None:
        self.weights = weights
        self.mask = mask
        self.label_similarity = label_similarity
        if label_similarity is not None:
            self.label_similarity = check_label_similarity(label_similarity, mask.shape[1])

    @property
    def layout(self) -> DenseLayout:
        """Where the probabilities stand: packed where that makes products faster."""
        return DenseLayout() if self._per_label is None else self._per_label.layout

    def apply(self, p: Array) -> Array:
        """Return K p."""
        per_label = self._per_label
        return self.to_queries(self.weights, p) if per_label is None else per_label.apply(p)

    def to_queries(self, queries: Any, P: Array) -> Array:
        """Return the support of unseen instances by these, (n_queries, n_classes).

        ``queries`` are the (n_queries, n_samples) weights of their edges to these instances, whose
        (n_samples, n_classes) probabilities are P.
        """
        support = _product(queries, P)
        if self.label_similarity is None:
            return support
        xp = array_namespace(support)
        return support @ xp.asarray(
            self.label_similarity, dtype=support.dtype, device=device(support)
        )

    @cached_property
    def _per_label(self) -> PerLabelAffinity | None:
        """The same affinity on the candidates alone, None where that would gain nothing."""
        if self.label_similarity is not None or not isinstance(self.weights, sp.csr_array):
            return None
        return PerLabelAffinity(self.weights, self.mask) if self._few_shared() else None

    def _few_shared(self) -> bool:
        """Whether neighbours share few of the labels, so that most products would be with zero."""
        if self.weights.nnz == 0:
            return False
        every = max(1, self.weights.nnz // SHARED_SAMPLE)
        entries = np.arange(0, self.weights.nnz, every)
        owners = np.searchsorted(self.weights.indptr, entries, side="right") - 1
        both = self.mask[owners] & self.mask[self.weights.indices[entries]]
        shared = float(both.sum()) / len(entries)
        return shared <= min(MAX_SHARED, self.mask.shape[1] / LABELS_PER_SHARED)


def _product(weights: Any, P: Array) -> Array:
    """Multiply in the precision of the weights."""
    if isinstance(weights, sp.csr_array):
        return _threaded_product(weights, P)
    if is_torch_array(P):
        return (weights @ P.to(weights.dtype)).to(P.dtype)
    return weights @ P


def _threaded_product(weights: sp.csr_array, P: Array) -> Array:
    """Multiply blocks of rows in parallel."""
    n_rows = weights.shape[0]
    if n_threads() == 1 or weights.nnz < BLOCK_EDGES:
        return np.asarray(weights @ P, dtype=np.float64)
    operand = np.asarray(P, dtype=weights.dtype)
    product = np.empty((n_rows, P.shape[1]))

    def multiply(block: slice) -> None:
        product[block] = weights[block] @ operand

    in_threads(multiply, balanced_blocks(n_rows, BLOCK_EDGES * n_rows // weights.nnz))
    return product
