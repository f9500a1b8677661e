"""A matching on a sparse graph with all that it was made from, so that it can be explained."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gmpll._typing import Floats, Mask, Places
from gmpll.matching.local import LocalAffinity
from gmpll.matching.loop import match, uniform_start
from gmpll.rounding import confidences_within


@dataclass(frozen=True)
class MatchingProblem:
    """What rows were matched by."""

    weights: Any  # a sparse (n_samples, n_samples) matrix, the graph
    mask: Mask
    balance: float = 0.0  # exponent of the class-mass correction
    similarity: Floats | None = None  # of the labels, None if all are different
    priors: Floats | None = None  # what multiplies the support of every candidate
    expected_mass: Floats | None = None  # (1, n_classes): rows of every label

    def over_all_labels(self, seen: Mask) -> Self:
        """Return the same with columns for labels that no row contains."""
        if seen.all():
            return self

        def widened(values: Any) -> Any:
            if values is None:
                return None
            full = np.zeros((len(values), len(seen)), dtype=values.dtype)
            full[:, seen] = values
            return full

        similarity = self.similarity
        if similarity is not None:
            similarity = np.eye(len(seen))
            similarity[np.ix_(seen, seen)] = self.similarity
        return replace(
            self,
            mask=widened(self.mask),
            similarity=similarity,
            priors=widened(self.priors),
            expected_mass=widened(self.expected_mass),
        )

    def path(self, rows: Places, n_iterations: int) -> Floats:
        """Return the probabilities of some rows before the first iteration and after each."""
        affinity = LocalAffinity(self.weights, self.mask, self.similarity)
        P = uniform_start(self.mask)
        if self.priors is not None:
            P = confidences_within(self.priors, self.mask)
        once: dict[str, Any] = {"max_iter": 1, "tol": 0.0, "balance": self.balance}
        known: dict[str, Any] = {"priors": self.priors, "expected_mass": self.expected_mass}
        path = [P[rows]]
        for _ in range(n_iterations):
            P = match(affinity, self.mask, start=P, **once, **known).probabilities
            path.append(P[rows])
        return np.stack(path, axis=1)
