"""One column for each annotator: recognised where it is clear, read as named votes."""

import numpy as np
import pandas as pd
import pytest

from gmpll import candidates_from_votes
from gmpll.apps.tables import InputError
from gmpll.apps.tables.annotator_columns import guess_annotators
from gmpll.apps.tables.candidate_sets import label_sets, row_ids
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.tables import table_from_frame

NAMES = np.array(["billing", "login", "refund"])
PEOPLE = {"anna": 0.9, "bjoern": 0.7, "carla": 0.6}


@pytest.fixture(scope="module")
def tickets():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 80)
    frame = pd.DataFrame({"ticket_id": range(1000, 1080), "size": truth + rng.random(80)})
    for name, care in PEOPLE.items():
        seen = np.where(rng.random(80) < care, truth, rng.integers(0, 3, 80))
        frame[name] = np.where(rng.random(80) < 0.8, NAMES[seen], "")
    frame.loc[0, "anna"] = "billing"
    return frame[(frame[list(PEOPLE)] != "").any(axis=1)].reset_index(drop=True)


def understood(frame, **options):
    table = table_from_frame(frame)
    options = Options(**options)
    roles = guess_roles(table, options)
    return roles, label_sets(table, roles, options, row_ids(table, roles))


def test_they_are_recognised_and_read_as_votes(tickets):
    roles, sets = understood(tickets)
    assert roles.annotators == tuple(PEOPLE)
    assert (roles.id, roles.numeric, roles.left_out) == ("ticket_id", ("size",), {})
    assert roles.described()[0][1] == "votes: a column for each of anna, bjoern, carla"
    votes = [
        (str(row.ticket_id), getattr(row, name), name)
        for name in PEOPLE
        for row in tickets.itertuples()
        if getattr(row, name)
    ]
    ids = tickets["ticket_id"].astype(str)
    expected = candidates_from_votes(*map(list, zip(*votes, strict=True)), all_items=ids)
    assert sets.votes.annotators.tolist() == list(PEOPLE)
    np.testing.assert_array_equal(sets.weights, expected.weights)
    np.testing.assert_array_equal(sets.votes.votes.toarray(), expected.votes.toarray())


def test_named_columns_are_read_whatever_they_hold(tickets):
    roles, sets = understood(tickets, annotators=("anna", "carla"), empty="all")
    assert roles.annotators == ("anna", "carla")
    assert "bjoern" in roles.left_out, "it holds labels"
    assert sets.votes.annotators.tolist() == ["anna", "carla"]


def test_messy_labels_are_recognised_too(tickets):
    messy = tickets.assign(anna=tickets["anna"].str.upper(), carla=tickets["carla"] + " ")
    assert guess_annotators(table_from_frame(messy), messy.columns) == tuple(PEOPLE)


def test_ratings_are_recognised_by_their_names():
    rng = np.random.default_rng(0)
    stars = {f"rater_{n}": rng.integers(1, 6, 40) for n in (1, 2, 3)}
    frame = pd.DataFrame({"size": rng.random(40), **stars})
    roles, sets = understood(frame)
    assert roles.annotators == tuple(stars)
    assert sets.classes.tolist() == list("12345")


def test_cells_without_a_vote_and_with_several_labels():
    frame = pd.DataFrame(
        {"size": range(4), "a": ["x|y", "NA", "y", "z"], "b": ["x", "y", "-", "none"]}
    )
    _, sets = understood(frame, annotators=("a", "b"), separator="|")
    assert sets.classes.tolist() == ["none", "x", "y", "z"]
    assert sets.weights.tolist() == [[0, 2, 1, 0], [0, 0, 1, 0], [0, 0, 1, 0], [1, 0, 0, 1]]


OTHERS = {
    "answers to questions": {"smoker": ["yes", "no"] * 20, "married": ["yes", "no"] * 20},
    "teams": {
        "home": ["kiel", "bonn", "ulm", "bonn"] * 10,
        "away": ["ulm", "kiel", "bonn", "kiel"] * 10,
    },
    "other words": {"colour": ["red", "blue"] * 20, "size": ["small", "large"] * 20},
    "numbers": {"doors": [1, 2, 3, 4] * 10, "floors": [1, 2, 3, 4] * 10},
    "an earlier run": {
        "label": ["a", "b"] * 20,
        "runner_up": ["a", "b"] * 20,
        "margin": [0.5, 1] * 20,
    },
}


@pytest.mark.parametrize("columns", OTHERS.values(), ids=OTHERS)
def test_other_columns_are_not_taken_for_them(columns):
    table = table_from_frame(pd.DataFrame({"weight": np.arange(40) / 7, **columns}))
    with pytest.raises(InputError, match="name the columns of annotators with --annotators"):
        guess_roles(table, Options())


def test_candidates_and_the_answer_come_first(tickets):
    sets = tickets.assign(candidates="billing|login")
    assert understood(sets)[0].annotators == ()
    answered = tickets.assign(label=tickets["anna"])
    assert understood(answered)[0].annotators == tuple(PEOPLE)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"annotators": ("anna",)}, "--annotators names one column only"),
        ({"annotators": ("anna", "zoe")}, "no column 'zoe', which --annotators names"),
        ({"annotators": ("anna", "carla"), "candidates": ("bjoern",)}, "leave out all but one"),
    ],
)
def test_bad_names_are_refused(tickets, options, words):
    with pytest.raises(InputError, match=words):
        understood(tickets, **options)


def test_columns_without_a_label_are_refused():
    frame = pd.DataFrame({"size": [1.0, 2.0], "a": ["", "-"], "b": ["", "NA"]})
    with pytest.raises(InputError, match="No annotator gave a label"):
        understood(frame, annotators=("a", "b"))


def test_the_command_resolves_them(tmp_path, tickets, command):
    tickets.to_csv(tmp_path / "in.csv", index=False)
    options = ["--annotators", "anna,bjoern,carla", "--method", "plknn"]
    code, output, error = command("disambiguate", tmp_path / "in.csv", *options)
    assert (code, error) == (0, "")
    assert "a column for each of" in output
    resolved = pd.read_csv(tmp_path / "in-resolved" / "resolved.csv", keep_default_na=False)
    assert resolved["anna"].tolist() == tickets["anna"].tolist()
    assert set(resolved["label"]) <= set(NAMES)
