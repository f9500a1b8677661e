import csv
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmpll.apps.tables.cells import escape_formula
from gmpll.apps.tables.output import output_folder, write_table
from gmpll.apps.tables.tables import read_table

ADDED = {"label": ["=x", "b"], "confidence": [0.5, 1.0], "review": [True, False]}


@given(st.text())
def test_every_cell_finds_its_way_back(cell):
    assert escape_formula(cell).removeprefix("'") == cell


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_stay(value):
    assert escape_formula(repr(value)) == repr(value)


@pytest.mark.parametrize(
    "cell", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-a", "'=1"]
)
def test_formulas_are_made_harmless(cell):
    assert escape_formula(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "cat", "-1", "+2.5e3", "1=1"])
def test_other_cells_stay_as_they_are(cell):
    assert escape_formula(cell) == cell.removeprefix("'") == cell


def test_delimited_text_keeps_every_cell(tmp_path):
    text = 'id;note\n007;"two\nlines; quoted"\n=A1;-5\n'
    (tmp_path / "a.csv").write_text(text)
    table = read_table(tmp_path / "a.csv")
    write_table(table, ADDED, tmp_path / "out.csv")
    rows = list(csv.reader((tmp_path / "out.csv").open(newline=""), delimiter=";"))
    assert rows == [
        ["id", "note", "label", "confidence", "review"],
        ["007", "two\nlines; quoted", "'=x", "0.5", "true"],
        ["'=A1", "-5", "b", "1.0", "false"],
    ]
    write_table(table, ADDED, tmp_path / "raw.csv", escape=False)
    raw = list(csv.reader((tmp_path / "raw.csv").open(newline=""), delimiter=";"))
    assert [row[0] for row in raw] == ["id", "007", "=A1"]


def test_the_encoding_of_the_input_is_kept(tmp_path):
    (tmp_path / "a.csv").write_bytes("id,note\n1,Käfer\n2,x\n".encode("latin-1"))
    write_table(read_table(tmp_path / "a.csv", encoding="latin-1"), ADDED, tmp_path / "b.csv")
    assert "Käfer" in (tmp_path / "b.csv").read_text("latin-1")


def test_parquet_keeps_types_and_gets_columns(tmp_path):
    frame = pd.DataFrame({"n": [1, 2], "v": [[0.5], [1.5]]})
    frame.to_parquet(tmp_path / "a.parquet")
    write_table(read_table(tmp_path / "a.parquet"), ADDED, tmp_path / "b.parquet")
    back = pd.read_parquet(tmp_path / "b.parquet")
    assert back["n"].tolist() == [1, 2]
    assert back["v"].map(list).tolist() == [[0.5], [1.5]]
    assert back["label"].tolist() == ["=x", "b"]
    assert back["review"].dtype == bool


def test_json_lines_keep_their_objects(tmp_path):
    records = [{"id": 1, "nested": {"a": [1, None]}}, {"other": "ü"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    write_table(read_table(tmp_path / "a.jsonl"), ADDED, tmp_path / "b.jsonl")
    back = [json.loads(line) for line in (tmp_path / "b.jsonl").open(encoding="utf-8")]
    assert back[0] == {**records[0], "label": "=x", "confidence": 0.5, "review": True}
    assert back[1]["other"] == "ü"


def test_files_appear_together_and_others_stay(tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    (target / "decisions.sqlite").write_text("mine")
    (target / "resolved.parquet").write_text("of an earlier run in another format")
    with output_folder(target) as staging:
        (staging / "resolved.csv").write_text("new")
        assert sorted(p.name for p in target.iterdir()) == ["decisions.sqlite", "resolved.parquet"]
    assert sorted(p.name for p in target.iterdir()) == ["decisions.sqlite", "resolved.csv"]
    assert list(tmp_path.iterdir()) == [target]


def test_a_failing_block_leaves_nothing(tmp_path):
    def fail():
        with output_folder(tmp_path / "a" / "b") as staging:
            (staging / "x").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []
