import csv
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from gmpll.apps.cli import app, main
from gmpll.apps.cli.demo import demo
from gmpll.apps.errors import UserError


def test_demo_writes_what_it_says(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    with (tmp_path / "out" / "scores.csv").open() as file:
        scores = {row["method"]: row for row in csv.DictReader(file)}
    best, floor = scores["gmpll"], scores["Classifier on any candidate"]
    assert float(best["transductive"]) > float(floor["transductive"])
    assert float(best["inductive"]) > float(floor["inductive"])
    with (tmp_path / "out" / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1347
    assert all(row["label"] in row["candidates"].split("|") for row in rows)
    assert (tmp_path / "out" / "confidence.png").read_bytes().startswith(b"\x89PNG")


def run_main(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["gmpll", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


def test_an_unusable_folder_is_one_sentence(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    assert run_main(monkeypatch, "demo", "--out", str(tmp_path / "file")) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "name another with --out" in error


def test_files_are_replaced_only_by_force(tmp_path, monkeypatch, capsys):
    (tmp_path / "labels.csv").write_text("mine")
    assert run_main(monkeypatch, "demo", "--out", str(tmp_path)) == 2
    assert "labels.csv exists" in capsys.readouterr().err
    assert (tmp_path / "labels.csv").read_text() == "mine"


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--wrong"],
        ["nonsense"],
        ["demo", "--seed", "x"],
        ["demo", "--seed", "-1"],
        ["disambiguate", "in.csv", "--dry-run", "--seed", "-1"],
        ["disambiguate", "in.csv", "--dry-run", "--seed", str(2**32)],
        ["reproduce", "--out", "run", "--seed", str(2**32)],
    ],
)
def test_wrong_usage_exits_with_2(arguments, monkeypatch, capsys):
    assert run_main(monkeypatch, *arguments) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert "--seed" not in arguments or "Invalid value for '--seed'" in error


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent in another way")
@pytest.mark.parametrize("module", ["typer", "sklearn.datasets"])
def test_ctrl_c_while_loading_is_said_in_a_sentence(module, tmp_path):
    """The signal comes when the module is about to be loaded."""
    code = (
        "import builtins, os, signal, sys\n"
        "load = builtins.__import__\n"
        "def interrupted(name, *rest, **options):\n"
        f"    if name == {module!r}:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return load(name, *rest, **options)\n"
        "builtins.__import__ = interrupted\n"
        "sys.argv = ['gmpll', 'demo', '--out', sys.argv[1]]\n"
        "import runpy; runpy.run_module('gmpll', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr == "gmpll: interrupted.\n"
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_begins_without_the_library():
    code = "import sys, gmpll.apps.cli; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_library_has_all_of_its_names():
    import gmpll

    assert all(getattr(gmpll, name) is not None for name in gmpll.__all__)
    assert set(gmpll.__all__) <= set(dir(gmpll))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gmpll.nothing


def test_version(monkeypatch, capsys):
    import gmpll

    assert run_main(monkeypatch, "--version") == 0
    assert gmpll.__version__ in capsys.readouterr().out


def test_ctrl_c_is_said_in_a_sentence(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("gmpll.apps.cli.app", interrupted)
    assert run_main(monkeypatch) == 130
    assert capsys.readouterr().err == "gmpll: interrupted.\n"


def test_a_table_to_play_with(tmp_path, capsys):
    path = tmp_path / "new" / "digits.csv"
    demo(table=path)
    assert str(path) in capsys.readouterr().out.replace("\n", "")
    table = pd.read_csv(path)
    assert table.shape == (400, 65)
    sizes = table["candidates"].astype(str).str.split("|").str.len()
    assert set(sizes) == {1, 4}
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(UserError, match="--table"):
        demo(table=path)
