"""The bench of worlds at its smallest: the sets, the networks' losses, and a run that is cut."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
pytestmark = [
    pytest.mark.skipif(not FOLDER.exists(), reason="the benchmarks are not here"),
    pytest.mark.skipif(sys.platform == "win32", reason="processes cannot fork there"),
]


@pytest.fixture
def bench(monkeypatch):
    for library in ("OMP", "OPENBLAS", "MKL"):  # the module sets these: take them back afterwards
        monkeypatch.setenv(f"{library}_NUM_THREADS", "1")
    monkeypatch.syspath_prepend(FOLDER)
    import worlds

    return worlds


def covered(problem):
    return problem.mask[np.arange(len(problem.y)), problem.y]


def test_there_are_eight_worlds_and_bases_without_overlap(bench):
    assert set(bench.MAKERS) == set(bench.WORLDS)
    assert len(set(bench.WORLDS)) == len(bench.WORLDS) >= 8
    assert len(set(bench.BASES)) == len(bench.BASES) >= 8
    assert bench.half_of("digits", "uniform") == "design"
    assert bench.half_of("wine", "counts") == "report"
    assert bench.half_of("wine", "uniform") == bench.half_of("digits", "counts") == "mixed"


@pytest.mark.parametrize("base", ["digits", "breast_cancer"])
@pytest.mark.parametrize(
    "world", ["uniform", "dictionary", "instance", "frequent", "cooccurrence", "longtail"]
)
def test_sets_hold_the_truth_and_more(bench, base, world):
    problem = bench.make_problem(base, world, 0, 150)
    assert covered(problem).all()
    assert 1.2 < problem.mask.sum(axis=1).mean() < problem.mask.shape[1]
    assert np.bincount(problem.y).min() >= bench.FEWEST_ROWS
    again = bench.make_problem(base, world, 0, 150)
    assert (again.mask == problem.mask).all()
    assert (again.X == problem.X).all()
    other = bench.make_problem(base, world, 1, 150)
    assert other.X.shape != problem.X.shape or (other.X != problem.X).any()


def test_no_row_is_both_fitted_on_and_predicted(bench):
    for world in ("uniform", "longtail"):
        problem = bench.make_problem("digits", world, 0, 1000)
        rows = {row.tobytes() for row in problem.X}
        assert rows.isdisjoint(row.tobytes() for row in problem.X_test)


def test_worlds_are_what_they_say(bench):
    dictionary = bench.make_problem("digits", "dictionary", 0, 300)
    assert 0.55 < (dictionary.mask.sum(axis=1) == 1).mean() < 0.67
    missing = bench.make_problem("digits", "missing", 0, 300)
    assert covered(missing).mean() == pytest.approx(0.9, abs=0.005)
    assert missing.mask.any(axis=1).all()
    tail = np.sort(np.bincount(bench.make_problem("digits", "longtail", 0, 300).y))
    assert tail[-1] > 5 * tail[0]
    skewed = bench.make_problem("digits", "frequent", 0, 300)
    distractors = skewed.mask.sum(axis=0) - np.bincount(skewed.y)
    share = distractors / (len(skewed.y) - np.bincount(skewed.y))
    assert np.corrcoef(share, np.bincount(skewed.y))[0, 1] > 0.7


def test_votes_make_the_sets(bench):
    sizes = {}
    for world in bench.VOTE_WORLDS:
        problem = bench.make_problem("digits", world, 0, 150)
        item, who, label = problem.votes
        assert set(item) == set(range(len(problem.y)))
        mask = np.zeros_like(problem.mask)
        mask[item, label] = True
        assert (mask == problem.mask).all()
        assert (problem.voted().annotators is None) == (world == "counts")
        right = pd.Series(label == problem.y[item]).groupby(who).mean()
        assert right.max() > 0.8  # a good annotator
        assert right.min() < 0.3  # a hostile or an indifferent one
        sizes[world] = len(item) / len(problem.y)
    assert sizes["votes-few"] < 2.5 < sizes["votes-pairs"] < sizes["votes-many"]


def test_losses_have_the_gradients_of_their_formulas(bench):
    import worlds_methods as methods

    z, inside = np.array([[1.0, 0.0, -1.0, 0.5]]), np.array([[True, True, False, True]])
    rows = np.array([0])
    gradient = [-0.032490, -0.011952, 0.064148, -0.019706]
    assert methods.CC(inside).gradient(rows, z)[0] == pytest.approx(gradient, abs=1e-6)
    proden = methods.PRODEN(inside)
    proden.gradient(rows, z)
    assert proden.gradient(rows, z)[0] == pytest.approx(gradient, abs=1e-6)

    def leveraged(z):
        right, wrong = 1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))
        return (np.where(inside, right, wrong) / 4).sum()

    step = 1e-6 * np.eye(4)
    slopes = [(leveraged(z + e) - leveraged(z - e)) / 2e-6 for e in step]
    lws = methods.LWS(inside)
    assert lws.gradient(rows, z)[0] == pytest.approx(slopes, abs=1e-8)
    assert lws.weight[0] == pytest.approx([0.506480, 0.186324, 1, 0.307196], abs=1e-6)


@pytest.mark.parametrize("name", ["PRODEN-linear", "CC-MLP", "LWS-MLP"])
def test_networks_solve_an_easy_problem(bench, name):
    problem = bench.make_problem("wine", "uniform", 0, 150)
    labels, unseen = bench.ALL_METHODS[name](problem, 0)
    assert (labels == problem.y).mean() > 0.9
    assert (unseen == problem.y_test).mean() > 0.85


def test_a_job_that_takes_too_long_or_fails_is_told(bench):
    jobs = [("slow", time.sleep, (60,)), ("wrong", int, ("x",)), ("good", dict, ())]
    answers = dict(bench.run_jobs(jobs, 3, 2.0))
    assert answers["slow"]["status"] == "over the limit"
    assert answers["wrong"]["status"].startswith("ValueError")
    assert answers["good"] == {"status": "ok"}


def test_a_cut_run_goes_on_and_its_table_can_be_read(tmp_path):
    def run(*options):
        command = [sys.executable, str(FOLDER / "worlds.py"), *map(str, options)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    out = tmp_path / "worlds.csv"
    options = (
        "--out", out, "--bases", "iris,wine", "--worlds", "uniform,counts", "--rows", 60,
        "--jobs", 2, "--methods", "default,PL-KNN,CC-linear,CC-MLP,random-candidate,majority-vote",
    )  # fmt: skip
    run(*options)
    whole = pd.read_csv(out)
    assert len(whole) == 2 * (5 + 6)
    assert (whole["status"] == "ok").all()
    out.write_bytes(out.read_bytes()[:-300])
    run(*options)
    again = pd.read_csv(out)
    key = ["base", "world", "seed", "rows", "method"]
    assert not again.duplicated(key).any()
    scores = [frame.set_index(key)[["training", "unseen"]].sort_index() for frame in (whole, again)]
    pd.testing.assert_frame_equal(*scores)
    assert "0 tasks" in run(*options)

    failed = tmp_path / "failed.csv"
    failed.write_text(out.read_text().replace(",ok,", ",over the limit,", 1))
    assert "1 tasks" in run("--out", failed, *options[2:], "--retry")

    figures = tmp_path / "figures.csv"
    table = run("--table", out, "--figures", figures)
    for words in ("| default |", "CC, better one in hindsight", "design, unseen (1)", "iris"):
        assert words in table
    assert "below the best trivial rule" in table
    made = pd.read_csv(figures)
    cells = made.set_index(["kind", "base", "world", "method"])["accuracy"]
    line = whole.query("base == 'iris' and world == 'counts' and method == 'default'").iloc[0]
    assert cells["unseen", "iris", "counts", "default"] == pytest.approx(100 * line["unseen"], 1e-3)
