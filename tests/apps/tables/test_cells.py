import numpy as np
import pandas as pd
import pytest

from gmpll.apps.tables.cells import (
    as_text,
    category_text,
    divides_thousands,
    is_absent,
    is_vector,
    number_style,
    parse_list,
    read_numbers,
)
from gmpll.apps.tables.errors import counted, listed, quoted
from gmpll.apps.tables.tables import table_from_frame
from gmpll.candidates import is_missing


def table_of(cells):
    return table_from_frame(pd.DataFrame({"size": cells}))


@pytest.mark.parametrize(
    ("cells", "style"),
    [
        (["1.5", "?", "2"], "point"),
        (["1,5", "12,25", "2"], "comma"),
        (["5%", "7.5 %"], "percent"),
        (["1,234", "2,345"], None),
        (["red", "blue"], None),
        ([[1.0], [2.0]], None),
    ],
)
def test_styles(cells, style):
    assert number_style(table_of(cells), "size") == style


def test_numbers_and_strangers():
    values, strangers = read_numbers(table_of(["1.5", "?", "big", True]), "size")
    np.testing.assert_array_equal(values, [1.5, np.nan, np.nan, 1.0])
    assert strangers == [2]


def test_commas_between_thousands():
    cells = ("1,234", "1,23", "12,345,678", "7")
    assert [divides_thousands(cell) for cell in cells] == [True, False, True, False]


@pytest.mark.parametrize("text", ['["cat", "dog"]', "['cat' 'dog']", "('cat', 'dog')"])
def test_lists(text):
    assert parse_list(text) == ["cat", "dog"]


@pytest.mark.parametrize("text", ["cat", '"cat"', "[cat]", '{"a": 1}', "["])
def test_what_is_no_list(text):
    assert parse_list(text) is None


def test_one_spelling_of_categories():
    cells = ("1.0", "007", " TRUE ", "Red")
    assert [category_text(cell) for cell in cells] == ["1", "007", "true", "Red"]


def test_nothing_in_a_cell():
    for value in (None, np.nan, np.float32("nan"), pd.NA, pd.NaT):
        assert is_missing(value)
        assert is_absent(value)
        assert as_text(value) == ""
    assert is_absent("")
    for value in ("", "x", 0, False, [], [None], np.array([np.nan])):
        assert not is_missing(value)


def test_vectors_are_no_labels():
    for value in ([0.5, 1], np.ones(2), np.arange(9)):
        assert is_vector(value)
    for value in ([], [1, 2], ["a"], [True, 0.5], np.arange(3), "0.5"):
        assert not is_vector(value)


def test_values_in_sentences():
    assert (counted(1, "row"), counted(2, "row")) == ("1 row", "2 rows")
    assert (counted(1, "row", "has"), counted(0, "vote", "is")) == ("1 row has", "0 votes are")
    assert quoted("two\nlines") == r"'two\nlines'"
    assert len(quoted("x" * 100)) == 62
    assert listed(range(10), 3) == "0, 1, 2 and 7 more"
