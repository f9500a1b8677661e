import json

import numpy as np
import pandas as pd
import pytest

from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.tables import read_table, table_from_frame


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path, delimiter):
    rows = [["id", "text", "size"], ["1", "one, two; three", "1.5"], ["2", "four", ""]]
    text = "\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    table = read_table(write(tmp_path / "a.csv", text))
    assert table.delimiter == delimiter
    assert table.frame["text"].tolist() == ["one, two; three", "four"]
    assert table.frame["size"].tolist() == pytest.approx([1.5, np.nan], nan_ok=True)


def test_labels_divided_by_a_bar_do_not_mislead_the_guess(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "id,tags\n1,a|b|c\n2,a|b|c\n3,b|c|d\n"))
    assert table.delimiter == ","


def test_cells_are_kept_as_they_were_written(tmp_path):
    text = 'id,note\n007,"two\nlines"\n1e3," spaced "\n'
    table = read_table(write(tmp_path / "a.csv", text))
    assert table.cells.to_pydict() == {"id": ["007", "1e3"], "note": ["two\nlines", " spaced "]}
    assert table.text("id").tolist() == ["007", "1e3"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
def test_encodings(tmp_path, encoding):
    path = write(tmp_path / "a.csv", "id,name\n1,Käfer\n", encoding)
    told = None if encoding == "utf-8-sig" else encoding
    table = read_table(path, encoding=told)
    assert table.frame.columns.tolist() == ["id", "name"]
    assert table.frame["name"].tolist() == ["Käfer"]


def test_json_lines_and_json(tmp_path):
    records = [{"id": 1, "size": 2, "tags": ["a"]}, {"id": 2, "size": None, "more": "x"}]
    lines = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, records)) + "\n\n")
    whole = write(tmp_path / "a.json", json.dumps(records))
    for table in (read_table(lines), read_table(whole)):
        assert table.frame["size"].tolist() == pytest.approx([2, np.nan], nan_ok=True)
        assert table.frame["tags"].tolist() == [["a"], None]
        assert table.text("id").tolist() == ["1", "2"]


def test_parquet_keeps_types(tmp_path):
    frame = pd.DataFrame({"n": [1, 2], "v": [[0.5, 1.0], [1.5, 2.0]], "s": ["a", None]})
    frame.to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.frame["n"].tolist() == [1, 2]
    assert table.frame["v"][1].tolist() == [1.5, 2.0]
    assert table.text("s").tolist() == ["a", ""]


def test_blank_names_get_one(tmp_path):
    table = read_table(write(tmp_path / "a.csv", ",size\n0,1\n1,2\n"))
    assert table.frame.columns.tolist() == ["column_1", "size"]


def test_the_line_that_names_the_delimiter(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "sep=;\nid;size\n1;2,5\n2;3\n"))
    assert table.frame.columns.tolist() == ["id", "size"]
    assert table.cells["size"].to_pylist() == ["2,5", "3"]
    with pytest.raises(InputError, match=r"Line 3 of .* has 1 cell but the header has 2"):
        read_table(write(tmp_path / "a.csv", "sep=;\nid;size\n1\n"))


def test_the_mark_of_utf_8_is_kept(tmp_path):
    from gmpll.apps.tables.output import write_table

    for mark in (b"", b"\xef\xbb\xbf"):
        (tmp_path / "a.csv").write_bytes(mark + "id,name\n1,Käfer\n".encode())
        write_table(read_table(tmp_path / "a.csv"), {"label": ["x"]}, tmp_path / "b.csv")
        assert (tmp_path / "b.csv").read_bytes() == mark + "id,name,label\n1,Käfer,x\n".encode()


def test_words_for_missing_numbers(tmp_path):
    words = ["?", "n/a", "-", "NULL", "#N/A", "missing", "None", "nan"]
    text = "id,size\n" + "".join(f"{i},{word}\n" for i, word in enumerate(["1.5", *words]))
    sizes = read_table(write(tmp_path / "a.csv", text)).frame["size"]
    assert sizes[0] == 1.5
    assert sizes[1:].isna().all()


def test_a_frame_needs_rows_and_different_names():
    with pytest.raises(InputError, match="no rows"):
        table_from_frame(pd.DataFrame({"a": []}))
    with pytest.raises(InputError, match="two columns"):
        table_from_frame(pd.DataFrame([[1, 2]], columns=["1", 1]))


def test_numbers_as_text():
    table = table_from_frame(pd.DataFrame({"a": [1.0, 2.5, np.nan], "b": [[1, 2], ["x"], []]}))
    assert table.text("a").tolist() == ["1", "2.5", ""]
    assert table.text("b").tolist() == ["1, 2", "x", ""]
