"""Disturb every command that writes, many times, and say what did not hold.

Run from the top of the repository: ``python tools/faults.py --faults 40 --seed 0``. The faults,
and what must hold after them, are described in ``tests/faults``; the tests there try a few of
them. The exit status is 1 if anything did not hold.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "faults"))

from bench import Bench
from injection import Runs
from scenarios import SCENARIOS

#: Shares of what a command writes that fit on the small disks.
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97)


def main() -> int:
    """Run the bench; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--faults", type=int, default=40, help="faults for every command")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of moments")
    parser.add_argument("--only", choices=list(SCENARIOS), help="one command")
    arguments = parser.parse_args()
    runs, failed = Runs(), 0
    try:
        for name, scenario in SCENARIOS.items():
            if arguments.only in (None, name):
                start = time.perf_counter()
                with tempfile.TemporaryDirectory(prefix="gmpll-faults-") as scratch:
                    bench = Bench(runs, scenario, Path(scratch))
                    failed += _disturb(bench, arguments.faults, random.Random(arguments.seed))
                print(f"  {time.perf_counter() - start:.0f} s", flush=True)
    finally:
        runs.close()
    print(f"{failed} trials in which something did not hold.")
    return int(failed > 0)


def _disturb(bench: Bench, number: int, rng: random.Random) -> int:
    trials = [bench.trial(fault) for fault in bench.faults(number, rng)]
    small = [bench.trial_on_a_small_disk(share) for share in SHARES]
    trials += [trial for trial in small if trial is not None]
    failed = [trial for trial in trials if trial.problems]
    kinds = Counter(trial.fault.partition(" at ")[0].partition(" with")[0] for trial in trials)
    ended = Counter(_ending(trial.code) for trial in trials)
    print(f"{bench.scenario.name}: {len(trials)} faults, {len(failed)} with problems")
    print("  faults:", ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
    print("  ended:", ", ".join(f"{count} {kind}" for kind, count in sorted(ended.items())))
    for trial in failed:
        for problem in trial.problems:
            print(f"  {trial.fault}: {problem}")
    return len(failed)


def _ending(code: int) -> str:
    return "done all the same" if code == 0 else "with a sentence" if code > 0 else "dead"


if __name__ == "__main__":
    sys.exit(main())
