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
from typing import Any

import numpy as np

from gmpll._threads import one_blas_thread
from gmpll._typing import Floats, Mask, Places
from gmpll.arrays import Array, array_namespace, beside, device, to_host
from gmpll.engines import engine_of
from gmpll.matching import uniform_start
from gmpll.rounding import confidences_within

__all__ = [
    "MIDDLE_TAU",
    "TAUS",
    "Scores",
    "SetModel",
    "fit_outside",
    "fit_set_model",
    "held_out_log_likelihood",
    "label_shares",
    "likeliest_tau",
    "model_with_weights",
    "row_log_likelihood",
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


@dataclass(frozen=True)
class Scores:
    """What is said of rows by others; all are (n_samples, n_classes), of any array library.

    Arrays may have further axes before these, for several problems of one size at once.
    """

    support: Array  # summed confidences of the neighbours, weighted by the edges
    scores: Array  # of the regression
    shares: Array  # of the labels among those who say this; positive

    def part(self, rows: Places) -> Scores:
        """Return what is said of some of the rows."""
        return Scores(*(_rows_of(each, rows) for each in self._arrays()))

    def terms(self) -> tuple[Array, Array]:
        """Return what enters the logarithm of the ratios."""
        xp = array_namespace(self.support)
        degree = xp.sum(self.support, axis=-1, keepdims=True) + UNIT_OF_SUPPORT
        near = self.support / self.shares
        near += UNIT_OF_SUPPORT
        near /= degree
        return xp.log(near), xp.clip(self.scores, min=0.0)

    def _arrays(self) -> tuple[Array, Array, Array]:
        return self.support, self.scores, self.shares


def label_shares(mass: Array, n_rows: Array | int) -> Array:
    """Return shares of the labels of which none is zero."""
    return (mass + HALF_A_ROW) / (n_rows + HALF_A_ROW * mass.shape[-1])


@dataclass(frozen=True)
class SetModel:
    """How far features and sets are to be believed; of several problems at once an array each."""

    tau: float | Floats  # exponent of the class prior, see the module
    class_prior: Array  # shares of the labels, (n_classes,)
    weights: Floats  # of graph and regression, on the host; both about 0 where features say nothing
    outside: float = STRAY  # share of the sets that lack the right label

    def within(self, mask: Array) -> Array:
        """Return what the set says of its members."""
        exponent = beside(1.0 - np.asarray(self.tau)[..., None], self.class_prior)
        prior = (self.class_prior**exponent)[..., None, :]
        xp = array_namespace(mask)
        members = xp.where(mask, prior, 0.0)
        return members / xp.sum(members, axis=-1, keepdims=True)

    def beforehand(self, mask: Array, shares: Array) -> Array:
        """Return what the set says of every label, also of those outside."""
        within = self.within(mask)
        return within + self.outside * (_beyond(mask, shares, within) - within)

    def ratios(self, scores: Scores) -> Array:
        """Return p(l | x) / share of l."""
        grown = _grown(scores.terms(), self.weights)
        return grown / array_namespace(grown).sum(scores.shares * grown, axis=-1, keepdims=True)

    def joint(self, scores: Scores, mask: Array) -> Array:
        """Return the posterior over all labels, those outside of the set included."""

        def of_block(mask: Array, *said: Array) -> Array:
            scores = Scores(*said)
            grown = _grown(scores.terms(), self.weights)
            grown *= self.beforehand(mask, scores.shares)
            xp = array_namespace(grown)
            return grown / xp.clip(xp.sum(grown, axis=-1, keepdims=True), min=TINY)

        return engine_of(mask).map_rows(of_block, mask, *scores._arrays())

    def posterior(self, scores: Scores, mask: Array) -> Array:
        """Return the posterior if the right label is a candidate."""
        product = self.within(mask)
        product *= _grown(scores.terms(), self.weights)
        return confidences_within(product, mask)


def _beyond(mask: Array, shares: Array, within: Array) -> Array:
    """Return what labels outside of the sets have beforehand; of full sets what is within."""
    xp = array_namespace(mask)
    beyond = xp.where(mask, 0.0, shares)
    total = xp.sum(beyond, axis=-1, keepdims=True)
    return xp.where(total > 0, beyond / xp.where(total > 0, total, 1.0), within)


def _grown(terms: Sequence[Array], weights: Floats) -> Array:
    """Return the ratios but for a factor of every row, the largest being 1."""
    near, scored = terms
    xp = array_namespace(near)
    there = beside(weights[..., None, None], near)
    logits = there[..., 0, :, :] * near
    logits += there[..., 1, :, :] * scored
    logits -= xp.max(logits, axis=-1, keepdims=True)
    return xp.exp(logits)


# The arrays are small: threads would wait for each other.
@one_blas_thread()
def fit_set_model(
    score: Callable[[Array], Scores],
    mask: Array,
    tau: float | Floats,
    *,
    start: tuple[SetModel, Array] | None = None,
    class_prior: Floats | None = None,
) -> tuple[SetModel, Array]:
    """Estimate everything but tau; return the model and the posterior of the candidates.

    ``score`` maps confidences to what rows with other sets say then, ``start`` is what was found
    with another exponent, ``class_prior`` are the shares of the labels if they are known. The share
    of sets that lack the right label is taken to be negligible. Several problems of one size are
    fitted at once if the arrays, and what ``score`` returns, have a further axis before the others;
    each of them ends as it would alone.
    """
    n_classes = mask.shape[-1]
    shape = mask.shape[:-2]
    if start is not None:
        before, P = start
        tau = np.asarray(tau)
        shape = np.broadcast_shapes(tau.shape, shape)
        weights = np.broadcast_to(before.weights, (*shape, 2)).copy()
        shares = array_namespace(P).broadcast_to(before.class_prior, (*shape, n_classes))
        P = array_namespace(P).broadcast_to(P, (*shape, *P.shape[-2:]))
        model = SetModel(np.broadcast_to(tau, shape) if shape else tau, shares, weights)
        return _fitted(score, mask, model, P, NEXT_ITERATIONS, 0, class_prior)
    P = uniform_start(mask, array_namespace(mask).float64)
    first = np.full(n_classes, 1.0 / n_classes) if class_prior is None else class_prior
    shares = array_namespace(P).broadcast_to(beside(first, P), (*shape, n_classes))
    model = SetModel(np.full(shape, tau), shares, np.full((*shape, 2), FIRST_WEIGHT))
    found, Q = _fitted(score, mask, model, P, N_ITERATIONS, 0, class_prior)
    faded = ~found.weights.any(axis=-1)
    if not faded.any():
        return found, Q
    again = _fitted(score, mask, model, P, N_ITERATIONS, BLIND_ITERATIONS, class_prior)
    return _chosen(faded, again, (found, Q))


def _fitted(
    score: Callable[[Array], Scores],
    mask: Array,
    model: SetModel,
    P: Array,
    n_iterations: int,
    n_blind: int,
    class_prior: Floats | None,
) -> tuple[SetModel, Array]:
    """Make scores and posterior anew until they settle; the weights not before some iterations."""
    xp = array_namespace(P)
    n_rows = P.shape[-2]
    settled = np.zeros(P.shape[:-2], dtype=bool)
    for iteration in range(n_iterations):
        scores = score(P)
        new = model
        if iteration >= n_blind:
            new = model_with_weights(model, scores, mask, n_steps=STEPS_BETWEEN)
        if class_prior is None:
            new = replace(new, class_prior=label_shares(xp.sum(P, axis=-2), n_rows))
        after = new.posterior(scores, mask)
        moved = to_host(xp.sum(xp.abs(after - P), axis=(-2, -1))) / n_rows
        model, P = _chosen(settled, (model, P), (new, after))
        settled = settled | ((moved < SETTLED) & (iteration > n_blind))
        if settled.all():
            break
    return model, P


def _chosen(
    which: Any, these: tuple[SetModel, Array], others: tuple[SetModel, Array]
) -> tuple[SetModel, Array]:
    """Return these models and posteriors for some of the problems, the others for the rest."""
    if not which.any():
        return others
    if which.all():
        return these
    (model, P), (other, Q) = these, others
    xp = array_namespace(P)
    there = xp.asarray(which, device=device(P))
    return (
        replace(
            model,
            class_prior=xp.where(there[..., None], model.class_prior, other.class_prior),
            weights=np.where(which[..., None], model.weights, other.weights),
        ),
        xp.where(there[..., None, None], P, Q),
    )


def model_with_weights(
    model: SetModel,
    scores: Scores,
    mask: Array,
    *,
    outside: Sequence[tuple[float, float]] = (),
    n_steps: int = NEWTON_STEPS,
) -> SetModel:
    """Fit the weights, and the share of sets that lack the right label if it is to be found.

    Then ``outside`` says where the search starts: with how many times the weights, and which share.
    All these few numbers are fitted to some of the rows where there are many.
    """
    some = _telling_rows(*mask.shape[-2:])
    if some is not None:
        scores, mask = scores.part(some), _rows_of(mask, some)
    likelihood = _SetLikelihood(model, scores, mask)
    if not outside:
        found, _ = likelihood.maximised(model.weights, n_steps)
        return replace(model, weights=found)
    starts = [
        np.append(np.minimum(sureness * model.weights, MAX_WEIGHTS), np.log(rate))
        for sureness, rate in outside
    ]
    found, _ = min((likelihood.maximised(start) for start in starts), key=lambda end: end[1])
    return replace(model, weights=found[:2], outside=float(np.exp(found[2])))


def _telling_rows(n_rows: int, n_labels: int) -> Places | None:
    """Return the rows that few numbers are fitted to, None for all of them."""
    n_telling = max(LIKELIHOOD_ROWS, LIKELIHOOD_VALUES // n_labels)
    if n_rows <= n_telling:
        return None
    return np.sort(np.random.RandomState(0).permutation(n_rows)[:n_telling])


def _rows_of(array: Array, rows: Places) -> Array:
    """Return some of the rows, the last axis but one."""
    return array[..., beside(rows, array), :]


class _SetLikelihood:
    r"""The mean of -log P(S | x) / P(S) as a function of few numbers, minimised by Newton's method.

    The numbers are the two weights and, perhaps, the logarithm of the share of sets without the
    right label; they are on the host, whatever holds the arrays. With :math:`p_l \propto` share
    times ratio, and w the same within the set, the gradient of a row's log-likelihood in the
    weights is :math:`E_w t - E_p t`, and its second derivatives are
    :math:`\operatorname{Cov}_w t - \operatorname{Cov}_p t`.
    """

    def __init__(self, model: SetModel, scores: Scores, mask: Array) -> None:
        self._xp = xp = array_namespace(mask)
        self._shares = scores.shares
        self._sure = model.within(mask)
        self._excess = _beyond(mask, scores.shares, self._sure) - self._sure
        self._before = self._sure + model.outside * self._excess
        near, scored = scores.terms()
        shape = np.broadcast_shapes(near.shape, scored.shape)
        near, scored = (xp.broadcast_to(term, shape) for term in (near, scored))
        # The terms, and their products: sums over labels, and over everything, are made at once.
        self._terms = xp.stack([near, scored])
        products = (near, scored, near * near, near * scored, scored * scored)
        self._moments = xp.stack([self._flat(term) for term in products])

    def _flat(self, values: Array) -> Array:
        return self._xp.reshape(values, (*values.shape[:-2], -1))

    def __call__(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, gradient and second derivatives."""
        xp, n_rows = self._xp, self._terms.shape[-2]
        rate = np.exp(x[..., 2]) if x.shape[-1] > 2 else None
        before = self._before if rate is None else self._sure + float(rate) * self._excess
        r = _grown(self._terms, x[..., :2])
        p, w = self._shares * r, before * r
        total, inside = xp.sum(p, axis=-1, keepdims=True), xp.sum(w, axis=-1, keepdims=True)
        likelihood = xp.clip(inside / total, min=TINY)
        p = p / total
        w = w / (likelihood * total)
        of_p, of_w = xp.linalg.vecdot(p, self._terms), xp.linalg.vecdot(w, self._terms)
        sums = xp.linalg.vecdot(self._flat(p - w), self._moments)
        numbers = [-xp.sum(xp.log(likelihood), axis=(-2, -1))[None], sums]
        pairs = [of_w[0] * of_w - of_p[0] * of_p, (of_w[1] ** 2 - of_p[1] ** 2)[None]]
        numbers += [xp.sum(pair, axis=-1) for pair in pairs]
        if rate is not None:
            u = float(rate) * self._excess * r / (likelihood * total)
            s = xp.sum(u, axis=-1)
            across = xp.linalg.vecdot(of_w, s) - xp.linalg.vecdot(self._flat(u), self._moments[:2])
            numbers += [xp.sum(s, axis=-1)[None], across, xp.sum(s * s - s, axis=-1)[None]]
        value, a, b, *second = np.asarray(to_host(xp.concat(numbers)), dtype=np.float64) / n_rows
        aa, ab, bb = second[0] + second[3], second[1] + second[4], second[2] + second[5]
        if rate is None:
            curvature = [[aa, ab], [ab, bb]]
            return (
                value,
                np.stack([a, b], axis=-1),
                np.moveaxis(np.array(curvature), (0, 1), (-2, -1)),
            )
        s, ar, br, rr = second[6:]
        return (
            value,
            np.array([a, b, -s]),
            np.array([[aa, ab, ar], [ab, bb, br], [ar, br, rr]]),
        )

    def maximised(self, start: Floats, n_steps: int = NEWTON_STEPS) -> tuple[Floats, Floats]:
        """Return where the likelihood is largest within the bounds, and the value there."""
        bounds = np.array([*((0.0, most) for most in MAX_WEIGHTS), np.log(OUTSIDE_BOUNDS)])
        low, high = bounds[: start.shape[-1]].T
        x = np.clip(start, low, high)
        value, slope, curvature = self(x)
        moves = np.ones(x.shape[:-1], dtype=bool)  # of several problems those that are not over
        for _ in range(n_steps):
            free = ~(((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0)))
            step = _newton_step(slope, curvature, free & moves[..., None])
            moves = moves & (-(slope * step).sum(axis=-1) >= NEWTON_GAIN)
            if not moves.any():
                break
            step = np.where(moves[..., None], step, 0.0)
            for _ in range(HALVINGS):
                new = np.clip(x + step, low, high)
                trial = self(new)
                worse = moves & (trial[0] >= value)
                if not worse.any():
                    break
                step = np.where(worse[..., None], step / 2.0, step)
            else:
                moves = moves & ~worse
            better = moves[..., None]
            x = np.where(better, new, x)
            value = np.where(moves, trial[0], value)
            slope = np.where(better, trial[1], slope)
            curvature = np.where(better[..., None], trial[2], curvature)
        return x, value


def _newton_step(slope: Floats, curvature: Floats, free: Mask) -> Floats:
    """Return the step of the free numbers to the minimum; downhill where it is not convex, too."""
    both = free[..., :, None] & free[..., None, :]
    values, vectors = np.linalg.eigh(np.where(both, curvature, np.eye(slope.shape[-1])))
    size = np.maximum(np.abs(values), FLAT)
    down = -np.where(free, slope, 0.0)[..., None]
    return np.asarray(vectors @ (np.swapaxes(vectors, -2, -1) @ down / size[..., None]))[..., 0]


@one_blas_thread()
def fit_outside(
    score: Callable[[Array], Scores],
    mask: Array,
    model: SetModel,
    P: Array,
    *,
    n_iterations: int = OUTSIDE_ITERATIONS,
) -> tuple[SetModel, Array]:
    """Estimate which sets lack the right label, after labels were found within the sets.

    Here ``score`` maps confidences to what all other rows say then, those with the same set too: a
    set that no other row has would look strange without them. The model and the confidences P were
    estimated without such sets. Scores and posterior are made anew ``n_iterations`` times with a
    fixed share, and as often with the estimated one. Returned are the model with that share, rather
    too small than too large where labels look alike, and the posterior over all labels, whose mass
    outside of the candidates is the probability that none of them is right.
    """
    model = replace(model, outside=FIRST_OUTSIDE)
    # Unsure features and no stray set explain much the same as the opposite.
    starts: list[Sequence[tuple[float, float]]] = [()] * n_iterations + [OUTSIDE_STARTS]
    for iteration in range(2 * n_iterations):
        scores = score(P)
        start = starts[iteration] if iteration < len(starts) else [(1.0, model.outside)]
        model = model_with_weights(model, scores, mask, outside=start)
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


def row_log_likelihood(model: SetModel, scores: Scores, mask: Array) -> Array:
    """Return log P(S | x) / P(S) of every row; 0 if features say nothing of the set."""
    xp = array_namespace(mask)
    likelihood = xp.sum(model.beforehand(mask, scores.shares) * model.ratios(scores), axis=-1)
    return xp.log(xp.clip(likelihood, min=TINY))


def held_out_log_likelihood(
    model: SetModel,
    in_sample: Scores,
    mask: Array,
    unseen: Scores,
    unseen_mask: Array,
) -> Array:
    """Return the log-likelihood of the sets of rows that the model has not seen.

    Of these, all training rows may speak, as they do in ``unseen``. The weights are fitted once
    more, to what all training rows but the row itself say, ``in_sample``.
    """
    refitted = model_with_weights(model, in_sample, mask)
    return row_log_likelihood(refitted, unseen, unseen_mask)
