import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmpll import (
    as_candidates,
    candidates_from_votes,
    label_variants,
    merge_labels,
    rename_labels,
)

DECOMPOSED = unicodedata.normalize("NFD", "café")
NAMES = ["cat", "Cat", " cat", "dog", "DOG", "café", DECOMPOSED, "cafe", "bird"]


def test_variants_are_grouped_with_their_counts_the_commonest_first():
    sets = [["cat", "Cat"], ["Cat"], ["café"], [DECOMPOSED, "cafe"], ["bird", 3], ["\u200bbird"]]
    assert label_variants([[str(label) for label in labels] for labels in sets]) == [
        {"Cat": 2, "cat": 1},
        {"bird": 1, "\u200bbird": 1},
        {"cafe": 1, DECOMPOSED: 1, "café": 1},
    ]
    assert label_variants([["cafe"], ["café"]], accents=False) == []
    assert label_variants([[1, 2], [2]]) == []


def test_variants_become_the_commonest_spelling_with_single_spaces():
    merged = merge_labels([["New\u00a0 York", "rome"], ["New\u00a0 York"], ["new york"], ["Rome"]])
    assert merged.to_lists() == [["New York", "Rome"], ["New York"], ["New York"], ["Rome"]]
    assert merge_labels([["cafe", "café"], ["cafe"]]).classes.tolist() == ["cafe", "café"]
    assert merge_labels([["cafe", "café"], ["cafe"]], accents=True).classes.tolist() == ["cafe"]
    assert merge_labels([[2, 1], [1]]).to_lists() == [[1, 2], [1]]


@given(st.lists(st.sets(st.sampled_from(NAMES), min_size=1), min_size=1))
def test_merging_sets_is_merging_every_label_of_them(sets):
    merged = merge_labels(sets)

    def plain(label):
        return " ".join(unicodedata.normalize("NFC", label).casefold().split())

    for before, after in zip(sets, merged.to_lists(), strict=True):
        assert sorted(map(plain, after)) == sorted({plain(label) for label in before})
    assert label_variants(merged, accents=False) == []


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from("abcd"), st.sampled_from(["Ada", "Ben"])),
        min_size=1,
    ),
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from("abxy")),
    st.booleans(),
)
def test_renamed_votes_are_the_votes_for_the_renamed_labels(votes, names, named):
    items, labels, who = map(list, zip(*votes, strict=True))
    names = {old: new for old, new in names.items() if old in labels}
    people = (who,) if named else ()
    found = rename_labels(candidates_from_votes(items, labels, *people), names)
    expected = candidates_from_votes(items, [names.get(n, n) for n in labels], *people)
    assert found.candidates.classes.tolist() == expected.candidates.classes.tolist()
    np.testing.assert_array_equal(found.candidates.mask, expected.candidates.mask)
    np.testing.assert_array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(found.votes.toarray(), expected.votes.toarray())
    assert found.items.tolist() == expected.items.tolist()


def test_labels_can_change_their_names_and_unknown_ones_are_refused():
    sets = as_candidates([["cat", "dog"], ["dog"]])
    assert rename_labels(sets, {"cat": "dog", "dog": "cat"}).to_lists() == [["cat", "dog"], ["cat"]]
    with pytest.raises(ValueError, match="names has 'bird', which is no label"):
        rename_labels(sets, {"bird": "cat"})
    counted = candidates_from_votes(["a", "a"], ["cat", "dog"])._replace(votes=None)
    assert rename_labels(counted, {"cat": "dog"}).weights.tolist() == [[2.0]]
