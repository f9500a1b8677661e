import subprocess
import sys

import pytest

from gmpll.apps.experiments import claims
from gmpll.apps.experiments.claims import claimed

HOLDER = """
import runpy, sys, time
from pathlib import Path
claimed = runpy.run_path(sys.argv[3])["claimed"]
with claimed(Path(sys.argv[1]), sys.argv[2]) as ours:
    print(ours, flush=True)
    time.sleep(600)
"""
ONE, OTHER = "f" * 24, "f" * 14 + "e" + "f" * 9


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock"), ONE, claims.__file__],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "True\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_claim_excludes_others_until_its_process_is_killed(tmp_path, holder):
    with claimed(tmp_path / "lock", ONE) as ours:
        assert not ours
    with claimed(tmp_path / "lock", OTHER) as ours:
        assert ours, "a claim on one job is no claim on the next"
    holder.kill()
    holder.wait()
    with claimed(tmp_path / "lock", ONE) as ours:
        assert ours


def test_a_claim_ends_with_its_block_also_by_an_error(tmp_path):
    with pytest.raises(RuntimeError), claimed(tmp_path / "lock", ONE):
        raise RuntimeError
    probe = HOLDER.replace("time.sleep(600)", "pass")
    done = subprocess.run(
        [sys.executable, "-c", probe, str(tmp_path / "lock"), ONE, claims.__file__],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True\n"
