"""Matching probabilities without the zeros outside the candidates.

Of 171 labels an instance may have two as candidates: nearly all of a matrix of probabilities is
zero and stays so. Packed, they are a vector over the assignments, label by label.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["PackedLayout"]


class PackedLayout:
    """Probabilities as a NumPy vector over the assignments, sorted by label.

    Parameters
    ----------
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.

    Attributes
    ----------
    instance, label : ndarray of shape (n_assignments,)
        The assignments.
    counts : ndarray of shape (n_classes,)
        How many instances have a label among their candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.matching.packed import PackedLayout
    >>> layout = PackedLayout(np.array([[True, False, True], [False, False, True]]))
    >>> layout.instance.tolist(), layout.label.tolist()
    ([0, 0, 1], [0, 2, 2])
    >>> layout.pack(np.array([[0.3, 0.0, 0.7], [0.0, 0.0, 1.0]]))
    array([0.3, 0.7, 1. ])
    """

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        self.shape = mask.shape
        instances = [np.flatnonzero(column) for column in mask.T]
        self.instance = np.concatenate(instances)
        self.counts = np.array([len(rows) for rows in instances])
        self._present = np.flatnonzero(self.counts)
        self._starts = (np.cumsum(self.counts) - self.counts)[self._present]

    @property
    def label(self) -> NDArray[np.intp]:
        """The label of every assignment; made anew, for it is seldom needed."""
        return np.repeat(np.arange(self.shape[1]), self.counts)

    def pack(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Leave out what is not a candidate; a single row stands for all."""
        return np.broadcast_to(P, self.shape)[self.instance, self.label]

    def unpack(self, p: NDArray[np.floating]) -> NDArray[np.floating]:
        """Put the zeros back in."""
        result = np.zeros(self.shape, dtype=p.dtype)
        result[self.instance, self.label] = p
        return result

    def normalise(
        self, support: NDArray[np.floating], fallback: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Let instances sum to one; one without any support keeps its ``fallback``."""
        total = np.bincount(self.instance, weights=support, minlength=self.shape[0])
        unsupported = np.flatnonzero(total <= 0)
        total[unsupported] = 1.0
        result = support / total.take(self.instance)
        if unsupported.size:
            total[unsupported] = 0.0
            np.copyto(result, fallback, where=total.take(self.instance) == 0)
        return result

    def class_mass(self, p: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the sum of the probabilities of every label."""
        mass = np.zeros(self.shape[1])
        if self._present.size:
            mass[self._present] = np.add.reduceat(p, self._starts)
        return mass

    def per_label(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return for every assignment the value of its label."""
        return np.repeat(values, self.counts)
