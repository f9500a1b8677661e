"""Compare the installed packages with known weaknesses.

    python tools/audit.py [--osv-url URL] [--timeout SECONDS]

First pip-audit asks the advisory services. Where none can be reached, what is known without them
is checked, and the last line says so. Exits with 1 if a weakness, a conflict between packages or a
version below the bounds in ``pyproject.toml`` is found, else with 0.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

TOP = Path(__file__).resolve().parent.parent

Runner = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True)
class Advisory:
    """A weakness of a package that this project uses, mended in a version."""

    package: str
    mended_in: str
    name: str
    what: str


#: Weaknesses that touch what this project does with the packages. The list is no substitute for
#: the services: it holds what was known when it was last edited.
KNOWN = (
    Advisory("pyarrow", "14.0.1", "CVE-2023-47248", "Parquet files could execute code"),
    Advisory("skops", "0.12.0", "CVE-2025-54412", "model files could hide what they execute"),
    Advisory("skops", "0.12.0", "CVE-2025-54413", "model files could hide what they execute"),
    Advisory("starlette", "0.40.0", "CVE-2024-47874", "forms could fill the memory"),
    Advisory("h11", "0.16.0", "CVE-2025-43859", "borders of requests were read too leniently"),
    Advisory("jinja2", "3.1.6", "CVE-2025-27516", "templates could leave their sandbox"),
    Advisory("scikit-learn", "1.5.0", "CVE-2024-5206", "vectorizers kept words of their data"),
    Advisory("dask", "2021.10.0", "CVE-2021-42343", "local clusters listened for everybody"),
)


@dataclass
class Answer:
    """What the advisory services said."""

    checked: int = 0
    weaknesses: list[str] = field(default_factory=list)
    trouble: str = ""

    @property
    def reached(self) -> bool:
        """Whether anything was checked at all."""
        return self.checked > 0


def main(arguments: Sequence[str] | None = None, run: Runner | None = None) -> int:
    """Audit this environment; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--osv-url", help="of another service that speaks OSV's language")
    parser.add_argument("--timeout", type=int, default=15, help="seconds to wait for a service")
    parser.add_argument("--project", type=Path, default=TOP / "pyproject.toml")
    options = parser.parse_args(arguments)
    run = run or _run
    answer = ask_services(run, options.osv_url, options.timeout)
    installed = installed_versions()
    wanted = requirements(options.project)
    problems = [
        *answer.weaknesses,
        *known_weaknesses(installed),
        *weaknesses_allowed(wanted),
        *bounds_not_kept(installed, wanted),
        *conflicts(run),
    ]
    for problem in problems:
        print(problem)
    print(_verdict(answer, len(installed), len(problems)))
    return int(bool(problems))


def ask_services(run: Runner, osv_url: str | None, timeout: int) -> Answer:
    """Ask the service named, else those of PyPI and OSV until one answers."""
    reasons = []
    for service in ("osv",) if osv_url else ("pypi", "osv"):
        command = [sys.executable, "-m", "pip_audit", "--local", "--skip-editable"]
        command += ["--progress-spinner", "off", "--format", "json", "--timeout", str(timeout)]
        command += ["--vulnerability-service", service]
        command += ["--osv-url", osv_url] if osv_url else []
        answer = read_answer(run(command))
        if answer.reached:
            return answer
        reasons.append(f"{service}: {answer.trouble}")
    return Answer(trouble="; ".join(reasons))


def read_answer(ended: subprocess.CompletedProcess[str]) -> Answer:
    """Take from pip-audit's output what was checked and what was found."""
    try:
        packages = json.loads(ended.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        lines = ended.stderr.strip().splitlines()
        return Answer(trouble=lines[-1][:200] if lines else "no answer")
    checked = [package for package in packages if "vulns" in package]
    weaknesses = [_told(package, found) for package in checked for found in package["vulns"]]
    return Answer(len(checked), weaknesses, "it knows none of the packages")


def _told(package: dict[str, Any], found: dict[str, Any]) -> str:
    mended = ", ".join(found.get("fix_versions") or []) or "no version yet"
    names = ", ".join([found["id"], *found.get("aliases", [])])
    return f"{package['name']} {package['version']}: {names}; mended in {mended}"


def installed_versions() -> dict[str, Version]:
    """Return the version of every installed package by its normalised name."""
    return {
        canonicalize_name(package.metadata["Name"]): Version(package.version)
        for package in metadata.distributions()
        if package.metadata["Name"]
    }


def known_weaknesses(installed: dict[str, Version], known: Iterable[Advisory] = KNOWN) -> list[str]:
    """Return which of the weaknesses listed here are installed."""
    return [
        f"{advisory.package} {installed[advisory.package]}: {advisory.name}, {advisory.what}; "
        f"mended in {advisory.mended_in}"
        for advisory in known
        if installed.get(advisory.package, Version("9999")) < Version(advisory.mended_in)
    ]


def requirements(project: Path) -> list[Requirement]:
    """Return all that the project and its extras require."""
    content = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    texts = [*content["dependencies"]]
    for extra in content.get("optional-dependencies", {}).values():
        texts += extra
    return [Requirement(text) for text in dict.fromkeys(texts)]


def weaknesses_allowed(
    wanted: Iterable[Requirement], known: Iterable[Advisory] = KNOWN
) -> list[str]:
    """Return which of the weaknesses listed here the bounds of the project would let in."""
    problems = []
    for requirement in wanted:
        lowest = [Version(s.version) for s in requirement.specifier if s.operator == ">="]
        for advisory in known:
            named = canonicalize_name(requirement.name) == advisory.package
            if named and (not lowest or max(lowest) < Version(advisory.mended_in)):
                problems.append(
                    f"pyproject.toml: {requirement} lets {advisory.name} in, "
                    f"mended in {advisory.mended_in}"
                )
    return problems


def bounds_not_kept(installed: dict[str, Version], wanted: Iterable[Requirement]) -> list[str]:
    """Return which installed packages are outside of the bounds of the project."""
    problems = []
    for requirement in wanted:
        version = installed.get(canonicalize_name(requirement.name))
        applies = requirement.marker is None or requirement.marker.evaluate()
        if version and applies and not requirement.specifier.contains(version, prereleases=True):
            problems.append(f"{requirement.name} {version}: pyproject.toml wants {requirement}")
    return problems


def conflicts(run: Runner) -> list[str]:
    """Return what ``pip check`` complains about."""
    ended = run([sys.executable, "-m", "pip", "check"])
    return ended.stdout.strip().splitlines() if ended.returncode else []


def _verdict(answer: Answer, n_installed: int, n_problems: int) -> str:
    if answer.reached:
        asked = f"The advisory services checked {answer.checked} packages"
    else:
        asked = (
            f"No advisory service could be reached ({answer.trouble}): only the conflicts, the "
            f"bounds and {len(KNOWN)} weaknesses listed in tools/audit.py were checked"
        )
    return f"{asked}; {n_problems or 'no'} problems in {n_installed} installed packages."


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
