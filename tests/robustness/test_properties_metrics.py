"""Scores: between their bounds, deaf to order, and a sentence where they cannot be had."""

import numpy as np
import pytest
from generic import anything, examples, masks, refused
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gmpll import CandidateSets, as_candidates
from gmpll.metrics import (
    approximated_accuracy,
    candidate_lift,
    chance_of_covering,
    covered,
    covering_rate,
    row_lifts,
)
from gmpll.model_selection import (
    approximated_accuracy_scorer,
    candidate_lift_scorer,
    covering_rate_scorer,
)

pytestmark = pytest.mark.filterwarnings("ignore")


@st.composite
def scored(draw):
    mask = draw(masks())
    m, q = mask.shape
    predicted = draw(hnp.arrays(np.intp, m, elements=st.integers(-1, q)))
    shares = draw(hnp.arrays(np.float64, (m, q), elements=st.floats(0, 1)))
    return mask, predicted, shares


class Fixed:
    """An estimator that answers what it was told."""

    def __init__(self, predicted, shares):
        self.predicted, self.shares = predicted, shares

    def predict(self, X):
        return self.predicted

    def predict_proba(self, X):
        return self.shares


@given(scored(), st.randoms(use_true_random=False))
@examples(80)
def test_scores_keep_their_bounds_and_ignore_order(case, random):
    mask, predicted, shares = case
    m, q = mask.shape
    rate = covering_rate(mask, predicted)
    assert (
        rate
        == covered(mask, predicted).mean()
        == np.mean([0 <= p < q and mask[row, p] for row, p in enumerate(predicted)])
    )
    lift = candidate_lift(mask, predicted)
    assert np.isfinite(lift)
    assert lift <= rate + 1e-12
    accuracy = approximated_accuracy(mask, shares)
    assert 0 <= accuracy <= 1 + 1e-12
    rows = np.array(random.sample(range(m), m))
    assert covering_rate(mask[rows], predicted[rows]) == rate
    assert candidate_lift(mask[rows], predicted[rows]) == pytest.approx(lift, abs=1e-9)
    assert approximated_accuracy(mask[rows], shares[rows]) == pytest.approx(accuracy, abs=1e-9)
    twice = candidate_lift(np.vstack([mask, mask]), np.concatenate([predicted, predicted]))
    assert twice == pytest.approx(lift, abs=1e-9)


@given(scored())
@examples(60)
def test_names_of_labels_do_not_matter(case):
    mask, predicted, _ = case
    q = mask.shape[1]
    names = np.array([f"n{code:02d}" for code in range(q)])
    known = np.array([names[p] if 0 <= p < q else "unknown" for p in predicted])
    named = CandidateSets(mask, names)
    assert covering_rate(named, known) == covering_rate(mask, predicted)
    assert candidate_lift(named, known) == candidate_lift(mask, predicted)
    frame = named.to_frame()
    assert covering_rate(frame, known) == covering_rate(mask, predicted)


@given(scored())
@examples(40)
def test_scorers_are_the_metrics(case):
    mask, predicted, shares = case
    fixed = Fixed(predicted, shares)
    assert covering_rate_scorer(fixed, None, mask) == covering_rate(mask, predicted)
    assert candidate_lift_scorer(fixed, None, mask) == candidate_lift(mask, predicted)
    assert approximated_accuracy_scorer(fixed, None, mask) == approximated_accuracy(mask, shares)


@given(
    hnp.arrays(np.float64, 4, elements=st.floats(0, 1)),
    hnp.arrays(np.float64, 4, elements=st.floats(0, 1)),
    hnp.arrays(bool, 4),
)
@examples(60)
def test_chances_are_probabilities(frequency, prior, hit):
    chance = chance_of_covering(frequency, prior)
    assert ((chance >= 0) & (chance <= 1)).all()
    np.testing.assert_array_equal(chance_of_covering(frequency), frequency)
    lift = row_lifts(np.diag(hit), np.arange(4), chance)
    assert np.isfinite(lift).all()
    assert (lift <= 1).all()


@given(anything, anything)
@examples(200)
def test_anything_is_scored_or_refused_in_a_sentence(candidates, predicted):
    for metric in (covered, covering_rate, candidate_lift, approximated_accuracy):
        error, value = refused(lambda metric=metric: metric(candidates, predicted))
        if error is None and metric is not covered:
            assert isinstance(value, float)


@given(masks())
@examples(30)
def test_a_covered_prediction_scores_one(mask):
    first = mask.argmax(axis=1)
    assert covering_rate(mask, first) == 1.0
    assert approximated_accuracy(mask, np.eye(mask.shape[1])[first]) == 1.0
    assert covered(as_candidates(mask), first).all()
