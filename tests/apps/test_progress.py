import io
import os
import pty
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from gmpll._progress import UNKNOWN, begin, plan
from gmpll.apps import progress
from gmpll.apps.progress import Bar, Sight, shown

PATIENCE = 60.0


def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def wait_for(text, console):
    deadline = time.monotonic() + PATIENCE
    while text not in console.file.getvalue():
        assert time.monotonic() < deadline, console.file.getvalue()[-200:]
        time.sleep(0.01)


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)


def test_short_work_shows_nothing():
    console = terminal()
    with shown(console), plan({"reading": 1.0}):
        begin("reading")
    assert console.file.getvalue() == ""


def test_longer_work_has_a_bar_that_goes_away(at_once):
    console = terminal()
    with shown(console), plan({"reading": 7200.0, "writing": 7200.0}):
        begin("reading")
        wait_for("Reading", console)
        wait_for("0%, about 4.0 h left", console)
        begin("writing")
        wait_for("Writing", console)
    text = console.file.getvalue()
    assert "━" in text
    assert text.rpartition("\x1b[2K")[2] == ""  # the line was cleared


def test_of_what_is_unknown_it_shows_the_name(at_once):
    console = terminal()
    with shown(console), plan({"fitting": UNKNOWN}):
        begin("fitting")
        wait_for("Fitting", console)
    assert "%" not in console.file.getvalue()


def test_nothing_stands_above_an_error(at_once):
    console = terminal()

    def fail():
        with shown(console), plan({"reading": 100.0}):
            begin("reading")
            wait_for("Reading", console)
            raise ValueError("It cannot be read.")

    with pytest.raises(ValueError, match="cannot be read"):
        fail()
    assert console.file.getvalue().rpartition("\x1b[2K")[2] == ""


def test_log_files_get_a_line_now_and_then(at_once, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.05)
    console = Console(file=io.StringIO(), width=30)
    seen = iter([Sight("One"), Sight("Two [x]", 0.25, 90.0)])
    bar = Bar(console, lambda: next(seen, Sight("Three", 1.0, 0.0)))
    bar.start()
    wait_for("Three", console)
    bar.stop()
    assert console.file.getvalue().splitlines()[:3] == [
        "One",
        "Two [x]: 25%, about 90 s left",
        "Three: 100%, about 0.0 s left",
    ]


# --- commands in a terminal ------------------------------------------------------------------

PROGRAM = """
import gmpll.apps.progress
gmpll.apps.progress.PATIENCE_SECONDS = gmpll.apps.progress.SECONDS_BETWEEN_DRAWINGS = 0.01
from gmpll.apps.cli import main
main()
"""
needs_posix = pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX systems")


class Command:
    """A command whose standard error output, and maybe input and output, is a terminal."""

    def __init__(self, *arguments, out=None):
        self.screen, theirs = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, arguments)],
            stdin=theirs,
            stdout=theirs if out is None else out,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        )
        os.close(theirs)

    def read(self):
        try:
            found = os.read(self.screen, 65536).decode(errors="replace")
        except OSError:  # nobody writes any more
            found = ""
        self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found)
        return bool(found)

    def wait_for(self, text):
        while text not in self.text:
            assert self.read(), self.text[-500:]

    def press_ctrl_c(self):
        os.killpg(self.process.pid, signal.SIGINT)  # as a terminal does: to all processes

    def end(self):
        while self.read():
            pass
        os.close(self.screen)
        return self.process.wait(PATIENCE)


@pytest.fixture
def table(tmp_path):
    rng = np.random.RandomState(0)
    truth = rng.randint(4, size=3500)
    frame = pd.DataFrame(np.eye(4)[truth][:, :3] + rng.normal(size=(3500, 3)), columns=list("xyz"))
    other = (truth + rng.randint(1, 4, size=3500)) % 4
    frame["tags"] = [f"{'abcd'[one]}|{'abcd'[two]}" for one, two in zip(truth, other, strict=True)]
    frame.to_csv(tmp_path / "in.csv", index=False)
    return tmp_path / "in.csv"


@needs_posix
def test_disambiguate_shows_a_bar_and_ctrl_c_leaves_nothing(table):
    command = Command("disambiguate", table, "--out", table.parent / "out")
    command.wait_for("Matching rows and labels: ")
    command.wait_for("s left")
    command.press_ctrl_c()
    assert command.end() == 130
    assert command.text.rstrip().endswith("gmpll: interrupted.")
    assert "Traceback" not in command.text
    assert [path.name for path in table.parent.iterdir()] == ["in.csv"]


@needs_posix
def test_predict_shows_a_bar_beside_the_rows_that_it_writes(table):
    folder = table.parent / "out"
    arguments = ["disambiguate", table, "--out", folder, "--method", "plknn"]
    done = subprocess.run(
        [sys.executable, "-m", "gmpll", *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    many = table.parent / "many.csv"
    pd.concat([pd.read_csv(table)] * 5).drop(columns="tags").to_csv(many, index=False)
    rows = table.parent / "rows.csv"
    with rows.open("w") as out:
        command = Command("predict", folder, many, "--out", "/dev/stdout", out=out)
        command.wait_for("Predicting")
        assert command.end() == 0
    assert "% " not in rows.read_text()
    assert len(pd.read_csv(rows)) == 5 * 3500

    before = sorted(path.name for path in table.parent.iterdir())
    command = Command("predict", folder, many, "--out", table.parent / "predicted.csv")
    command.wait_for("Predicting")
    command.press_ctrl_c()
    assert command.end() == 130
    assert command.text.rstrip().endswith("gmpll: interrupted.")
    assert sorted(path.name for path in table.parent.iterdir()) == before


@needs_posix
@pytest.mark.parametrize("name", ["compare", "reproduce"])
def test_runs_show_a_bar_and_ctrl_c_keeps_what_is_done(name, tmp_path, monkeypatch):
    monkeypatch.setenv("GMPLL_DATA", str(tmp_path / "nothing"))
    out = tmp_path / "run"
    options = ["--methods", "Any candidate", "--folds", "200", "--jobs", "2", "--out", out]
    if name == "compare":
        command = Command("compare", "digits", "--p", "0.5", "--r", "1", "--no-tune", *options)
    else:
        command = Command("reproduce", "--quick", "--datasets", "digits", *options)
    command.wait_for("s left")
    command.press_ctrl_c()
    assert command.end() == 130
    assert "again to go on." in command.text
    assert "Traceback" not in command.text
    assert 0 < len(list(out.glob("jobs/*.npz"))) < 200
    assert not list(out.glob("jobs/.*.tmp"))
