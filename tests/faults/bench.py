"""The bench: a command, a fault, the checks; then the same command again, and the checks again."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from injection import ERRORS, SIGNALS, Fault, Outcome, Runs, small_disk
from scenarios import (
    Scenario,
    digests,
    problems_after,
    problems_after_another_run,
)

_PAGE_BYTES = 4096


@dataclass(frozen=True)
class Trial:
    """A fault and what came of it."""

    fault: str
    code: int
    problems: list[str]


class Bench:
    """A scenario with its prepared folder and a run without fault to compare with.

    Parameters
    ----------
    runs : Runs
    scenario : Scenario
    scratch : Path
        An empty folder.
    """

    def __init__(self, runs: Runs, scenario: Scenario, scratch: Path) -> None:
        self.runs = runs
        self.scenario = scenario
        self.scratch = scratch
        self.template = scratch / "template"
        scenario.prepare(runs, self.template)
        undisturbed = scratch / "undisturbed"
        shutil.copytree(self.template, undisturbed)
        self.clean: Outcome = scenario.run(runs, undisturbed)
        if self.clean.code or not scenario.files(undisturbed):
            raise RuntimeError(f"{scenario.name} fails without a fault: {self.clean.err}")
        self.sizes = [path.stat().st_size for path in scenario.files(undisturbed).values()]
        self._disk = (_disk_bytes(self.template), _disk_bytes(undisturbed))

    def faults(self, number: int, rng: random.Random) -> Iterator[Fault]:
        """Yield faults: half of them at operations, a quarter at bytes, a quarter at moments."""
        n_operations = len(self.clean.operations)
        every = [
            Fault(kind, operation=n)
            for n in range(1, n_operations + 1)
            for kind in (*SIGNALS, *ERRORS)
        ]
        rng.shuffle(every)
        kills = [fault for fault in every if fault.is_kill][: number // 4]
        others = [fault for fault in every if not fault.is_kill][: number // 4]
        yield from kills + others
        for i in range(number // 4):
            size = int(rng.uniform(0, 1) ** 2 * max(self.sizes))
            yield Fault(("kill", "full")[i % 2], size=size)
        for i in range(number - len(kills) - len(others) - number // 4):
            yield Fault(tuple(SIGNALS)[i % 3], seconds=rng.uniform(0, self.clean.seconds))

    def trial(self, fault: Fault) -> Trial:
        """Run with a fault, check, run again, check."""
        sandbox = self._sandbox(self.scratch)
        try:
            outcome, problems = self._disturbed(fault, sandbox)
            return Trial(str(fault), outcome.code, problems + self._again(sandbox))
        finally:
            shutil.rmtree(sandbox)

    def trial_on_a_small_disk(self, share: float) -> Trial | None:
        """Run where the disk holds only a share of what the command writes.

        Returns None where file systems cannot be mounted.
        """
        before, after = self._disk
        mount, moved = self.scratch / "mount", self.scratch / "moved"
        mount.mkdir(exist_ok=True)
        with small_disk(mount, before + int(share * (after - before))) as mounted:
            if not mounted:
                return None
            sandbox = self._sandbox(mount)
            outcome, problems = self._disturbed(Fault("full"), sandbox)
            shutil.copytree(sandbox, moved)
        try:
            name = f"a disk with room for {share:.0%}"
            return Trial(name, outcome.code, problems + self._again(moved))
        finally:
            shutil.rmtree(moved)

    def _sandbox(self, where: Path) -> Path:
        sandbox = where / "sandbox"
        shutil.copytree(self.template, sandbox)
        return sandbox

    def _disturbed(self, fault: Fault, sandbox: Path) -> tuple[Outcome, list[str]]:
        before = digests(sandbox)
        outcome = self.scenario.run(self.runs, sandbox, fault)
        return outcome, problems_after(self.scenario, fault, outcome, sandbox, before)

    def _again(self, sandbox: Path) -> list[str]:
        outcome = self.scenario.run(self.runs, sandbox)
        return problems_after_another_run(self.scenario, outcome, sandbox)


def _disk_bytes(folder: Path) -> int:
    pages = 1  # the folder itself
    for path in folder.rglob("*"):
        pages += 1 if path.is_dir() else -(-path.stat().st_size // _PAGE_BYTES)
    return pages * _PAGE_BYTES
