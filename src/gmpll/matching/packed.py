"""Matching probabilities without the zeros outside the candidates.

Of 171 labels an instance may have two as candidates: nearly all of a matrix of probabilities is
zero and stays so. Packed, column k holds the k-th candidate of every instance, and there are only
as many columns as the largest candidate set has members.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gmpll.matching.affinity import Affinity, AffinityStatistics

__all__ = ["Assignments", "PackedAffinity"]


class Assignments:
    """The pairs (instance, candidate label), sorted by label.

    Parameters
    ----------
    mask : ndarray of shape (n_samples, n_classes), bool
        Candidates.

    Attributes
    ----------
    instance, label, slot : ndarray of shape (n_assignments,)
        Instance, label, and how many smaller candidates the instance has.
    counts : ndarray of shape (n_classes,)
        How many instances have a label among their candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.matching.packed import Assignments
    >>> assignments = Assignments(np.array([[True, False, True], [False, False, True]]))
    >>> assignments.instance, assignments.label, assignments.slot
    (array([0, 0, 1]), array([0, 2, 2]), array([0, 1, 0]))
    """

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        self.label, self.instance = np.nonzero(mask.T)
        self.slot = mask.cumsum(axis=1)[self.instance, self.label] - 1
        self.counts = np.bincount(self.label, minlength=mask.shape[1])


class _BlockAffinity(Affinity, Protocol):
    """An affinity that is a product of blocks, and a support that all labels get."""

    mask: NDArray[np.bool_]

    def base_support(self) -> NDArray[np.floating]: ...


class _Blocks(Protocol):
    """Products with probabilities in an order of their own, see ``LabelBlocks``."""

    instance: NDArray[np.intp]
    position: NDArray[np.intp]
    dtype: np.dtype[Any]

    def product(self, p: NDArray[np.floating]) -> NDArray[np.floating]: ...


class PackedAffinity:
    """An affinity that takes and returns packed probabilities.

    Parameters
    ----------
    affinity : FullAffinity
        The affinity: ``base_support`` of an instance, whatever its label,
    blocks : LabelBlocks
        and what a label gets by a product with probabilities of that label.
    assignments : Assignments
        The assignments.

    Attributes
    ----------
    mask : ndarray of shape (n_samples, largest set), bool
        Where packed probabilities have candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.matching import FullAffinity
    >>> rows = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> mask = np.array([[1, 0, 0, 0, 0, 0], [0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 0]], dtype=bool)
    >>> packed = FullAffinity(rows, mask, beta=0.3).packed(mask)
    >>> packed.pack(mask / mask.sum(axis=1, keepdims=True))
    array([[1. , 0. ],
           [0.5, 0.5],
           [1. , 0. ]])
    """

    def __init__(self, affinity: _BlockAffinity, blocks: _Blocks, assignments: Assignments) -> None:
        self._affinity = affinity
        self._blocks = blocks
        self._base = affinity.base_support()[blocks.instance]
        self._label = assignments.label
        n_samples, self._n_classes = affinity.mask.shape
        width = int(assignments.slot.max()) + 1
        self._unpacked = assignments.instance * self._n_classes + assignments.label
        # The candidates of an instance are far apart in memory: sums over them, of which a turn
        # is full, are then sums of columns.
        self._packed = assignments.slot * n_samples + assignments.instance
        # Padding takes its zero from behind the packed probabilities.
        self._values = np.zeros(width * n_samples + 1, dtype=blocks.dtype)
        self._source = np.full(len(blocks.instance), width * n_samples)
        self._source[blocks.position] = self._packed
        self._target = np.zeros(width * n_samples, dtype=np.intp)
        self._target[self._packed] = blocks.position
        self.mask = self._columns(np.ones(len(self._packed), dtype=bool))

    def apply(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return K p; what is returned outside the candidates has no meaning."""
        self._values[:-1].reshape(P.T.shape)[:] = P.T
        support = self._blocks.product(self._values.take(self._source)) + self._base
        np.maximum(support, 0.0, out=support)
        return support.take(self._target).reshape(P.T.shape).T

    def row_sums(self) -> NDArray[np.floating]:
        """Return the sum of the affinities of every assignment."""
        return self.pack(self._affinity.row_sums())

    def statistics(self) -> AffinityStatistics:
        """Return mean and deviation over all pairs of assignments."""
        return self._affinity.statistics()

    def class_mass(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return for every packed probability the sum over all instances with its label."""
        mass = np.bincount(self._label, P.T.reshape(-1)[self._packed], self._n_classes)
        return self._columns(mass[self._label])

    def normalise(
        self, support: NDArray[np.floating], fallback: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Let rows sum to one; an instance without any support keeps its probabilities."""
        total = support.sum(axis=1, keepdims=True)
        if total.min() > 0:
            return support / total
        return np.where(total > 0, support / np.where(total > 0, total, 1.0), fallback)

    def pack(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Leave out what is not a candidate."""
        P = np.broadcast_to(np.asarray(P), (len(self.mask), self._n_classes))
        return self._columns(P.reshape(-1)[self._unpacked])

    def unpack(self, P: NDArray[np.floating]) -> NDArray[np.floating]:
        """Put the zeros back in."""
        result = np.zeros((len(P), self._n_classes), dtype=P.dtype)
        result.reshape(-1)[self._unpacked] = P.T.reshape(-1)[self._packed]
        return result

    def _columns(self, values: NDArray[Any]) -> NDArray[Any]:
        """Arrange values of the assignments, in the order of :class:`Assignments`."""
        result = np.zeros(len(self._target), dtype=values.dtype)
        result[self._packed] = values
        return result.reshape(-1, len(self._affinity.mask)).T
