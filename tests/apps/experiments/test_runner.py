import os
import signal
import sys
import time

import numpy as np
import pytest

from gmpll.apps.experiments import (
    Declaration,
    Experiment,
    ExperimentError,
    expand,
    protocol,
    read_declaration,
    run,
    scores,
)
from gmpll.apps.experiments.runner import RunSummary
from gmpll.apps.experiments.store import RunFolder
from gmpll.apps.experiments.tuning import choose_parameters

#: Long enough for a start on a busy machine; only a broken runner takes it all.
PATIENCE_SECONDS = 120


def finished_files(run_dir):
    return {file.name: file.stat().st_mtime_ns for file in run_dir.glob("jobs/*.npz")}


def wait_for_files(run_dir, number, process):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(finished_files(run_dir)) < number:
        assert process.poll() is None, process.stdout.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait(process):
    code = process.wait(PATIENCE_SECONDS)
    assert code == 0, process.stdout.read().decode()


def wait_for_the_end_of_groups(groups):
    """Wait until no worker is left of runners that led a process group."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for group in groups:
        while True:
            try:
                os.killpg(group, 0)
            except ProcessLookupError:
                break
            assert time.monotonic() < deadline, "workers outlive their runner"
            time.sleep(0.05)


def n_fits(learners):
    return len((learners / "log").read_text().splitlines())


def same_predictions(declaration, one, other):
    for job in expand(declaration):
        first, second = RunFolder(one).load(job), RunFolder(other).load(job)
        for name in ("predicted", "labels", "test_rows", "train_rows"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
            assert getattr(first, name).dtype == getattr(second, name).dtype


def test_what_is_tuned_once_is_not_tuned_again(tmp_path, monkeypatch):
    wine = Experiment(
        "controlled", ("wine",), ("CLPL",), p=(0.5,), r=(1,), folds=3,
        tune="candidate lift", tune_once=True,
    )  # fmt: skip
    choices = []

    def choose(*arguments, **options):
        choices.append(choose_parameters(*arguments, **options))
        return choices[-1]

    monkeypatch.setattr(protocol, "choose_parameters", choose)
    run(Declaration((wine,)), tmp_path)
    assert len(choices) == 1
    for job in expand(Declaration((wine,))):
        assert RunFolder(tmp_path).load(job).facts["chosen"] == choices[0].parameters


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_a_run_that_is_killed_again_and_again_ends_as_an_undisturbed_one(
    tmp_path, learners, start_runner, declare, silent
):
    declaration_file = declare(["Slow", "Random candidate"], folds=7, datasets=["iris", "wine"])
    declaration = read_declaration(declaration_file)
    expected = {f"{job.id}.npz" for job in expand(declaration)}
    assert len(expected) == 28
    run(declaration, tmp_path / "undisturbed", progress=silent)
    fits_undisturbed = n_fits(learners)
    assert fits_undisturbed == 14

    disturbed = tmp_path / "disturbed"
    kept, killed = {}, []
    # The runner alone (its workers survive it for a moment), then with all that belongs to it.
    kills = [(2, os.kill), (1, os.killpg), (1, os.kill)]
    for n_workers, kill in kills:
        process = start_runner(declaration_file, disturbed, n_workers, LEARNER_SECONDS="0.2")
        wait_for_files(disturbed, len(kept) + 5, process)
        kill(process.pid, signal.SIGKILL)
        process.wait()
        now = finished_files(disturbed)
        assert kept.items() <= now.items(), "a finished job was lost or written again"
        assert len(now) < len(expected), "the runner was killed too late to test anything"
        kept = now
        killed.append(process.pid)
    process = start_runner(declaration_file, disturbed, 1)
    wait(process)

    wait_for_the_end_of_groups(killed)
    final = finished_files(disturbed)
    assert set(final) == expected
    assert kept.items() <= final.items()
    assert not list(disturbed.glob("**/*.tmp"))
    same_predictions(declaration, tmp_path / "undisturbed", disturbed)
    assert scores(disturbed)["status"].eq("ok").all()
    # Each kill can have cost what was being fitted, and no more.
    most_lost = sum(n_workers for n_workers, _ in kills)
    assert n_fits(learners) - fits_undisturbed <= 14 + most_lost


def test_two_runners_share_the_work(tmp_path, learners, start_runner, declare, silent):
    declaration_file = declare(["Slow"], folds=12)
    shared = tmp_path / "shared"
    runners = [start_runner(declaration_file, shared, 1, LEARNER_SECONDS="0.1") for _ in range(2)]
    for process in runners:
        wait(process)
    assert n_fits(learners) == 12, "a job was done twice, or not at all"
    declaration = read_declaration(declaration_file)
    run(declaration, tmp_path / "alone", progress=silent)
    same_predictions(declaration, tmp_path / "alone", shared)
    assert len(RunFolder(shared).starts()) == 2


def test_a_finished_run_is_not_run_again(tmp_path, learners, declare, silent):
    declaration = read_declaration(declare(["Slow"]))
    for _ in range(2):
        summary = run(declaration, tmp_path / "run", progress=silent)
        assert summary == RunSummary(total=3, done=3, failed=0)
    assert n_fits(learners) == 3


def test_a_failing_job_does_not_stop_the_others(tmp_path, learners, declare, silent):
    declaration = read_declaration(declare(["Failing", "Any candidate"]))
    folder = tmp_path / "run"
    assert run(declaration, folder, progress=silent) == RunSummary(total=6, done=6, failed=3)
    table = scores(folder).set_index("method")
    assert set(table.loc["Failing", "error"]) == {"ArithmeticError: this cannot be learned"}
    assert (table.loc["Any candidate", "status"] == "ok").all()
    failed = [job for job in expand(declaration) if job.method == "Failing"]
    assert "toy_learners.py" in RunFolder(folder).load(failed[0]).facts["traceback"]


def test_failures_are_tried_again_on_request_only(tmp_path, learners, declare, silent):
    declaration = read_declaration(declare(["Failing"]))
    folder = tmp_path / "run"
    run(declaration, folder, progress=silent)
    run(declaration, folder, retry_failed=True, progress=silent)
    attempts = [RunFolder(folder).load(job).facts["attempt"] for job in expand(declaration)]
    assert attempts == [2, 2, 2]

    (learners / "log.mended").touch()
    assert run(declaration, folder, progress=silent).failed == 3
    assert run(declaration, folder, retry_failed=True, progress=silent).failed == 0
    before = finished_files(folder)
    run(declaration, folder, retry_failed=True, progress=silent)
    assert finished_files(folder) == before, "what succeeded is not tried again"


def test_a_job_that_kills_its_worker_fails_and_the_others_go_on(
    tmp_path, learners, declare, silent
):
    declaration = read_declaration(declare(["Any candidate", "Deadly"], folds=2, run_folds=1))
    summary = run(declaration, tmp_path / "run", n_jobs=2, progress=silent)
    assert summary == RunSummary(total=2, done=2, failed=1)
    table = scores(tmp_path / "run").set_index("method")
    assert "worker process died" in table.loc["Deadly", "error"]
    assert table.loc["Any candidate", "status"] == "ok"


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ on Windows")
def test_an_interrupt_reaches_the_caller_and_leaves_whole_results(
    tmp_path, learners, start_runner, declare
):
    declaration_file = declare(["Slow"], folds=20)
    process = start_runner(declaration_file, tmp_path / "run", 1, LEARNER_SECONDS="0.1")
    wait_for_files(tmp_path / "run", 3, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
    process.wait(PATIENCE_SECONDS)
    output = process.stdout.read().decode()
    assert "KeyboardInterrupt" in output
    jobs = expand(read_declaration(declaration_file))
    results = RunFolder(tmp_path / "run").load_all(jobs)
    assert 3 <= len(results) < 20
    assert not any(result.failed for result in results.values())


def test_timed_jobs_run_last_and_one_at_a_time(tmp_path, declare, silent, monkeypatch):
    from gmpll.apps.experiments import runner
    from gmpll.apps.experiments.declaration import Declaration, Experiment

    stages = []
    work_off = runner._work_off

    def spy(tasks, n_workers, progress, *cluster):
        stages.append(({task.job.experiment for task in tasks}, n_workers))
        yield from work_off(tasks, 1, progress)

    monkeypatch.setattr(runner, "_work_off", spy)
    kinds = [
        Experiment(kind, ("iris",), ("Random candidate",), p=(0.5,), r=(1,), folds=2)
        for kind in ("timing", "controlled")
    ]
    run(Declaration(tuple(kinds)), tmp_path / "run", n_jobs=5, progress=silent)
    assert stages == [({"controlled"}, 5), ({"timing"}, 1)]


def test_names_are_checked_before_anything_is_written(tmp_path, declare, silent):
    with pytest.raises(ExperimentError, match="no data set 'nowhere'"):
        run(read_declaration(declare(["Slow"], datasets=["nowhere"])), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_provenance_is_kept_for_every_start(tmp_path, declare, silent):
    declaration = read_declaration(declare(["Random candidate"]))
    run(declaration, tmp_path / "run", progress=silent)
    (start,) = RunFolder(tmp_path / "run").starts()
    assert start["versions"]["numpy"] == np.__version__
    assert start["processor_count"] >= 1
