"""CLPL: one convex problem in which the mean score of the candidates has to be positive."""

import warnings
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from gmpll._parameters import Count, Positive, with_parameters
from gmpll._typing import Floats, Mask
from gmpll.methods._linear import LinearScorer


@with_parameters
class CLPL(LinearScorer):
    r"""Convex learning from partial labels (CLPL).

    Every label has a linear score. For a training row the *average* score of the candidates is
    pushed up and the score of every other label down. Averaging keeps the problem convex: there
    is one solution, and it depends on no start.

    With the scores :math:`g_c(x) = w_c^\top x`, the candidate set :math:`S_i` of row i and the
    squared hinge :math:`\psi(u) = \max(0, 1 - u)^2`, CLPL solves

    .. math:: \min_W \; \tfrac{1}{2} \|W\|_F^2 + C \sum_i \Bigl[
              \psi\Bigl(\tfrac{1}{|S_i|} \sum_{c \in S_i} g_c(x_i)\Bigr)
              + \sum_{c \notin S_i} \psi\bigl(-g_c(x_i)\bigr) \Bigr] .

    Where every set has one label this is one-vs-rest classification with squared hinge loss.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regularisation. ``CLPL.C_GRID`` is the usual grid.
    tol : float, default=1e-6
        The solver stops when no entry of the gradient exceeds this share of the largest entry
        of the gradient at zero weights.
    max_iter : int, default=5000
        Largest number of L-BFGS iterations.

    Attributes
    ----------
    objective_ : float
        The minimum found.
    n_iter_ : int
        Number of L-BFGS iterations.

    Notes
    -----
    The problem is a binary linear SVM with a positive example per row and a negative one per row
    and non-candidate, about m q examples of dimension q d. They are never stacked: value and
    gradient are two matrix products, O(m q d) time and O(m q) memory per iteration.

    Each label has its own bias, through a constant feature (and so a regularised one). Choose C
    by held-out candidate sets, for instance with ``GridSearchCV``: ``score`` needs no truth.

    What was chosen where the literature leaves room is listed on the page :doc:`/methods`.

    References
    ----------
    .. [1] T. Cour, B. Sapp and B. Taskar, "Learning from partial labels", Journal of Machine
       Learning Research 12, 2011, 1501-1536.

    Examples
    --------
    >>> from gmpll import CLPL
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = CLPL(random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.83
    """

    #: Values of ``C`` to choose from.
    C_GRID: ClassVar[tuple[float, ...]] = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)

    C: Positive = 1.0
    tol: Positive = 1e-6
    max_iter: Count = 5000

    def _learn(self, rows: Floats, mask: Mask) -> Floats:
        shares = mask / mask.sum(axis=1, keepdims=True)
        start = np.zeros(mask.shape[1] * rows.shape[1])
        _, slope = objective(start, rows, mask, shares, self.C)
        found = minimize(
            objective,
            start,
            args=(rows, mask, shares, self.C),
            jac=True,
            method="L-BFGS-B",
            options={
                "gtol": self.tol * np.abs(slope).max(),
                "ftol": np.finfo(float).eps,  # the gradient decides, not the last change
                "maxiter": self.max_iter,
                "maxfun": 2 * self.max_iter,
            },
        )
        if found.status == 1:  # the iterations or evaluations are used up
            warnings.warn(
                f"CLPL did not converge in {found.nit} iterations: raise max_iter or tol, or "
                "lower C.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.objective_ = float(found.fun)
        self.n_iter_ = int(found.nit)
        return found.x.reshape(mask.shape[1], rows.shape[1])


def objective(
    flat: Floats, rows: Floats, mask: Mask, shares: Floats, C: float
) -> tuple[float, Floats]:
    """Return value and gradient at the weights ``flat``; ``shares`` are mask rows of sum one."""
    weights = flat.reshape(mask.shape[1], -1)
    scores = rows @ weights.T
    shortfall = np.maximum(0.0, 1.0 - np.einsum("ic,ic->i", shares, scores))
    excess = np.where(mask, 0.0, np.maximum(0.0, 1.0 + scores))
    value = 0.5 * flat @ flat + C * (shortfall @ shortfall + np.vdot(excess, excess))
    slopes = excess - shortfall[:, None] * shares
    return float(value), (weights + 2.0 * C * slopes.T @ rows).ravel()
