"""A few faults for every command that writes; ``make faults`` tries hundreds."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("scikit_posthocs")
pytest.importorskip("skops")
pytest.importorskip("starlette")

from bench import Bench
from injection import Fault, Runs
from scenarios import SCENARIOS, Scenario


@pytest.fixture(scope="module")
def runs():
    server = Runs()
    yield server
    server.close()


def _operation(bench: Bench, beginning: str, rng: random.Random) -> int:
    """Return the number of an operation of a kind, any one of them."""
    names = bench.clean.operations
    numbers = [n for n, name in enumerate(names, 1) if name.startswith(beginning)]
    return rng.choice(numbers) if numbers else len(names)


# The demo computes for longest, and its way of writing is that of the others.
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "demo"])
def test_nothing_is_lost_or_half_done(name, runs, tmp_path):
    rng = random.Random(name)
    bench = Bench(runs, SCENARIOS[name], tmp_path)
    second = rng.choice(["full", "end"])
    faults = [
        Fault("kill", operation=_operation(bench, "os.rename", rng)),
        Fault("full", size=rng.randrange(max(bench.sizes)))
        if second == "full"
        else Fault("end", operation=_operation(bench, "open", rng)),
    ]
    trials = [bench.trial(fault) for fault in faults]
    assert [trial for trial in trials if trial.problems] == []


def test_the_bench_finds_what_it_looks_for(runs, tmp_path):
    """A writer that is neither careful nor polite is found out in every respect."""
    bench = Bench(
        runs, Scenario("careless", "careless", (), ("result.csv", "second.csv")), tmp_path
    )
    cut = bench.trial(Fault("kill", size=101))
    assert any("is damaged" in problem for problem in cut.problems)
    full = bench.trial(Fault("full", operation=1))
    assert any("a traceback" in problem for problem in full.problems)
    assert any("not one sentence" in problem for problem in full.problems)
    left = bench.trial(Fault("full", operation=3))
    assert any("left behind" in problem for problem in left.problems)
    assert any("given again it leaves" in problem for problem in left.problems)
