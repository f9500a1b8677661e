import io
import time

import pytest
from rich.console import Console

from gmpll.apps.experiments.jobs import Job
from gmpll.apps.experiments.progress import RunProgress, TimeEstimate


def job(fold, dataset="lost", method="A"):
    return Job("timing", dataset, method, method, fold=fold, n_folds=9, seed=0)


def test_the_estimate_uses_the_jobs_most_like_those_left():
    jobs = [job(0), job(1), job(0, "msrcv2"), job(1, "msrcv2"), job(0, method="B")]
    estimate = TimeEstimate(jobs, n_workers=1)
    assert estimate.seconds_left() is None
    estimate.finished(jobs[0], 1.0)
    estimate.finished(jobs[2], 5.0)
    # Left: one like each of the two finished, and a method never seen (the mean of all).
    assert estimate.seconds_left() == pytest.approx(1 + 5 + 3)


def test_what_another_runner_did_tells_nothing_about_speed():
    estimate = TimeEstimate([job(0), job(1)], n_workers=1)
    estimate.finished(job(0), None)
    assert estimate.seconds_left() is None


def test_more_workers_than_jobs_do_not_help():
    estimate = TimeEstimate([job(0), job(1), job(2)], n_workers=8)
    estimate.finished(job(0), 6.0)
    assert estimate.seconds_left() == pytest.approx(6.0)


def plain(width=40):
    stream = io.StringIO()
    return RunProgress(Console(file=stream, width=width)), stream


def test_plain_lines_say_what_is_done_and_what_is_left():
    progress, stream = plain()
    progress.begin([job(0), job(1), job(2)], done=2, n_workers=1)
    progress.finished(job(0), 0.5, "")
    first, second = stream.getvalue().splitlines()
    assert first == "3 jobs to run, 2 were done before."
    assert second.startswith("3/5: lost, A, fold 1, in 0.5 s, about 1.0 s left (until ")


def test_failures_and_the_end_are_always_told():
    progress, stream = plain()
    progress.begin([job(0), job(1), job(2)], done=0, n_workers=1)
    progress.finished(job(0), 0.5, "")
    progress.finished(job(1), 0.5, "ValueError: [odd] text")
    progress.finished(job(2), None, "")
    lines = stream.getvalue().splitlines()
    assert lines[2] == "Failed: lost, A, fold 2: ValueError: [odd] text"
    assert lines[3] == "3/3: lost, A, fold 3, by another runner, 1 failed"


def test_a_terminal_gets_a_bar_with_what_runs(monkeypatch):
    monkeypatch.setattr("gmpll.apps.progress.PATIENCE_SECONDS", 0.0)
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=160)
    progress = RunProgress(console)
    progress.begin([job(0), job(1)], done=0, n_workers=1)
    progress.running([job(1)])
    progress.finished(job(0), 100.0, "KeyError: [x]")
    deadline = time.monotonic() + 60
    while "1/2" not in stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    progress.end()
    text = stream.getvalue()
    assert "1/2, 1 failed" in text
    assert "50%, about 100 s left" in text
    assert "lost, A, fold 2" in text
    assert "Failed: lost, A, fold 1: KeyError: [x]" in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.31, "0.3 s"), (42, "42 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_durations_are_short(seconds, text):
    progress, stream = plain(width=80)
    progress.begin([job(0)], done=0, n_workers=1)
    progress.finished(job(0), seconds, "")
    assert stream.getvalue().splitlines()[-1] == f"1/1: lost, A, fold 1, in {text}"
