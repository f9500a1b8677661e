import re

import pytest
import typer
from typer.testing import CliRunner

from gmpll.apps.cli.datasets import datasets
from gmpll.apps.errors import UserError
from gmpll.datasets import list_datasets

app = typer.Typer()
app.command()(datasets)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(app, arguments)


def cells_of(output, name):
    lines = [line for line in output.splitlines() if line.startswith(f"{name} ")]
    assert len(lines) == 1
    return re.split(r"\s{2,}", lines[0].strip())


@pytest.mark.parametrize("columns", ["80", "200"])
def test_lists_all_sets_with_statistics_and_availability(run, tmp_path, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    (tmp_path / "realworld").mkdir()
    (tmp_path / "realworld" / "lost.mat").touch()
    result = run("--data-home", str(tmp_path))
    assert result.exit_code == 0
    for info in list_datasets():
        cells = cells_of(result.output, info.name)
        assert cells[1] == info.kind
        assert cells[2].split()[0] == str(info.n_samples)
        assert cells[-1] == ("yes" if info.kind == "embedded" or info.name == "lost" else "no")
    assert cells_of(result.output, "lost")[2:6] == ["1122", "108", "16", "2.23 (2.33)"]
    assert cells_of(result.output, "glass")[2:6] == ["214", "9 (10)", "6 (7)", "-"]
    assert cells_of(result.output, "birdsong")[2:6] == [
        "4998 (-)", "38 (-)", "13 (-)", "2.18 (-)",
    ]  # fmt: skip
    assert cells_of(result.output, "iris")[2:6] == ["150", "4", "3", "-"]


def test_says_where_missing_files_belong_however_narrow_the_terminal(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    result = run("--data-home", str(tmp_path))
    assert f"  {tmp_path / 'realworld' / 'Yahoo! News.mat'}\n" in result.output
    assert f"  {tmp_path / 'uci' / 'glass.csv'}\n" in result.output


def test_the_folder_comes_from_the_variable(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GMPLL_DATA", str(tmp_path / "mine"))
    assert str(tmp_path / "mine" / "uci" / "ecoli.csv") in run().output


def test_a_file_is_no_folder(run, tmp_path):
    path = tmp_path / "file"
    path.touch()
    result = run("--data-home", str(path))
    assert isinstance(result.exception, UserError)
    assert str(result.exception) == f"{path} is a file: name a folder with --data-home."
