from __future__ import annotations

import threading

import pytest

from gmpll.apps.decisions.errors import ConflictError
from gmpll.apps.review.background import BackgroundRun


def test_one_run_at_a_time_and_then_another():
    go_on, calls = threading.Event(), []

    def work():
        calls.append(1)
        go_on.wait(10)
        return "all is well"

    run = BackgroundRun()
    assert run.status() == {"state": "idle", "what": "", "seconds": 0.0, "message": ""}
    run.start("match", work)
    assert run.status()["state"] == "running"
    with pytest.raises(ConflictError):
        run.start("apply", work)
    go_on.set()
    run.wait()
    status = run.status()
    assert (status["state"], status["what"], status["message"]) == ("done", "match", "all is well")
    run.start("apply", work)
    run.wait()
    assert len(calls) == 2


def test_an_error_is_kept_for_the_page_and_forgotten_by_the_next_run():
    outcomes = [ValueError("too few rows")]

    def work():
        if outcomes:
            raise outcomes.pop()
        return ""

    run = BackgroundRun()
    run.start("match", work)
    run.wait()
    assert (run.status()["state"], run.status()["message"]) == (
        "failed",
        "ValueError: too few rows",
    )
    run.start("match", work)
    run.wait()
    assert (run.status()["state"], run.status()["message"]) == ("done", "")
