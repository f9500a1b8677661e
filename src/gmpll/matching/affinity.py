r"""What the matching needs to know of the affinity K between assignments.

An assignment is a pair (instance, candidate label). The matching probabilities p stand in a layout:
as an (n_samples, n_classes) array that is zero outside the candidates (:class:`DenseLayout`), or as
a vector over the assignments alone (:class:`PackedLayout`). An affinity says in which of them it
takes p and returns K p. Arrays are of the library that the affinity was made from.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll._typing import AnyFloats, Floats, Mask, Places
from gmpll.arrays import Array, array_namespace, to_host

#: Standardised affinities below this are rounding errors of zero: whether an instance has any
#: support must not depend on them.
ZERO_AFFINITY = 1e-10


class Operator(Protocol):
    """What the loop of the matching asks of an affinity."""

    @property
    def layout(self) -> "DenseLayout":
        """Where the probabilities stand that :meth:`apply` takes and returns."""
        ...

    def apply(self, p: Array) -> Array:
        """Return K p: the support of assignments; outside the candidates it has no meaning."""
        ...


class Affinity(Operator, Protocol):
    """An affinity between assignments, known by what it does to probabilities."""

    def to_queries(self, queries: Any, P: Array) -> Array:
        """Return the support of unseen instances by these, (n_queries, n_classes).

        ``queries`` says what they have to do with these: their rows on the full graph, the weights
        of their edges on a local one. ``P`` is (n_samples, n_classes).
        """
        ...


class DenseLayout:
    """Probabilities as an (n_samples, n_classes) array of any library; the base of other layouts.

    Tensors may have further axes before these: several problems of one size at once.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.matching import DenseLayout
    >>> support = np.array([[1.0, 3.0], [0.0, 0.0]])
    >>> DenseLayout().normalise(support, fallback=np.array([[0.5, 0.5], [0.0, 1.0]]))
    array([[0.25, 0.75],
           [0.  , 1.  ]])
    """

    def pack(self, P: Array) -> Array:
        """Bring (n_samples, n_classes) probabilities into this layout."""
        return P

    def unpack(self, p: Array) -> Array:
        """Return them as an (n_samples, n_classes) array, zero outside the candidates."""
        return p

    def normalise(self, support: Array, fallback: Array) -> Array:
        """Let instances sum to one; one without any support keeps its ``fallback``."""
        xp = array_namespace(support)
        total = _sum(support, axis=-1)[..., None]
        supported = total > 0
        if isinstance(support, np.ndarray) and supported.all():
            return support / total
        return xp.where(supported, support / xp.where(supported, total, 1.0), fallback)

    def class_mass(self, p: Array) -> Array:
        """Return the sum of the probabilities of every label, (n_classes,)."""
        return _sum(p, axis=-2)

    def fixed_mass(self, p: Array) -> Array | float:
        """Return what :meth:`class_mass` counts besides p: what it says of no instance."""
        return self.class_mass(p[..., :0, :])

    def per_label(self, values: Array) -> Array:
        """Turn (n_classes,) values of the labels into what broadcasts against p."""
        return values[..., None, :]

    def per_instance(self, values: Array) -> Array:
        """Turn (n_samples,) values of the instances into what broadcasts against p."""
        return values[..., None]

    def matrix(self, p: Array) -> Any:
        """Return p as an (n_samples, n_classes) matrix to be multiplied with vectors."""
        return p


def _sum(p: Array, axis: int) -> Array:
    if isinstance(p, np.ndarray):  # whose own sum takes several times as long with few labels
        return np.einsum("ij->i" if axis == -1 else "ij->j", p)
    return array_namespace(p).sum(p, axis=axis)


class PackedLayout(DenseLayout):
    """Probabilities as a NumPy vector over the assignments, sorted by label.

    ``instance`` and ``label`` are those of the assignments; ``counts`` says how many instances
    have a label among their candidates.
    """

    def __init__(self, mask: Mask) -> None:
        self.shape = mask.shape
        instances = [np.flatnonzero(column) for column in mask.T]
        self.instance = np.concatenate(instances)
        self.counts = np.array([len(rows) for rows in instances])
        self._present = np.flatnonzero(self.counts)
        self._starts = (np.cumsum(self.counts) - self.counts)[self._present]

    @property
    def label(self) -> Places:
        """The label of every assignment; made anew, for it is seldom needed."""
        return np.repeat(np.arange(self.shape[1]), self.counts)

    def pack(self, P: AnyFloats) -> AnyFloats:
        """Leave out what is not a candidate; a single row stands for all."""
        return np.broadcast_to(P, self.shape)[self.instance, self.label]

    def unpack(self, p: AnyFloats) -> AnyFloats:
        """Put the zeros back in."""
        result = np.zeros(self.shape, dtype=p.dtype)
        result[self.instance, self.label] = p
        return result

    def normalise(self, support: AnyFloats, fallback: AnyFloats) -> AnyFloats:
        """Let instances sum to one; one without any support keeps its ``fallback``."""
        total = np.bincount(self.instance, weights=support, minlength=self.shape[0])
        unsupported = np.flatnonzero(total <= 0)
        total[unsupported] = 1.0
        result = support / total.take(self.instance)
        if unsupported.size:
            total[unsupported] = 0.0
            np.copyto(result, fallback, where=total.take(self.instance) == 0)
        return result

    def class_mass(self, p: AnyFloats) -> Floats:
        """Return the sum of the probabilities of every label."""
        mass = np.zeros(self.shape[1])
        if self._present.size:
            mass[self._present] = np.add.reduceat(p, self._starts)
        return mass

    def fixed_mass(self, p: AnyFloats) -> float:
        """Return that there is none."""
        return 0.0

    def per_label(self, values: AnyFloats) -> AnyFloats:
        """Return for every assignment the value of its label."""
        return np.repeat(values, self.counts)

    def per_instance(self, values: AnyFloats) -> AnyFloats:
        """Return for every assignment the value of its instance."""
        return values.take(self.instance)

    def matrix(self, p: AnyFloats) -> sp.csc_array:
        """Return p as a sparse matrix; no copy of it."""
        return sp.csc_array((p, *self._places), shape=self.shape)

    @cached_property
    def _places(self) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Where the assignments stand in a sparse matrix, in numbers as narrow as it has them."""
        ends = np.cumsum(np.concatenate([[0], self.counts]))
        values = np.zeros(len(self.instance), dtype=bool)
        matrix = sp.csc_array((values, self.instance, ends), shape=self.shape)
        return matrix.indices, matrix.indptr


@dataclass(frozen=True)
class AffinityStatistics:
    """Mean and population standard deviation over all u x u entries of an affinity.

    Attributes
    ----------
    n_assignments : int
        u, the number of assignments.
    mean, std : float
        Of the entries before standardisation and threshold.
    """

    n_assignments: int
    mean: float
    std: float

    @classmethod
    def from_sums(cls, n_assignments: int, total: float, squares: float) -> Self:
        """Make the statistics from the sum of all entries and of their squares."""
        entries = float(n_assignments) ** 2
        mean = total / entries
        variance = max(squares / entries - mean**2, 0.0)
        # The difference of two rounded sums: below their rounding errors it is zero.
        if variance <= 64 * np.finfo(np.float64).eps * squares / entries:
            variance = 0.0
        return cls(n_assignments, mean, float(np.sqrt(variance)))


@dataclass(frozen=True)
class Standardization:
    """Step 3 of Algorithm 1: standardise the affinities and drop those below ``beta``."""

    statistics: AffinityStatistics
    beta: float

    def __call__(self, values: Array) -> Array:
        """Return the standardised and thresholded values."""
        if self.statistics.std > 0:
            values = (values - self.statistics.mean) / self.statistics.std
        threshold = max(self.beta, ZERO_AFFINITY)
        return array_namespace(values).where(values >= threshold, values, 0.0)


def check_label_similarity(label_similarity: Array | None, n_classes: int) -> Floats:
    """Return the (n_classes, n_classes) label similarity, Eq. (2): the identity by default."""
    if label_similarity is None:
        return np.eye(n_classes)
    similarity = to_host(label_similarity).astype(np.float64)
    if similarity.shape != (n_classes, n_classes):
        raise ValueError(
            f"label_similarity has shape {similarity.shape}, but there are {n_classes} labels: "
            f"it must be ({n_classes}, {n_classes})."
        )
    if not np.isfinite(similarity).all() or similarity.min() < 0 or similarity.max() > 1:
        raise ValueError("label_similarity must have entries between 0 and 1.")
    if not np.allclose(similarity, similarity.T):
        raise ValueError("label_similarity must be symmetric.")
    if not np.allclose(similarity.diagonal(), 1.0):
        raise ValueError("label_similarity must have ones on its diagonal.")
    return similarity
