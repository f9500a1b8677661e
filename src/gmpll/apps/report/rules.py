"""The paper's rule for the number of labels that an unseen row may have."""

from __future__ import annotations

import math

__all__ = ["candidates_by_formula"]


def candidates_by_formula(mean_candidates: float, n_classes: int) -> int:
    """Return r = [1 + mean(s) / lg(q)], rounded to the nearest integer, halves up.

    Parameters
    ----------
    mean_candidates : float
        Mean number of candidates of a row.
    n_classes : int
        Number of labels, at least two.

    Returns
    -------
    int

    Examples
    --------
    >>> from gmpll.apps.report.rules import candidates_by_formula
    >>> candidates_by_formula(2.33, 16)
    3
    """
    if n_classes < 2:
        raise ValueError(f"n_classes is {n_classes}; the formula needs at least two labels.")
    return math.floor(1.5 + mean_candidates / math.log10(n_classes))
