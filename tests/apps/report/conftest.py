from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


@pytest.fixture(scope="session")
def made_up() -> ModuleType:
    """The module beside this file; tests are no package, so it is loaded by its path."""
    path = Path(__file__).with_name("made_up.py")
    spec = importlib.util.spec_from_file_location("made_up", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def full_report(made_up: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a full run."""
    from gmpll.apps.report import write_report

    folder = tmp_path_factory.mktemp("full") / "report"
    provenance = {"command": "gmpll report run", "run": {"versions": {"numpy": "9.9.9"}}}
    return write_report(made_up.full_scores(), folder, provenance=provenance)
