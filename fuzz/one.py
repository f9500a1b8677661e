"""Fuzz one target under coverage guidance: ``python -m fuzz.one NAME --runs N``.

A finding does not end the run: the input that showed it is kept, once for every place that it
comes from, and the run goes on. The last line of the output is a JSON object with the counts.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from random import Random

import atheris
from fuzz.target import Target, clean_up

CORPUS = Path(__file__).parent / "corpus"
#: What is watched for new branches: the library, and readers below it that are Python. What is
#: imported before is not watched, or NumPy and its friends would drown the library.
INSTRUMENTED = ["gmpll", "zipfile", "tomllib", "scipy", "skops"]
NOT_INSTRUMENTED = ("pandas", "sklearn.compose", "sklearn.pipeline", "scipy.stats", "pyarrow")
#: The process is ended when an input takes longer; one that is merely slow is a finding, too.
HANGS_SECONDS = 20
SLOW_SECONDS = 3.0
#: An input must not take more memory than this above what was taken before.
MEMORY_MIB = 512
RSS_LIMIT_MIB = 2048
#: Larger allocations fail, as they would on a small machine, before anything is touched.
ADDRESS_SPACE_MIB = 8192
LONGEST_INPUT = 16_384
#: Most readers are compiled and show no branches: without this, runs would drift to empty inputs.
FROM_A_SEED = 0.4
BLIND = 0.3


class Findings:
    """Keeps one input for every place in the library that a fault shows at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.seen: dict[str, int] = {}

    def add(self, place: str, data: bytes) -> None:
        """Count a fault and keep the first input that shows it."""
        self.seen[place] = self.seen.get(place, 0) + 1
        if self.seen[place] == 1:
            name = "".join(c if c.isalnum() else "-" for c in place)[:120]
            (self.folder / name).write_bytes(data)
            print(f"FINDING {place}", file=sys.stderr, flush=True)


def place_of(error: BaseException) -> str:
    """Name an error by its type and the innermost line of the library that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "gmpll" in Path(frame.filename).parts] or frames
    last = own[-1]
    return f"{type(error).__name__} {Path(last.filename).stem}.{last.name}:{last.lineno}"


def instrumented_target(name: str) -> Target:
    """Import the targets so that branches of the readers are counted."""
    for module in NOT_INSTRUMENTED:
        importlib.import_module(module)
    for module in [key for key in sys.modules if key.partition(".")[0] == "zipfile"]:
        del sys.modules[module]
    with atheris.instrument_imports(include=INSTRUMENTED, enable_loader_override=False):
        from fuzz.targets import TARGETS
    return TARGETS[name]


def fuzz(target: Target, seeds: list[bytes], findings: Findings, runs: int, seconds: float) -> None:
    """Run until enough inputs were tried; does not return."""
    counts = {"runs": 0, "refused": 0}
    slowest = 0.0
    started = time.monotonic()
    corpus = Path(tempfile.mkdtemp(prefix=f"gmpll-fuzz-{target.name}-"))
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)

    def test_one_input(data: bytes) -> None:
        nonlocal slowest
        counts["runs"] += 1
        before, begun = _peak_mib(), time.process_time()
        try:
            counts["refused"] += bool(target.check(data))
        except Exception as error:
            findings.add(place_of(error), data)
        took = time.process_time() - begun
        slowest = max(slowest, took)
        if took > SLOW_SECONDS:
            findings.add("slow", data)
        if _peak_mib() - before > MEMORY_MIB:
            findings.add("memory", data)
        elapsed = time.monotonic() - started
        if counts["runs"] >= runs or (seconds and elapsed > seconds):
            shutil.rmtree(corpus, ignore_errors=True)
            clean_up()
            facts = {"seconds": round(elapsed, 1), "slowest": round(slowest, 2)}
            facts |= {"peak_mib": _peak_mib(), "findings": findings.seen}
            print(json.dumps({"target": target.name, **counts, **facts}), flush=True)
            os._exit(0)  # libFuzzer knows no other way to end a run early

    def mutated(data: bytes, max_size: int, seed: int) -> bytes:
        rng = Random(seed)
        if rng.random() < FROM_A_SEED:
            data = rng.choice(seeds)
        if rng.random() < BLIND:
            return atheris.Mutate(data, max_size)
        for _ in range(rng.choice((1, 1, 2, 4))):
            data = target.mutate(data, rng)
        return data[:max_size]

    arguments = [
        sys.argv[0],
        str(corpus),
        f"-seed={int(time.time())}",
        f"-timeout={HANGS_SECONDS}",
        f"-rss_limit_mb={RSS_LIMIT_MIB}",
        f"-max_len={LONGEST_INPUT}",
        f"-artifact_prefix={findings.folder}/",
        "-reduce_inputs=0",
    ]
    atheris.Setup(arguments, test_one_input, custom_mutator=mutated)
    atheris.Fuzz()


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main() -> None:
    """Fuzz one target."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("target")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=0, help="stop after so long; 0 is never")
    parser.add_argument("--findings", type=Path, required=True, help="folder for what was found")
    options = parser.parse_args()
    target = instrumented_target(options.target)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_MIB << 20,) * 2)
    kept = [path.read_bytes() for path in sorted((CORPUS / target.name).glob("*"))]
    findings = Findings(options.findings)
    fuzz(target, [*target.seeds(), *kept], findings, options.runs, options.seconds)


if __name__ == "__main__":
    main()
