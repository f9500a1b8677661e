"""What a fitted model remembers of its rows, so that later rows and later fits can start from it.

:class:`FitState` is where the matching stands. A fit with ``warm_start=True`` starts from it, and
``partial_fit`` adds rows to it.
"""

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gmpll._columns import aligned_columns
from gmpll._typing import Floats, Mask
from gmpll.matching import uniform_start
from gmpll.rounding import confidences_within

__all__ = ["FitState", "Resolution", "grown_views", "warm_probabilities"]

#: Share of a warm start that is spread evenly over the candidates: an iteration multiplies
#: probabilities, so that one which is zero would never rise again.
EVEN_SHARE = 0.1


class Resolution(NamedTuple):
    """What was found for rows that came after the fit."""

    labels: NDArray[Any]  # one of the candidates of every row
    confidences: Floats  # of all labels: zero outside the candidates, sums of one


@dataclass(frozen=True)
class FitState:
    """Where the matching of the training rows stands."""

    labels: NDArray[Any]  # of the columns below: those that some row contains
    mask: Mask
    confidences: Floats
    prior: Floats | None  # what gmpll.side_information.candidate_prior returns
    batches: tuple[tuple[int, str], ...]  # number and digest of the rows that came together

    def begins(self, X: Floats) -> bool:
        """Whether the first rows of X are these rows."""
        ends = np.cumsum([n_rows for n_rows, _ in self.batches])
        return len(X) >= len(self.mask) and all(
            batch_digest(X[end - batch[0] : end]) == batch
            for batch, end in zip(self.batches, ends, strict=True)
        )

    def over(self, labels: NDArray[Any]) -> Self:
        """Return the same with columns for other labels; what is lost is no candidate any more."""
        prior = self.prior
        return replace(
            self,
            labels=labels,
            mask=aligned_columns(self.mask, self.labels, labels),
            confidences=aligned_columns(self.confidences, self.labels, labels),
            prior=None if prior is None else aligned_columns(prior, self.labels, labels),
        )

    def with_rows(self, X: Floats, mask: Mask, prior: Floats | None = None) -> Self:
        """Return the same with more rows, of whose candidates none is preferred yet."""
        merged_prior = None
        if self.prior is not None or prior is not None:
            # Equal weights say nothing: so do those of rows that came without any.
            before = self.mask.astype(np.float64) if self.prior is None else self.prior
            merged_prior = np.vstack([before, mask.astype(np.float64) if prior is None else prior])
        return replace(
            self,
            mask=np.vstack([self.mask, mask]),
            confidences=np.vstack([self.confidences, uniform_start(mask)]),
            prior=merged_prior,
            batches=(*self.batches, batch_digest(X)),
        )


def batch_digest(X: Floats) -> tuple[int, str]:
    """Return the number of rows and a digest by which they are known again."""
    return len(X), hashlib.blake2b(np.ascontiguousarray(X).data, digest_size=16).hexdigest()


def warm_probabilities(state: FitState, mask: Mask, labels: NDArray[Any]) -> Floats:
    """Return where a matching starts whose first rows have been matched before.

    Candidates that have become zero get a small share back, because an iteration multiplies. The
    mask holds the candidates now, which may have changed, and ``labels`` are those of its columns.
    """
    even = uniform_start(mask)
    before = even.copy()
    before[: len(state.mask)] = confidences_within(
        state.over(labels).confidences, mask[: len(state.mask)]
    )
    return (1.0 - EVEN_SHARE) * before + EVEN_SHARE * even


def grown_views(views: Sequence[Any], X: Floats) -> list[Any]:
    """Return views with more rows, their statistics as they are."""
    grown = [copy.copy(view) for view in views]
    for view in grown:
        view.rows = np.vstack([view.rows, view.transform(X)])
    return grown
