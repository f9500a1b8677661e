"""The worked examples run, and find the share of the hidden truth that the guide states."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "disambiguate.md"
pytestmark = pytest.mark.skipif(
    not (ROOT / "examples").exists() or not GUIDE.exists(), reason="the examples are not installed"
)
SCENES = ("crowd_annotation", "face_naming", "object_regions", "bird_song")


def stated(scene):
    """The figures of the guide: without gmpll, and with it."""
    row = re.search(
        rf"^\| {scene.replace('_', ' ')} \|.*$", GUIDE.read_text(encoding="utf-8"), re.M
    )
    return [float(figure) for figure in re.findall(r"\b[01]\.\d+", row[0])]


@pytest.mark.parametrize("scene", SCENES)
def test_a_scene(scene, tmp_path, capsys):
    accuracy = runpy.run_path(str(ROOT / "examples" / f"{scene}.py"))["main"](tmp_path)
    without, expected = stated(scene)
    # Another version of BLAS may decide a handful of rows otherwise.
    assert accuracy == pytest.approx(expected, abs=0.02)
    assert accuracy > without + 0.1
    first = capsys.readouterr().out.splitlines()[0]
    assert float(first.rpartition(":")[2]) == pytest.approx(without, abs=0.001)
    assert any(tmp_path.iterdir())
