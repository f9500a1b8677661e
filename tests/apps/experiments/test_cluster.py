import logging
import os
import signal
import subprocess
import sys
import time

import dask
import numpy as np
import pytest
import typer
from dask.distributed import LocalCluster
from typer.testing import CliRunner

from gmpll.apps.cli.reproduce import reproduce
from gmpll.apps.errors import UserError
from gmpll.apps.experiments import ExperimentError, expand, read_declaration, run, scores
from gmpll.apps.experiments.runner import RunSummary
from gmpll.apps.experiments.store import RunFolder

PATIENCE_SECONDS = 120
RUNNER = """
import sys
from gmpll.apps.experiments import read_declaration, run
run(read_declaration(sys.argv[1]), sys.argv[2], scheduler=sys.argv[3])
"""


@pytest.fixture
def scheduler(learners, monkeypatch):
    """Address of a cluster of two workers that know the learners; one death ends a job."""
    monkeypatch.setenv("LEARNER_SECONDS", "0.5")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster.scheduler_address


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ on Windows")
def test_an_interrupted_run_goes_on_and_ends_as_one_without_a_cluster(
    tmp_path, learners, scheduler, declare, silent
):
    declaration_file = declare(["Slow", "Random candidate"], folds=6)
    declaration = read_declaration(declaration_file)
    over = tmp_path / "over the cluster"
    with subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(declaration_file), str(over), scheduler],
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as runner:
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(list(over.glob("jobs/*.npz"))) < 3:
                assert runner.poll() is None, runner.stderr.read().decode()
                assert time.monotonic() < deadline
                time.sleep(0.01)
            os.killpg(runner.pid, signal.SIGINT)
            _, errors = runner.communicate(timeout=PATIENCE_SECONDS)
        finally:
            runner.kill()
    assert "KeyboardInterrupt" in errors.decode()
    assert len(list(over.glob("jobs/*.npz"))) < 12

    summary = run(declaration, over, progress=silent, scheduler=scheduler)
    assert summary == RunSummary(total=12, done=12, failed=0)
    fits = (learners / "log").read_text().splitlines()
    assert len(fits) == 6, "a job was done twice, or not at all"
    assert not list(over.glob("**/*.tmp"))

    os.environ["LEARNER_SECONDS"] = "0"
    run(declaration, tmp_path / "alone", progress=silent)
    for job in expand(declaration):
        one, other = (RunFolder(folder).load(job) for folder in (over, tmp_path / "alone"))
        np.testing.assert_array_equal(one.predicted, other.predicted)
        np.testing.assert_array_equal(one.labels, other.labels)


def test_jobs_that_fail_or_kill_their_worker_do_not_stop_the_others(
    tmp_path, scheduler, declare, silent
):
    methods = ["Any candidate", "Failing", "Deadly"]
    declaration = read_declaration(declare(methods, folds=2, run_folds=1))
    folder = tmp_path / "run"
    summary = run(declaration, folder, progress=silent, scheduler=scheduler)
    assert summary == RunSummary(total=3, done=3, failed=2)
    table = scores(folder).set_index("method")
    assert "worker process died" in table.loc["Deadly", "error"]
    assert table.loc["Failing", "error"] == "ArithmeticError: this cannot be learned"
    assert table.loc["Any candidate", "status"] == "ok"


def test_a_worker_that_does_not_see_the_folder_is_explained(tmp_path):
    from gmpll.apps.experiments.cluster import connected, results

    def missing(task):
        raise FileNotFoundError(2, "No such file or directory", "run/claims.lock")

    with (
        LocalCluster(
            n_workers=1, processes=False, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as local,
        connected(local.scheduler_address) as client,
        pytest.raises(ExperimentError, match=r"does not find run/claims.lock.*all workers share"),
    ):
        list(results(client, missing, [1], at_once=1))


def test_no_more_than_the_limit_is_handed_out():
    from gmpll.apps.experiments.cluster import connected, results

    with (
        LocalCluster(
            n_workers=3, processes=False, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as local,
        connected(local.scheduler_address) as client,
    ):
        ended = list(results(client, abs, [-1, -2, -3, -4, -5], at_once=2))
    assert sorted((task, report) for task, report, _ in ended) == [(-i, i) for i in range(5, 0, -1)]
    assert [len(running) for *_, running in ended] == [2, 2, 2, 1, 0]


def test_a_scheduler_that_does_not_answer_is_explained(tmp_path):
    app = typer.Typer()
    app.command()(reproduce)
    command = ["--quick", "--datasets", "iris", "--out", str(tmp_path / "run")]
    with dask.config.set({"distributed.comm.timeouts.connect": "300ms"}):
        result = CliRunner().invoke(app, [*command, "--scheduler", "tcp://127.0.0.1:9"])
    assert isinstance(result.exception, UserError)
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "run").exists()
