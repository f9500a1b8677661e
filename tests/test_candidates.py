import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gmpll import CandidateSets, as_candidates, candidates_from_votes

MASK = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 1]])


@pytest.mark.parametrize(
    "y",
    [
        MASK,
        MASK.astype(bool),
        MASK.astype(float),
        MASK.astype(object),
        sp.csr_matrix(MASK),
        sp.coo_array(MASK),
        pd.DataFrame(MASK),
        [{0, 1}, {2}, {0, 2}],
        [[0, 1], [2], [2, 0]],
        [(0, 1), (2,), (0, 2, 2)],
        [frozenset({0, 1}), [2], (0, 2)],
        pd.Series([[0, 1], [2], [0, 2]]),
        CandidateSets(MASK.astype(bool), np.arange(3)),
    ],
)
def test_all_forms_give_the_same_sets(y):
    mask, classes = as_candidates(y)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, MASK.astype(bool))
    np.testing.assert_array_equal(classes, [0, 1, 2])


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (np.array([2, 1, 2]), [1, 2]),
        (pd.Series(["b", "a", "b"]), ["a", "b"]),
        (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
        (pd.DataFrame({"label": ["b", "a", "b"]}), ["a", "b"]),
        ([True, False, True], [False, True]),
    ],
)
def test_a_label_vector_is_a_column_of_singletons(y, classes):
    mask, found = as_candidates(y)
    assert found.tolist() == classes
    np.testing.assert_array_equal(mask, [[False, True], [True, False], [False, True]])


def test_names_survive():
    frame = pd.DataFrame([[1, 0], [1, 1]], columns=["é t é", "<b>"])
    assert as_candidates(frame).classes.tolist() == ["é t é", "<b>"]
    dates = [{pd.Timestamp("2020-01-01")}, {pd.Timestamp("2019-01-01")}]
    assert as_candidates(dates).to_lists()[1] == [pd.Timestamp("2019-01-01")]
    assert as_candidates([{1, 2.5}]).classes.tolist() == [1.0, 2.5]


def test_a_column_of_numbers_is_a_label_vector_with_a_warning():
    with pytest.warns(match="column-vector"):
        assert as_candidates(np.array([[3], [5]])).classes.tolist() == [3, 5]
    assert as_candidates(np.ones((2, 1), dtype=bool)).classes.tolist() == [0]


def test_an_empty_column_keeps_its_place():
    sets = as_candidates(np.array([[1, 0, 1]]))
    assert sets.mask.shape == (1, 3)
    assert sets.statistics().unseen.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y is None"),
        (np.array([[1, 0], [0, 0]]), "Row 1 has an empty candidate set"),
        (np.zeros((3, 2)), r"Row 0 \(and 2 more rows\)"),
        (sp.csr_matrix((2, 2)), "empty candidate set"),
        ([{1}, set()], "Row 1 has an empty candidate set"),
        (np.array([[1, 0.5]]), "entry 0.5 at row 0, column 1"),
        (np.array([[1, -1]]), "entry -1 at row 0, column 1"),
        (np.array([[1, np.nan]]), "entry nan"),
        (sp.csr_matrix([[1, 2]]), "entry 2 at row 0, column 1"),
        (np.array([["a", "b"]]), "not <U1 values"),
        (np.array([[1, "x"]], dtype=object), "entry x"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.zeros((2, 0)), r"shape \(2, 0\)"),
        (np.ones((2, 2, 2)), "3 dimensions"),
        ([], "empty"),
        (["a", None], "row 1 has no label"),
        ([1.0, np.nan], "row 1 has no label"),
        ([{"a"}, {None}], "Row 1 of y has a missing label"),
        ([{"a", 1}], "mix the types int, str"),
        (["a", {"b"}], "row 0 is 'a'"),
        ([[1, 0, 0], [0, 1, 1]], "np.asarray"),
        ([0.5, 0.7], "continuous"),
        (pd.DataFrame([[1, 1]], columns=["a", "a"]), "two columns of the same name"),
    ],
)
def test_what_is_wrong_is_said(y, message):
    with pytest.raises(ValueError, match=message):
        as_candidates(y)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="X has 3 rows but y has candidate sets for 2"):
        as_candidates([{1}, {2}], n_samples=3)


@given(
    st.lists(
        st.sets(st.text(max_size=3), min_size=1, max_size=4).map(sorted), min_size=1, max_size=8
    )
)
def test_every_form_can_be_reached_and_left(rows):
    sets = as_candidates([set(row) for row in rows])
    assert sets.to_lists() == rows
    for form in (sets.to_frame(), sets.to_lists(), sets):
        again = as_candidates(form)
        np.testing.assert_array_equal(again.mask, sets.mask)
        assert again.classes.tolist() == sets.classes.tolist()
    np.testing.assert_array_equal(as_candidates(sets.to_sparse()).mask, sets.mask)


def test_labels_that_numpy_would_merge_stay_apart():
    sets = as_candidates([{"a", "a\x00"}, {"a"}])
    assert sets.to_lists() == [["a", "a\x00"], ["a"]]
    assert as_candidates(sets.to_frame()).to_lists() == sets.to_lists()


def test_statistics():
    found = as_candidates(MASK).statistics()
    assert found.n_samples == 3
    assert found.mean_size == pytest.approx(5 / 3)
    assert found.sizes.tolist() == [0, 1, 2, 0]
    assert found.singleton_share == pytest.approx(1 / 3)
    np.testing.assert_allclose(found.label_frequency, [2 / 3, 1 / 3, 2 / 3])
    # Label 1 never appears without label 0.
    assert found.cooccurrence[1, 0] == 1.0
    assert found.cooccurrence[0, 1] == 0.5
    assert found.ambiguity_degree == 1.0
    assert as_candidates(["a"]).statistics().ambiguity_degree == 0.0


class TestVotes:
    ITEMS = ("x", "y", "x", "x", "y")
    LABELS = ("cat", "dog", "dog", "cat", "dog")

    def test_every_vote_is_a_candidate(self):
        voted = candidates_from_votes(self.ITEMS, self.LABELS)
        assert voted.items.tolist() == ["x", "y"]
        assert voted.candidates.to_lists() == [["cat", "dog"], ["dog"]]
        np.testing.assert_array_equal(voted.weights, [[2, 1], [0, 2]])

    def test_an_annotator_counts_once(self):
        voted = candidates_from_votes(
            self.ITEMS, self.LABELS, annotators=["ann", "ann", "bob", "ann", "bob"]
        )
        np.testing.assert_array_equal(voted.weights, [[1, 1], [0, 2]])

    def test_weights_and_shares(self):
        voted = candidates_from_votes(self.ITEMS, self.LABELS, weights=[3, 1, 1, 4, 1])
        np.testing.assert_array_equal(voted.weights, [[7, 1], [0, 2]])
        strict = candidates_from_votes(
            self.ITEMS, self.LABELS, weights=[3, 1, 1, 4, 1], min_share=0.2
        )
        assert strict.candidates.to_lists() == [["cat"], ["dog"]]
        split = candidates_from_votes(["x", "x"], ["a", "b"], min_share=0.9)
        assert split.candidates.to_lists() == [["a", "b"]]

    @pytest.mark.parametrize(
        ("kwargs", "message"),
        [
            ({"items": [], "labels": []}, "no votes"),
            ({"items": ["x"], "labels": []}, "1 items but 0 labels"),
            ({"items": ["x"], "labels": ["a"], "weights": [-1]}, "Vote 0 has the weight -1"),
            ({"items": ["x"], "labels": ["a"], "weights": [1, 2]}, "1 votes but 2 weights"),
            ({"items": ["x"], "labels": [None]}, "Vote 0 has no label"),
            ({"items": ["x"], "labels": ["a"], "annotators": []}, "1 votes but 0 annotators"),
            ({"items": ["x"], "labels": ["a"], "min_share": 2}, "between 0 and 1"),
        ],
    )
    def test_what_is_wrong_is_said(self, kwargs, message):
        with pytest.raises(ValueError, match=message):
            candidates_from_votes(**kwargs)


def test_a_large_thing_in_place_of_a_set_is_named_shortly():
    with pytest.raises(ValueError, match=r"row 1 is .{1,40}\. Write every row"):
        as_candidates([{"a"}, np.zeros((4, 4, 4))])
