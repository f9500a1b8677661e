"""What the stages of a fit cost, for those who wait for it: estimates and nothing else.

Seconds on one core of the machine where they were measured; ``benchmarks/progress.py`` shows each
of them beside the time that the stage takes.
"""

from gmpll.engines.numpy import APPROXIMATE_ROWS
from gmpll.evidence.forest import is_forest_feasible
from gmpll.evidence.pipeline import LEARNING_ROWS
from gmpll.evidence.ridge import EXACT_ROWS

__all__ = ["classifier_costs", "matching_costs"]

#: Fewer rows are few.
FEW_ROWS = 1000


def classifier_costs(
    n_rows: int, n_features: int, n_labels: int, *, has_forest: bool = False
) -> dict[str, float]:
    """Return the stages of :class:`gmpll.PartialLabelClassifier` in their order, and their costs.

    Examples
    --------
    >>> from gmpll.methods._costs import classifier_costs
    >>> few, many = (sum(classifier_costs(n, 64, 10).values()) for n in (5000, 100_000))
    >>> 10 < many / few < 20
    True
    """
    m, d, q = n_rows, n_features, n_labels
    of_trees = 1e-4 * m + 5e-6 * min(m, 5000) * min(d, 64) * (1 + q / 50)
    forest = of_trees if has_forest else 0
    choice = 0.8 + 0.013 * q  # on a part of the rows; few are cut again and again
    if m < FEW_ROWS:
        choice *= 1.5
    if m <= EXACT_ROWS:
        regression, matching, feedback = 8e-8 * m**2, 0.03 + 9e-8 * m**2, 8e-8 * m**2
    else:
        n_learning = min(m, LEARNING_ROWS)
        regression = 0.1 + 1.2e-4 * n_learning
        matching = 0.8 + (7e-5 + 1.6e-6 * q) * m
        feedback = (7e-5 + 2e-6 * q) * n_learning + 2e-5 * (m - n_learning)
    if is_forest_feasible(m, q):  # the first trees are grown on what the matching finds
        choice, matching = choice + matching + 0.25 * of_trees, 0.0
    return {
        "features": 2.6e-7 * m * d,
        "neighbours": 2 * _neighbor_cost(m, d),  # in two views
        "regression": regression,
        "choice of hyperparameters": choice,
        "matching": matching,
        "feedback": feedback + forest,
        "incomplete sets": (1.5e-5 + 2e-6 * q) * m,
        "predictor": 1e-6 * m * q + forest,
        "calibration": 0.02,
    }


def matching_costs(
    n_rows: int, n_features: int, n_labels: int, max_iter: int, *, is_full: bool
) -> dict[str, float]:
    """Return the stages of :class:`gmpll.GMPLL` in their order, and their costs."""
    of_row = 6e-7 + 6e-8 * n_labels
    if is_full:
        of_row = (1.5e-10 + 2e-12 * n_features) * n_rows
    return {
        "neighbours": 0.0 if is_full else _neighbor_cost(n_rows, n_features),
        "matching": of_row * n_rows * max_iter,
    }


def _neighbor_cost(n_rows: int, n_features: int) -> float:
    if n_rows < APPROXIMATE_ROWS:
        return 2e-5 * n_rows + 5.5e-11 * n_rows**2 * n_features
    return n_rows * (4e-5 + 1.1e-6 * n_features)
