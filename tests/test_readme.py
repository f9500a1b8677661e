"""What the README shows is true."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="the README is not installed")


def code_blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_the_example_runs_and_finds_the_labels(capsys):
    namespace = {}
    for block in code_blocks("python"):
        exec(block, namespace)
    model, truth = namespace["model"], namespace["truth"]
    assert np.mean(model.labels_ == truth[:1500]) > 0.95
    assert "labels of unseen digits" in capsys.readouterr().out
    # The doubtful ones are worth looking at: they are wrong more often than the others.
    wrong = model.labels_ != truth[:1500]
    assert wrong[namespace["doubtful"]].mean() > wrong.mean()


def test_every_command_and_link_exists():
    from gmpll.apps.cli import app

    known = {command.callback.__name__ for command in app.registered_commands}
    shown = set(re.findall(r"^gmpll (\w+)", "\n".join(code_blocks("console")), flags=re.MULTILINE))
    assert shown <= known
    for target in re.findall(r"\]\((?!http|#)([^)#]+)", README.read_text()):
        assert (ROOT / target).exists(), target
