"""What docs/confidence.md shows is true."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "confidence.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")


def test_the_snippets_run_and_show_what_the_page_says():
    shown = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), shown)
    error, right = shown["expected_calibration_error"], shown["right"]
    assert error(shown["after"], right) < 0.5 * error(shown["before"], right)
    accepted = shown["predicted"][shown["answered"]]
    assert (accepted == shown["truth_test"][shown["answered"]]).mean() > right.mean()
    covered = shown["sets"][range(len(shown["sets"])), shown["truth_test"]]
    assert abs(covered.mean() - 0.9) < 0.06


def test_links_exist():
    for target in re.findall(r"\]\((?!http|#)([^)#]+)", PAGE.read_text()):
        assert (PAGE.parent / target).exists(), target
