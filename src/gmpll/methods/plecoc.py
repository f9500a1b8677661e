"""PL-ECOC: error-correcting output codes whose binary problems avoid disambiguation."""

import math
import warnings
from typing import Annotated, Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn import config_context  # type: ignore[attr-defined]
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from gmpll._parameters import Count, Jobs, Positive, Seed, Switch, with_parameters
from gmpll._sklearn import Integral, Interval, Real, StrOptions
from gmpll._typing import Floats, Mask, Places
from gmpll.base import BasePartialLabelClassifier, DecisionMixin
from gmpll.graph.views import Scaling
from gmpll.methods._regression import Regressor

#: Entries -1 and +1, a row per label and a column per split.
Code = NDArray[np.int8]
#: Columns per doubling of the number of labels. One column per doubling, as some settings lists
#: print it, leaves many labels with the same codeword.
COLUMNS_PER_BIT = 10
#: Splits are drawn and tested in blocks of this many.
DRAW_BLOCK = 128
#: A kernel matrix of the training rows up to this size is computed once and shared by all
#: columns. Beyond it every machine computes the kernel values that it asks for.
KERNEL_LIMIT_BYTES = 2**30
#: What LIBSVM may keep of the values that it computes itself, in MiB.
CACHE_MB = 500
#: Decision values are clipped here so that their exponentials stay finite.
DECISION_LIMIT = 300.0


@with_parameters
class PLECOC(DecisionMixin, BasePartialLabelClassifier):
    r"""Partial label learning by error-correcting output codes.

    The labels are split in two at random. A row whose candidates all lie on one side belongs to
    that side whichever of them is right, so such rows make an ordinary binary problem. Many
    splits, the columns of a code, give every label a codeword, and an unseen row gets the label
    whose codeword fits its binary answers best. No candidate set is ever disambiguated.

    With the code :math:`M \in \{-1, +1\}^{q \times L}`, binary machines :math:`h_t` and the share
    :math:`H_{ct}` of the rows with candidate :math:`c` on which :math:`h_t` answers
    :math:`M_{ct}`, the label of :math:`x` is

    .. math:: \arg\min_c \sum_{t=1}^{L} \hat H_{ct} \exp(-h_t(x) M_{ct}), \qquad
              \hat H_{ct} = H_{ct} \Big/ \sum_{s=1}^{L} H_{cs} .

    Parameters
    ----------
    n_columns : int, default=None
        Length L of the code; by default ``ceil(10 * log2(n_classes))``.
    min_share : float, default=0.1
        Share of the rows that a column must be able to use.
    min_per_side : int, default=5
        Rows that a column must have on either side.
    max_draws : int, default=2000
        Number of random splits to try. If they hold too few good columns, those found are used
        and a warning says so. If they hold none, as many are drawn again and any with a row on
        either side is accepted; without even such a split all labels are scored alike.
    C : float, default=1.0
        Penalty of the binary support vector machines.
    gamma : "auto" or float, default="auto"
        Width :math:`\exp(-\gamma \|x - x'\|^2)` of their kernel; "auto" is one over the number
        of features.

    Attributes
    ----------
    code_ : ndarray of shape (n_seen_classes, n_columns_found)
        The code, -1 and +1; a row for every label that some training row contains, in the order
        of ``classes_``.
    performance_ : ndarray of shape (n_seen_classes, n_columns_found)
        The matrix :math:`\hat H`; rows sum to one.
    labels_ : ndarray of shape (n_samples,)
        Decoded among the candidates of each row.
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        The softmax of the negated losses there.

    Notes
    -----
    Cost: ``O(max_draws * m * q)`` to find the code, ``O(m**2 * d)`` for the kernel, and L binary
    machines of between ``m**2`` and ``m**3`` steps in the number m of rows that they use.
    Memory: up to some 11500 rows the kernel takes ``8 * m**2`` bytes, at most a GiB, and each
    thread half a GiB at most; beyond, the threads' parts alone. Complementary or repeated splits
    are the same binary problem: they keep their weight in the decoding but are trained once.

    Since the code is random, so is the accuracy: average over several values of ``random_state``,
    or take a longer code (``TUNING_GRID``).

    What was chosen where the literature leaves room is listed on the page :doc:`/methods`.

    References
    ----------
    .. [1] M.-L. Zhang, F. Yu and C.-Z. Tang, "Disambiguation-free partial label learning", IEEE
       Transactions on Knowledge and Data Engineering 29(10), 2017.

    Examples
    --------
    >>> from gmpll import PLECOC
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = PLECOC(random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.88
    """

    #: Values worth trying, ready for ``sklearn.model_selection.GridSearchCV``, whose default score
    #: is then the covering rate: no true label is needed. Longer codes are steadier.
    TUNING_GRID: ClassVar[dict[str, list[Any]]] = {
        "C": [1.0, 10.0, 100.0],
        "n_columns": [None, 200],
    }

    n_columns: Annotated[int | None, None, Interval(Integral, 1, None, closed="left")] = None
    min_share: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.1
    min_per_side: Count = 5
    max_draws: Count = 2000
    C: Positive = 1.0
    gamma: Annotated[str, StrOptions({"auto"})] | Positive = "auto"
    standardize: Switch = True
    n_jobs: Jobs = None
    random_state: Seed = None

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        self._scaling = Scaling(X, standardize=self.standardize)
        rows = self._scaling.transform(X)
        self._gamma = 1.0 / rows.shape[1] if self.gamma == "auto" else float(self.gamma)

        self.code_ = self._find_code(mask, rng)
        decisions = self._fit_machines(rows, mask)
        self.performance_ = performance_matrix(decisions, self.code_, mask)
        losses = decoding_losses(decisions, self.code_, self.performance_)
        return softmax(np.where(mask, -losses, -np.inf), axis=1)

    def _scores(self, X: Floats) -> Floats:
        decisions = self._machines(self._scaling.transform(X))
        return -decoding_losses(decisions, self.code_, self.performance_)

    def _find_code(self, mask: Mask, rng: RandomState) -> Code:
        n_rows, n_labels = mask.shape
        wanted = self.n_columns or math.ceil(COLUMNS_PER_BIT * math.log2(n_labels))
        if n_labels == 1:  # nothing to tell apart
            return np.zeros((1, 0), dtype=np.int8)

        # Rounding first: 0.07 * 100 is a little more than 7 in floating point.
        least, per_side = math.ceil(round(self.min_share * n_rows, 9)), self.min_per_side
        code = draw_code(mask, wanted, (least, per_side), self.max_draws, rng)
        n_found, instead = code.shape[1], ""
        if n_found == 0:
            code = draw_code(mask, wanted, (2, 1), self.max_draws, rng)
            instead = f", so {code.shape[1]} columns with at least one row on either side are used"
        if n_found < wanted:
            warnings.warn(
                f"{n_found} columns instead of {wanted} were found in {self.max_draws} random "
                f"splits of the labels that leave {least} rows with {per_side} on either "
                f"side{instead}: lower min_share or min_per_side, or raise max_draws.",
                UserWarning,
                stacklevel=5,
            )
        return code

    def _fit_machines(self, rows: Floats, mask: Mask) -> Floats:
        """Train a machine per column; return their decisions on the training rows."""
        splits, column, flip = distinct_splits(self.code_)
        sides = sides_of_rows(mask, splits)
        kernel = None
        if 8 * rows.shape[0] ** 2 <= KERNEL_LIMIT_BYTES and splits.shape[1]:
            kernel = rbf_kernel(rows, gamma=self._gamma)
        # Threads share the kernel matrix, and LIBSVM runs without the interpreter's lock.
        machines = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._fit_machine)(rows, kernel, side) for side in sides.T
        )
        dual = np.column_stack([m[0] for m in machines] or [np.zeros((rows.shape[0], 0))])
        dual = dual[:, column] * flip
        intercepts: Floats = np.array([m[1] for m in machines])[column] * flip

        support = dual.any(axis=1)
        self._machines = Regressor(rows[support], self._gamma, dual[support], intercepts)
        return self._machines(rows) if kernel is None else kernel @ dual + intercepts

    def _fit_machine(self, rows: Floats, kernel: Floats | None, side: Code) -> tuple[Floats, float]:
        """Return the dual coefficients of all rows and the intercept of one binary machine."""
        used = np.flatnonzero(side)
        if kernel is None:
            machine = SVC(C=self.C, kernel="rbf", gamma=self._gamma, cache_size=CACHE_MB)
            machine.fit(rows[used], side[used])
        else:
            # LIBSVM takes rows without weight out of the problem, and counts the supporting ones
            # among those that stay: the matrix need not be cut for every machine.
            machine = SVC(C=self.C, kernel="precomputed", cache_size=CACHE_MB)
            with config_context(assume_finite=True):
                machine.fit(kernel, np.where(side, side, side[used[0]]), np.abs(side))
        # scikit-learn's decision is positive for the larger label, +1, whichever comes first.
        dual = np.zeros(rows.shape[0])
        dual[used[machine.support_]] = machine.dual_coef_[0]
        return dual, float(machine.intercept_[0])


def sides_of_rows(mask: Mask, code: Code) -> Code:
    """Say on which side of each split, -1 or +1, a row's whole candidate set lies; 0 if on both."""
    # Sums of up to 2**24 ones are exact in single precision, whose product is fast.
    balance = mask.astype(np.float32) @ code.astype(np.float32)
    sizes = mask.sum(axis=1, dtype=np.float32)[:, None]
    return (balance == sizes).astype(np.int8) - (balance == -sizes).astype(np.int8)


def draw_code(
    mask: Mask, n_columns: int, least: tuple[int, int], max_draws: int, rng: RandomState
) -> Code:
    """Return the first random splits that can use so many rows in all, and on either side."""
    n_labels = mask.shape[1]
    found = [np.zeros((n_labels, 0), dtype=np.int8)]
    n_found = 0
    for start in range(0, max_draws, DRAW_BLOCK):
        n_draws = min(DRAW_BLOCK, max_draws - start)
        code = (2 * rng.randint(2, size=(n_draws, n_labels)) - 1).astype(np.int8).T
        sides = sides_of_rows(mask, code)
        positive, negative = (sides > 0).sum(axis=0), (sides < 0).sum(axis=0)
        good = np.minimum(positive, negative) >= least[1]
        good &= positive + negative >= least[0]
        found.append(code[:, good])
        n_found += int(good.sum())
        if n_found >= n_columns:
            break
    return np.concatenate(found, axis=1)[:, :n_columns]


def distinct_splits(code: Code) -> tuple[Code, Places, Code]:
    """Return the different splits, and for every column its split and whether it is negated."""
    flip = code[0]
    splits, column = np.unique(code * flip, axis=1, return_inverse=True)
    return splits, column.ravel(), flip


def performance_matrix(decisions: Floats, code: Code, mask: Mask) -> Floats:
    """Return how well each machine (column) serves each label (row), every row summing to one."""
    members = mask.T.astype(np.float64)
    says_plus = members @ (decisions > 0).astype(np.float64)
    says_minus = members @ (decisions < 0).astype(np.float64)
    share = np.where(code > 0, says_plus, says_minus) / members.sum(axis=1, keepdims=True)
    # A zero row would have no loss at all and win every decoding.
    share[~share.any(axis=1)] = 1.0
    return share / np.maximum(share.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)


def decoding_losses(decisions: Floats, code: Code, performance: Floats) -> Floats:
    """Return the weighted exponential loss of every label's codeword."""
    bounded = np.clip(decisions, -DECISION_LIMIT, DECISION_LIMIT)
    plus = np.where(code > 0, performance, 0.0)
    minus = np.where(code < 0, performance, 0.0)
    return np.exp(-bounded) @ plus.T + np.exp(bounded) @ minus.T
