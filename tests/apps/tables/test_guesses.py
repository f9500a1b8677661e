import numpy as np
import pandas as pd
import pytest

from gmpll.apps.tables.candidate_sets import row_ids
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.guesses import guess_roles, guess_separator
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.tables import read_table, table_from_frame

N = 40
TEXTS = [f"the parcel number {i} came late again" for i in range(N)]


def roles_of(columns, **options):
    return guess_roles(table_from_frame(pd.DataFrame(columns)), Options(**options))


def sets(separator="|"):
    return [separator.join(["cat", "dog"][: 1 + i % 2]) for i in range(N)]


@pytest.mark.parametrize("separator", ["|", ";", ",", "/"])
def test_separators(separator):
    assert guess_separator(pd.Series(sets(separator))) == separator


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([["a", "b"], ["b"]], "list"),
        (['["a"]', '["b", "a"]'], "json"),
        (["['a']", "['b', 'a']", "[]"], "json"),
        (["{'a'}", "{'b', \"a's\"}", "set()"], "json"),
        (["('a',)", "('b', 'a')"], "json"),
        (["[0.5, 0.25]", "[1.5, 2.5]"], None),
        ([[0.1, 0.2], [0.3, 0.4]], None),
        (["one", "two"], None),
        (["", None], None),
        (TEXTS, None),
        (["Well, this is a sentence, with commas", "and, so, is, this one, indeed"], None),
    ],
)
def test_other_cells(cells, expected):
    assert guess_separator(pd.Series(cells, dtype=object)) == expected


def test_every_kind_of_column():
    roles = roles_of(
        {
            "item_id": [f"x{i}" for i in range(N)],
            "body": TEXTS,
            "photo": [f"{i}.jpg" for i in range(N)],
            "size": np.arange(N) / 3,
            "colour": ["red", "blue"] * (N // 2),
            "vector": [np.array([0.5, i]) for i in range(N)],
            "serial": [f"s{i}" for i in range(N)],
            "same": [1] * N,
            "truth": ["cat"] * N,
            "gold": ["cat", ""] * (N // 2),
            "animals": sets(),
        }
    )
    assert roles.id == "item_id"
    assert roles.text == ("body",)
    assert roles.image == "photo"
    assert roles.numeric == ("size",)
    assert roles.categorical == ("colour",)
    assert roles.vectors == ("vector",)
    assert roles.gold == "gold"
    assert roles.candidates == ("animals",)
    assert roles.left_out.keys() == {"serial", "same", "truth"}
    assert "answer" in roles.left_out["truth"]
    shown = dict(line[:2] for line in roles.described())
    assert shown["candidates"] == "animals (separated by '|')"
    assert "same: constant" in shown["left out"]


def test_columns_of_zero_and_one():
    flags = {f"is_{k}": [int(i % 3 == k or i % 2 == 0) for i in range(N)] for k in range(3)}
    roles = roles_of({"size": np.arange(N) / 3, "is_red": np.ones(N), **flags})
    assert roles.candidates == ("is_red", "is_0", "is_1", "is_2")
    assert roles.separator == ""
    said = roles_of({"size": np.arange(N) / 3, **flags}, candidates=("is_*",))
    assert said.candidates == tuple(flags)


def test_every_guess_can_be_overridden():
    columns = {
        "id": [f"x{i}" for i in range(N)],
        "body": TEXTS,
        "size": np.arange(N) / 3,
        "age": np.arange(N) % 5,
        "tags": sets(),
        "others": sets(";"),
    }
    roles = roles_of(columns, id="none", text=("none",), exclude=("age",), candidates=("others",))
    assert (roles.id, roles.text, roles.numeric) == ("", (), ("size",))
    assert (roles.candidates, roles.separator) == (("others",), ";")
    only = roles_of(columns, features=("a*",))
    assert only.numeric == ("age",)
    assert only.text == ()
    assert only.left_out["size"] == "not named"
    both = roles_of(columns, features=("age", "e.npy"), text=("body",))
    assert both.text == ("body",)
    assert [path.name for path in both.files] == ["e.npy"]


def test_the_answer_becomes_a_feature_only_if_asked_for():
    columns = {"size": np.arange(N) / 3, "target": np.arange(N) % 2, "tags": sets()}
    assert roles_of(columns).numeric == ("size",)
    assert roles_of(columns, features=("target",)).numeric == ("target",)
    assert roles_of({**columns, "target": sets()}, gold="target").gold == "target"


@pytest.mark.parametrize(
    "word", ["?", "n/a", "-", "NULL", "#N/A", "missing", "NA", "", None, "odd"]
)
def test_a_stray_word_leaves_numbers_numbers(word):
    sizes = [word, *(f"{i / 3}" for i in range(1, N))]
    assert roles_of({"size": sizes, "tags": sets()}).numeric == ("size",)


@pytest.mark.parametrize(
    ("write", "style"),
    [
        (lambda x: f"{x:.2f}".replace(".", ","), "comma"),
        (lambda x: f"{x:.1f}%", "percent"),
        (lambda x: f"{x:.2f} %".replace(".", ","), "comma percent"),
    ],
)
def test_styles_of_numbers(write, style):
    roles = roles_of({"size": ["", *(write(i / 3) for i in range(1, N))], "tags": sets()})
    assert (roles.numeric, roles.styles) == (("size",), {"size": style})


def test_commas_that_may_divide_thousands_are_not_guessed(tmp_path):
    cells = [f"{i},{i % 7:03d}" for i in range(N)]
    columns = {"age": range(N), "size": cells, "tags": sets()}
    assert "thousands" in roles_of(columns).left_out["size"]
    pd.DataFrame(columns).to_csv(tmp_path / "a.csv", index=False, sep=";")
    roles = guess_roles(read_table(tmp_path / "a.csv"), Options())
    assert roles.styles == {"size": "comma"}


def test_cells_of_which_few_are_numbers_are_categories():
    codes = ["1", "2", "x", "y"] * (N // 4)
    assert roles_of({"code": codes, "tags": sets()}).categorical == ("code",)


@pytest.mark.parametrize("name", ["column_1", "Unnamed: 0"])
def test_an_index_that_pandas_wrote_is_no_feature(name):
    columns = {name: np.arange(N), "size": np.arange(N) / 3, "tags": sets()}
    roles = roles_of(columns)
    assert roles.numeric == ("size",)
    assert roles.left_out[name] == "the number of the row"
    assert roles_of({**columns, name: np.arange(N)[::-1]}).numeric == (name, "size")


def truth():
    return ["cat" if i % 2 == 0 or i % 3 else "dog" for i in range(N)]


@pytest.mark.parametrize(
    "answers",
    [truth(), [name.upper() for name in truth()], sets(";"), [["cat", "dog"], ["dog"]] * (N // 2)],
    ids=["labels", "in capitals", "sets", "lists"],
)
def test_columns_of_labels_become_features_only_if_asked_for(answers):
    columns = {"size": np.arange(N) / 3, "tags": sets(), "y": answers}
    roles = roles_of(columns, candidates=("tags",))
    assert roles.numeric == ("size",)
    assert roles.categorical == roles.text == ()
    assert "holds labels" in roles.left_out["y"]
    assert "--features" in roles.left_out["y"]
    if isinstance(answers[0], str):
        asked = roles_of(columns, candidates=("tags",), features=("y",))
        assert asked.categorical == ("y",)


def test_the_candidates_are_no_feature_beside_votes():
    votes = pd.DataFrame({"item": ["x1", "x1", "x2"], "label": ["cat", "dog", "cat"]})
    columns = {"id": [f"x{i}" for i in range(N)], "size": np.arange(N) / 3, "tags": sets()}
    assert "holds labels" in roles_of(columns, votes=votes).left_out["tags"]


def test_numbers_are_no_answers_unless_they_agree_with_the_candidates():
    rng = np.random.default_rng(0)
    answer = rng.integers(0, 3, N)
    tags = [str(a) if i % 2 else f"{a}|{(a + 1) % 3}" for i, a in enumerate(answer)]
    columns = {"rooms": rng.integers(0, 3, N), "y": answer, "tags": tags}
    roles = roles_of(columns)
    assert roles.numeric == ("rooms",)
    assert "holds labels" in roles.left_out["y"]


def test_results_of_an_earlier_run_are_no_features():
    results = {
        "label": truth(),
        "confidence": np.arange(N) / N,
        "runner_up": truth()[::-1],
        "margin": np.arange(N) / N,
        "review": [True, False] * (N // 2),
    }
    again = {f"resolved_{name}": cells for name, cells in results.items()}
    columns = {"size": np.arange(N) / 3, "tags": sets(), **results, **again}
    roles = roles_of(columns)
    assert roles.numeric == ("size",)
    assert roles.categorical == ()
    assert all("earlier run" in roles.left_out[name] for name in (*results, *again))
    alone = {name: columns[name] for name in ("size", "tags", "confidence")}
    assert roles_of(alone).numeric == ("size", "confidence")


def test_no_features():
    with pytest.raises(InputError, match="tell the rows apart"):
        roles_of({"tags": sets()})


@pytest.mark.parametrize("name", ["ticket_id", "TicketID", "ticketId", "ticket key", "id_ticket"])
def test_a_column_of_different_ids_is_the_id(name):
    columns = {"size": np.arange(N) / 3, "tags": sets()}
    assert roles_of({**columns, name: np.arange(N) + 1000}).id == name
    repeated = roles_of({**columns, name: np.arange(N) // 2})
    assert repeated.id == ""
    assert repeated.left_out == {name: "its name says that it is an id"}


@pytest.mark.parametrize("name", ["paid", "grid", "android", "keyboard"])
def test_other_names_are_no_ids(name):
    roles = roles_of({"size": np.arange(N) / 3, "tags": sets(), name: np.arange(N)})
    assert (roles.id, roles.numeric) == ("", ("size", name))


def test_words_that_name_rows_are_the_id():
    columns = {"size": np.arange(N) / 3, "tags": sets()}
    words = [f"AB-{n}" for n in range(N)]
    assert roles_of({**columns, "sku": words}).id == "sku"
    assert roles_of({**columns, "sku": words, "ticket_id": np.arange(N)}).id == "ticket_id"
    assert roles_of({**columns, "sku": words}, id="none").id == ""
    assert roles_of({**columns, "sku": words}, features=("sku",)).id == ""
    days = [f"2024-{1 + n // 28:02d}-{1 + n % 28:02d}" for n in range(N)]
    assert roles_of({**columns, "day": days}).id == ""
    assert roles_of({**columns, "photo": [f"{n}.jpg" for n in range(N)]}).image == "photo"
    assert roles_of({**columns, "extension": [".jpg"] * N}).image == ""


VOTES = {"tag": ["a", "b", "b", "a"], "agent": ["ada", "ben", "ada", "ben"]}


@pytest.mark.parametrize(
    ("table", "votes", "expected"),
    [
        ({"ticket_id": "t"}, {"ticket_id": "t"}, ("ticket_id", "ticket_id", "tag", "agent")),
        (
            {"id": "", "ticket_id": "t"},
            {"ticket_id": "t"},
            ("ticket_id", "ticket_id", "tag", "agent"),
        ),
        ({"id": "t"}, {"item": "t", "id": "v"}, ("id", "item", "tag", "agent")),
        ({"ref": "t"}, {"ref": "t"}, ("ref", "ref", "tag", "agent")),
        ({"ticket_id": "t"}, {"number": "t"}, ("ticket_id", "number", "tag", "agent")),
    ],
    ids=["a name", "not the first id", "votes with ids", "any shared column", "the same values"],
)
def test_the_columns_of_votes_are_found_by_what_they_share(table, votes, expected):
    frame = {name: [f"{mark}{n}" for n in range(N)] for name, mark in table.items()}
    items = {name: [f"{mark}{n}" for n in (0, 0, 1, 2)] for name, mark in votes.items()}
    given = pd.DataFrame({**items, **VOTES})
    roles = roles_of({"size": np.arange(N) / 3, **frame}, votes=given)
    found = roles.vote_table
    assert (roles.id, found.item, found.label, found.who) == expected
    assert f"item {found.item}, label tag, annotator agent" in roles.described()[0][1]


def test_votes_for_row_numbers_and_for_words_that_name_rows():
    frame = {"size": np.arange(N) / 3, "sku": [f"AB-{n}" for n in range(N)]}
    numbers = pd.DataFrame({"item": ["1", "1", "2"], "label": list("aba")})
    assert roles_of(frame, votes=numbers).id == ""
    words = pd.DataFrame({"product": ["AB-0", "AB-0", "AB-2"], "label": list("aba")})
    roles = roles_of(frame, votes=words)
    assert (roles.id, roles.vote_table.item) == ("sku", "product")


def test_the_one_column_that_is_left_is_the_label_or_the_annotator():
    frame = {"size": np.arange(N) / 3, "ticket_id": [f"t{n}" for n in range(N)]}
    given = pd.DataFrame({"ticket_id": ["t0", "t0", "t1", "t2"], "topic": list("abba")})
    assert roles_of(frame, votes=given).vote_table.label == "topic"
    named = given.assign(who=list("xyxy"))
    assert roles_of(frame, votes=named).vote_table[1:] == ("ticket_id", "topic", "who")
    said = given.rename(columns={"topic": "label"}).assign(desk=list("xyxy"))
    assert roles_of(frame, votes=said).vote_table.who == "desk"
    dated = said.assign(desk=[f"2024-01-0{n}" for n in range(1, 5)])
    assert roles_of(frame, votes=dated).vote_table.who == ""


def test_of_two_columns_left_the_annotators_are_those_who_vote_once_for_an_item():
    frame = {"size": np.arange(N) / 3, "ticket_id": [f"t{n}" for n in range(N)]}
    given = pd.DataFrame({"ticket_id": ["t0", "t0", "t1", "t1"], "topic": list("aaba")})
    named = given.assign(by=list("xyxy"))
    assert roles_of(frame, votes=named).vote_table[1:] == ("ticket_id", "topic", "by")
    assert roles_of(frame, votes=named[["by", "topic", "ticket_id"]]).vote_table.label == "topic"
    for unclear in (named[1:], given.assign(at=[f"2024-01-0{n}" for n in range(1, 5)])):
        with pytest.raises(InputError, match="do not say which is the label: name them"):
            roles_of(frame, votes=unclear)


def test_all_ids_that_stand_twice_are_named():
    cells = [f"t{n}" for n in range(N)]
    cells[5:8] = cells[:3]
    table = table_from_frame(pd.DataFrame({"size": np.arange(N) / 3, "no": cells, "tags": sets()}))
    with pytest.raises(
        InputError, match=r"3 ids stand twice in the column no of .*: 't0' in rows 1, 6"
    ):
        row_ids(table, guess_roles(table, Options(id="no")))


def test_an_id_that_stands_twice_is_named():
    frame = pd.DataFrame(
        {
            "ticket_id": ["t0", "t1", "t1", *(f"t{row}" for row in range(3, 20))],
            "size": np.arange(20) % 7 + 0.5,
            "tags": ["a|b", "b"] * 10,
        }
    )
    roles = guess_roles(table_from_frame(frame), Options())
    assert roles.id == ""
    assert "1 id stands twice: 't1' in rows 2, 3" in roles.left_out["ticket_id"]
