import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import typer

import gmpll.apps.cli
from gmpll.apps.cli.disambiguate import METHODS, disambiguate
from gmpll.apps.tables import InputError, resolving


@pytest.fixture
def run(monkeypatch, capsys):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(disambiguate)
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


@pytest.fixture
def table(tmp_path):
    rows = [f"{i:02d},{i % 2 * 5 + i / 50},{['a|b', 'b|a', 'a', 'b'][i % 4]}" for i in range(24)]
    path = tmp_path / "in.csv"
    path.write_text("id,size,tags\n" + "\n".join(rows) + "\n")
    return path


def test_one_command_writes_all_files(run, table, tmp_path):
    code, out, error = run(table)
    assert code == 0, error
    folder = tmp_path / "in-resolved"
    assert {p.name for p in folder.iterdir()} == {
        "resolved.csv",
        "report.html",
        "model.skops",
        "matching.npz",
    }
    resolved = pd.read_csv(folder / "resolved.csv", dtype={"id": str})
    assert resolved["id"].tolist() == [f"{i:02d}" for i in range(24)]
    assert resolved["label"].tolist() == ["a", "b"] * 12
    assert "gmpll review" in out


def test_guesses_are_shown_with_the_options_that_change_them(run, table):
    _, out, _ = run(table, "--dry-run")
    lines = {line.split("  ")[0]: line for line in out.splitlines()}
    assert "tags" in lines["candidates"]
    assert "--id" in lines["id"]
    assert "size" in lines["numbers"]
    assert out.index("candidates") < out.index("12 rows ambiguous")


def test_a_dry_run_writes_nothing(run, table, tmp_path):
    code, out, _ = run(table, "--dry-run")
    assert code == 0
    assert "nothing was written" in out
    assert list(tmp_path.iterdir()) == [table]


def test_results_are_replaced_only_by_force(run, table, tmp_path):
    out = tmp_path / "o"
    assert run(table, "--out", out)[0] == 0
    assert run(table, "--out", out)[0] == 2
    assert run(table, "--out", out, "--force", "--method", "plknn")[0] == 0
    assert "plknn" in (out / "report.html").read_text(encoding="utf-8")


def test_tabs_can_be_named(run, tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("size\ttags\n1\ta|b\n2\ta\n9\tb\n")
    code, out, error = run(path, "--format", "csv", "--delimiter", "tab", "--dry-run")
    assert code == 0, error
    assert "3 rows, 2 columns" in " ".join(out.split())


def test_missing_libraries_are_named(table):
    code = (
        "import sys; sys.modules['pyarrow'] = None; from gmpll.apps.cli import main;"
        f"sys.argv[1:] = ['disambiguate', {str(table)!r}, '--dry-run']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'gmpll[tables]'" in done.stderr


def test_force_keeps_what_a_reviewer_decided(run, table, tmp_path):
    from gmpll.apps.decisions.store import Decision
    from gmpll.apps.review.session import open_review

    out = tmp_path / "o"
    assert run(table, "--out", out)[0] == 0
    session = open_review(out)
    session.decide(0, Decision("label", code=1), seen_version=0, tab="a")
    code, _, error = run(table, "--out", out, "--force")
    assert code == 2
    assert "is under review" in error
    session.store.close()
    table.write_text(table.read_text() + "24,5.1,a|c\n")
    code, printed, error = run(table, "--out", out, "--force")
    assert code == 0, error
    assert "1 of 1 reviewed rows" in printed
    assert str(out / "earlier-review-1") in printed
    for folder in (out, out / "earlier-review-1"):
        session = open_review(folder)
        first = next(session.results())
        assert (first.id, first.label, first.origin) == ("00", "b", "reviewer")
        session.store.close()


def test_methods_are_estimators_and_seeds_are_small_enough(run, table):
    from gmpll.apps.tables.resolving import disambiguate as resolve

    code, _, error = run(table, "--dry-run", "--method", "methods")
    assert code == 2
    assert "There is no method 'methods': use one of gmpll, gm-pll, plknn, plsvm" in error
    with pytest.raises(InputError, match="must be between 0 and 4294967295"):
        resolve(pd.read_csv(table), random_state=-1)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only there rights do not tell")
def test_a_folder_that_cannot_be_made_is_refused_before_any_work(run, table):
    code, out, error = run(table, "--out", "/proc/foo")
    assert code == 2
    assert error == "gmpll: /proc cannot be written to: name another folder with --out.\n"
    assert out == ""


def test_the_help_lists_the_methods_and_wraps_once(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gmpll", "disambiguate", "--help"])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        gmpll.apps.cli.main()
    lines = [line.strip(" │") for line in capsys.readouterr().out.splitlines()]
    told = " ".join(lines)
    assert ", ".join(resolving.METHODS) == METHODS
    assert all(name in told for name in METHODS.split(", "))
    start = next(n for n, line in enumerate(lines) if line.startswith("Without options"))
    end = lines.index("", start)
    assert all(len(line) > 60 for line in lines[start : end - 1]), "no line ends in its middle"
