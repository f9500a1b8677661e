r"""Temperature scaling from candidate sets alone.

A temperature T sharpens or softens probabilities without changing their order,
:math:`p_l(T) \propto p_l^{1/T}`. With true labels it is fitted by maximum likelihood on held-out
rows. Candidate sets have a likelihood too: if wrong candidates are drawn without regard to the
features, label l with rate :math:`c_l`, the set S of a row at x has

.. math:: P(S \mid x) \propto \sum_{l \in S} \frac{p_l(x)}{c_l} ,

and where the rates are equal that is the probability of the set, :math:`\sum_{l \in S} p_l(x)`.
Its maximum is the calibrated temperature. The condition matters: candidates that were chosen
*because* they look like the truth at x make every model look right, and no method that sees
candidate sets alone can notice.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp

from gmpll._typing import Floats, Mask
from gmpll.arrays import Array, array_namespace
from gmpll.metrics import chance_of_covering
from gmpll.rounding import confidences_within

#: Share that a label keeps which a model gives nothing: otherwise one row that was found
#: impossible would decide on the temperature of all.
FLOOR = 1e-3
#: Temperatures are searched between exp of these.
LOG_TEMPERATURES = (-4.0, 3.0)
#: Exponents of the training rows' confidences are searched between exp of these.
LOG_EXPONENTS = (-6.0, 6.0)
#: Scales of scores, relative to the largest, are searched between exp of these.
LOG_SCALES = (-3.0, 6.0)
TINY = 1e-300
#: A label is a false candidate at least this often; a rate of zero would make it certain.
MIN_FALSE_RATE = 0.02


def temper(probabilities: Array, temperature: float) -> Array:
    """Sharpen (T < 1) or soften (T > 1) probabilities; the order of the labels stays.

    A small share is added to each, so that zeros can be softened as well.
    """
    xp = array_namespace(probabilities)
    logits = xp.log(probabilities + FLOOR) / temperature
    grown = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return grown / xp.sum(grown, axis=1, keepdims=True)


def candidate_temperature(
    probabilities: ArrayLike,
    mask: Mask,
    false_rates: ArrayLike | None = None,
) -> float:
    r"""Find the temperature at which candidate sets of held-out rows are most likely.

    The rows were held out of the matching as well. ``false_rates`` says how often each label is a
    wrong candidate, see :func:`false_candidate_rates`; by default all are equally often.
    :math:`\log T` has a standard normal prior, which counts like one row and keeps T finite where
    every row is covered. Sets that leave no label out tell nothing: of these alone T is 1.
    """
    telling = ~mask.all(axis=1)
    if not telling.any():
        return 1.0
    logs = _log(probabilities)[telling]
    rates = np.ones(mask.shape[1]) if false_rates is None else np.asarray(false_rates)
    weights = np.where(mask[telling], 1.0 / np.maximum(rates, MIN_FALSE_RATE), 0.0)

    def loss(log_temperature: float) -> float:
        tempered = logs * np.exp(-log_temperature)
        inside = logsumexp(tempered, axis=1, b=weights)
        of_the_sets = (inside - logsumexp(tempered, axis=1)).sum()
        return float(0.5 * log_temperature**2 - of_the_sets)

    return float(np.exp(minimize_scalar(loss, bounds=LOG_TEMPERATURES, method="bounded").x))


def set_likelihood(scores: Array, mask: Array) -> float:
    r"""Return the mean log-likelihood of candidate sets by scores of rows that are not their own.

    The probabilities are :math:`\text{softmax}(a f)` of the scores f with the scale a that makes
    the sets likeliest. Scores that tell nothing have the likelihood of equal probabilities. Scores
    and sets may be of any array library.
    """
    xp = array_namespace(scores)
    telling = ~xp.all(mask, axis=1)
    if not bool(xp.any(telling)):
        return 0.0
    scores, mask = scores[telling], mask[telling]
    scores = scores / max(float(xp.max(xp.abs(scores))), TINY)
    scores = scores - xp.max(scores, axis=1, keepdims=True)

    def loss(log_scale: float) -> float:
        grown = xp.exp(float(np.exp(log_scale)) * scores)
        inside = xp.sum(xp.where(mask, grown, 0.0), axis=1) / xp.sum(grown, axis=1)
        return -float(xp.mean(xp.log(xp.clip(inside, min=TINY))))

    return -float(minimize_scalar(loss, bounds=LOG_SCALES, method="bounded").fun)


def false_candidate_rates(probabilities: Floats, mask: Mask) -> Floats:
    """Estimate how often each label is a candidate of rows whose true label is another.

    Within the candidates, the probabilities of held-out rows say how common each label is.
    """
    prior = confidences_within(probabilities, mask).mean(axis=0)
    return np.maximum(chance_of_covering(mask.mean(axis=0), prior), MIN_FALSE_RATE)


def confidence_exponent(
    confidences: Floats,
    mask: Mask,
    posterior: Floats,
) -> float:
    r"""Find the power that brings confidences of training rows to a level without labels.

    What a row's candidates are given by the matching overrates itself, as the neighbours'
    confidences have seen the candidates of the row. A model fitted without the row knows less and
    underrates it; ``posterior`` holds its calibrated probabilities within the candidates. One
    exponent for all rows, for :func:`sharpen`, is chosen such that the mean confidence in the
    labels found lies halfway between the two. That it is halfway is a rule of thumb. It is 1 where
    no exponent reaches the level (single candidates, ties).
    """
    top = confidences.max(axis=1, keepdims=True)
    leading = mask & (confidences >= top)
    held_out = np.where(leading, posterior, 0.0).sum(axis=1) / leading.sum(axis=1)
    goal = 0.5 * (float(top.mean()) + float(held_out.mean()))

    def excess(log_exponent: float) -> float:
        return float(sharpen(confidences, mask, np.exp(log_exponent)).max(axis=1).mean()) - goal

    low, high = LOG_EXPONENTS
    if excess(low) >= 0 or excess(high) <= 0:
        return 1.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-6)))


def sharpen(confidences: Array, mask: Array, exponent: float) -> Array:
    """Raise confidences to a power within the candidates; the labels found stay."""
    largest = array_namespace(confidences).max(confidences, axis=1, keepdims=True)
    ratios = confidences / largest
    return confidences_within(ratios**exponent, mask)


def _log(probabilities: ArrayLike) -> Floats:
    return np.log(np.asarray(probabilities, dtype=np.float64) + FLOOR)
