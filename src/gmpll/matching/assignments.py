r"""The paper's affinity pair by pair of assignments, with the imbalance bias of Eq. (6).

.. math:: K_{ab} \leftarrow K_{ab}\,[1 + \alpha \log_2(n_a + n_b)], \qquad
          n_a = \#\{b : K_{ab} > 0\}

The factor depends on both assignments, so the shortcuts of :mod:`gmpll.matching.full` do not
apply: blocks of rows of the u x u matrix are made one after the other, exactly. They are kept
between iterations if they fit.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from sklearn.utils import gen_batches

from gmpll._typing import AnyFloats, Mask, Places
from gmpll.graph.cosine import cosine_similarity_tile
from gmpll.matching.affinity import (
    AffinityStatistics,
    PackedLayout,
    Standardization,
    check_label_similarity,
)

#: Size of a block of rows of K.
BLOCK_BYTES = 2**26
#: K is kept in memory up to this size, else made anew every iteration.
STORE_BYTES = 2**30


class AssignmentAffinity:
    """All-pairs affinity of NumPy arrays, evaluated for every pair of assignments.

    The parameters are those of :func:`gmpll.matching.full_affinity`; ``statistics`` are mean and
    deviation over all pairs of assignments.
    """

    def __init__(
        self,
        rows: AnyFloats,
        mask: Mask,
        *,
        alpha: float = 0.0,
        beta: float = 0.6,
        label_similarity: AnyFloats | None = None,
    ) -> None:
        self.rows = rows
        self.alpha = alpha
        self.similarity = check_label_similarity(label_similarity, mask.shape[1])
        self.layout = PackedLayout(mask)
        self.instance, self.label = self.layout.instance, self.layout.label
        self._support_count = np.zeros(len(self.label), dtype=np.intp)
        if alpha > 0:
            for block, raw in self._raw_blocks():
                self._support_count[block] = np.count_nonzero(raw > 0, axis=1)
        total = squares = 0.0
        for biased in self._biased_blocks():
            total += float(biased.sum())
            squares += float(np.vdot(biased, biased))
        self.statistics = AffinityStatistics.from_sums(len(self.label), total, squares)
        self._standardize = Standardization(self.statistics, beta)
        self._fit = 8 * len(self.label) ** 2 <= STORE_BYTES

    def apply(self, p: AnyFloats) -> AnyFloats:
        """Return K p."""
        return np.concatenate([block @ p for block in self._kept or self._final_blocks()])

    def to_queries(self, queries: AnyFloats, P: AnyFloats) -> AnyFloats:
        """Return the support of unseen instances as :meth:`FullAffinity.to_queries` does."""
        n_classes = len(self.similarity)
        p = self.layout.pack(P)
        support = np.zeros((queries.shape[0], n_classes))
        every_label = np.arange(n_classes)
        for block in gen_batches(len(queries), self._rows_per_block(n_classes)):
            A = cosine_similarity_tile(queries[block], self.rows)[:, self.instance]
            A = np.repeat(A, n_classes, axis=0)
            raw = self._unbiased(A, np.tile(every_label, len(queries[block])))
            biased = self._biased(raw, np.count_nonzero(raw > 0, axis=1))
            support[block] = (self._standardize(biased) @ p).reshape(-1, n_classes)
        return support

    def _rows_per_block(self, assignments_per_row: int = 1) -> int:
        return max(1, BLOCK_BYTES // (8 * max(len(self.label), 1) * assignments_per_row))

    def _raw_blocks(self) -> Iterator[tuple[slice, AnyFloats]]:
        """Blocks of rows of K as initialised by Eq. (5)."""
        for block in gen_batches(len(self.label), self._rows_per_block()):
            owners, place = np.unique(self.instance[block], return_inverse=True)
            A = cosine_similarity_tile(self.rows[owners], self.rows)
            A[np.arange(len(owners)), owners] = 1.0
            yield block, self._unbiased(A[place][:, self.instance], self.label[block])

    def _unbiased(self, A: AnyFloats, labels: Places) -> AnyFloats:
        v = self.similarity[labels][:, self.label]
        return v * A + (1.0 - v) * (1.0 - A)

    def _biased(self, raw: AnyFloats, support_count: Places) -> AnyFloats:
        if self.alpha == 0:
            return raw
        together = support_count[:, None] + self._support_count[None, :]
        return raw * (1.0 + self.alpha * np.log2(together))

    def _biased_blocks(self) -> Iterator[AnyFloats]:
        for block, raw in self._raw_blocks():
            yield self._biased(raw, self._support_count[block])

    @cached_property
    def _kept(self) -> list[AnyFloats]:
        return list(self._final_blocks()) if self._fit else []

    def _final_blocks(self) -> Iterator[AnyFloats]:
        return map(self._standardize, self._biased_blocks())
