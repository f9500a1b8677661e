import numpy as np
import pandas as pd
import pytest

from gmpll.disambiguation.errors import InputError
from gmpll.disambiguation.guesses import guess_roles, guess_separator
from gmpll.disambiguation.options import Options
from gmpll.disambiguation.tables import read_table, table_from_frame

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


def test_no_features():
    with pytest.raises(InputError, match="tell the rows apart"):
        roles_of({"tags": sets()})
