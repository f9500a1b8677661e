"""Fuzz every reader, one process after the other: ``python -m fuzz.run --runs 2000``.

Inputs that show a fault are put into ``--out/<target>/``; fix the reader, then move them to
``fuzz/corpus/<target>/``, where the tests replay them. Exits with 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fuzz.targets import TARGETS

FINDINGS = Path(tempfile.gettempdir()) / "gmpll-fuzz-findings"
_HEADER = f"{'target':<16}{'runs':>9}{'refused':>9}{'s':>8}{'cov':>6}{'MiB':>6}  findings"


def fuzzed(name: str, runs: int, seconds: float, out: Path) -> dict[str, Any]:
    """Fuzz one target in a process of its own, again where that was ended by an input."""
    total: dict[str, Any] = {"target": name, "runs": 0, "refused": 0, "seconds": 0.0, "cov": 0}
    total |= {"slowest": 0.0, "peak_mib": 0, "findings": {}}
    for _ in range(5):
        left = runs - total["runs"]
        command = [sys.executable, "-m", "fuzz.one", name, "--runs", str(left)]
        command += ["--seconds", str(seconds), "--findings", str(out / name)]
        begun = time.monotonic()
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
        lines = done.stdout.strip().splitlines()
        coverage = re.findall(r"\bcov: (\d+)", done.stderr)
        total["cov"] = max(total["cov"], int(coverage[-1]) if coverage else 0)
        if done.returncode == 0 and lines:
            facts = json.loads(lines[-1])
            for key in ("runs", "refused", "seconds"):
                total[key] = round(total[key] + facts[key], 1)
            for key in ("slowest", "peak_mib"):
                total[key] = max(total[key], facts[key])
            for place, count in facts["findings"].items():
                total["findings"][place] = total["findings"].get(place, 0) + count
            return total
        # A crash, a hang or too much memory: libFuzzer has kept the input and ended the process.
        executed = [int(number) for number in re.findall(r"^#(\d+)", done.stderr, re.MULTILINE)]
        total["runs"] += executed[-1] if executed else 0
        total["seconds"] += round(time.monotonic() - begun, 1)
        why = re.findall(r"ERROR: (.*)", done.stderr)
        place = f"process ended: {why[-1] if why else done.stderr[-300:]}"
        total["findings"][place] = total["findings"].get(place, 0) + 1
        if not executed:
            break
    return total


def main() -> None:
    """Fuzz all targets, or those named, and print a table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("targets", nargs="*", help=f"any of {', '.join(TARGETS)}; default all")
    parser.add_argument("--runs", type=int, default=2000, help="inputs for every target")
    parser.add_argument("--seconds", type=float, default=0, help="most seconds for a target")
    parser.add_argument("--out", type=Path, default=FINDINGS)
    options = parser.parse_args()
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error(f"there is no target {sorted(unknown)[0]}; there are {', '.join(TARGETS)}")
    print(_HEADER, flush=True)
    totals = []
    for name in options.targets or TARGETS:
        facts = fuzzed(name, options.runs, options.seconds, options.out)
        totals.append(facts)
        found = "; ".join(f"{place} ({n}x)" for place, n in facts["findings"].items()) or "none"
        print(
            f"{name:<16}{facts['runs']:>9}{facts['refused']:>9}{facts['seconds']:>8.0f}"
            f"{facts['cov']:>6}{facts['peak_mib']:>6}  {found}",
            flush=True,
        )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "counts.json").write_text(json.dumps(totals, indent=1) + "\n")
    n_found = sum(len(facts["findings"]) for facts in totals)
    print(f"{sum(facts['runs'] for facts in totals)} inputs, {n_found} findings.")
    sys.exit(1 if n_found else 0)


if __name__ == "__main__":
    main()
