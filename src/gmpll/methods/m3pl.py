"""M3PL: maximum margin partial label learning with integer label assignments."""

import math
import warnings
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from scipy.optimize import linprog
from sklearn.svm import LinearSVC

from gmpll._parameters import Count, NotNegative, Positive, Seed, Switch, with_parameters
from gmpll._sklearn import StrOptions
from gmpll._typing import Floats, Mask, Places
from gmpll.base import BasePartialLabelClassifier, DecisionMixin
from gmpll.methods._linear import BiasedScaling
from gmpll.rounding import one_hot

#: The penalty starts at this share of its final value.
START_SHARE = 1e-5
#: Costs closer than this, relative to the largest, are tied: a drawn order decides.
TIE_JITTER = 1e-6
#: Weight of the rows that tell the SVM about labels to which nothing is assigned.
PLACEHOLDER_WEIGHT = 1e-9
#: LIBLINEAR's own limit for this problem; it ignores smaller ones.
SVM_MAX_ITER = 100_000
#: The SVM is never asked for more than this.
SVM_TOL_FLOOR = 1e-8
#: The SVM goes through all pairs of labels again and again: more of them would take days.
MAX_LABELS = 2000
#: HiGHS status of scipy.optimize.linprog for a problem without solution.
INFEASIBLE = 2


@with_parameters
class M3PL(DecisionMixin, BasePartialLabelClassifier):
    r"""Maximum margin partial label learning.

    A multi-class support vector machine whose training labels are unknowns too: each row takes
    one of its candidates, each label as many rows as its candidates suggest. Two convex steps
    alternate: for fixed labels a Crammer-Singer SVM, for fixed weights a transportation problem. A
    penalty that grows slowly from almost nothing keeps the early, bad labels from being learnt by
    heart; without it the result collapses.

    .. math::

       \min_{y, W, b} \ \tfrac12 \sum_c \left(\|w_c\|^2 + b_c^2\right)
           + C \sum_i \max\Big(0,\, 1 - g_{y_i}(x_i) + \max_{c \ne y_i} g_c(x_i)\Big)
       \quad\text{s.t.}\quad y_i \in S_i,\ \ |\{i : y_i = c\}| = n_c

    with :math:`g_c(x) = w_c^\top x + b_c` and class sizes :math:`n_c` near
    :math:`\hat n_c = \sum_{i : c \in S_i} 1 / |S_i|`.

    Parameters
    ----------
    C_max : float, default=0.01
        Penalty C at the end of the schedule, the parameter that matters most. The authors choose
        it by cross-validation; see ``TUNING_GRID``.
    growth : float, default=0.5
        The penalty starts at ``1e-5 * C_max`` and grows by this share from level to level.
    class_sizes : {"bounds", "remainder", "smallest"}, default="bounds"
        How the expected sizes become integers. "bounds": any number between floor and ceiling;
        such labels always exist. "remainder" and "smallest": floors, and the rows left over go to
        the labels with the largest remainders or the smallest floors; where the candidate sets
        admit no such labels, "bounds" is used and a warning says so.
    tol : float, default=1e-4
        At each penalty the steps alternate until the objective falls by less than this.
    max_iter : int, default=100
        Limit of the rounds at each penalty.
    svm_tol : float, default=1e-3
        Tolerance of the SVM, relative to the scores where these are below one. A large ``C_max``
        makes it slow: consider 1e-2 from ``C_max=10`` on.

    Attributes
    ----------
    penalties_ : ndarray of shape (n_levels,)
        The values of C.
    objective_path_ : list of n_levels ndarrays
        The objective after each step (SVM, labels, SVM, ...) at each penalty, where it never rises.
    n_iter_ : int
        Number of rounds at all penalties together.
    coef_ : ndarray of shape (n_seen_classes, n_features)
        Weights of the z-scored features, a row for every label that some training row contains.
    intercept_ : ndarray of shape (n_seen_classes,)
        Biases.
    labels_ : ndarray of shape (n_samples,)
        The final assignment, which respects the class sizes; its confidences are zeros and ones.

    Notes
    -----
    Cost: about 30 to 140 rounds, each an SVM of ``O(m * q * d)`` per pass and a linear programme
    with one variable per candidate. Memory ``O(m * (q + d))``. The seed also orders the SVM's
    coordinate steps.

    What was chosen where the literature leaves room is listed on the page :doc:`/methods`.

    References
    ----------
    .. [1] F. Yu and M.-L. Zhang, "Maximum margin partial label learning", Machine Learning 106,
       2017.

    Examples
    --------
    >>> from gmpll import M3PL
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = M3PL(random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.84
    """

    #: Values that the authors try, ready for ``sklearn.model_selection.GridSearchCV``, whose
    #: default score is then the covering rate: no true label is needed.
    TUNING_GRID: ClassVar[dict[str, list[Any]]] = {"C_max": [0.01, 0.1, 1.0, 10.0, 100.0]}

    C_max: Positive = 0.01
    growth: Positive = 0.5
    class_sizes: Annotated[str, StrOptions({"bounds", "remainder", "smallest"})] = "bounds"
    tol: NotNegative = 1e-4
    max_iter: Count = 100
    svm_tol: Positive = 1e-3
    standardize: Switch = True
    random_state: Seed = None

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        if mask.shape[1] > MAX_LABELS:
            raise ValueError(
                f"There are {mask.shape[1]} labels; M3PL takes at most {MAX_LABELS}, since its "
                "time grows with their square. Use another method."
            )
        self._scaling = BiasedScaling(X, standardize=self.standardize)
        rows = self._scaling.transform(X)
        self.penalties_ = penalty_schedule(self.C_max, self.growth)
        self.objective_path_: list[Floats] = []
        self.n_iter_ = 0
        weights = np.zeros((mask.shape[1], rows.shape[1]))
        labels = np.zeros(len(rows), dtype=np.intp)
        if mask.shape[1] > 1:
            problem = SVMProblem(rows, mask.shape[1], self.svm_tol, rng.randint(2**31 - 1))
            assignment = feasible_assignment(mask, self.class_sizes, rng)
            # The first weights are learnt from all candidates with equal shares.
            row, label = np.nonzero(mask)
            weights = problem.solve(row, label, self.penalties_[0], 1.0 / mask.sum(axis=1)[row])
            labels = assignment.solve(hinge_losses(rows @ weights.T))
            for C in self.penalties_:
                weights, labels = self._alternate(problem, assignment, labels, float(C))
        self.intercept_, self.coef_ = weights[:, 0], weights[:, 1:]
        return one_hot(labels, mask.shape[1]).astype(np.float64)

    def _scores(self, X: Floats) -> Floats:
        return self._scaling.transform(X) @ np.c_[self.intercept_, self.coef_].T

    def _alternate(
        self, problem: "SVMProblem", assignment: "LabelAssignment", labels: Places, C: float
    ) -> tuple[Floats, Places]:
        """Alternate SVM and assignment at one penalty; note the objective after every step."""
        everyone = np.arange(len(labels))
        path: list[float] = []
        for _ in range(self.max_iter):
            self.n_iter_ += 1
            trial = problem.solve(everyone, labels, C)
            losses = hinge_losses(problem.rows @ trial.T)
            objective = float((trial**2).sum() / 2 + C * losses[everyone, labels].sum())
            if path and objective > path[-1]:
                break  # the gain that is left is below the SVM's tolerance
            weights = trial
            path.append(objective)

            found = assignment.solve(losses)
            gain = C * float((losses[everyone, labels] - losses[everyone, found]).sum())
            if gain <= 0:
                break  # the same labels would only give the same weights
            labels = found
            path.append(objective - gain)
            if len(path) > 2 and path[-3] - path[-1] < self.tol:
                break
        self.objective_path_.append(np.array(path))
        return weights, labels


def penalty_schedule(C_max: float, growth: float) -> Floats:
    """Return the growing penalties that end at ``C_max``."""
    n_levels = math.ceil(math.log(1.0 / START_SHARE) / math.log1p(growth) - 1e-9)
    shares = START_SHARE * (1.0 + growth) ** np.arange(1, n_levels + 1)
    return C_max * np.minimum(shares, 1.0)


def hinge_losses(scores: Floats) -> Floats:
    """Return the loss that every label would have as the label of the row."""
    second, first = np.partition(scores, (-2, -1), axis=1)[:, -2:].T
    rival = np.where(scores == first[:, None], second[:, None], first[:, None])
    return np.maximum(0.0, 1.0 - scores + rival)


class SVMProblem:
    """Crammer-Singer SVMs on the same rows, which begin with a one for the bias."""

    def __init__(self, rows: Floats, n_labels: int, tol: float, seed: int) -> None:
        self.rows, self._tol, self._seed = rows, tol, seed
        self._every_label = np.arange(n_labels)
        # About the size of the scores per unit of penalty while every row still has a loss: the
        # summed squared length of a label's share of the rows.
        self._score_scale = (rows**2).sum() / n_labels
        # LIBLINEAR knows only the labels that occur: a zero row of next to no weight for each
        # keeps all of them in the problem.
        self._with_placeholders = np.vstack([rows, np.zeros((n_labels, rows.shape[1]))])

    def solve(self, row: Places, label: Places, C: float, weight: Any = 1.0) -> Floats:
        """Minimise half the squared norm plus C times the weighted hinge losses of (row, label)."""
        svm = LinearSVC(
            multi_class="crammer_singer",
            C=C,
            # At a tiny penalty all scores are far below the tolerance, which would let the solver
            # stop before it knows the rivals of a row: the tolerance shrinks with the scores.
            tol=max(SVM_TOL_FLOOR, self._tol * min(1.0, C * self._score_scale)),
            fit_intercept=False,
            max_iter=SVM_MAX_ITER,
            random_state=self._seed,
        ).fit(
            self._with_placeholders[np.r_[row, len(self.rows) + self._every_label]],
            np.r_[label, self._every_label],
            np.r_[weight * np.ones(len(row)), PLACEHOLDER_WEIGHT * np.ones(len(self._every_label))],
        )
        # Of two labels scikit-learn keeps the difference; at the minimum the scores sum to zero.
        return np.array([[-0.5], [0.5]]) * svm.coef_ if len(svm.coef_) == 1 else svm.coef_


class InfeasibleSizesError(ValueError):
    """No choice of candidates gives the wanted class sizes."""


class LabelAssignment:
    """The cheapest choice of a candidate for every row, the class sizes within their bounds.

    The vertices of this transportation problem are integral, so a linear programme answers it.
    """

    def __init__(self, mask: Mask, lower: Floats, upper: Floats, rng: RandomState) -> None:
        n_rows, n_labels = mask.shape
        self._mask = mask
        self._row, self._label = np.nonzero(mask)
        edge, ones = np.arange(len(self._row)), np.ones(len(self._row))
        leaves_row = sp.csr_array((ones, (self._row, edge)), shape=(n_rows, len(edge)))
        enters_label = sp.csr_array((ones, (self._label, edge)), shape=(n_labels, len(edge)))
        self._flow = sp.block_array(
            [[leaves_row, None], [enters_label, -sp.eye_array(n_labels)]], format="csr"
        )
        self._balance = np.r_[np.ones(n_rows), np.zeros(n_labels)]
        self._bounds = np.vstack([np.tile([0.0, 1.0], (len(edge), 1)), np.c_[lower, upper]])
        self._jitter = TIE_JITTER * rng.random_sample(len(edge))  # the order that breaks ties

    def solve(self, costs: Floats) -> Places:
        """Return the candidate of every row that makes the sum of the costs smallest."""
        # At a tiny penalty the costs of a row differ in the sixth digit, about the tolerance of
        # the solver: only the differences count, brought to the scale of one.
        cheapest = np.where(self._mask, costs, np.inf).min(axis=1)
        excess = costs[self._row, self._label] - cheapest[self._row]
        unit = max(float(excess.max()), np.finfo(np.float64).tiny)
        result = linprog(  # type: ignore[call-overload]  # the stubs know no sparse A_eq
            np.r_[excess / unit + self._jitter, np.zeros(self._mask.shape[1])],
            A_eq=self._flow,
            b_eq=self._balance,
            bounds=self._bounds,
            method="highs-ds",
        )
        if result.status == INFEASIBLE:
            raise InfeasibleSizesError("No choice of candidates gives the wanted class sizes.")
        if result.x is None:
            raise RuntimeError(f"The assignment of labels failed: {result.message}")
        chosen = result.x[: len(self._row)] > 0.5
        if not np.array_equal(self._row[chosen], np.arange(len(self._mask))):
            raise RuntimeError("The assignment of labels is not integral.")
        return self._label[chosen]


def class_size_bounds(mask: Mask, rule: str, rng: RandomState) -> tuple[Floats, Floats]:
    """Return the smallest and largest size of every class."""
    expected = (mask / mask.sum(axis=1, keepdims=True)).sum(axis=0)
    expected = expected.round(9)  # three thirds are one
    floor = np.floor(expected)
    if rule == "bounds":
        return floor, np.ceil(expected)
    first = floor if rule == "smallest" else floor - expected
    order = np.lexsort((rng.random_sample(len(first)), first))
    sizes = floor.copy()
    sizes[order[: len(mask) - int(floor.sum())]] += 1
    return sizes, sizes


def feasible_assignment(mask: Mask, rule: str, rng: RandomState) -> LabelAssignment:
    """Return an assignment with class sizes by this rule, or by "bounds" if there is none."""
    assignment = LabelAssignment(mask, *class_size_bounds(mask, rule, rng), rng)
    if rule == "bounds":
        return assignment
    try:
        assignment.solve(np.zeros(mask.shape))
    except InfeasibleSizesError:
        warnings.warn(
            f'No choice of candidates has the class sizes of class_sizes="{rule}": every size '
            "between floor and ceiling of the expected one is allowed instead.",
            UserWarning,
            stacklevel=5,
        )
        return LabelAssignment(mask, *class_size_bounds(mask, "bounds", rng), rng)
    return assignment
