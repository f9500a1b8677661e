import datetime
import json
import sys

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
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


PACKED = {".gz": "gzip", ".zst": "zstd"}


def packed(path, raw):
    with pa.output_stream(str(path), compression=PACKED[path.suffix]) as stream:
        stream.write(raw)
    return path


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("csv", "id,name\n007,K\u00e4fer\n008,\n"),
        ("jsonl", '{"id": "007", "name": "K\u00e4fer"}\n{"id": "008", "name": ""}\n'),
    ],
)
def test_packed_files_are_read(tmp_path, ending, kind, text):
    table = read_table(packed(tmp_path / f"a.{kind}{ending}", text.encode()))
    assert table.format == kind
    assert table.text("id").tolist() == ["007", "008"]
    assert table.text("name").tolist() == ["K\u00e4fer", ""]
    if kind == "jsonl":
        assert table.records()[0] == {"id": "007", "name": "K\u00e4fer"}


@pytest.mark.parametrize("ending", PACKED)
def test_bad_packed_files_are_refused(tmp_path, ending):
    path = packed(tmp_path / f"a.csv{ending}", b"id,name\n" + b"1,a\n" * 5000)
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InputError, match="is no readable"):
        read_table(path)
    path.write_bytes(b"id,name\n1,a\n")
    with pytest.raises(InputError, match="is no readable"):
        read_table(path)
    with pytest.raises(InputError, match="is empty"):
        read_table(packed(path, b""))
    with pytest.raises(InputError, match="does not end in"):
        read_table(packed(tmp_path / f"a{ending}", b"x"))


def test_a_packed_file_cannot_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("gmpll.apps.tables.tables._MAX_SMALL", 10_000)
    path = packed(tmp_path / "a.csv.gz", b"id,name\n" + b"1,a\n" * 100_000)
    with pytest.raises(InputError, match="more than 200 times its size: unpack it"):
        read_table(path)


def workbook(path, sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_excel_files_are_read_as_they_would_be_written(tmp_path):
    rows = [
        ["id", "size", "day", "open", None, "note"],
        ["007", 1.5, datetime.date(2024, 2, 29), True, None, None],
        [None] * 6,
        [8, 2, datetime.datetime(2024, 3, 1, 12, 30), False, None, "two\nlines"],
    ]
    path = workbook(tmp_path / "a.xlsx", {"empty": [], "data": rows, "more": [["x"]]})
    table = read_table(path)
    assert table.cells.to_pydict() == {
        "id": ["007", "8"],
        "size": ["1.5", "2"],
        "day": ["2024-02-29", "2024-03-01T12:30:00"],
        "open": ["true", "false"],
        "note": ["", "two\nlines"],
    }
    assert table.notes == ("sheet 'data', not 'empty', 'more'",)
    assert table.frame["size"].tolist() == [1.5, 2]
    assert (table.format, table.encoding) == ("csv", "utf-8-sig")


def test_bad_excel_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="is empty"):
        read_table(workbook(tmp_path / "a.xlsx", {"empty": []}))
    with pytest.raises(InputError, match="no rows below its header"):
        read_table(workbook(tmp_path / "a.xlsx", {"one": [["a", "b"]]}))
    with pytest.raises(InputError, match="two columns named 'a'"):
        read_table(workbook(tmp_path / "a.xlsx", {"one": [["a", "a"], [1, 2]]}))
    path = workbook(tmp_path / "a.xlsx", {"one": [["a", "b"], [1, 2]]})
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="is no readable Excel file"):
        read_table(path)
    workbook(path, {"one": [["a", "b"], *([1, 2] for _ in range(3000))]})
    monkeypatch.setattr("gmpll.apps.tables.tables._MAX_SMALL", 10)
    monkeypatch.setattr("gmpll.apps.tables.tables._MAX_RATIO", 2)
    with pytest.raises(InputError, match="more than 2 times its size"):
        read_table(path)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"pip install 'gmpll\[excel\]'"):
        read_table(path)
