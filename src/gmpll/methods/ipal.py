"""IPAL: propagate labels over a reconstruction graph, classify by reconstruction."""

from typing import Annotated, Any

import numpy as np
from numpy.random import RandomState

from gmpll._parameters import Count, Jobs, NotNegative, Seed, Switch, with_parameters
from gmpll._sklearn import Interval, Real
from gmpll._typing import Floats, Mask, Places
from gmpll.base import BasePartialLabelClassifier, DecisionMixin
from gmpll.engines import engine_of
from gmpll.graph.neighbors import nearest_neighbors, warn_of_few_rows
from gmpll.graph.reconstruction import reconstruction_weights
from gmpll.graph.views import Scaling, unit_rows
from gmpll.rounding import confidences_within


@with_parameters
class IPAL(DecisionMixin, BasePartialLabelClassifier):
    r"""Instance-based partial label learning (IPAL).

    Each training row is written as a non-negative combination of its neighbours, and the weights
    say how much it believes each of them: confidences flow along them until they settle. Unseen
    rows get the label whose rows among their neighbours reconstruct them best.

    On z-scored rows of length one, with the k nearest neighbours N(i) of row i:

    1. :math:`\min_{w_i \ge 0} \|x_i - \sum_{j \in N(i)} w_{ij} x_j\|^2` and
       :math:`H_{ij} = w_{ij} / \sum_l w_{il}`.
    2. From :math:`P_{ic} = [c \in S_i] / |S_i|` the round
       :math:`F \leftarrow \mathrm{rows}(\alpha H F + (1 - \alpha) P)` is repeated, where
       :math:`\mathrm{rows}` keeps the candidates and lets every row sum to one.
    3. Labels keep their initial mass: column c is multiplied by
       :math:`\sum_i P_{ic} / \sum_i F_{ic}`. The largest entry gives the label
       :math:`\hat y_i`.
    4. An unseen x with neighbours N and weights w (as in step 1, not normalised) has the score
       :math:`g_c(x) = -\|x - \sum_{j \in N, \hat y_j = c} w_j x_j\|`.

    Parameters
    ----------
    alpha : float, default=0.95
        Share of a row's confidences that comes from its neighbours, at least 0 and less than 1.
    max_iter : int, default=100
        Largest number of rounds of step 2.
    tol : float, default=1e-4
        The rounds end when the spectral norm of the change of F is below this.

    Attributes
    ----------
    n_iter_ : int
        Rounds of step 2 that were made; ``max_iter`` is a regular end and gives no warning.
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        F after step 3.

    Notes
    -----
    Fitting takes O(m^2 d) for the neighbours, O(m k^2 (k + d)) for the weights and
    O(m q (k + q)) per round; memory is O(m (d + k + q)). The graph is sparse from the start.

    If no weight of an unseen row is positive (it is zero, or opposite to all its neighbours) the
    residuals of all labels are equal; then the neighbours' labels vote, and the score is minus
    the share of neighbours with another label.

    References
    ----------
    .. [1] M.-L. Zhang and F. Yu, "Solving the partial label learning problem: an instance-based
       approach", IJCAI 2015, 4048-4054.

    Examples
    --------
    >>> from gmpll import IPAL
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = IPAL(random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.84
    """

    n_neighbors: Count = 10
    alpha: Annotated[float, Interval(Real, 0, 1, closed="left")] = 0.95
    max_iter: Count = 100
    tol: NotNegative = 1e-4
    standardize: Switch = True
    n_jobs: Jobs = None
    random_state: Seed = None

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        warn_of_few_rows("IPAL", self.n_neighbors, len(X))
        self._scaling = Scaling(X, standardize=self.standardize)
        self._rows = unit_rows(self._scaling.transform(X))
        graph = self._reconstruction_graph()
        current = initial = confidences_within(mask.astype(np.float64), mask)
        for n_iter in range(1, self.max_iter + 1):  # step 2
            mixed = self.alpha * (graph @ current) + (1 - self.alpha) * initial
            previous, current = current, confidences_within(mixed, mask)
            self.n_iter_ = n_iter
            if np.linalg.norm(current - previous, ord=2) < self.tol:
                break
        return confidences_within(current * mass_correction(initial, current), mask)

    def _reconstruction_graph(self) -> Any:
        """Row-normalised weights with which training rows reconstruct each other (step 1)."""
        near = nearest_neighbors(self._rows, self.n_neighbors, n_jobs=self.n_jobs).indices
        weights = reconstruction_weights(self._rows, self._rows, near, sum_to_one=False)
        total = weights.sum(axis=1, keepdims=True)
        weights /= np.where(total > 0, total, 1.0)
        return engine_of(self._rows).query_weights(near, weights, len(self._rows))

    def _prepare_prediction(self, labels: Places) -> None:
        self._found = labels

    def _scores(self, X: Floats) -> Floats:
        queries = unit_rows(self._scaling.transform(X))
        near = nearest_neighbors(self._rows, self.n_neighbors, queries, n_jobs=self.n_jobs).indices
        weights = reconstruction_weights(queries, self._rows, near, sum_to_one=False)
        return -engine_of(queries).map_neighbors(
            self._residuals, self._rows, near, queries, weights, self._found[near]
        )

    def _residuals(
        self, neighbors: Floats, queries: Floats, weights: Floats, neighbor_labels: Places
    ) -> Floats:
        """How badly the neighbours with each label reconstruct each query (step 4)."""
        same_label = neighbor_labels[:, :, None] == neighbor_labels[:, None, :]
        # One reconstruction per neighbour, from the neighbours with its label: k instead of q.
        parts = (same_label * weights[:, None, :]) @ neighbors
        errors = np.linalg.norm(queries[:, None, :] - parts, axis=2)
        dissent = 1.0 - same_label.mean(axis=2)

        helpless = ~weights.any(axis=1, keepdims=True)
        unexplained = np.where(helpless, 1.0, np.linalg.norm(queries, axis=1, keepdims=True))
        residuals = np.tile(unexplained, int(self._seen.sum()))
        np.put_along_axis(residuals, neighbor_labels, np.where(helpless, dissent, errors), axis=1)
        return residuals


def mass_correction(initial: Floats, settled: Floats) -> Floats:
    """Factor that gives every label its initial share of all confidence (step 3)."""
    mass = settled.sum(axis=0)
    return np.where(mass > 0, initial.sum(axis=0) / np.where(mass > 0, mass, 1.0), 1.0)
