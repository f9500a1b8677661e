"""Candidate sets in partitions: checked, and sparse from then on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gmpll.distributed.blocks import StoredBlock, loaded

__all__ = ["CandidateFacts", "candidate_block", "candidate_facts", "raise_for_bad_rows"]


class CandidateFacts(NamedTuple):
    """What is known of the candidate sets of a partition.

    Attributes
    ----------
    n_candidates : int
        Number of candidates of all rows together.
    bad_entry : tuple of (int, int, str) or None
        Row, column and value of the first entry that is neither 0 nor 1.
    empty_row : int or None
        Number of the first row without any candidate.
    """

    n_candidates: int
    bad_entry: tuple[int, int, str] | None
    empty_row: int | None


def candidate_facts(block: StoredBlock | NDArray[Any], start: int) -> CandidateFacts:
    """Look through a block whose first row has the number ``start``."""
    entries = loaded(block)
    good = (entries == 0) | (entries == 1)
    bad_entry = None
    if not good.all():
        row, column = (int(number) for number in np.argwhere(~good)[0])
        bad_entry = (start + row, column, str(entries[row, column]))
    empty = np.flatnonzero(~(entries == 1).any(axis=1))
    empty_row = start + int(empty[0]) if empty.size else None
    return CandidateFacts(int((entries == 1).sum()), bad_entry, empty_row)


def raise_for_bad_rows(facts: list[CandidateFacts]) -> None:
    """Raise a ValueError that names the first offending row of all partitions."""
    for fact in facts:
        if fact.bad_entry is not None:
            row, column, value = fact.bad_entry
            raise ValueError(
                f"The candidate matrix has the entry {value} at row {row}, column {column}; "
                "entries must be 0 or 1."
            )
        if fact.empty_row is not None:
            raise ValueError(
                f"Row {fact.empty_row} has an empty candidate set: every row needs at least one "
                "candidate. Drop such rows, or give them all labels if nothing is known."
            )


def candidate_block(block: StoredBlock | NDArray[Any]) -> sp.csr_array:
    """Return the candidates of a block as a sparse matrix of ones.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.distributed.candidates import candidate_block
    >>> candidate_block(np.array([[0, 1], [1, 1]])).nnz
    3
    """
    return sp.csr_array(loaded(block) == 1, dtype=np.float64)
