from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from gmpll.apps.cli.report import report
from gmpll.apps.errors import UserError
from gmpll.apps.report.scores_table import SCORE_COLUMNS

HEADER = ",".join(SCORE_COLUMNS)
ROW = "real-world,lost,,,GM-PLL,,,0,{fold},0.{fold}5,0.8,,,,1.0,0.1,,ok,"


def _save_scores(folder: Path) -> None:
    rows = [ROW.format(fold=fold) for fold in (6, 7)]
    (folder / "scores.csv").write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")


def test_a_folder_with_scores_is_rendered(tmp_path, capsys):
    _save_scores(tmp_path)
    report(tmp_path)
    page = Path(capsys.readouterr().out.strip())
    assert page == tmp_path / "report" / "index.html"
    text = page.read_text(encoding="utf-8")
    assert "<strong>0.700 ± 0.071</strong>" in text
    assert "<h3>Report</h3>" in text


def test_out_chooses_the_folder(tmp_path):
    _save_scores(tmp_path)
    report(tmp_path, out=tmp_path / "deep" / "elsewhere")
    assert (tmp_path / "deep" / "elsewhere" / "index.html").is_file()
    assert not (tmp_path / "report").exists()


def test_a_run_is_scored_anew(tmp_path, monkeypatch):
    import gmpll.apps.experiments
    from gmpll.apps.report.scores_table import read_scores

    _save_scores(tmp_path)
    table = read_scores(tmp_path / "scores.csv")
    (tmp_path / "scores.csv").unlink()
    (tmp_path / "declaration.json").write_text('{"experiment": [{"kind": "real-world"}]}')
    monkeypatch.setattr(
        gmpll.apps.experiments, "write_scores", lambda run_dir, *, data_home=None: table
    )
    report(tmp_path)
    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "<strong>0.700 ± 0.071</strong>" in text


def test_saved_scores_serve_where_the_run_cannot_be_scored(tmp_path, capsys):
    _save_scores(tmp_path)
    (tmp_path / "declaration.json").write_text("not JSON")
    report(tmp_path)
    assert "could not be scored anew" in capsys.readouterr().err
    assert (tmp_path / "report" / "index.html").is_file()


def test_a_run_that_cannot_be_scored_is_the_users_to_mend(tmp_path):
    (tmp_path / "declaration.json").write_text("not JSON")
    with pytest.raises(UserError, match="not valid JSON"):
        report(tmp_path)


def test_folders_without_results_are_refused(tmp_path):
    with pytest.raises(UserError, match="holds neither a run"):
        report(tmp_path)
    with pytest.raises(UserError, match="is no folder"):
        report(tmp_path / "absent")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"a,b\n1,2\n"])
def test_a_damaged_table_is_refused(tmp_path, content):
    (tmp_path / "scores.csv").write_bytes(content)
    with pytest.raises(UserError, match=r"scores\.csv cannot be read"):
        report(tmp_path)


def test_a_file_in_the_way_is_named(tmp_path):
    _save_scores(tmp_path)
    (tmp_path / "report").write_text("in the way")
    with pytest.raises(UserError, match="cannot be read or written"):
        report(tmp_path)


def test_the_command_file_loads_no_heavy_library():
    code = (
        "import sys, gmpll.apps.errors; before = set(sys.modules);"
        "import gmpll.apps.cli.report; loaded = set(sys.modules) - before;"
        "print(sorted(loaded & {'pandas', 'matplotlib', 'jinja2', 'gmpll.apps.experiments'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_real_run_from_predictions_to_page(tmp_path):
    from gmpll.apps.experiments import Declaration, Experiment, run

    experiment = Experiment(
        kind="controlled",
        datasets=("iris",),
        methods=("Random candidate", "Any candidate"),
        p=(0.7,),
        r=(1,),
        folds=3,
    )
    run(Declaration((experiment,)), tmp_path)
    report(tmp_path, out=tmp_path / "elsewhere")
    assert not (tmp_path / "scores.csv").exists()  # only a report in the folder renews it
    (tmp_path / "scores.csv").write_text("an older table\n")
    report(tmp_path)
    assert (tmp_path / "scores.csv").read_text(encoding="utf-8").startswith(HEADER)
    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "6 jobs, 0 of them failed" in text
    assert "protocol: controlled (iris)" in text
    assert (tmp_path / "report" / "tables" / "curves-r1.csv").is_file()
