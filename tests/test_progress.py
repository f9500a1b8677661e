import contextvars
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from gmpll import GMPLL, PartialLabelClassifier
from gmpll._progress import (
    PRIOR_SECONDS,
    UNKNOWN,
    Outlook,
    begin,
    counted,
    listening,
    plan,
    printing,
    reach,
    revise,
    unheard,
)
from gmpll._threads import in_threads
from gmpll.datasets import random_candidates
from gmpll.methods import PLKNN


@pytest.fixture
def heard():
    """What was heard in the block of the test: stages, and the share that was over."""
    told = []

    def note(standing):
        total = standing.done + standing.left
        told.append((standing.stages, standing.done / total if total else 1.0))

    with listening(note):
        yield told


def iris():
    X, y = load_iris(return_X_y=True)
    return X, random_candidates(y, 0.6, 1, random_state=0)


def few():
    X, mask = iris()
    return X[::2], mask[::2]


def quick(**parameters):
    """Make a model that has fewer settings to choose from than the default."""
    fixed = {"views": ("cosine",), "stacking": 0.0, "forest": 0.0}
    return PartialLabelClassifier(hyperparameters=fixed, random_state=0, **parameters)


def fail_within(error):
    with plan({"inner": 2.0}):
        begin("inner")
        raise error


# --- what is told ----------------------------------------------------------------------------


def test_stages_count_by_their_costs(heard):
    with plan({"slow": 3.0, "fast": 1.0}):
        begin("slow")
        reach("slow", 0.5)
        begin("fast")
    assert heard == [
        (("slow",), 0.0),
        (("slow",), 0.375),
        (("fast",), 0.75),
        ((), 1.0),
    ]


def test_a_stage_that_is_left_out_costs_nothing(heard):
    with plan({"first": 1.0, "left out": 8.0, "last": 1.0}):
        begin("first")
        begin("last")
    assert heard[0] == (("first",), 0.0)
    assert heard[1] == (("last",), 0.5)


def test_what_is_known_later_replaces_what_was_thought(heard):
    with plan({"choice": 1.0, "growth": 1.0}):
        begin("choice")
        revise({"growth": 3.0, "choice": 7.0, "another": 9.0})
        begin("growth")
    assert heard[-2] == (("growth",), 0.25)


def test_a_plan_within_a_stage_replaces_its_cost(heard):
    with plan({"fit": 1.0, "write": 2.0}):
        begin("fit")
        with plan({"graph": 2.0, "match": 4.0}):
            begin("graph")
            begin("match")
        begin("write")
    assert heard[1] == (("fit", "graph"), 0.0)
    assert heard[2] == (("fit", "match"), 0.25)
    assert heard[-2] == (("write",), 0.75)


def test_plans_that_follow_each_other_in_a_stage_share_it(heard):
    with plan({"two fits": 4.0, "write": 4.0}):
        begin("two fits")
        for _ in range(2):
            with plan({"fit": 2.0}):
                begin("fit")
        begin("write")
    assert [share for _, share in heard] == sorted(share for _, share in heard)
    assert heard[-2] == (("write",), 0.5)


def test_counted_items_are_shares_of_a_stage(heard):
    with plan({"rows": 1.0}):
        begin("rows")
        assert list(counted("rows", "abcd", 4)) == ["a", "b", "c", "d"]
    assert [share for _, share in heard] == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_what_does_not_run_tells_nothing(heard):
    begin("no plan")
    with plan({"one": 1.0, "two": 1.0}):
        begin("one")
        reach("two", 0.5)
        begin("unknown")
        begin("two")
        begin("one")  # is over
        reach("two", 0.5)
        reach("two", 0.2)  # and never goes back
    assert heard == [(("one",), 0.0), (("two",), 0.5), (("two",), 0.75), ((), 1.0)]


def test_an_error_ends_a_plan_and_those_around_it_go_on(heard):
    with plan({"try": 2.0, "else": 2.0}):
        begin("try")
        with pytest.raises(ValueError, match="no"):
            fail_within(ValueError("no"))
        begin("else")
    assert heard[-2] == (("else",), 0.5)


def test_nobody_has_to_listen():
    with plan({"one": 1.0}):
        begin("one")
        reach("one", 0.5)
        assert list(counted("one", [1, 2], 2)) == [1, 2]


def test_threads_of_a_stage_are_not_heard(heard, monkeypatch):
    def work(number):
        with plan({"part": 1.0}):
            begin("part")
        return number

    for n_threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", n_threads)
        with plan({"parts": 1.0}):
            begin("parts")
            in_threads(work, range(4))
    with unheard():
        work(1)
    assert [stages for stages, _ in heard] == [("parts",), (), ("parts",), ()]


def test_pieces_of_work_in_two_threads_have_their_own_listeners():
    told = {"a": [], "b": []}
    meet = threading.Barrier(2)

    def work(name):
        with listening(told[name].append), plan({name: 1.0}):
            meet.wait()
            begin(name)
            meet.wait()

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(work, name)) for name in told
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, standings in told.items():
        assert [standing.stages for standing in standings] == [(name,), (), ()]


# --- the time left ---------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_the_time_left_follows_from_the_pace():
    clock = Clock()
    outlook = Outlook(clock)
    assert outlook.look() is None
    with listening(outlook), plan({"one": 100.0, "two": 300.0}):
        begin("one")
        clock.now = 200.0  # this machine is half as fast
        begin("two")
        share, left = outlook.look()
        assert share == pytest.approx(0.25)
        assert left == pytest.approx(600.0, rel=2 * PRIOR_SECONDS / 100)
        clock.now = 400.0  # nothing was heard since
        share, left = outlook.look()
        assert share == pytest.approx(0.5, abs=0.01)
        assert left == pytest.approx(400.0, rel=0.02)
        clock.now = 4000.0  # the bar stands still where the stage should have ended
        assert outlook.look() == (1.0, 0.0)
    assert outlook.seconds == 4000.0


def test_a_stage_that_takes_longer_than_planned_slows_the_rest():
    clock = Clock()
    outlook = Outlook(clock)
    with listening(outlook), plan({"one": 100.0, "two": 100.0}):
        begin("one")
        clock.now = 300.0
        share, left = outlook.look()
    assert share == 0.5
    assert left == pytest.approx(300.0, rel=0.02)


def test_of_what_is_unknown_there_is_no_time_left():
    clock = Clock()
    outlook = Outlook(clock)
    with listening(outlook), plan({"known": 10.0, "unknown": UNKNOWN, "end": 10.0}):
        begin("known")
        assert outlook.look() is None
        clock.now = 10.0
        begin("unknown")
        assert outlook.look() is None
        assert outlook.stages == ("unknown",)
        clock.now = 500.0
        begin("end")
        assert outlook.look() == (0.5, 10.0)  # at the pace of what was known


# --- what estimators say ---------------------------------------------------------------------


def stages_of(model, X, mask, **knowledge):
    told = []
    with listening(lambda standing: told.append(standing)):
        model.fit(X, mask, **knowledge)
    shares = [each.done / (each.done + each.left) for each in told]
    stages = list(dict.fromkeys(each.stages[0] for each in told if each.stages))
    return stages, shares


def test_the_stages_of_the_default():
    stages, shares = stages_of(PartialLabelClassifier(random_state=0), *iris())
    assert stages == [
        "features",
        "neighbours",
        "regression",
        "choice of hyperparameters",
        "matching",
        "feedback",
        "incomplete sets",
        "predictor",
        "calibration",
    ]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_the_stages_around_another_disambiguator():
    stages, shares = stages_of(PartialLabelClassifier(PLKNN(), random_state=0), *iris())
    assert stages[:4] == ["features", "disambiguation", "regression", "choice of hyperparameters"]
    assert np.isnan(shares[0])
    assert shares[-1] == 1.0


def test_the_matching_tells_every_iteration():
    told = []
    with listening(told.append):
        model = GMPLL(random_state=0).fit(*iris())
    shares = [each.done / (each.done + each.left) for each in told if each.left > 0]
    assert shares == sorted(shares)
    assert len(shares) >= model.n_iter_


def test_listening_changes_nothing():
    X, mask = few()
    alone = quick().fit(X, mask)
    with listening(lambda standing: None):
        heard = quick().fit(X, mask)
    np.testing.assert_array_equal(alone.label_confidences_, heard.label_confidences_)


# --- verbose ---------------------------------------------------------------------------------


def test_verbose_prints_a_line_for_every_stage(capsys):
    X, mask = few()
    quick().fit(X, mask)
    assert capsys.readouterr().out == ""
    model = quick(verbose=1).fit(X[:50], mask[:50])
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[PartialLabelClassifier] ") for line in lines)
    assert [line.split("] ")[1].split(":")[0] for line in lines[:2]] == ["features", "neighbours"]
    assert "% done" in lines[0]
    assert lines[-1].endswith("s in all")
    model.partial_fit(X[50:], mask[50:])
    assert "[PartialLabelClassifier] feedback: " in capsys.readouterr().out


def test_verbose_of_parts_within_a_stage(capsys):
    model = PartialLabelClassifier(
        GMPLL(verbose=1), hyperparameters={"feedback": True}, random_state=0, verbose=2
    )
    model.fit(*few())
    out = capsys.readouterr().out
    assert "[PartialLabelClassifier] disambiguation, matching: " in out
    assert "\n[GMPLL] matching: " in out
    assert all(line.startswith("[") for line in out.splitlines())


def test_a_line_that_is_broken_off_ends(capsys):
    with pytest.raises(KeyboardInterrupt), printing("Model", 1):
        fail_within(KeyboardInterrupt())
    assert capsys.readouterr().out == "[Model] inner: \n"


def test_methods_without_stages_print_nothing(capsys):
    with printing("Model", 1):
        pass
    assert capsys.readouterr().out == ""


# --- Ctrl-C in Python ------------------------------------------------------------------------


def interrupt_at(stage):
    """Make a listener that presses Ctrl-C when a stage begins."""

    def listener(standing):
        if standing.stages[:1] == (stage,):
            raise KeyboardInterrupt

    return listener


STAGES = ("neighbours", "choice of hyperparameters", "feedback", "calibration")


@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupted_fit_leaves_the_model_before(stage):
    X, mask = few()
    model = quick().fit(X[:30, :2], mask[:30])
    before, attributes = model.predict_proba(X[:, :2]), set(vars(model))
    with pytest.raises(KeyboardInterrupt), listening(interrupt_at(stage)):
        model.fit(X, mask)
    np.testing.assert_array_equal(model.predict_proba(X[:, :2]), before)
    assert set(vars(model)) == attributes
    np.testing.assert_array_equal(model.fit(X, mask).labels_, quick().fit(X, mask).labels_)


@pytest.mark.parametrize("model", [quick(), GMPLL(random_state=0)])
def test_an_interrupted_first_fit_leaves_an_unfitted_model(model):
    X, mask = few()
    parameters = model.get_params()
    with pytest.raises(KeyboardInterrupt), listening(interrupt_at("matching")):
        model.fit(X, mask)
    assert model.get_params() == parameters
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert len(model.fit(X, mask).labels_) == len(X)


def test_a_fit_that_fails_leaves_the_model_before():
    X, mask = iris()
    model = GMPLL(random_state=0).fit(X, mask)
    with pytest.raises(ValueError, match="150 rows"):
        model.fit(X[:, :2], mask[:7])
    assert model.n_features_in_ == 4
    assert len(model.predict(X)) == len(X)


FITTING = """
import signal, sys, threading, time
from gmpll import PartialLabelClassifier
from gmpll._progress import listening
from gmpll.datasets import make_partial_label_problem

signal.signal(signal.SIGINT, signal.default_int_handler)
problem = make_partial_label_problem(int(sys.argv[1]), 20, 8, 3.0, random_state=0)
model = PartialLabelClassifier(random_state=0).fit(problem.data[:60], problem.candidates[:60])
before = model.labels_.copy()

def tell(standing):
    if standing.stages[:1] == (sys.argv[2],):
        print("now", flush=True)

try:
    with listening(tell):
        model.fit(problem.data, problem.candidates)
except KeyboardInterrupt:
    end = time.monotonic() + 10  # a thread that was about to begin sees that there is nothing to do
    while threading.active_count() > 1 and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == 1, threading.enumerate()
    assert (model.labels_ == before).all()
    assert len(model.predict(problem.data)) == len(problem.data)
    print("usable", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
@pytest.mark.parametrize("stage", ["choice of hyperparameters", "matching"])
@pytest.mark.parametrize("n_threads", ["1", "2"])
def test_a_real_signal_ends_threads_and_keeps_the_model(stage, n_threads):
    process = subprocess.Popen(
        [sys.executable, "-c", FITTING, "8000", stage],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": n_threads},
    )
    try:
        assert process.stdout.readline() == "now\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert out.splitlines()[-1:] == ["usable"], error
    assert process.returncode == 0
