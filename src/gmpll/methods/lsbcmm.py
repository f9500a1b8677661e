"""LSB-CMM: a mixture model whose components are chosen by logistic stick-breaking gates."""

from typing import Annotated

import numpy as np
from numpy.random import RandomState
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, log_expit, logsumexp
from sklearn.utils import gen_batches

from gmpll._parameters import Count, NotNegative, Positive, Seed, Switch, with_parameters
from gmpll._sklearn import Interval, Real
from gmpll._typing import Floats, Mask
from gmpll.base import BasePartialLabelClassifier, ProbabilityMixin
from gmpll.methods._linear import BiasedScaling
from gmpll.rounding import confidences_within

#: Smallest concentration: far below it exp(digamma(concentration)) underflows to zero.
MIN_CONCENTRATION = 0.01
#: Pseudo-count by which a component prefers the label it is dealt at the start.
START_PREFERENCE = 10.0
#: Rounds before the stopping rule is asked for the first time, and the length of the two windows
#: of bounds that it compares.
MIN_ROUNDS = 10
STOP_WINDOW = 3
#: The gates are worked on in blocks of about so many rows times gates, which stay in the cache.
BLOCK_ENTRIES = 2**15
#: Tables of components by labels that are held at a time, and how much memory they may take.
N_TABLES = 5
TABLES_LIMIT_BYTES = 8 * 2**30


@with_parameters
class LSBCMM(ProbabilityMixin, BasePartialLabelClassifier):
    r"""Logistic stick-breaking conditional multinomial model (LSB-CMM).

    The features choose one of K components, the component draws the label, and of the label only
    the candidate set is seen. Many components let the region of a label have any shape. They are
    found by variational EM: every candidate is believed as far as the model explains it.

    Component k is chosen with the stick-breaking probability

    .. math:: \phi_k(x) = v_k(x) \prod_{j<k} (1 - v_j(x)), \quad
              v_k(x) = \sigma(w_k^\top x + b_k), \quad v_K(x) = 1,

    and draws label c with probability :math:`\theta_{kc}`, where
    :math:`\theta_k \sim \mathrm{Dirichlet}(\alpha, \ldots, \alpha)` and
    :math:`w_k \sim N(0, \sigma^2 I)`. With :math:`q(\theta_k) = \mathrm{Dirichlet}(a_k)` the
    maximised lower bound is, after the E-step,

    .. math:: \sum_i \log \sum_k \phi_k(x_i) \sum_{c \in S_i} e^{E \log \theta_{kc}}
              - \sum_k \mathrm{KL}(\mathrm{Dirichlet}(a_k) \,\|\, \mathrm{Dirichlet}(\alpha))
              - \frac{1}{2 \sigma^2} \sum_{k<K} \|w_k\|^2 .

    Parameters
    ----------
    components_per_label : int, default=5
        K is this many times the number of labels that occur. 1 is the smaller model that later
        papers quote ("q mixture components"); public code uses 5.
    concentration : float, default=0.05
        Parameter :math:`\alpha` of the Dirichlet prior of each component's label distribution,
        at least 0.01. Small values make components pure.
    gate_variance : float, default=1.0
        Prior variance :math:`\sigma^2` of the gates' weights; their biases are free.
    max_iter : int, default=100
        Largest number of EM rounds.
    tol : float, default=1e-4
        EM stops when the mean of the last three bounds exceeds the mean of the three before by
        less than this share of the bound, after more than ten rounds.
    max_gate_iter : int, default=10
        Largest number of L-BFGS iterations for the gates in one round. They start from the gates
        of the round before and need not converge; the bound rises all the same.

    Attributes
    ----------
    bound_path_ : ndarray of shape (n_iter_,)
        The lower bound at the beginning of every round, never decreasing.
    n_iter_ : int
        Number of EM rounds.
    dirichlet_ : ndarray of shape (n_components, n_labels)
        Parameters :math:`a_{kc}`; a column for every label that occurs.
    gates_ : ndarray of shape (n_features_in_ + 1, n_components - 1)
        Biases (first row) and weights of the gates, for the features as the method uses them
        (z-scored unless ``standardize=False``).
    label_confidences_ : ndarray of shape (n_samples, n_classes)
        The predicted probabilities, restricted to the candidates.

    Notes
    -----
    A round costs O(m K q) for the E-step and O(m K d) for each L-BFGS iteration; the memory is
    O(m K). One L-BFGS run finds the K - 1 independent logistic regressions of the gates together.

    What was chosen where the literature leaves room is listed on the page :doc:`/methods`.

    References
    ----------
    .. [1] L. Liu and T. G. Dietterich, "A conditional multinomial mixture model for superset
       label learning", Advances in Neural Information Processing Systems 25, 2012, 548-556.

    Examples
    --------
    >>> from gmpll import LSBCMM
    >>> from gmpll.datasets import make_partial_label_problem
    >>> problem = make_partial_label_problem(random_state=0)
    >>> model = LSBCMM(max_iter=20, random_state=0).fit(problem.data, problem.candidates)
    >>> float((model.labels_ == problem.target).mean())
    0.87
    """

    components_per_label: Count = 5
    concentration: Annotated[float, Interval(Real, MIN_CONCENTRATION, None, closed="left")] = 0.05
    gate_variance: Positive = 1.0
    max_iter: Count = 100
    tol: NotNegative = 1e-4
    max_gate_iter: Count = 10
    standardize: Switch = True
    random_state: Seed = None

    def _fit(self, X: Floats, mask: Mask, rng: RandomState) -> Floats:
        self._scaling = BiasedScaling(X, standardize=self.standardize)
        rows = self._scaling.transform(X)
        n_labels, per_label = mask.shape[1], self.components_per_label
        n_bytes = 8 * N_TABLES * per_label * n_labels**2
        if n_bytes > TABLES_LIMIT_BYTES:
            raise ValueError(
                f"LSB-CMM keeps numbers for every component and label: {n_labels} labels with "
                f"components_per_label={per_label} would take {n_bytes / 2**30:.0f} GiB. Lower "
                "components_per_label or use another method."
            )
        dirichlet = dealt_dirichlet(mask, per_label, rng)
        gates = uniform_gates(rows.shape[1], dirichlet.shape[0])
        bounds: list[float] = []
        while True:
            expected = expected_log_theta(dirichlet)
            responsibilities, counts, evidence = e_step(
                log_stick_breaking(rows @ gates), expected, mask
            )
            bounds.append(
                evidence
                - dirichlet_divergence(dirichlet, expected, self.concentration)
                - (gates[1:] ** 2).sum() / (2.0 * self.gate_variance)
            )
            if len(bounds) >= self.max_iter or has_settled(bounds, self.tol):
                break
            dirichlet = counts + self.concentration
            gates = fit_gates(rows, responsibilities, gates, self.gate_variance, self.max_gate_iter)
        self.dirichlet_, self.gates_ = dirichlet, gates
        self.bound_path_ = np.array(bounds)
        self.n_iter_ = len(bounds)
        return confidences_within(self._scores(X), mask)

    def _scores(self, X: Floats) -> Floats:
        phi = np.exp(log_stick_breaking(self._scaling.transform(X) @ self.gates_))
        return phi @ (self.dirichlet_ / self.dirichlet_.sum(axis=1, keepdims=True))


def dealt_dirichlet(mask: Mask, per_label: int, rng: RandomState) -> Floats:
    """Return the first Dirichlet parameters: components prefer the labels they are dealt."""
    shares = (mask / mask.sum(axis=1, keepdims=True)).sum(axis=0)
    shares = shares.round(9)  # the order of the rows must not touch the last bit of a share
    order = np.lexsort((rng.random_sample(shares.size), shares))
    preferred = np.tile(order, per_label)
    dirichlet = np.ones((preferred.size, mask.shape[1]))
    dirichlet[np.arange(preferred.size), preferred] += START_PREFERENCE
    return dirichlet


def uniform_gates(n_inputs: int, n_components: int) -> Floats:
    """Return gates for which every component has the same probability everywhere."""
    gates = np.zeros((n_inputs, n_components - 1))
    # The k-th of K gates has to take the share 1 / (K - k + 1) of what is left of the stick.
    gates[0] = -np.log(np.arange(n_components - 1, 0, -1.0))
    return gates


def log_stick_breaking(activations: Floats) -> Floats:
    """Return the log probabilities of all K components from the activations of K - 1 gates."""
    n_rows, n_gates = activations.shape
    log_phi = np.zeros((n_rows, n_gates + 1))
    log_taken = log_expit(activations)
    # log(1 - v) is log v minus the activation: what passes gate k is left for the later ones.
    np.cumsum(log_taken - activations, axis=1, out=log_phi[:, 1:])
    log_phi[:, :-1] += log_taken
    return log_phi


def expected_log_theta(dirichlet: Floats) -> Floats:
    """Return the expectation of log theta under the Dirichlet distributions of the rows."""
    return digamma(dirichlet) - digamma(dirichlet.sum(axis=1, keepdims=True))


def dirichlet_divergence(dirichlet: Floats, expected: Floats, concentration: float) -> float:
    """Return the sum of KL(Dirichlet(a_k) || Dirichlet(concentration, ...)) over components."""
    n_components, n_labels = dirichlet.shape
    log_norm = gammaln(dirichlet.sum(axis=1)).sum() - gammaln(dirichlet).sum()
    prior_log_norm = gammaln(n_labels * concentration) - n_labels * gammaln(concentration)
    cross = ((dirichlet - concentration) * expected).sum()
    return float(log_norm - n_components * prior_log_norm + cross)


def e_step(log_phi: Floats, expected: Floats, mask: Mask) -> tuple[Floats, Floats, float]:
    """Return q_i(k, c) summed over labels and over rows, and the data term of the bound."""
    theta = np.exp(expected)
    candidates = mask.astype(np.float64)
    joint = log_phi + np.log(candidates @ theta.T)
    log_evidence = logsumexp(joint, axis=1, keepdims=True)
    counts = theta * (np.exp(log_phi - log_evidence).T @ candidates)
    return np.exp(joint - log_evidence), counts, float(log_evidence.sum())


def fit_gates(
    rows: Floats, responsibilities: Floats, start: Floats, variance: float, max_iter: int
) -> Floats:
    """Improve all gates at once: ridge logistic regressions with soft targets."""
    if start.size == 0:
        return start
    taken = np.ascontiguousarray(responsibilities[:, :-1])
    reached = np.ascontiguousarray(np.cumsum(responsibilities[:, ::-1], axis=1)[:, :0:-1])
    found = minimize(
        gate_objective,
        start.ravel(),
        args=(rows, taken, reached, variance),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter},
    )
    return found.x.reshape(start.shape)


def gate_objective(
    flat: Floats, rows: Floats, taken: Floats, reached: Floats, variance: float
) -> tuple[float, Floats]:
    """Return the penalised negative log likelihood of all gates, and its gradient."""
    gates = flat.reshape(rows.shape[1], -1)
    gradient = gates / variance
    gradient[0] = 0.0
    value = 0.5 * np.vdot(gradient, gates)
    for part in gen_batches(len(rows), max(1, BLOCK_ENTRIES // gates.shape[1])):
        activations = rows[part] @ gates
        # -log(1 - v) = max(a, 0) + log(1 + e) and v = exp(min(a, 0)) / (1 + e) with
        # e = exp(-|a|): nothing overflows, and it is several times as fast as log_expit.
        one_and_small = 1.0 + np.exp(-np.abs(activations))
        minus_log_left = np.maximum(activations, 0.0) + np.log(one_and_small)
        value += np.vdot(reached[part], minus_log_left) - np.vdot(taken[part], activations)
        chosen = np.exp(np.minimum(activations, 0.0)) / one_and_small
        gradient += rows[part].T @ (reached[part] * chosen - taken[part])
    return float(value), gradient.ravel()


def has_settled(bounds: list[float], tol: float) -> bool:
    """Whether the bound has stopped rising by more than a share ``tol`` of itself."""
    if len(bounds) <= max(MIN_ROUNDS, 2 * STOP_WINDOW):
        return False
    recent = np.mean(bounds[-STOP_WINDOW:])
    before = np.mean(bounds[-2 * STOP_WINDOW : -STOP_WINDOW])
    return bool(recent - before < tol * abs(bounds[-1]))
