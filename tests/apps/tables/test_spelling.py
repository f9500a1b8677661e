"""Labels written in several ways: noted with the remedy, merged and renamed."""

import json

import pandas as pd
import pytest

from gmpll.apps.tables import InputError, disambiguate
from gmpll.apps.tables.candidate_sets import label_sets, row_ids
from gmpll.apps.tables.guesses import guess_roles
from gmpll.apps.tables.labels import Options
from gmpll.apps.tables.spelling import read_renames
from gmpll.apps.tables.tables import table_from_frame

TAGS = ["Cat|dog", "cat", "dog|CAT", "Cat", "café|dog", "cafe"]


def sets_of(tags=TAGS, columns=(), **options):
    frame = pd.DataFrame({"size": range(len(tags)), "tags": tags, **dict(columns)})
    table = table_from_frame(frame)
    options = Options(candidates=("tags",), separator="|", **options)
    roles = guess_roles(table, options)
    return label_sets(table, roles, options, row_ids(table, roles))


def lists(sets):
    return [sets.classes[row].tolist() for row in sets.mask]


def test_one_note_lists_all_groups_with_counts_and_the_remedy():
    (note,) = sets_of().problems
    assert note == (
        "2 labels are written in several ways: 'Cat' (2), 'CAT' (1), 'cat' (1); 'cafe' (1), 'café' "
        "(1); --merge-labels makes one of those that differ in case, spaces or Unicode form, "
        "--rename OLD=NEW makes one of any others"
    )
    (note,) = sets_of(["cafe|café", "dog", "cafe"]).problems
    assert "--merge-labels" not in note
    (note,) = sets_of(["cafe|Cafe", "dog", "café"]).problems
    assert "--merge-labels" in note
    assert "--rename" in note  # the accent stays


def test_variants_are_merged_and_what_was_merged_is_told():
    sets = sets_of(merge_labels=True)
    assert lists(sets)[:4] == [["Cat", "dog"], ["Cat"], ["Cat", "dog"], ["Cat"]]
    assert sets.merged == {"Cat": {"CAT": 1, "cat": 1}}
    assert "labels were merged or renamed: 'CAT' (1), 'cat' (1) became 'Cat'" in sets.problems
    assert any("'cafe' (1), 'café' (1); --rename" in note for note in sets.problems)
    both = sets_of(merge_labels=True, rename={"Cafe": "café"})
    assert both.classes.tolist() == ["Cat", "café", "dog"]
    assert len(both.problems) == 1


def test_known_and_impossible_labels_are_written_like_the_others():
    columns = {"gold": ["", "", "cAT", "", "", ""], "never": ["dOg", "", "", "", "", ""]}
    sets = sets_of(columns=columns, merge_labels=True, impossible="never")
    assert sets.classes[sets.gold[2]] == "Cat"
    assert lists(sets)[0] == ["Cat"]
    assert not any("rules out" in note for note in sets.problems)
    with pytest.raises(InputError, match="the known label 'cAT', which is nobody's candidate"):
        sets_of(columns=columns)


def test_a_spelling_that_is_allowed_wins():
    tags = ["Cat|dog", "Cat", "dog|cat"]
    sets = sets_of(tags, merge_labels=True, labels=("cat", "dog"))
    assert sets.classes.tolist() == ["cat", "dog"]


def test_votes_for_variants_are_votes_for_one_label():
    frame = pd.DataFrame({"id": list("xyz"), "size": [1.0, 2.0, 3.0]})
    votes = pd.DataFrame(
        {"item": list("xxyz"), "label": ["Cat", "cat", "dog", "Cat"], "annotator": list("aaab")}
    )
    options = Options(votes=votes, merge_labels=True)
    table = table_from_frame(frame)
    roles = guess_roles(table, options)
    sets = label_sets(table, roles, options, row_ids(table, roles))
    assert sets.weights.tolist() == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("names.json", json.dumps({"cat": "Cat", "CAT": "Cat"})),
        ("names.csv", "old,new\ncat,Cat\nCAT,Cat\n"),
        ("names.tsv", "New\tOld\nCat\tcat\nCat\tCAT\n"),
        ("rows.json", json.dumps([{"old": "cat", "new": "Cat"}, {"old": "CAT", "new": "Cat"}])),
    ],
)
def test_a_file_has_new_names(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_renames([str(tmp_path / name)]) == {"cat": "Cat", "CAT": "Cat"}
    sets = sets_of(rename=[str(tmp_path / name), "café=cafe"])
    assert sets.classes.tolist() == ["Cat", "cafe", "dog"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["=x"], "it needs OLD=NEW"),
        (["cat="], "it needs OLD=NEW"),
        (["emu=cat"], "'emu', which is no label: the labels are 'CAT'"),
        (["cat=a", "cat=b"], "gives 'cat' the names 'a' and 'b'"),
        (["nowhere.csv"], "neither OLD=NEW nor a file"),
        (["wrong.csv"], "needs the columns old and new; it has a, b"),
        (["wrong.json"], "must hold new names by old ones"),
        (["broken.json"], "is not valid JSON"),
        (["latin.json"], "is not UTF-8"),
    ],
)
def test_bad_names_are_refused_in_one_sentence(tmp_path, monkeypatch, given, words):
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    (tmp_path / "wrong.json").write_text('{"a": 1}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "latin.json").write_bytes('{"é": "e"}'.encode("latin-1"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        sets_of(rename=given)
    assert words in str(caught.value)


def test_the_command_and_python_merge(tmp_path, command):
    frame = pd.DataFrame({"size": [1.0, 1.1, 8.0, 8.2], "tags": ["a|B", "A", "b", "a|b"]})
    frame.to_csv(tmp_path / "in.csv", index=False)
    options = ["--merge-labels", "--rename", "b=bee", "--method", "plknn"]
    code, output, error = command("disambiguate", tmp_path / "in.csv", *options)
    assert (code, error) == (0, "")
    assert "became 'bee'" in " ".join(output.split())
    found = pd.read_csv(tmp_path / "in-resolved" / "resolved.csv")["label"].tolist()
    assert found == ["a", "a", "bee", "bee"]
    page = (tmp_path / "in-resolved" / "report.html").read_text(encoding="utf-8")
    assert "labels were merged or renamed" in page.lower()
    assert "<dt>merged into bee</dt><dd>B (1), b (2)</dd>" in page
    again = disambiguate(frame, merge_labels=True, rename={"b": "bee"}, method="plknn")
    assert [str(label) for label in again["label"]] == found
