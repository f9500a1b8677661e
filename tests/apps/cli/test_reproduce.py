import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from gmpll.apps.cli.reproduce import reproduce
from gmpll.apps.errors import UserError

app = typer.Typer()
app.command()(reproduce)
FAST = ["--methods", "Any candidate,Random candidate", "--jobs", "1"]


def call(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, UserError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("GMPLL_DATA", str(tmp_path / "nothing"))


def test_quick_without_data_uses_what_comes_with_scikit_learn(tmp_path, no_data):
    output = call("--quick", *FAST, "--out", tmp_path / "run")
    assert "Skipped lost: not found in" in output
    table = pd.read_csv(tmp_path / "run" / "scores.csv")
    assert set(table["dataset"]) == {"digits", "iris", "wine"}
    assert set(table["status"]) == {"ok"}
    means = table.groupby("method")["inductive"].mean()
    assert means["Any candidate"] > means["Random candidate"]
    assert "24 of 24 jobs are done" in output


def test_the_same_command_again_runs_nothing(tmp_path, no_data):
    command = ["--quick", *FAST, "--datasets", "iris", "--out", tmp_path / "run"]
    call(*command)
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "run").glob("jobs/*")}
    output = call(*command)
    assert "0 jobs to run, 6 were done before." in output
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "run").glob("jobs/*")} == files


def test_folds_and_seed(tmp_path, no_data):
    options = ["--folds", "4", "--seed", "3", "--datasets", "wine"]
    call("--quick", *FAST, *options, "--out", tmp_path / "run")
    table = pd.read_csv(tmp_path / "run" / "scores.csv")
    assert set(table["fold"]) == {0, 1, 2, 3}
    assert set(table["seed"]) == {3}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quick", "--datasets", "mnist"], "no data set 'mnist'; the data sets are lost"),
        (["--quick", "--methods", "SVM"], "no method 'SVM'; the methods are gmpll"),
        (["--quick", "--datasets", " , "], "list of names is empty"),
        (["--quick", "--only", "timing"], "no timing experiment"),
        (["--only", "real-world"], "None of the data sets is at hand"),
        (["--declaration", "none.toml"], "none.toml cannot be read"),
        (["--declaration", "none.toml", "--quick"], "either --declaration or --quick"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(tmp_path, no_data, arguments, message):
    with pytest.raises(UserError, match=message) as error:
        call(*arguments, "--out", tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_failed_jobs_make_the_command_fail_but_not_the_table(tmp_path, no_data):
    declaration = tmp_path / "mine.toml"
    declaration.write_text(
        """
        [[experiment]]
        kind = "controlled"
        datasets = ["iris"]
        p = [0.5]
        r = [1]
        folds = 2
        methods = ["Broken", "Any candidate"]
        [variants.Broken]
        method = "Any candidate"
        settings = { estimator = "nothing" }
        """
    )
    output = call("--declaration", declaration, "--jobs", 1, "--out", tmp_path / "run", code=1)
    assert "2 jobs failed; --retry-failed runs them again." in output
    table = pd.read_csv(tmp_path / "run" / "scores.csv")
    assert table["status"].value_counts().to_dict() == {"ok": 2, "failed": 2}


def test_a_declared_table_keeps_what_is_said_of_its_columns(tmp_path, no_data):
    rows = [f"{x},{x + 1},{'a' if x < 10 else 'b'},a|b" for x in range(20)]
    (tmp_path / "mine.csv").write_text("\n".join(["size,width,right,tags", *rows]))
    (tmp_path / "mine.toml").write_text(
        """
        [[experiment]]
        kind = "real-world"
        datasets = ["mine.csv"]
        folds = 2
        methods = ["Any candidate"]
        [tables."mine.csv"]
        truth = "right"
        candidates = "tags"
        """
    )
    call("--declaration", tmp_path / "mine.toml", "--jobs", 1, "--out", tmp_path / "run")
    table = pd.read_csv(tmp_path / "run" / "scores.csv")
    assert table["inductive"].notna().all()  # the true labels were found


def test_a_missing_library_is_named_before_any_work(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None; from gmpll.apps.cli import main;"
        f"sys.argv[1:] = ['reproduce', '--quick', '--out', {str(tmp_path / 'run')!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "This needs matplotlib: pip install 'gmpll[experiments,tables]'" in done.stderr
    assert not (tmp_path / "run").exists()


PROGRAM = """
import typer
from gmpll.apps.cli.reproduce import reproduce
app = typer.Typer()
app.command()(reproduce)
app()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ on Windows")
def test_ctrl_c_tells_how_to_go_on(tmp_path, no_data):
    out = tmp_path / "run"
    command = [sys.executable, "-c", PROGRAM, "--quick", "--out", str(out), "--jobs", "2"]
    command += ["--methods", "Any candidate", "--datasets", "digits", "--folds", "200"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 120
        while len(list(out.glob("jobs/*.npz"))) < 3:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 130
    assert f"Stopped; give the same command (--out {out}) again to go on." in errors
    assert "Traceback" not in errors


def test_heavy_libraries_are_not_imported_for_the_help():
    program = "import sys, gmpll.apps.cli.reproduce; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "gmpll.apps.cli.reproduce" in loaded
    assert loaded.isdisjoint({"matplotlib", "gmpll.apps.experiments", "gmpll.apps.report"})


def test_votes_of_annotators_have_to_be_named(tmp_path, no_data):
    votes = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0]] * 5)
    folder = tmp_path / "nothing" / "crowd"
    folder.mkdir(parents=True)
    y = (votes.sum(axis=1) > 1).astype(int)
    np.savez(folder / "labelme.npz", X=y[:, None] + np.eye(20), y=y, votes=votes)
    options = ["--methods", "gmpll (votes only)", "--jobs", 1, "--out", tmp_path / "run"]
    with pytest.raises(UserError, match=r"no method 'gmpll \(votes only\)'"):
        call(*options)
    output = call("--only", "crowd", "--items", 12, "--seed", 4, *options)
    assert "Skipped cifar10n: not found in" in output
    assert "1 of 1 jobs are done" in output
    table = pd.read_csv(tmp_path / "run" / "scores.csv")
    assert table["seed"].tolist() == [4]
    assert table["transductive"].tolist() == [1.0]
    page = (tmp_path / "run" / "report" / "index.html").read_text(encoding="utf-8")
    assert "gmpll (votes only)" in page
    assert "at most 12 items, random states 4" in page
