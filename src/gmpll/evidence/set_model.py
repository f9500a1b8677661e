r"""A model of how candidate sets arise, estimated from the sets and out-of-sample scores alone.

A row with features x has the label l with probability p(l | x), and its candidate set S says about
the label, without features, that

.. math:: w_\tau(l \mid S) \propto \pi_l^{1-\tau} \quad (l \in S) .

With :math:`\tau = 0` wrong candidates come whatever their frequency, so that the set leaves the
class prior :math:`\pi` as it is; with :math:`\tau = 1` the set itself says nothing about which
member is right, as where all labels of a scene, or all entries of a dictionary, are listed. If
features and set are independent given the label,

.. math:: P(l \mid x, S) \propto w_\tau(l \mid S)\, r_l(x), \qquad
          P(S \mid x) / P(S) = \sum_{l \in S} w_\tau(l \mid S)\, r_l(x), \qquad
          r_l(x) = p(l \mid x) / \pi_l .

The ratios are made of what graph and regression say,

.. math:: r_l(x) \propto \exp\Bigl(a_1 \log \frac{g_l(x)}{\pi_l} + a_2 \max(f_l(x), 0)\Bigr),
          \qquad \sum_l \pi_l r_l(x) = 1 ,

with weights a that maximise the likelihood of the sets. Graph and
regression speak of a row **without having seen any row with the same set**, and so does
:math:`\pi`. Where sets follow the features (the entries of a dictionary), rows with equal sets lie
together, and whatever label they got first they would confirm each other in; only other sets can
tell. The exponent :math:`\tau` is chosen by the likelihood of sets of held-out rows
(:func:`held_out_log_likelihood`); in sample, a model that made its own labels is always sure.
Where that likelihood is not above 0, features say nothing about the sets.

A share :math:`\rho` of the sets may lack the right label. Then l outside of S has the weight
:math:`\rho\, \pi_l / \pi(\bar S)` and l within :math:`(1 - \rho)\, w_\tau(l \mid S)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from gmpll._threads import one_blas_thread
from gmpll._typing import Floats, Mask, Places
from gmpll.engines import engine_of
from gmpll.rounding import confidences_within

__all__ = [
    "MIDDLE_TAU",
    "TAUS",
    "Relations",
    "SampleModel",
    "Scores",
    "SetModel",
    "SetsLeftOut",
    "fit_outside",
    "fit_set_model",
    "held_out_log_likelihood",
    "likeliest_tau",
    "row_log_likelihood",
    "set_numbers",
    "without_equal_sets",
]


#: The exponents that are worth comparing on held-out rows.
TAUS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Where nothing is known about it, and by how many standard errors one must fall behind to be out.
MIDDLE_TAU = 0.5
ERRORS_BEHIND = 1.0
#: How often scores and posterior are made anew at most, and from what another exponent found. They
#: have settled when a row's probabilities change by less than this in sum, on average.
N_ITERATIONS = 12
NEXT_ITERATIONS = 4
SETTLED = 5e-3
#: The weights at first. Equal confidences say so little that features can fade before they were
#: asked; where they did, the weights stay like this for some iterations in a second fit.
FIRST_WEIGHT = 0.5
BLIND_ITERATIONS = 2
#: Rows of one set that are left out together at most; larger groups are cut at random.
MAX_GROUP = 1500
#: Rows that every label has beforehand where shares of labels are counted.
HALF_A_ROW = 0.5
#: Weight that a row's neighbours in the graph need to count as much as the shares of the labels.
UNIT_OF_SUPPORT = 1.0
#: The share of sets without the right label while weights are fitted: one stray row costs little.
STRAY = 1e-3
#: Largest weights of the logarithm of the graph's share and of the regression's score.
MAX_WEIGHTS = (4.0, 12.0)
#: Smallest and largest share of sets without the right label that is looked for.
OUTSIDE_BOUNDS = (1e-5, 0.4)
#: Where the search for it starts, with how many times the weights found without such sets.
OUTSIDE_STARTS = ((1.0, 0.003), (3.0, 0.1))
#: What the share is taken for in as many iterations as follow with an estimated one: labels that
#: were found within the sets make features look unsure, and then nothing seems to be missing.
FIRST_OUTSIDE = 0.1
OUTSIDE_ITERATIONS = 3
#: Weights are fitted to so many rows at least, and to more of them if their labels are few.
LIKELIHOOD_ROWS = 2000
LIKELIHOOD_VALUES = 200_000
#: Steps of Newton's method at most, and while scores are still made anew; how often one is halved,
#: what the next must promise to gain, and the smallest curvature that is believed.
NEWTON_STEPS = 20
STEPS_BETWEEN = 2
HALVINGS = 12
NEWTON_GAIN = 1e-6
FLAT = 1e-3
TINY = 1e-300


def set_numbers(mask: Mask) -> Places:
    """Number the distinct candidate sets; rows with the same set have the same number."""
    return np.unique(mask, axis=0, return_inverse=True)[1].ravel()


def without_equal_sets(graph: sp.csr_array, sets: Places) -> sp.csr_array:
    """Cut the edges between rows with the same set."""
    edges = graph.tocoo()
    kept = sets[edges.row] != sets[edges.col]
    places = (edges.row[kept], edges.col[kept])
    return sp.csr_array((edges.data[kept], places), shape=graph.shape)


class SetsLeftOut:
    r"""What a kernel ridge regression says of every row without rows of the same set.

    With :math:`A = (K + \lambda I)^{-1}` and the rows G of one set,
    :math:`f_{-G} = Y_G - A_{GG}^{-1} (A Y)_G`. ``inverse`` is A, ``sets`` are the numbers of the
    rows' sets, and ``rng`` cuts large groups.
    """

    def __init__(self, inverse: Floats, sets: Places, rng: np.random.RandomState) -> None:
        self._inverse = inverse
        self._blocks: list[tuple[Places, Floats]] = []
        order = np.argsort(sets, kind="stable")
        by_size: dict[int, list[Places]] = {}
        for rows in np.split(order, np.flatnonzero(np.diff(sets[order])) + 1):
            n_parts = -(-len(rows) // MAX_GROUP)
            for part in np.array_split(rng.permutation(rows) if n_parts > 1 else rows, n_parts):
                by_size.setdefault(len(part), []).append(part)
        for groups in by_size.values():  # groups of one size are inverted together
            rows = np.array(groups)
            blocks = inverse[rows[:, :, None], rows[:, None, :]]
            self._blocks.append((rows, np.linalg.inv(blocks).astype(float, copy=False)))

    def __call__(self, confidences: Floats) -> Floats:
        """Return the scores of every row after training on the confidences of the others."""
        residual = self._inverse @ confidences
        scores = np.empty_like(confidences)
        for rows, inverted in self._blocks:
            scores[rows] = confidences[rows] - inverted @ residual[rows]
        return scores


@dataclass(frozen=True)
class Scores:
    """What is said of rows by others; all are (n_samples, n_classes)."""

    support: Floats  # summed confidences of the neighbours, weighted by the edges
    scores: Floats  # of the regression
    shares: Floats  # of the labels among those who say this; positive

    def part(self, rows: Places) -> Scores:
        """Return what is said of some of the rows."""
        return Scores(self.support[rows], self.scores[rows], self.shares[rows])

    @classmethod
    def without_own_set(
        cls, graph: sp.csr_array, regression: SetsLeftOut, sets: Places, P: Floats
    ) -> Scores:
        """Let rows with other sets speak; the graph has no edges between equal sets."""
        n_rows = np.bincount(sets)[sets][:, None]
        of_set = sp.csr_array((np.ones(len(P)), (sets, np.arange(len(P)))))
        mass = P.sum(axis=0) - np.asarray(of_set @ P)[sets]
        shares = label_shares(np.maximum(mass, 0.0), len(P) - n_rows)
        return cls(graph @ P, regression(P), shares)

    def terms(self) -> tuple[Floats, Floats]:
        """Return what enters the logarithm of the ratios."""
        degree = self.support.sum(axis=1, keepdims=True)
        near = (self.support + UNIT_OF_SUPPORT * self.shares) / (degree + UNIT_OF_SUPPORT)
        return np.log(near / self.shares), np.maximum(self.scores, 0.0)


def label_shares(mass: Floats, n_rows: Places | int) -> Floats:
    """Return shares of the labels of which none is zero."""
    return (mass + HALF_A_ROW) / (n_rows + HALF_A_ROW * mass.shape[-1])


@dataclass(frozen=True)
class SetModel:
    """How far features and sets are to be believed."""

    tau: float  # exponent of the class prior, see the module
    class_prior: Floats  # shares of the labels, (n_classes,)
    weights: Floats  # of graph and regression; both about 0 where features say nothing
    outside: float = STRAY  # share of the sets that lack the right label

    def beforehand(self, mask: Mask, shares: Floats) -> Floats:
        """Return what the set says of every label, also of those outside."""
        within = confidences_within(
            np.broadcast_to(self.class_prior ** (1.0 - self.tau), mask.shape), mask
        )
        beyond = np.where(mask, 0.0, shares)
        total = beyond.sum(axis=1, keepdims=True)
        beyond = np.divide(beyond, total, out=np.zeros_like(beyond), where=total > 0)
        rate = np.where(total > 0, self.outside, 0.0)
        return (1.0 - rate) * within + rate * beyond

    def ratios(self, scores: Scores) -> Floats:
        """Return p(l | x) / share of l."""
        near, scored = scores.terms()
        return _ratios(self.weights[0] * near + self.weights[1] * scored, scores.shares)

    def joint(self, scores: Scores, mask: Mask) -> Floats:
        """Return the posterior over all labels, those outside of the set included."""

        def of_block(mask: Mask, *scores: Floats) -> Floats:
            said = Scores(*scores)
            product = self.beforehand(mask, said.shares) * self.ratios(said)
            return np.asarray(product / np.maximum(product.sum(axis=1, keepdims=True), TINY))

        arrays = (mask, scores.support, scores.scores, scores.shares)
        return np.asarray(engine_of(mask).map_rows(of_block, *arrays))

    def posterior(self, scores: Scores, mask: Mask) -> Floats:
        """Return the posterior if the right label is a candidate."""
        return confidences_within(self.joint(scores, mask), mask)


@one_blas_thread()
def fit_set_model(
    score: Callable[[Floats], Scores],
    mask: Mask,
    tau: float,
    *,
    start: tuple[SetModel, Floats] | None = None,
    class_prior: Floats | None = None,
) -> tuple[SetModel, Floats]:
    """Estimate everything but tau; return the model and the posterior of the candidates.

    ``score`` maps confidences to what rows with other sets say then, ``start`` is what was found
    with another exponent, ``class_prior`` are the shares of the labels if they are known. The share
    of sets that lack the right label is taken to be negligible.
    """
    n_classes = mask.shape[1]
    if start is not None:
        model, P = start
        return _fitted(score, mask, replace(model, tau=tau), P, NEXT_ITERATIONS, 0, class_prior)
    P = confidences_within(np.ones(mask.shape), mask)
    first = np.full(n_classes, 1.0 / n_classes) if class_prior is None else class_prior
    model = SetModel(tau, first, np.full(2, FIRST_WEIGHT))
    found = _fitted(score, mask, model, P, N_ITERATIONS, 0, class_prior)
    if found[0].weights.any():
        return found
    return _fitted(score, mask, model, P, N_ITERATIONS, BLIND_ITERATIONS, class_prior)


def _fitted(
    score: Callable[[Floats], Scores],
    mask: Mask,
    model: SetModel,
    P: Floats,
    n_iterations: int,
    n_blind: int,
    class_prior: Floats | None,
) -> tuple[SetModel, Floats]:
    """Make scores and posterior anew until they settle; the weights not before some iterations."""
    for iteration in range(n_iterations):
        scores = score(P)
        if iteration >= n_blind:
            model = model_with_weights(model, scores, mask, n_steps=STEPS_BETWEEN)
        if class_prior is None:
            model = replace(model, class_prior=label_shares(P.sum(axis=0), len(P)))
        before, P = P, model.posterior(scores, mask)
        if np.abs(P - before).sum(axis=1).mean() < SETTLED and iteration > n_blind:
            break
    return model, P


def model_with_weights(
    model: SetModel,
    scores: Scores,
    mask: Mask,
    *,
    outside: bool = False,
    n_steps: int = NEWTON_STEPS,
) -> SetModel:
    """Fit the weights, and the share of sets that lack the right label if wanted.

    These few numbers are fitted to some of the rows where there are many.
    """
    some = _telling_rows(*mask.shape)
    if some is not None:
        scores, mask = scores.part(some), mask[some]
    likelihood = _SetLikelihood(model, scores, mask)
    if not outside:
        found, _ = likelihood.maximised(model.weights, n_steps)
        return replace(model, weights=found)
    # Unsure features and no stray set explain much the same as the opposite.
    starts = [
        np.append(np.minimum(sureness * model.weights, MAX_WEIGHTS), np.log(rate))
        for sureness, rate in OUTSIDE_STARTS
    ]
    found, _ = min((likelihood.maximised(start) for start in starts), key=lambda end: end[1])
    return replace(model, weights=found[:2], outside=float(np.exp(found[2])))


def _telling_rows(n_rows: int, n_labels: int) -> Places | None:
    """Return the rows that few numbers are fitted to, None for all of them."""
    n_telling = max(LIKELIHOOD_ROWS, LIKELIHOOD_VALUES // n_labels)
    if n_rows <= n_telling:
        return None
    return np.sort(np.random.RandomState(0).permutation(n_rows)[:n_telling])


class _SetLikelihood:
    r"""The mean of -log P(S | x) / P(S) as a function of few numbers, minimised by Newton's method.

    The numbers are the two weights and, perhaps, the logarithm of the share of sets without the
    right label. With :math:`p_l \propto` share times ratio, and w the same within the set, the
    gradient of a row's log-likelihood in the weights is :math:`E_w t - E_p t`, and its second
    derivatives are :math:`\operatorname{Cov}_w t - \operatorname{Cov}_p t`.
    """

    def __init__(self, model: SetModel, scores: Scores, mask: Mask) -> None:
        self._outside = model.outside
        self._shares = scores.shares
        self._sure = replace(model, outside=0.0).beforehand(mask, scores.shares)
        self._beyond = replace(model, outside=1.0).beforehand(mask, scores.shares)
        self._terms = near, scored = scores.terms()
        self._products = near * near, near * scored, scored * scored

    def __call__(self, x: Floats) -> tuple[float, Floats, Floats]:
        """Return value, gradient and second derivatives."""
        has_rate = len(x) > 2
        rate = np.exp(x[2]) if has_rate else self._outside
        near, scored = self._terms
        r = _ratios(x[0] * near + x[1] * scored, self._shares)
        w = ((1.0 - rate) * self._sure + rate * self._beyond) * r
        likelihood = np.maximum(w.sum(axis=1, keepdims=True), TINY)
        w /= likelihood
        value = -float(np.log(likelihood).mean())
        p = self._shares * r
        of_w, of_p = self._expected(w), self._expected(p)
        slope = (of_p - of_w).mean(axis=1)
        p -= w
        a, b, c = (np.vdot(p, product) for product in self._products)
        curvature = (np.array([[a, b], [b, c]]) - of_p @ of_p.T + of_w @ of_w.T) / len(w)
        if not has_rate:
            return value, slope, curvature
        u = rate * (self._beyond - self._sure) * r / likelihood
        s = u.sum(axis=1)
        across = (of_w @ s - np.array([np.vdot(u, term) for term in self._terms])) / len(s)
        return (
            value,
            np.append(slope, -s.mean()),
            np.block([[curvature, across[:, None]], [across, (s * s - s).mean()]]),
        )

    def _expected(self, p: Floats) -> Floats:
        """Return the means of the two terms in every row, (2, n_samples)."""
        return np.array([np.einsum("il,il->i", p, term) for term in self._terms])

    def maximised(self, start: Floats, n_steps: int = NEWTON_STEPS) -> tuple[Floats, float]:
        """Return where the likelihood is largest within the bounds, and the value there."""
        bounds = np.array([*((0.0, most) for most in MAX_WEIGHTS), np.log(OUTSIDE_BOUNDS)])
        low, high = bounds[: len(start)].T
        x = np.clip(start, low, high)
        value, slope, curvature = self(x)
        for _ in range(n_steps):
            free = ~(((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0)))
            step = np.zeros(len(x))
            step[free] = _newton_step(slope[free], curvature[np.ix_(free, free)])
            if -slope @ step < NEWTON_GAIN:
                break
            for _ in range(HALVINGS):
                new = np.clip(x + step, low, high)
                trial = self(new)
                if trial[0] < value:
                    break
                step /= 2.0
            else:
                break
            x, (value, slope, curvature) = new, trial
        return x, value


def _newton_step(slope: Floats, curvature: Floats) -> Floats:
    """Return the step to the minimum; downhill too where the function is not convex."""
    values, vectors = np.linalg.eigh(curvature)
    size = np.maximum(np.abs(values), FLAT)
    return np.asarray(-vectors @ ((vectors.T @ slope) / size))


@one_blas_thread()
def fit_outside(
    score: Callable[[Floats], Scores],
    mask: Mask,
    model: SetModel,
    P: Floats,
    *,
    n_iterations: int = OUTSIDE_ITERATIONS,
) -> tuple[SetModel, Floats]:
    """Estimate which sets lack the right label, after labels were found within the sets.

    Here ``score`` maps confidences to what all other rows say then, those with the same set too: a
    set that no other row has would look strange without them. The model and the confidences P were
    estimated without such sets. Scores and posterior are made anew ``n_iterations`` times with a
    fixed share, and as often with the estimated one. Returned are the model with that share, rather
    too small than too large where labels look alike, and the posterior over all labels, whose mass
    outside of the candidates is the probability that none of them is right.
    """
    model = replace(model, outside=FIRST_OUTSIDE)
    for iteration in range(2 * n_iterations):
        scores = score(P)
        model = model_with_weights(model, scores, mask, outside=iteration >= n_iterations)
        P = model.joint(scores, mask)
    return model, P


def likeliest_tau(likelihoods: dict[float, Floats]) -> tuple[float, dict[float, float]]:
    """Return the exponent under which held-out sets are likely, and how far others fall behind.

    The likelihoods are those of the same rows for every exponent. Of the exponents that are not
    surely behind the best one that nearest to the middle is chosen: few rows say little, and there
    a wrong extreme costs most. How far others fall behind is counted in standard errors.
    """
    best = max(likelihoods, key=lambda tau: likelihoods[tau].mean())
    behind = {}
    for tau, of_rows in likelihoods.items():
        loss = likelihoods[best] - of_rows
        error = float(loss.std()) / np.sqrt(len(loss))
        behind[tau] = float(loss.mean()) / error if error > 0 else 0.0
    open_ones = [tau for tau in likelihoods if behind[tau] <= ERRORS_BEHIND]
    return min(open_ones, key=lambda tau: (abs(tau - MIDDLE_TAU), behind[tau])), behind


def row_log_likelihood(model: SetModel, scores: Scores, mask: Mask) -> Floats:
    """Return log P(S | x) / P(S) of every row; 0 if features say nothing of the set."""
    likelihood = (model.beforehand(mask, scores.shares) * model.ratios(scores)).sum(axis=1)
    return np.asarray(np.log(np.maximum(likelihood, TINY)))


def held_out_log_likelihood(
    model: SetModel,
    in_sample: Scores,
    mask: Mask,
    unseen: Scores,
    unseen_mask: Mask,
) -> Floats:
    """Return the log-likelihood of the sets of rows that the model has not seen.

    Of these, all training rows may speak, as they do in ``unseen``. The weights are fitted once
    more, to what all training rows but the row itself say, ``in_sample``.
    """
    refitted = model_with_weights(model, in_sample, mask)
    return row_log_likelihood(refitted, unseen, unseen_mask)


def _ratios(logarithms: Floats, shares: Floats) -> Floats:
    """Let the ratios be 1 in the mean over the labels' shares."""
    r = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    return r / (shares * r).sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Relations:
    """How rows speak of each other: the graph, and the inverse A of a kernel ridge regression."""

    graph: sp.csr_array
    inverse: Floats
    mask: Mask
    class_prior: Floats | None = None  # shares of the labels, if they are known

    @cached_property
    def _without_own_set(self) -> Callable[[Floats], Scores]:
        sets = set_numbers(self.mask)
        regression = SetsLeftOut(self.inverse, sets, np.random.RandomState(0))
        graph = without_equal_sets(self.graph, sets)
        return lambda P: Scores.without_own_set(graph, regression, sets, P)

    def fit(
        self, tau: float, start: tuple[SetModel, Floats] | None = None
    ) -> tuple[SetModel, Floats]:
        """Fit the model, every row being judged by rows with other sets."""
        prior = self.class_prior
        if prior is not None:  # none of them is zero
            prior = label_shares(prior * len(self.mask), len(self.mask))
        return fit_set_model(self._without_own_set, self.mask, tau, start=start, class_prior=prior)

    def held_out_likelihoods(
        self, taus: Sequence[float], edges: sp.csr_array, kernel: Floats, mask: Mask
    ) -> dict[float, Floats]:
        """Return the log-likelihood of the sets of other rows for every exponent.

        ``edges`` and ``kernel`` lead from them to these rows, ``mask`` holds their candidates. The
        model of the middle exponent is fitted first; those of the others start from it.
        """
        likelihoods, start = {}, None
        to_rows = kernel @ self.inverse
        for tau in sorted(taus, key=lambda tau: abs(tau - MIDDLE_TAU)):
            model, P = found = self.fit(tau, start)
            start = found if start is None else start
            shares = label_shares(P.sum(axis=0), len(P))
            left_out = P - (self.inverse @ P) / self.inverse.diagonal()[:, None]
            seen = Scores(self.graph @ P, left_out, np.broadcast_to(shares, P.shape))
            said = Scores(edges @ P, to_rows @ P, np.broadcast_to(shares, mask.shape))
            likelihoods[tau] = held_out_log_likelihood(model, seen, self.mask, said, mask)
        return likelihoods


class SampleModel:
    """The ``model`` of a sample of rows, which speaks of all other rows."""

    def __init__(self, related: Relations, tau: float) -> None:
        self._inverse = related.inverse
        self.model, self._P = related.fit(tau)
        self._coefficients = self._inverse @ self._P
        self._sets = set_numbers(related.mask)
        order = np.argsort(self._sets, kind="stable")
        self._groups = np.split(order, np.flatnonzero(np.diff(self._sets[order])) + 1)
        self._numbers = {related.mask[own[0]].tobytes(): n for n, own in enumerate(self._groups)}
        # What the rows of a set add to the coefficients, in terms of those rows.
        self._parts = [
            scipy.linalg.solve(
                self._inverse[np.ix_(own, own)], self._coefficients[own], assume_a="pos"
            )
            for own in self._groups
        ]
        of_sets = np.array([self._P[own].sum(axis=0) for own in self._groups])
        rest = np.maximum(self._P.sum(axis=0) - of_sets, 0.0)
        n_rest = len(self._P) - np.array([len(own) for own in self._groups])
        self._shares = label_shares(rest, n_rest[:, None])

    def posterior(self, mask: Mask, edges: sp.csr_array, kernel: Floats) -> Floats:
        """Return the posterior of rows by those of the sample that have another set.

        ``mask`` holds their candidates; ``edges``, of the graph, and ``kernel`` lead from them to
        the sample, (n_rows, n_sample).
        """
        distinct, which = np.unique(mask, axis=0, return_inverse=True)
        numbers = np.array([self._numbers.get(candidates.tobytes(), -1) for candidates in distinct])
        number = numbers[which.ravel()]  # of the row's set, -1 if the sample has none such
        own = self._sets[edges.indices] == np.repeat(number, np.diff(edges.indptr))
        others = (np.where(own, 0.0, edges.data), edges.indices, edges.indptr)
        support = sp.csr_array(others, shape=edges.shape) @ self._P
        inverse = self._inverse.astype(kernel.dtype, copy=False)
        scores = np.asarray(kernel @ self._coefficients.astype(kernel.dtype), dtype=np.float64)
        for present in np.unique(number[number >= 0]):
            rows, group = np.flatnonzero(number == present), self._groups[present]
            part = self._parts[present].astype(kernel.dtype)
            scores[rows] -= np.linalg.multi_dot([kernel[rows], inverse[:, group], part])
        shares = np.where(
            (number >= 0)[:, None],
            self._shares[number],
            label_shares(self._P.sum(axis=0), len(self._P)),
        )
        return self.model.posterior(Scores(support, scores, shares), mask)
