"""Affinity on a sparse graph: only neighbours with similar labels support each other."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll.matching.affinity import AffinityStatistics, check_label_similarity

__all__ = ["LocalAffinity"]


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

    def apply(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return K p."""
        return self._spread_labels(self.weights @ P)

    def row_sums(self) -> NDArray[np.floating]:
        """Return the sum of the affinities of every assignment."""
        return np.where(self.mask, self.apply(self.mask.astype(np.float64)), 0.0)

    def statistics(self) -> AffinityStatistics:
        """Return mean and deviation over all pairs of assignments."""
        sets = self.mask.astype(np.float64)
        similarity = check_label_similarity(self.label_similarity, sets.shape[1])
        squared = (self.weights.power(2) @ sets) @ similarity**2
        return AffinityStatistics.from_sums(
            int(self.mask.sum()), float(self.row_sums().sum()), float((squared * sets).sum())
        )

    def _spread_labels(self, support: NDArray[np.floating]) -> NDArray[np.floating]:
        return support if self.label_similarity is None else support @ self.label_similarity
