"""A learner that takes its time, and runners in processes of their own."""

import io
import os
import subprocess
import sys
import textwrap

import pytest
from rich.console import Console

from gmpll.apps.experiments.progress import RunProgress

LEARNERS = '''
import os
import time

from gmpll.methods.baselines import AnyCandidate


class Slow(AnyCandidate):
    """Sleep, and note every fit in a file."""

    def _fit(self, X, mask, rng):
        with open(os.environ["LEARNER_LOG"], "a") as log:
            log.write("fit\\n")
        time.sleep(float(os.environ.get("LEARNER_SECONDS", "0")))
        return super()._fit(X, mask, rng)


class Failing(AnyCandidate):
    """Fail until a file exists."""

    def _fit(self, X, mask, rng):
        if not os.path.exists(os.environ["LEARNER_LOG"] + ".mended"):
            raise ArithmeticError("this cannot be learned")
        return super()._fit(X, mask, rng)


class Deadly(AnyCandidate):
    """End the process, as a machine without memory does."""

    def _fit(self, X, mask, rng):
        os._exit(17)
'''

RUNNER = """
import sys
from gmpll.apps.experiments import read_declaration, run
run(read_declaration(sys.argv[1]), sys.argv[2], n_jobs=int(sys.argv[3]))
"""


@pytest.fixture
def silent():
    return RunProgress(Console(file=io.StringIO()))


@pytest.fixture
def learners(tmp_path, monkeypatch):
    """Put the learners above where this process and its workers can import them."""
    folder = tmp_path / "learners"
    folder.mkdir()
    (folder / "toy_learners.py").write_text(LEARNERS)
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("LEARNER_LOG", str(folder / "log"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("toy_learners", None)
    from joblib.externals.loky import get_reusable_executor

    # Workers keep the environment they were started with; the next test needs its own.
    get_reusable_executor().shutdown(wait=True, kill_workers=True)


@pytest.fixture
def start_runner(learners):
    """Start runners; whatever is left of them at the end of the test is ended."""
    started = []

    def start(declaration_file, run_dir, n_jobs, **environment):
        process = subprocess.Popen(
            [sys.executable, "-c", RUNNER, str(declaration_file), str(run_dir), str(n_jobs)],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def declare(tmp_path):
    """Write a declaration of the toy learners to a file."""

    def write(methods, *, folds=3, run_folds=None, datasets=("iris",), r=1):
        file = tmp_path / "declaration.toml"
        file.write_text(
            textwrap.dedent(
                f"""
                [[experiment]]
                kind = "controlled"
                datasets = {list(datasets)}
                p = [0.6]
                r = [{r}]
                methods = {list(methods)}
                folds = {folds}
                run_folds = {run_folds or folds}

                [variants.Slow]
                class = "toy_learners:Slow"

                [variants.Failing]
                class = "toy_learners:Failing"

                [variants.Deadly]
                class = "toy_learners:Deadly"
                """
            )
        )
        return file

    return write
