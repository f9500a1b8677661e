import os
import subprocess
import sys

from gmpll.apps.experiments import jobs as stable
from gmpll.apps.experiments.jobs import canonical_json, stable_seed

PROGRAM = """
import runpy, sys
print(runpy.run_path(sys.argv[1])["stable_seed"]("glass", 0.7, 3, 0))
"""


def test_the_seed_is_pinned():
    # The first digits of the SHA-256 of ["glass",0.7,3,0], as sha256sum prints it. Changing it
    # changes the candidates of every controlled experiment ever run.
    assert stable_seed("glass", 0.7, 3, 0) == 0xBD1A6ABD


def test_the_seed_does_not_depend_on_the_salt_of_the_process():
    for salt in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, stable.__file__],
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(done.stdout) == stable_seed("glass", 0.7, 3, 0)


def test_equal_values_have_equal_text():
    assert canonical_json({"a": (1, 2), "b": 0.1}) == canonical_json({"b": 0.1, "a": [1, 2]})
