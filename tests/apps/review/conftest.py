from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # review_problem.py

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import review_problem

from gmpll.apps.review.session import open_review


@pytest.fixture
def folder(tmp_path):
    """An output folder of ``gmpll disambiguate`` with three groups of texts."""
    return review_problem.write(tmp_path)


@pytest.fixture
def session(folder):
    opened = open_review(folder, rematch=review_problem.rematch)
    yield opened
    opened.store.close()
