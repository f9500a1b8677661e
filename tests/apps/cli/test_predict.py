import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import typer

import gmpll.apps.cli
from gmpll.apps.cli.disambiguate import disambiguate
from gmpll.apps.cli.predict import predict


@pytest.fixture
def run(monkeypatch, capsys):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(disambiguate)
    app.command()(predict)
    monkeypatch.setattr(gmpll.apps.cli, "app", app)

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["gmpll", *map(str, arguments)])
        try:
            gmpll.apps.cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def problem(n, seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    words = np.array([["purring cat", "whiskers and milk"], ["barking dog", "stick and leash"]])
    frame = pd.DataFrame(
        {
            "id": [f"n{i}" for i in range(n)],
            "size": truth * 4 + rng.normal(size=n),
            "note": [f"{words[t, i % 2]} number {i}" for i, t in enumerate(truth)],
            "home": np.where(rng.random(n) < 0.5, "farm", "flat"),
        }
    )
    return frame, np.array(["cat", "dog"])[truth]


@pytest.fixture
def model(run, tmp_path):
    frame, truth = problem(60, 0)
    frame["tags"] = ["cat|dog" if i % 3 else t for i, t in enumerate(truth)]
    frame.to_csv(tmp_path / "train.csv", index=False)
    code, _, error = run("disambiguate", tmp_path / "train.csv", "--out", tmp_path / "m")
    assert code == 0, error
    return tmp_path / "m"


def test_new_rows_get_labels(run, model, tmp_path):
    frame, truth = problem(40, 1)
    frame.to_csv(tmp_path / "new.csv", index=False)
    code, out, error = run("predict", model, tmp_path / "new.csv")
    assert code == 0, error
    predicted = pd.read_csv(tmp_path / "new-predicted.csv")
    assert predicted["id"].tolist() == frame["id"].tolist()
    assert (predicted["label"] == truth).mean() > 0.9
    assert predicted["confidence"].between(0, 1).all()
    assert "new-predicted.csv" in out


def test_another_format_does_as_well(run, model, tmp_path):
    frame, _ = problem(40, 1)
    frame.to_csv(tmp_path / "new.csv", index=False)
    frame.to_parquet(tmp_path / "new.parquet")
    for name in ("new.csv", "new.parquet"):
        assert run("predict", model / "model.skops", tmp_path / name)[0] == 0
    one = pd.read_csv(tmp_path / "new-predicted.csv")["label"]
    assert pd.read_parquet(tmp_path / "new-predicted.parquet")["label"].tolist() == one.tolist()


def test_bad_inputs_are_sentences(run, model, tmp_path):
    frame, _ = problem(5, 1)
    frame.drop(columns="note").to_csv(tmp_path / "less.csv", index=False)
    sizes = frame["size"].astype(object)
    frame.assign(size=[*sizes[:2], "big", *sizes[3:]]).to_csv(tmp_path / "words.csv", index=False)
    frame.assign(size=[np.inf, *sizes[1:]]).to_csv(tmp_path / "inf.csv", index=False)
    frame.to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "junk.skops").write_text("junk")
    (tmp_path / "taken.csv").write_text("mine")
    for arguments, words in (
        ((model, tmp_path / "less.csv"), "no column 'note'"),
        ((model, tmp_path / "words.csv"), "words.csv, column size holds 'big'"),
        ((model, tmp_path / "words.csv"), "Row 3 of"),
        ((model, tmp_path / "inf.csv"), "infinite number: fix it, or empty the cell."),
        ((model, tmp_path / "nowhere.csv"), "There is no file"),
        ((tmp_path / "nowhere", tmp_path / "new.csv"), "There is no model"),
        ((tmp_path / "junk.skops", tmp_path / "new.csv"), "is no model of gmpll"),
        ((model, tmp_path / "new.csv", "--out", tmp_path / "taken.csv"), "--force"),
        ((model, tmp_path / "new.csv", "--out", tmp_path, "--force"), "is a folder: name a file"),
        ((model, tmp_path / "new.csv", "--out", "/proc/x.csv"), "/proc cannot be written to: name"),
        ((model, tmp_path / "new.csv", "--out", tmp_path / "p.parquet"), "ends in .csv with --out"),
        ((model, tmp_path / "new.csv", "--out", tmp_path / "p.xlsx"), "ends in .csv with --out"),
        ((model, tmp_path / "new.csv", "--features", "e.npy"), "0 embedding files"),
        ((model, tmp_path / "new.csv", "--id", "key"), "which --id names"),
    ):
        code, _, error = run("predict", *arguments)
        assert code == 2, arguments
        assert words in error
        assert error.count("\n") == 1
    assert (tmp_path / "taken.csv").read_text() == "mine"
    assert not list(tmp_path.glob("p.*"))


def test_a_missing_number_is_filled_in_a_single_row_as_in_many(run, model, tmp_path):
    frame, _ = problem(5, 1)
    frame.loc[2, "size"] = np.nan
    frame.to_csv(tmp_path / "many.csv", index=False)
    frame[2:3].to_csv(tmp_path / "one.csv", index=False)
    record = {**frame.loc[2].to_dict(), "size": None}
    (tmp_path / "null.jsonl").write_text(json.dumps(record) + "\n")
    for name in ("many.csv", "one.csv", "null.jsonl"):
        code, _, error = run("predict", model, tmp_path / name)
        assert code == 0, error
    many = pd.read_csv(tmp_path / "many-predicted.csv")
    assert pd.read_csv(tmp_path / "one-predicted.csv").equals(many[2:3].reset_index(drop=True))
    null = json.loads((tmp_path / "null-predicted.jsonl").read_text())
    assert (null["label"], null["confidence"]) == (many["label"][2], many["confidence"][2])


def test_decimal_commas_are_read_as_in_the_data_of_the_model(run, tmp_path):
    frame, truth = problem(60, 0)
    frame["tags"] = ["cat|dog" if i % 3 else t for i, t in enumerate(truth)]
    frame = frame.drop(columns=["note", "home"])
    options = {"index": False, "sep": ";", "decimal": ","}
    frame.round({"size": 3}).to_csv(tmp_path / "train.csv", **options)
    code, out, error = run("disambiguate", tmp_path / "train.csv", "--out", tmp_path / "m")
    assert code == 0, error
    assert "numbers like 1,5 are read in size" in " ".join(out.split())
    new, truth = problem(20, 1)
    new.to_csv(tmp_path / "comma.csv", **options)
    new.to_csv(tmp_path / "quoted.csv", index=False, decimal=",")
    new.to_csv(tmp_path / "point.csv", index=False)
    found = []
    for name in ("comma", "quoted", "point"):
        code, _, error = run("predict", tmp_path / "m", tmp_path / f"{name}.csv")
        assert code == 0, error
        sep = ";" if name == "comma" else ","
        found.append(pd.read_csv(tmp_path / f"{name}-predicted.csv", sep=sep)["label"].tolist())
    assert found[0] == found[1] == found[2]
    assert np.mean(np.array(found[0]) == truth) > 0.9


def test_missing_numbers_and_new_categories_are_said(run, model, tmp_path):
    frame, _ = problem(5, 1)
    frame["home"] = ["farm", "barn", "barn", "flat", "farm"]
    frame.loc[[1, 2], "size"] = np.nan
    frame.to_csv(tmp_path / "new.csv", index=False)
    code, out, error = run("predict", model, tmp_path / "new.csv")
    assert code == 0, error
    assert "Note: 2 numbers are missing" in out
    assert "2 of 5 cells of home hold a category that the model does not know" in out
    assert "'barn' in row 2" in out
    frame.assign(home="tent").to_csv(tmp_path / "tents.csv", index=False)
    assert "5 of 5 cells of home" in run("predict", model, tmp_path / "tents.csv")[1]


def test_without_probabilities_nothing_is_judged(run, tmp_path):
    frame, truth = problem(60, 0)
    frame["tags"] = ["cat|dog" if i % 3 else t for i, t in enumerate(truth)]
    frame.to_csv(tmp_path / "train.csv", index=False)
    frame.to_parquet(tmp_path / "new.parquet")
    arguments = ("--method", "plsvm", "--out", tmp_path / "m")
    assert run("disambiguate", tmp_path / "train.csv", *arguments)[0] == 0
    code, out, error = run("predict", tmp_path / "m", tmp_path / "train.csv")
    assert code == 0, error
    assert "no probabilities" in out
    assert "worth a look" not in out
    predicted = pd.read_csv(tmp_path / "train-predicted.csv", dtype=str, keep_default_na=False)
    for name in ("confidence", "margin", "review"):
        assert set(predicted[name]) == {""}
    assert run("predict", tmp_path / "m", tmp_path / "new.parquet")[0] == 0
    assert pd.read_parquet(tmp_path / "new-predicted.parquet")["review"].isna().all()


def test_embedding_files_go_with_the_model(run, tmp_path):
    frame, truth = problem(60, 0)
    vectors = np.column_stack([frame["size"], -frame["size"]]).astype(np.float32)
    np.save(tmp_path / "e.npy", vectors)
    tags = ["cat|dog" if i % 3 else t for i, t in enumerate(truth)]
    pd.DataFrame({"id": frame["id"], "tags": tags}).to_csv(tmp_path / "in.csv", index=False)
    arguments = ("disambiguate", tmp_path / "in.csv", "--features", tmp_path / "e.npy")
    assert run(*arguments, "--out", tmp_path / "m")[0] == 0
    new = ("predict", tmp_path / "m", tmp_path / "in.csv")
    assert run(*new)[0] == 2
    assert run(*new, "--features", tmp_path / "e.npy", "--out", tmp_path / "p.csv")[0] == 0
    assert (pd.read_csv(tmp_path / "p.csv")["label"] == truth).mean() > 0.9


def test_rows_come_through_standard_input_and_labels_leave_by_standard_output(model, tmp_path):
    frame, truth = problem(6, 1)
    command = [sys.executable, "-m", "gmpll", "predict", str(model), "-"]
    for options, sent in (
        ((), frame.to_csv(index=False)),
        (("--format", "jsonl"), frame.to_json(orient="records", lines=True)),
    ):
        done = subprocess.run([*command, *options], input=sent, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        lines = io.StringIO(done.stdout)
        found = pd.read_json(lines, lines=True) if options else pd.read_csv(lines)
        assert found["label"].tolist() == truth.tolist()
        assert done.stderr.startswith("Predicted 6 rows")
    done = subprocess.run(command, input="", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gmpll: standard input is empty: a header and some rows are needed.\n"
