from __future__ import annotations

import threading

import pytest

from gmpll.apps.decisions.errors import ConflictError
from gmpll.apps.review.session import BackgroundRun


def test_one_run_at_a_time_and_then_another():
    go_on, calls = threading.Event(), []

    def work():
        calls.append(1)
        go_on.wait(10)

    run = BackgroundRun(work)
    assert run.status() == {"state": "idle", "seconds": 0.0, "message": ""}
    run.start()
    assert run.status()["state"] == "running"
    with pytest.raises(ConflictError):
        run.start()
    go_on.set()
    run.wait()
    assert run.status()["state"] == "done"
    run.start()
    run.wait()
    assert len(calls) == 2


def test_an_error_is_kept_for_the_page_and_forgotten_by_the_next_run():
    outcomes = [ValueError("too few rows")]

    def work():
        if outcomes:
            raise outcomes.pop()

    run = BackgroundRun(work)
    run.start()
    run.wait()
    assert (run.status()["state"], run.status()["message"]) == (
        "failed",
        "ValueError: too few rows",
    )
    run.start()
    run.wait()
    assert (run.status()["state"], run.status()["message"]) == ("done", "")
