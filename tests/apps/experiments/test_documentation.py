"""The declarations that docs/experiments.md shows are valid; its programs run in test_docs.py."""

import re
import tomllib
from pathlib import Path

import pytest

from gmpll.apps.experiments.declaration import parse_declaration

PAGE = Path(__file__).parents[3] / "docs" / "experiments.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")


def blocks(language):
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("declaration", blocks("toml"))
def test_declarations_are_valid(declaration):
    content = tomllib.loads(declaration)
    assert parse_declaration(content, where="page").experiments[0].folds == 10
