"""Candidate sets: every form says the same, and whatever is wrong is said in a sentence."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from generic import anything, examples, label_kinds, masks, plain_labels, refused
from hypothesis import given
from hypothesis import strategies as st

from gmpll import (
    CandidateSets,
    CandidateStatistics,
    VotedCandidates,
    as_candidates,
    candidates_from_votes,
)

pytestmark = pytest.mark.filterwarnings("ignore")


@given(anything)
@examples(300)
def test_anything_becomes_sets_or_a_sentence(y):
    error, sets = refused(lambda: as_candidates(y))
    if error is None:
        assert sets.mask.dtype == bool
        assert sets.mask.any(axis=1).all()
        assert sets.mask.shape == (len(sets.mask), len(sets.classes))


@given(anything, anything, anything, anything)
@examples(200)
def test_any_votes_become_sets_or_a_sentence(items, labels, annotators, weights):
    error, voted = refused(lambda: candidates_from_votes(items, labels, annotators, weights))
    if error is None:
        assert isinstance(voted, VotedCandidates)
        assert voted.candidates.mask.any(axis=1).all()


@given(st.data(), st.integers(1, 6))
@examples(100)
def test_sets_keep_their_labels(data, m):
    label = data.draw(label_kinds)
    rows = data.draw(st.lists(st.sets(label, min_size=1, max_size=4), min_size=m, max_size=m))
    back = as_candidates(rows)
    assert len(set(back.classes.tolist())) == len(back.classes)
    assert [set(row) for row in back.to_lists()] == rows


@given(masks(), st.data())
@examples(100)
def test_all_forms_say_the_same(mask, data):
    q = mask.shape[1]
    names = np.array([f"n{code}" for code in range(q)])
    seen = mask.any(axis=0)
    rows, columns = np.nonzero(mask)
    votes = data.draw(st.permutations(range(len(rows))))
    forms = [
        as_candidates(mask),
        as_candidates(mask.astype(float)) if q > 1 else as_candidates(mask),
        as_candidates(sp.csc_array(mask.astype(np.int8))),
        as_candidates(as_candidates(mask).to_sparse()),
        as_candidates(CandidateSets(mask, names)),
        as_candidates(CandidateSets(mask, names).to_frame()),
    ]
    for sets in forms:
        np.testing.assert_array_equal(sets.mask, mask)
    lists = as_candidates([set(names[row]) for row in mask])
    np.testing.assert_array_equal(lists.mask, mask[:, seen])
    voted = candidates_from_votes(rows[votes], names[columns[votes]])
    np.testing.assert_array_equal(voted.candidates.mask[np.argsort(voted.items)], mask[:, seen])
    np.testing.assert_array_equal(voted.candidates.classes, names[seen])


@given(masks(), plain_labels, st.randoms(use_true_random=False))
@examples(60)
def test_permutations_permute(mask, labels, random):
    sets = [{labels[code % len(labels)] for code in np.flatnonzero(row)} for row in mask]
    rows = [sorted(row) for row in sets]
    order = list(range(len(rows)))
    random.shuffle(order)
    one, other = as_candidates(rows), as_candidates([rows[place][::-1] for place in order])
    np.testing.assert_array_equal(one.mask[order], other.mask)
    np.testing.assert_array_equal(one.classes, other.classes)
    twice = as_candidates(rows + rows)
    np.testing.assert_array_equal(twice.mask, np.vstack([one.mask, one.mask]))


@given(masks())
@examples(60)
def test_statistics_are_those_of_the_sets(mask):
    facts = as_candidates(mask).statistics()
    assert isinstance(facts, CandidateStatistics)
    assert facts.sizes.sum() == facts.n_samples == len(mask)
    assert facts.mean_size == pytest.approx(mask.sum() / len(mask))
    np.testing.assert_allclose(facts.label_frequency, mask.mean(axis=0))
    assert 0 <= facts.singleton_share <= 1
    permuted = as_candidates(mask[::-1, ::-1]).statistics()
    np.testing.assert_array_equal(permuted.sizes, facts.sizes)
    np.testing.assert_allclose(permuted.label_frequency, facts.label_frequency[::-1])


@given(masks(), st.floats(0, 1))
@examples(60)
def test_votes_below_a_share_are_dropped_but_never_the_best(mask, share):
    rows, columns = np.nonzero(mask)
    weights = 1.0 + columns
    voted = candidates_from_votes(rows, columns, weights=weights, min_share=share)
    total = voted.weights if hasattr(voted, "weights") else None
    assert voted.candidates.mask.any(axis=1).all()
    best = [mask.shape[1] - 1 - np.argmax(row[::-1]) for row in mask]
    kept = dict(zip(voted.items.tolist(), voted.candidates.to_lists(), strict=True))
    assert all(best[row] in labels for row, labels in kept.items())
    assert total is None or (total >= 0).all()


@given(masks())
@examples(20)
def test_frames_of_labels_are_read_by_name(mask):
    frame = pd.DataFrame(mask.astype(int), columns=[f"c{code}" for code in range(mask.shape[1])])
    sets = as_candidates(frame)
    np.testing.assert_array_equal(sets.mask, mask)
    assert sets.classes.tolist() == list(frame.columns)
