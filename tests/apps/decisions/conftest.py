from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))  # review_problem.py

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
