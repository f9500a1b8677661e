"""What docs/disambiguate.md shows is run."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "disambiguate.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")


def blocks(language):
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_commands_do_what_the_page_says(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    ran = 0
    for line in "".join(blocks("console")).splitlines():
        program, *arguments = shlex.split(line, comments=True)
        if program == "python":
            runpy.run_path(str(ROOT / arguments[0]))["write_data"](arguments[1])
        elif program == "gmpll":
            code, _, error = command(*arguments)
            assert code == 0, f"{line}: {error}"
        ran += program != "pip"
    assert ran >= 10
    assert (tmp_path / "birds" / "syllables-predicted.csv").exists()
    for name in ("crowd/messages", "faces/faces", "regions/regions", "birds/syllables"):
        assert (tmp_path / f"{name}-resolved" / "report.html").exists()


@pytest.mark.parametrize("program", blocks("python"))
def test_programs_run(program, capsys):
    exec(compile(program, str(PAGE), "exec"), {})
    assert capsys.readouterr().out
