import numpy as np
import pandas as pd
import pytest

from gmpll.apps.tables.candidate_sets import label_sets, row_ids
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.tables import table_from_frame


def sets_of(columns, **options):
    options = Options(**options)
    table = table_from_frame(pd.DataFrame({"size": [1.5, 2.5, 4.0], **columns}))
    roles = guess_roles(table, options)
    return label_sets(table, roles, options, row_ids(table, roles))


def as_lists(sets):
    return [sets.classes[row].tolist() for row in sets.mask]


EXPECTED = [["a", "b"], ["b"], ["a", "c"]]


@pytest.mark.parametrize(
    "columns",
    [
        {"tags": ["a|b", " b |", "c|a|c"]},
        {"tags": ["a;b", "b", "c;a"]},
        {"tags": ['["a", "b"]', '["b"]', '["c", "a"]']},
        {"tags": ["['a', 'b']", "['b']", "[\"c\", 'a']"]},
        {"tags": ["{'a', 'b'}", "{'b'}", "{'c', 'a'}"]},
        {"tags": ["['a' 'b']", "['b']", "['c'\n 'a']"]},
        {"tags": [["a", "b"], ["b"], ["c", "a"]]},
        {"is_c": [0, 0, 1], "is_a": [1, 0, 1], "is_b": [True, True, False]},
    ],
    ids=["bars", "semicolons", "JSON", "Python", "Python sets", "NumPy", "lists", "0/1"],
)
def test_every_form_gives_the_same_sets(columns):
    assert as_lists(sets_of(columns)) == EXPECTED


def test_votes():
    votes = pd.DataFrame(
        {
            "task": ["z", "x", "x", "x", "y", "z", "q"],
            "answer": ["c", "a", "b", "a", "b", "a", "a"],
            "worker": [1, 1, 2, 3, 1, 2, 1],
        }
    )
    sets = sets_of({"id": ["x", "y", "z"]}, votes=votes)
    assert as_lists(sets) == EXPECTED
    assert sets.problems == (
        "1 vote is for items that are not in the input, and ignored: check the column of ids with "
        "--id",
    )
    strict = sets_of({"id": ["x", "y", "z"]}, votes=votes, min_share=0.5)
    assert as_lists(strict) == [["a"], ["b"], ["a", "c"]]
    named = votes.rename(columns={"task": "p", "answer": "q"})
    assert as_lists(sets_of({"id": list("xyz")}, votes=named, vote_columns=("p", "q"))) == EXPECTED


def test_numbers_as_labels():
    assert as_lists(sets_of({"tags": ["1|2", "2", "10|1"]})) == [["1", "2"], ["2"], ["1", "10"]]


def test_known_labels_are_the_only_candidates_of_their_rows():
    sets = sets_of({"tags": ["a|b", "b|c", "c|a"], "gold": ["", "a", "c"]})
    assert as_lists(sets) == [["a", "b"], ["a"], ["c"]]
    assert sets.gold.tolist() == [-1, 0, 2]
    assert sets.problems == (
        "1 known label is no candidate of the row: correct the column, or turn it off with --gold "
        "none",
    )


def test_rows_without_candidates_may_get_any_label():
    sets = sets_of({"tags": ["a|b", "", "a"]}, empty="all")
    assert as_lists(sets) == [["a", "b"], ["a", "b"], ["a"]]
    assert "1 row has no candidates" in sets.problems[0]


def test_look_alikes_are_said():
    (note,) = sets_of({"tags": ["Cat|dog", "cat", "dog|Cat"]}).problems
    assert note.startswith("1 label is written in several ways: 'Cat' (2), 'cat' (1); --merge")


def test_ids():
    table = table_from_frame(
        pd.DataFrame({"size": [1.0, 2], "key": ["007", "x"], "t": ["a|b", "a"]})
    )
    assert row_ids(table, guess_roles(table, Options())).tolist() == ["007", "x"]
    assert row_ids(table, guess_roles(table, Options(id="none"))).tolist() == ["1", "2"]


def test_rows_times_labels_are_limited(monkeypatch):
    monkeypatch.setattr("gmpll.apps.tables.candidate_sets.MAX_CELLS", 5)
    with pytest.raises(InputError, match="3 rows times 2 labels"):
        sets_of({"tags": ["a|b", "a", "b"]})


def test_hostile_names_stay_names():
    names = ["=1+1", "<script>", "a\nb"]
    sets = sets_of({"tags": [[names[0], names[1]], [names[2]], [names[0]]]})
    assert set(sets.classes.tolist()) == set(names)
    assert sets.mask.dtype == np.bool_


def test_votes_are_counted():
    votes = pd.DataFrame(
        {"item": list("xxxyz"), "label": list("aabcc"), "annotator": ["1", "2", "3", "1", "1"]}
    )
    sets = sets_of({"id": ["x", "y", "z"], "gold": ["", "a", ""]}, votes=votes)
    np.testing.assert_array_equal(sets.weights, [[2, 1, 0], [0, 0, 1], [0, 0, 1]])
    assert as_lists(sets) == [["a", "b"], ["a"], ["c"]]
    assert sets_of({"tags": ["a|b", "a", "b"]}).weights is None


def test_impossible_labels_are_no_candidates():
    columns = {"tags": ["a|b|c", "", "c|a"], "never": ["b", "a|c|zebra", ""]}
    sets = sets_of(columns, impossible="never", empty="all")
    assert as_lists(sets) == [["a", "c"], ["b"], ["a", "c"]]
    with pytest.raises(InputError, match="Row 3 has no candidate label that the column never"):
        sets_of({**columns, "never": ["", "", "a|c"]}, impossible="never", empty="all")
    with pytest.raises(InputError, match="although 'b' is its known label"):
        sets_of({**columns, "gold": ["b", "", ""]}, impossible="never", empty="all")
    with pytest.raises(InputError, match="which --impossible names"):
        sets_of(columns, impossible="nowhere", empty="all")


@pytest.mark.parametrize(
    "other", ["Gelbe A\u0308pfel", "Gelbe\xa0\xc4pfel", "Gelbe  \xc4pfel", "Gelbe \xc4pf\u200bel"]
)
def test_labels_that_look_alike_are_said(other):
    (note,) = sets_of({"tags": [f"Gelbe \xc4pfel|{other}", "x", "x|y"]}).problems
    assert "is written in several ways" in note
    assert ascii(other) in note


def test_impossible_labels_that_nobody_has_are_said():
    columns = {"tags": ["a|b", "b|c", "c|a"], "not": ["emu", "c", ""]}
    (note,) = sets_of(columns, impossible="not").problems
    assert note == (
        "the column not rules out 'emu', which no row has as a candidate: check how it is written"
    )
