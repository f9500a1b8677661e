"""What ``import gmpll`` alone offers."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import gmpll


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_every_public_name_and_module_is_there_and_listed():
    package = Path(gmpll.__file__).parent
    modules = {path.stem for path in package.glob("[a-z]*.py")}
    modules |= {path.parent.name for path in package.glob("[a-z]*/__init__.py")}
    for name in (*gmpll.__all__, *modules):
        assert name in dir(gmpll)
        if name != "deep" or find_spec("torch"):
            assert getattr(gmpll, name) is not None


def test_modules_are_loaded_when_they_are_asked_for():
    code = (
        "import sys, gmpll; before = 'gmpll.metrics' in sys.modules; gmpll.metrics.covering_rate;"
        "print(before, 'sklearn' in sys.modules, gmpll.GMPLL.__name__)"
    )
    assert run(code) == ["False", "True", "GMPLL"]


def test_other_names_are_not_there():
    for name in ("no_such_name", "sklearn.base", "_no", "metrics.py"):
        assert not hasattr(gmpll, name)
