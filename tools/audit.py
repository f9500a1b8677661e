"""Ask the advisory services about the installed packages and the oldest ones that are allowed.

    python -m tools.audit [--osv-url URL] [--timeout SECONDS]

``pip check`` and pip-audit do the work. Exits with 1 if a weakness or a conflict between packages
is found. Where no service can be reached, one sentence says so, and that alone is no failure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.bounds import PROJECT, lower_bounds

Runner = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


class UnreachableError(OSError):
    """No advisory service has answered; the text gives the last reason."""


def main(arguments: Sequence[str] | None = None, run: Runner | None = None) -> int:
    """Audit this environment and the project's bounds; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--osv-url", help="of another service that speaks OSV's language")
    parser.add_argument("--timeout", type=int, default=15, help="seconds to wait for a service")
    parser.add_argument("--project", type=Path, default=PROJECT)
    options = parser.parse_args(arguments)
    run = run or _run
    checked = run([sys.executable, "-m", "pip", "check"])
    problems = checked.stdout.strip().splitlines() if checked.returncode else []
    service = ["--timeout", str(options.timeout), "--vulnerability-service"]
    service += ["osv", "--osv-url", options.osv_url] if options.osv_url else ["pypi"]
    n_packages = 0
    try:
        with tempfile.TemporaryDirectory() as folder:
            oldest = Path(folder) / "oldest.txt"
            oldest.write_text("\n".join(lower_bounds(options.project)), encoding="utf-8")
            for packages in (
                ["--local", "--skip-editable"],
                ["--requirement", str(oldest), "--no-deps", "--disable-pip"],
            ):
                n_asked, weaknesses = _ask(run, [*packages, *service])
                n_packages += n_asked
                problems += weaknesses
        verdict = f"The advisory service knows {n_packages} of the packages"
    except UnreachableError as error:
        verdict = f"No advisory service could be reached ({error}): only conflicts were looked for"
    for problem in problems:
        print(problem)
    print(f"{verdict}; {len(problems) or 'no'} problems.")
    return int(bool(problems))


def _ask(run: Runner, options: Sequence[str]) -> tuple[int, list[str]]:
    """Return how many packages pip-audit could ask about, and what it was told."""
    command = [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", "--format", "json"]
    ended = run([*command, *options])
    try:
        packages = json.loads(ended.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError) as error:
        lines = ended.stderr.strip().splitlines()
        raise UnreachableError(lines[-1][:200] if lines else "no answer") from error
    known = [package for package in packages if "vulns" in package]
    if not known:
        raise UnreachableError("it knows none of the packages")
    weaknesses = []
    for package in known:
        for found in package["vulns"]:
            names = ", ".join([found["id"], *found.get("aliases", [])])
            fixed = ", ".join(found.get("fix_versions") or []) or "no version yet"
            weaknesses.append(f"{package['name']} {package['version']}: {names}; fixed in {fixed}")
    return len(known), weaknesses


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
