"""Every bad input is one clear sentence and exit code 2, and leaves nothing behind."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

HEADER = "id,size,weight,tags\n"
ROWS = "".join(f"{i},{i % 7}.5,{i % 5},{'a|b' if i % 2 else 'a'}\n" for i in range(20))
GOOD = HEADER + ROWS


def lines(*extra):
    return GOOD + "".join(f"{line}\n" for line in extra)


def parquet(frame):
    from io import BytesIO

    buffer = BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def npy(array):
    from io import BytesIO

    buffer = BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


VECTORS = np.random.default_rng(0).normal(size=(20, 3))
WITH_NAN = VECTORS.copy()
WITH_NAN[4, 1] = np.nan
TASK = {"annotations": []}
ANSWERED = {
    "id": 6,
    "data": {"size": 1},
    "annotations": [{"result": [{"type": "choices", "value": {"choices": ["a"]}}]}],
}
ARGILLA = {"id": "1", "fields": {"text": "x"}, "responses": {"a": [], "b": []}}

# name -> content of in.csv (or {file: content}), further arguments, part of the sentence
CASES = {
    "no such file": ({}, ["nowhere.csv"], "There is no file"),
    "a folder": ({"sub/x": "1"}, ["sub"], "is a folder"),
    "unknown ending": ({"in.dat": GOOD}, ["in.dat"], "--format"),
    "a spreadsheet": ({"in.ods": "PK"}, ["in.ods"], "save it as .xlsx or CSV"),
    "a broken Excel file": ({"in.xlsx": "PK"}, ["in.xlsx"], "is no readable Excel file"),
    "unknown format": (GOOD, ["--format", "xml"], "There is no format"),
    "empty file": ("", [], "is empty"),
    "header only": (HEADER, [], "has no rows"),
    "blank first line": ("\n" + GOOD, [], "has no header"),
    "wrong delimiter": (GOOD, ["--delimiter", ";"], "--delimiter"),
    "a long delimiter": (GOOD, ["--delimiter", "::"], "not one character"),
    "too many cells": (lines("20,1,1,a,extra"), [], "Line 22"),
    "too few cells": (lines("20,1"), [], "has 2 cells but the header has 4"),
    "open quote": (lines('20,1,1,"a'), [], "begins in line 22 of in.csv"),
    "open quote further up": (lines('20,"1,1,a', "21,1,1,a"), [], "begins in line 22 of in.csv"),
    "two columns of a name": ("id,size,size,tags\n1,2,3,a|b\n", [], "two columns named 'size'"),
    "binary junk": (b"\x00\x01\x02\xff" * 99, [], "binary data"),
    "UTF-16": (GOOD.encode("utf-16"), [], "--encoding utf-16"),
    "Latin-1": (lines("20,1,1,Käfer").encode("latin-1"), [], "is not UTF-8"),
    "Latin-1 far down": (
        (HEADER + ROWS * 900 + "9,1,1,Käfer\n").encode("latin-1"),
        [],
        "is not UTF-8",
    ),
    "unknown encoding": (GOOD, ["--encoding", "klingon"], "There is no encoding"),
    "missing candidate column": (GOOD, ["--candidates", "labels"], "has no column 'labels'"),
    "no annotators": (GOOD, ["--annotators", ""], "--annotators is empty: name something"),
    "a list of nothing": (GOOD, ["--labels", " , "], "--labels is empty"),
    "no share": (GOOD, ["--annotators", "size,weight", "--min-share", "nan"], "--min-share is nan"),
    "no separator": (GOOD, ["--separator", ""], "--separator is empty"),
    "missing text column": (GOOD, ["--text", "body"], "which --text names"),
    "missing id column": (GOOD, ["--id", "key"], "which --id names"),
    "missing gold column": (GOOD, ["--gold", "gold"], "which --gold names"),
    "missing excluded column": (GOOD, ["--exclude", "x"], "which --exclude names"),
    "unknown feature": (GOOD, ["--features", "height"], "neither a column"),
    "no candidates": ("id,size\n1,2\n2,3\n", [], "--candidates"),
    "empty set": (lines("20,1,1,"), [], "Row 21 (id '20') has no candidate"),
    "only separators": (lines("20,1,1,|"), [], "has no candidate"),
    "unknown label": (lines("20,1,1,zebra"), ["--labels", "a,b"], "unknown label 'zebra'"),
    "unknown gold label": (
        GOOD.replace("tags", "tags,gold")
        .replace("\n0,0.5,0,a\n", "\n0,0.5,0,a,emu\n")
        .replace("a|b\n", "a|b,\n")
        .replace(",a\n", ",a,\n"),
        ["--gold", "gold"],
        "nobody's candidate",
    ),
    "duplicate ids": (
        lines("3,1,1,a|b"),
        ["--id", "id"],
        "1 id stands twice in the column id of in.csv: '3' in rows 4, 21;",
    ),
    "absent id": (lines(",1,1,a|b"), ["--id", "id"], "has no id"),
    "infinite feature": (lines("20,inf,1,a"), [], "infinite"),
    "constant features": (
        "id,size,tags\n" + "".join(f"{i},1,{'a|b' if i else 'a'}\n" for i in range(9)),
        [],
        "constant",
    ),
    "mixed types": (lines("20,big,1,a"), ["--features", "size", "--exclude", "weight"], None),
    "one row": (HEADER + "1,2,3,a|b\n", [], "one row only"),
    "one class": (GOOD.replace("a|b", "a"), [], "nothing to resolve"),
    "nothing ambiguous": (GOOD.replace("a|b", "b"), [], "one candidate only"),
    "everything known": (
        GOOD.replace("tags", "tags,gold").replace("a|b\n", "a|b,b\n").replace(",a\n", ",a,a\n"),
        [],
        "because of the known labels in the column gold",
    ),
    "wrong separator": (GOOD, ["--separator", ";"], "--separator"),
    "broken JSON list": (
        GOOD.replace("a|b", '"[""a"""'),
        ["--candidates", "tags", "--separator", "json"],
        "is no list of labels like",
    ),
    "a broken Python list": (
        GOOD.replace("a|b", "\"['a', 'b']\"")
        .replace(",a\n", ",['a']\n")
        .replace("['a']", "['a", 1),
        [],
        'Row 1 of in.csv, column tags holds "[\'a", which is no list of labels',
    ),
    "a million labels": (
        "size,tags\n" + "".join(f"{i},l{i}|m{i}\n" for i in range(6000)) + "1,x|y\n",
        ["--candidates", "tags"],
        "12002 different labels",
    ),
    "flag that is no flag": (
        "size,is_a,is_b\n1,1,0\n2,0,Maybe\n",
        ["--candidates", "is_a,is_b"],
        "holds 'Maybe': with several candidate columns every cell must be 0 or 1",
    ),
    "broken Parquet": (
        {"in.parquet": parquet(pd.DataFrame({"a": [1]}))[:-20]},
        ["in.parquet"],
        "no readable Parquet",
    ),
    "Parquet that is text": ({"in.parquet": GOOD}, ["in.parquet"], "no readable Parquet"),
    "broken JSON line": ({"in.jsonl": '{"a": 1}\n{"a": \n'}, ["in.jsonl"], "Line 2"),
    "JSON line without object": ({"in.jsonl": "[1, 2]\n"}, ["in.jsonl"], "no JSON object"),
    "broken JSON": ({"in.json": "[{"}, ["in.json"], "not valid JSON"),
    "JSON without a list": ({"in.json": "{}"}, ["in.json"], "a list of JSON objects"),
    "empty JSON list": ({"in.json": "[]"}, ["in.json"], "holds no rows"),
    "Label Studio without answers": (
        {"in.json": json.dumps([{**TASK, "id": i, "data": {"size": i}} for i in range(3)])},
        ["in.json"],
        "no label",
    ),
    "Argilla with two questions": (
        {"in.json": json.dumps([ARGILLA] * 3)},
        ["in.json"],
        "several questions",
    ),
    "Label Studio task without data": (
        {"in.json": json.dumps([ANSWERED, {"id": 7, "annotations": []}])},
        ["in.json"],
        "Task 2 (id '7') of the Label Studio export has no 'data'",
    ),
    "a share without votes": (GOOD, ["--min-share", "0.3"], "--min-share is about votes"),
    "columns of no votes": (GOOD, ["--vote-columns", "a,b"], "--vote-columns is about votes"),
    "text that is numbers": (GOOD, ["--text", "size"], "size holds numbers and no text"),
    "votes for nobody": (
        {"in.csv": GOOD, "v.csv": "item,label\nx,a\ny,b\n"},
        ["in.csv", "--votes", "v.csv"],
        "is the id of a row",
    ),
    "votes without columns": (
        {"in.csv": GOOD, "v.csv": "p,q\nx,a\n"},
        ["in.csv", "--votes", "v.csv"],
        "--vote-columns",
    ),
    "votes without a label": (
        {"in.csv": GOOD, "v.csv": "item,label\n1,\n"},
        ["in.csv", "--votes", "v.csv"],
        "no item or no label",
    ),
    "a row without votes": (
        {"in.csv": GOOD, "v.csv": "item,label\n1,a\n1,b\n"},
        ["in.csv", "--votes", "v.csv"],
        "Row 1 (id '0') and 18 more rows have no candidate label",
    ),
    "votes and candidates": (
        {"in.csv": GOOD, "v.csv": "item,label\n1,a\n"},
        ["in.csv", "--votes", "v.csv", "--candidates", "tags"],
        "leave out all but one",
    ),
    "no votes file": (GOOD, ["--votes", "v.csv"], "There is no file"),
    "bad share": (
        {"in.csv": GOOD, "v.csv": "item,label\n1,a\n1,b\n"},
        ["in.csv", "--votes", "v.csv", "--min-share", "2"],
        "--min-share is 2.0",
    ),
    "embeddings of other length": (
        {"in.csv": GOOD, "e.npy": npy(VECTORS[:7])},
        ["in.csv", "--features", "e.npy"],
        "are for 7 rows",
    ),
    "embeddings with NaN": (
        {"in.csv": GOOD, "e.npy": npy(WITH_NAN)},
        ["in.csv", "--features", "e.npy"],
        "embedding of row 5",
    ),
    "embeddings that are junk": (
        {"in.csv": GOOD, "e.npy": "junk"},
        ["in.csv", "--features", "e.npy"],
        "cannot be read",
    ),
    "embeddings that are pickled": (
        {"in.csv": GOOD, "e.npy": npy(np.array([{}] * 20, dtype=object))},
        ["in.csv", "--features", "e.npy"],
        "cannot be read",
    ),
    "no embeddings": (GOOD, ["--features", "e.npy"], "There is no embeddings file"),
    "text without words": (
        "note,tags\n" + "".join(f"! ? {'-' * i},{'a|b' if i else 'a'}\n" for i in range(9)),
        ["--text", "note"],
        "--text",
    ),
    "unknown method": (GOOD, ["--method", "magic"], "There is no method"),
    "unknown rule for empty sets": (GOOD, ["--empty", "maybe"], "--empty"),
    "margin beyond one": (GOOD, ["--review-below", "3"], "between 0 and 1"),
    "output is a file": ({"in.csv": GOOD, "o": ""}, ["in.csv", "--out", "o"], "is a file"),
    "output below a file": ({"in.csv": GOOD, "o": ""}, ["in.csv", "--out", "o/p"], "cannot be"),
    "output holds results": (
        {"in.csv": GOOD, "o/report.html": "mine"},
        ["in.csv", "--out", "o"],
        "holds results already",
    ),
}


def write_files(folder, content):
    files = content if isinstance(content, dict) else {"in.csv": content}
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)


def everything_in(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def folders_in(folder):
    return {p.relative_to(folder) for p in folder.rglob("*") if p.is_dir()}


def test_the_list_is_long():
    assert len(CASES) >= 40


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case[2]])
def test_is_one_sentence_and_leaves_nothing(name, tmp_path, monkeypatch, command):
    content, arguments, words = CASES[name]
    write_files(tmp_path, content)
    monkeypatch.chdir(tmp_path)
    before, folders = everything_in(tmp_path), folders_in(tmp_path)
    if not isinstance(content, dict):
        arguments = ["in.csv", *arguments]
    code, _, error = command("disambiguate", *arguments)
    assert code == 2
    assert words in error
    assert error.startswith("gmpll: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    assert everything_in(tmp_path) == before
    assert folders_in(tmp_path) == folders


def test_a_word_among_numbers_is_a_missing_number_and_said(tmp_path, command):
    content, arguments, _ = CASES["mixed types"]
    write_files(tmp_path, content)
    code, out, _ = command("disambiguate", tmp_path / "in.csv", *arguments, "--dry-run")
    assert code == 0
    assert "numbers       size" in out
    said = "20 of 21 cells of size are numbers; row 21 holds 'big': treated as missing"
    assert said in " ".join(out.split())


def test_many_words_among_numbers_make_categories(tmp_path, command):
    write_files(tmp_path, lines(*(f"{i},big,1,a" for i in range(20, 25))))
    code, out, _ = command(
        "disambiguate",
        tmp_path / "in.csv",
        "--features",
        "size",
        "--exclude",
        "weight",
        "--dry-run",
    )
    assert code == 0
    assert "categories    size" in out


def test_missing_numbers_are_filled_and_said(tmp_path, command):
    write_files(tmp_path, lines("20,,1,a|b", "21,NaN,1,a"))
    code, out, _ = command("disambiguate", tmp_path / "in.csv", "--out", tmp_path / "o")
    assert code == 0
    assert "2 numbers are missing" in " ".join(out.split())


def test_a_constant_column_is_left_out_and_said(tmp_path, command):
    text = GOOD.replace(",tags", ",same,tags").replace(",a", ",1,a")
    write_files(tmp_path, text)
    code, out, _ = command("disambiguate", tmp_path / "in.csv", "--dry-run")
    assert code == 0
    assert "same: constant" in out


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch, command):
    write_files(tmp_path, GOOD)
    monkeypatch.setattr("gmpll.apps.tables.output.takes_files", lambda folder: False)
    code, _, error = command("disambiguate", tmp_path / "in.csv", "--out", tmp_path / "a" / "b")
    assert code == 2
    assert "cannot be written to" in error
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "writer",
    [
        "gmpll.apps.tables.output.write_table",
        "gmpll.apps.tables.saved.save_model",
        "gmpll.apps.tables.saved.write_matching",
    ],
)
@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 2, "is full"),
        (OSError(errno.EIO, "Input/output error"), 2, "Input/output error"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=["disk full", "broken disk", "interrupted"],
)
def test_a_failing_write_leaves_nothing(
    writer, failure, code, words, tmp_path, monkeypatch, command
):
    def half(*arguments, **options):
        target = next(a for a in arguments if isinstance(a, Path))
        target.write_text("half")
        raise failure

    monkeypatch.setattr(writer, half)
    write_files(tmp_path, GOOD)
    before = everything_in(tmp_path)
    arguments = ("--method", "plknn", "--out", tmp_path / "a" / "b")
    got, _, error = command("disambiguate", tmp_path / "in.csv", *arguments)
    assert got == code
    assert words in error
    assert error.count("\n") == 1
    assert everything_in(tmp_path) == before
    assert folders_in(tmp_path) == set()


def test_a_failing_run_keeps_earlier_results(tmp_path, monkeypatch, command):
    write_files(tmp_path, GOOD)
    arguments = ("disambiguate", tmp_path / "in.csv", "--method", "plknn", "--out", tmp_path / "o")
    assert command(*arguments)[0] == 0
    before = everything_in(tmp_path)

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gmpll.apps.tables.saved.write_matching", full)
    code, _, _ = command(*arguments, "--force")
    assert code == 2
    assert everything_in(tmp_path) == before


PROGRAM = """
import sys, time
import typer, gmpll.apps.cli, gmpll.apps.tables.page as page
from gmpll.apps.cli.disambiguate import disambiguate
from gmpll.apps.cli.predict import predict
def slow(facts):
    print("ready", flush=True)
    time.sleep(60)
page.render_page = slow
gmpll.apps.cli.app = typer.Typer()
gmpll.apps.cli.app.command()(disambiguate)
gmpll.apps.cli.app.command()(predict)
gmpll.apps.cli.main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_cleans_up(number, tmp_path):
    write_files(tmp_path, GOOD)
    arguments = ["disambiguate", str(tmp_path / "in.csv"), "--out", str(tmp_path / "o")]
    arguments += ["--method", "plknn"]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "ready" in line:
            break
    assert any(tmp_path.glob(".o-*")), "the results are being put together beside the folder"
    time.sleep(0.1)
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in error
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
