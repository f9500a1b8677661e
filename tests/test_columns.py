"""Columns are matched by label, wherever they have names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from gmpll._columns import (
    aligned_columns,
    is_plain_matrix,
    label_codes,
    sets_by_name,
    sets_of_known_labels,
)

MASK = np.eye(2, dtype=bool)
ANIMALS = np.array(["cat", "dog", "emu"])


def test_what_is_a_matrix_without_names():
    assert is_plain_matrix(MASK)
    assert is_plain_matrix(sp.csr_array(MASK))
    assert is_plain_matrix(MASK[:, :1])
    assert not is_plain_matrix(pd.DataFrame(MASK))
    assert not is_plain_matrix([{0}, {1}])
    assert not is_plain_matrix(np.array([[3], [5]]))  # a column of labels


def test_places_of_labels():
    np.testing.assert_array_equal(label_codes(["emu", "x", "cat"], ANIMALS), [2, -1, 0])


def test_columns_come_into_the_order_of_the_classes():
    values = np.array([[0.3, 0.7, 0.1]])
    found = aligned_columns(values, np.array(["cat", "emu", "x"]), ANIMALS, fill=0.5)
    np.testing.assert_array_equal(found, [[0.3, 0.5, 0.7]])
    assert aligned_columns(values, ANIMALS, ANIMALS) is values


def test_a_matrix_has_the_classes_if_there_are_as_many():
    matrix = np.array([[1, 0, 0], [1, 1, 0]])
    assert sets_by_name(matrix, ANIMALS).to_lists() == [["cat"], ["cat", "dog"]]
    assert sets_by_name(matrix[:, :2], ANIMALS).to_lists() == [[0], [0, 1]]


@pytest.mark.parametrize("container", [list, tuple, pd.Series])
def test_none_stands_for_all_that_is_possible(container):
    rows = container([{"dog"}, None])
    assert sets_by_name(rows, ANIMALS).to_lists() == [["dog"], ["cat", "dog", "emu"]]
    possible = np.array([True, True, False])
    assert sets_of_known_labels(rows, ANIMALS, possible=possible).to_lists() == [
        ["dog"],
        ["cat", "dog"],
    ]


def test_nothing_is_known_of_any_row():
    assert sets_by_name([None], ANIMALS).to_lists() == [["cat", "dog", "emu"]]
    assert sets_by_name(["dog"], ANIMALS).to_lists() == [["dog"]]


def test_labels_that_are_settled():
    with pytest.raises(ValueError, match="Row 1 has the candidate 'yak', which is none of the 3"):
        sets_of_known_labels([{"dog"}, {"yak"}], ANIMALS)
    with pytest.raises(ValueError, match="has 2 columns, but there are 3 labels"):
        sets_of_known_labels(MASK, ANIMALS)
