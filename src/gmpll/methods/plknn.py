"""PL-KNN: the neighbours vote for every label that they might have."""

from typing import Annotated

import numpy as np
from numpy.random import RandomState

from gmpll._parameters import Count, Jobs, Seed, Switch, with_parameters
from gmpll._sklearn import StrOptions
from gmpll._typing import AnyFloats, Floats, Mask
from gmpll.base import BasePartialLabelClassifier, ProbabilityMixin
from gmpll.engines import engine_of
from gmpll.graph.neighbors import Neighbors, nearest_neighbors, warn_of_few_rows
from gmpll.graph.views import Scaling
from gmpll.rounding import confidences_within

#: Distances below this share of the query's length are rounding errors of the distance zero: the
#: square of a distance is found by subtraction, which leaves the root of the machine precision.
COINCIDENT = 1e-7


@with_parameters
class PLKNN(ProbabilityMixin, BasePartialLabelClassifier):
    r"""Partial label k-nearest neighbours (PL-KNN).

    Every neighbour votes for each of its candidate labels; the label with most votes wins. The
    wrong candidates of different neighbours rarely agree, the right ones do.

    With the k nearest training rows :math:`x_{i_1}, \dots, x_{i_k}` of :math:`x` at the distances
    :math:`d_1 \le \dots \le d_k` the score of a label is

    .. math:: g_c(x) = \sum_{r=1}^{k} w_r\, [c \in S_{i_r}], \qquad
              w_r = 1 - \frac{d_r}{\sum_s d_s}.

    The label found for a training row is the candidate on which its neighbours (without itself)
    agree most. Where no neighbour shares a candidate with it, the candidates are scored by how
    often they occur: :math:`\sum_j [c \in S_j] / |S_j|`.

    Parameters
    ----------
    weights : {"distance", "uniform", "rank"}, default="distance"
        Weight of a neighbour's vote: the formula above; 1 for each; or k for the nearest, k - 1
        for the second and so on.

    Attributes
    ----------
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        Share of a candidate in the votes for the row's candidates.

    Notes
    -----
    There is nothing to optimise. Fitting searches the neighbours of m rows, O(m^2 d), and adds
    m k votes for at most q labels; memory is O(m (d + q)).

    Where all neighbours coincide with the query, or there is only one, each has the weight 1.
    ``predict_proba`` returns shares of the votes, no calibrated probabilities: a label that always
    accompanies the right one has half of the votes.

    What was chosen where the literature leaves room is listed on the page :doc:`/methods`.

    References
    ----------
    .. [1] E. Hüllermeier and J. Beringer, "Learning from ambiguously labeled examples",
       Intelligent Data Analysis 10(5), 2006, 419-439.

    Examples
    --------
    >>> from gmpll import PLKNN
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = PLKNN(random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.85
    """

    n_neighbors: Count = 10
    weights: Annotated[str, StrOptions({"distance", "uniform", "rank"})] = "distance"
    standardize: Switch = True
    n_jobs: Jobs = None
    random_state: Seed = None

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        warn_of_few_rows("PLKNN", self.n_neighbors, len(X))
        self._scaling = Scaling(X, standardize=self.standardize)
        self._rows = self._scaling.transform(X)
        self._ballots = mask.astype(np.float64)

        neighbors = nearest_neighbors(self._rows, self.n_neighbors, n_jobs=self.n_jobs)
        votes = np.where(mask, self._votes(self._rows, neighbors), 0.0)
        frequency = (mask / mask.sum(axis=1, keepdims=True)).sum(axis=0)
        without_votes = ~votes.any(axis=1, keepdims=True)
        return confidences_within(np.where(without_votes, frequency, votes), mask)

    def _scores(self, X: Floats) -> Floats:
        queries = self._scaling.transform(X)
        neighbors = nearest_neighbors(self._rows, self.n_neighbors, queries, n_jobs=self.n_jobs)
        votes = self._votes(queries, neighbors)
        return votes / votes.sum(axis=1, keepdims=True)

    def _votes(self, queries: Floats, neighbors: Neighbors) -> Floats:
        """Weighted number of neighbours that have each label among their candidates."""
        weights = self._vote_weights(queries, neighbors.distances)
        voters = engine_of(queries).query_weights(neighbors.indices, weights, len(self._rows))
        return voters @ self._ballots

    def _vote_weights(self, queries: Floats, distances: AnyFloats) -> Floats:
        k = distances.shape[1]
        if self.weights == "uniform" or k <= 1:
            return np.ones_like(distances)
        if self.weights == "rank":
            return np.broadcast_to(np.arange(k, 0.0, -1.0), distances.shape)
        total = distances.sum(axis=1, keepdims=True)
        apart = total > k * COINCIDENT * np.linalg.norm(queries, axis=1, keepdims=True)
        return np.where(apart, 1.0 - distances / np.where(apart, total, 1.0), 1.0)
