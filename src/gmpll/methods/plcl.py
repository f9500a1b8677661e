"""PL-CL: a second regression learns which labels are wrong."""

import numpy as np
from numpy.random import RandomState

from gmpll._parameters import Count, NotNegative, Positive, with_parameters
from gmpll._typing import Floats, Mask
from gmpll.methods.plaggd import PLAGGD, Pull


@with_parameters
class PLCL(PLAGGD):
    r"""Partial label learning with a complementary classifier (PL-CL).

    That a label is *wrong* for a row is known of every label outside its candidates, so it can be
    learned from more and surer examples than what is right. To PL-AGGD (:class:`gmpll.PLAGGD`) a
    second regression :math:`f_c` is added, which learns complementary confidences
    :math:`1 - [c \in S_i] \le Q_{ic} \le 1`; they and the confidences P should add up to one:

    .. math:: \min \; |P - F|^2 + \alpha |Q - F_c|^2 + \beta |1 - P - Q|^2
              + \lambda (\|f\|_K^2 + \|f_c\|_K^2) + \gamma |U - W U|^2 + \mu |P - W P|^2

    with the fitted values F of the regression f, the rows U scaled to length one, and the graph W.
    Its steps are those of PL-AGGD, and
    :math:`Q = \mathrm{clip}((\alpha F_c + \beta (1 - P)) / (\alpha + \beta))` between its limits.

    Parameters
    ----------
    regularization : float, default=0.03
        Weight :math:`\lambda` of the norms of both regressions, positive.
    complementary : float, default=0.5
        Weight :math:`\alpha` of the second regression; with 0 there is none.
    agreement : float, default=0.5
        Weight :math:`\beta` of the agreement of both kinds of confidences. With 0 the method is
        PL-AGGD.
    max_iter : int, default=8
        Largest number of iterations; reaching it is a regular end and gives no warning.
    feature_weight, label_weight : float, default=1.0
        :math:`\gamma` and :math:`\mu` above, as in :class:`gmpll.PLAGGD`.

    Notes
    -----
    The cost is that of PL-AGGD with two regressions: their ridges differ, :math:`\lambda` and
    :math:`\lambda / \alpha`, and with them the matrices to factorise. Unseen rows are scored by f
    alone, as in the authors' package.

    References
    ----------
    .. [1] Y. Jia, C. Si and M.-L. Zhang, "Complementary classifier induced partial label learning",
       KDD 2023, 974-983.

    Examples
    --------
    >>> from gmpll import PLCL
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = PLCL(random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.82
    """

    regularization: Positive = 0.03
    complementary: NotNegative = 0.5
    agreement: NotNegative = 0.5
    max_iter: Count = 8

    def _pull(self, rows: Floats, mask: Mask, rng: RandomState) -> Pull:
        alpha, beta = self.complementary, self.agreement
        outside = (~mask).astype(np.float64)
        wrong = outside  # Q
        if alpha > 0:
            regression = self._regression(rows, rng, weight=alpha)

        def pull(confidences: Floats, fitted: Floats) -> tuple[Floats, float]:
            nonlocal wrong
            if beta == 0:
                return fitted, 1.0
            believed = beta * (1.0 - confidences)
            if alpha > 0:
                believed += alpha * regression.fitted(wrong)
            wrong = np.clip(believed / (alpha + beta), outside, 1.0)
            return (fitted + beta * (1.0 - wrong)) / (1.0 + beta), 1.0 + beta

        return pull
