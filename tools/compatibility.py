"""Run the tests on the oldest and the newest supported versions.

    python tools/compatibility.py [--only NAME,...] [--list] [-- PYTEST ARGUMENTS]

Every combination gets a virtual environment of its own under ``.compat/``. The oldest versions are
the lower bounds in ``pyproject.toml``, so a bound that is too low fails here. Interpreters are
looked for as ``pythonX.Y`` on the PATH and under pyenv. Exits with 1 if one combination fails and
prints a table of what was run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".compat"
PYTHONS = ("3.11", "3.12", "3.13")
#: Extras whose lower bounds are tried, and the tools that run the tests (always the newest).
EXTRAS = ("pandas", "plot", "experiments", "tables", "review", "neighbors", "dask")
SHOWN = ("numpy", "scipy", "scikit-learn", "pandas")


@dataclass(frozen=True)
class Combination:
    """A Python and whether the oldest or the newest libraries go with it."""

    python: str
    libraries: str

    @property
    def name(self) -> str:
        """What ``--only`` takes."""
        return f"py{self.python}-{self.libraries}"


def combinations() -> list[Combination]:
    """The oldest libraries on the oldest Python, the newest on all."""
    return [Combination(PYTHONS[0], "oldest"), *(Combination(v, "newest") for v in PYTHONS)]


def lower_bounds() -> list[str]:
    """Turn ``library>=version`` of pyproject.toml into ``library==version``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]
    return [
        re.sub(r"\[.*\]", "", line).replace(">=", "==")
        for line in wanted
        if not line.startswith("gmpll[")
    ]


def interpreter(version: str) -> str | None:
    """Find an interpreter of this version that starts."""
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}*/bin/python"))
    for path in [shutil.which(f"python{version}"), *map(str, reversed(pyenv))]:
        if path and subprocess.run([path, "-V"], capture_output=True).returncode == 0:
            return path
    return None


def prepare(combination: Combination, python: str) -> Path:
    """Make the virtual environment, or use the one that is there."""
    folder = FOLDER / combination.name
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    if not folder.exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
        subprocess.run([*pip, "install", "--upgrade", "pip"], check=True)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(lower_bounds()) if combination.libraries == "oldest" else "")
    subprocess.run(
        [*pip, "install", "--editable", f"{ROOT}[test]", "--constraint", constraints], check=True
    )
    return folder / "bin" / "python"


def versions(python: Path) -> dict[str, str]:
    """Return the versions of the libraries that matter most."""
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {entry["name"].lower(): entry["version"] for entry in json.loads(listed.stdout)}


def main() -> int:
    """Run every combination that can be had."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="names of combinations, separated by commas")
    parser.add_argument("--list", action="store_true", help="show the combinations and stop")
    options, pytest_arguments = parser.parse_known_args()
    pytest_arguments = [argument for argument in pytest_arguments if argument != "--"]
    chosen = [c for c in combinations() if not options.only or c.name in options.only.split(",")]
    if options.list:
        print("\n".join(combination.name for combination in chosen))
        return 0
    if not chosen:
        print(f"There is no combination {options.only!r}; --list shows them.", file=sys.stderr)
        return 2
    outcomes = []
    for combination in chosen:
        python = interpreter(combination.python)
        if python is None:
            outcomes.append((combination.name, "not run: no such Python here", ""))
            continue
        executable = prepare(combination, python)
        run = subprocess.run(
            [executable, "-m", "pytest", "--numprocesses=2", "--dist=worksteal", "-q",
             *pytest_arguments],
            cwd=ROOT,
            env={"OMP_NUM_THREADS": "1", **os.environ},
        )  # fmt: skip
        found = versions(executable)
        outcomes.append(
            (
                combination.name,
                "passed" if run.returncode == 0 else f"FAILED ({run.returncode})",
                ", ".join(f"{name} {found.get(name, '-')}" for name in SHOWN),
            )
        )
    for outcome in outcomes:
        print("{:18s} {:30s} {}".format(*outcome))
    return int(any("FAILED" in outcome for _, outcome, _ in outcomes))


if __name__ == "__main__":
    sys.exit(main())
