"""Affinity of new rows where the probabilities of all other rows are held fixed."""

from gmpll._typing import Floats
from gmpll.graph.new_rows import NewEdges
from gmpll.matching.affinity import DenseLayout


class _ClampedLayout(DenseLayout):
    """New rows alone, but the masses of the labels are those of all rows."""

    def __init__(self, fixed_mass: Floats) -> None:
        self._fixed_mass = fixed_mass

    def class_mass(self, p: Floats) -> Floats:
        """Return the sum of the probabilities of every label over all rows."""
        return self._fixed_mass + p.sum(axis=0)


class ClampedAffinity:
    r"""``K p`` for new rows: support by fixed rows, which never changes, and by each other.

    .. math:: (K p)_i = \Big(\sum_{j\ \text{fixed}} W_{ij} \bar p_j
              + \sum_{j\ \text{new}} W_{ij} p_j\Big) A_2

    ``fixed`` are the probabilities of the fixed rows.
    """

    def __init__(
        self, edges: NewEdges, fixed: Floats, label_similarity: Floats | None = None
    ) -> None:
        self.layout = _ClampedLayout(fixed.sum(axis=0))
        self._among = edges.among
        self._similarity = label_similarity
        self._support = edges.to_graph @ fixed

    def apply(self, p: Floats) -> Floats:
        """Return K p of the new rows."""
        support = self._support + self._among @ p
        return support if self._similarity is None else support @ self._similarity
