"""The release checklist, as a command.

    python tools/release.py [VERSION]

Builds wheel and sdist, checks their metadata and contents, installs each into an empty environment
and runs the smoke test from there. With VERSION it also checks that the package, the changelog and
the citation file carry it and that the working tree is clean. Every step is printed with its
outcome; exits with 1 if one fails. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SEMANTIC_VERSION = re.compile(r"\d+\.\d+\.\d+(\.dev\d+|a\d+|b\d+|rc\d+)?")
#: What a user's first minute looks like, run from a folder that is not the repository.
SMOKE_TEST = """
import numpy as np
from sklearn.datasets import load_iris
import gmpll
from gmpll.datasets import random_candidates
assert "site-packages" in gmpll.__file__, gmpll.__file__
X, y = load_iris(return_X_y=True)
candidates = random_candidates(y, p=0.5, r=1, random_state=0)
for method in (gmpll.PartialLabelClassifier, gmpll.GMPLL, gmpll.IPAL, gmpll.PLKNN, gmpll.CLPL):
    assert np.mean(method().fit(X, candidates).labels_ == y) > 0.8, method
print("smoke test passed,", gmpll.__version__)
"""


class ChecklistError(Exception):
    """A step of the checklist that does not hold."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command; its output, or the end of it as the error."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        end = (done.stdout + done.stderr).strip()[-1500:]
        raise ChecklistError(f"{' '.join(map(str, command))} failed:\n{end}")
    return done.stdout.strip()


def version_of_package() -> str:
    """Read the version from the package."""
    text = (ROOT / "src/gmpll/__init__.py").read_text()
    found = re.search(r'__version__ = "([^"]+)"', text)
    if found is None or not SEMANTIC_VERSION.fullmatch(found[1]):
        raise ChecklistError("src/gmpll/__init__.py has no semantic __version__.")
    return found[1]


def check_versions(version: str) -> str:
    """Package, changelog and citation file name the same version."""
    if version_of_package() != version:
        raise ChecklistError(f"The package is {version_of_package()}, not {version}.")
    if f"## {version}" not in (ROOT / "CHANGELOG.md").read_text():
        raise ChecklistError(f"CHANGELOG.md has no section '## {version}'.")
    check_citation()
    return version


def check_citation() -> str:
    """The citation file carries the package's version."""
    if f"version: {version_of_package()}" not in (ROOT / "CITATION.cff").read_text():
        raise ChecklistError(f"CITATION.cff does not say version: {version_of_package()}.")
    return "agrees"


def check_clean() -> str:
    """Nothing uncommitted goes into a release."""
    if changed := run("git", "status", "--porcelain"):
        raise ChecklistError(f"The working tree has changes:\n{changed}")
    return "clean"


def build(folder: Path) -> str:
    """Build sdist and, from it, the wheel."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return ", ".join(sorted(path.name for path in folder.iterdir()))


def check_metadata(folder: Path) -> str:
    """The files would be accepted by an index."""
    run(sys.executable, "-m", "twine", "check", "--strict", *folder.iterdir())
    return "accepted"


def check_contents(folder: Path) -> str:
    """The wheel holds the package and its data, nothing of the tests or the data sets."""
    wheel = next(folder.glob("*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("gmpll/py.typed", "gmpll/__init__.py", "gmpll/datasets/catalogue.toml"):
        if needed not in names:
            raise ChecklistError(f"{wheel.name} lacks {needed}.")
    strangers = [n for n in names if not n.startswith("gmpll") or n.endswith((".mat", ".pyc"))]
    if strangers:
        raise ChecklistError(f"{wheel.name} contains {strangers[:5]}.")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        source = archive.getnames()
    if not any(name.endswith("tests/conftest.py") for name in source):
        raise ChecklistError("The sdist lacks the tests.")
    return f"{len(names)} files in the wheel, {len(source)} in the sdist"


def check_installs(artifact: Path, scratch: Path) -> str:
    """Install into an empty environment; run the smoke test and, with its extra, the commands."""
    environment = scratch / f"env-{artifact.suffix.strip('.')}"
    run(sys.executable, "-m", "venv", environment)
    python = environment / "bin" / "python"
    quiet = ("--quiet", "--disable-pip-version-check")
    run(python, "-m", "pip", "install", *quiet, artifact)
    said = run(python, "-I", "-c", SMOKE_TEST, cwd=scratch)
    run(python, "-m", "pip", "install", *quiet, f"{artifact}[cli]")
    run(environment / "bin" / "gmpll", "--help", cwd=scratch)
    return said


def main() -> int:
    """Go through the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", nargs="?", help="the version to be released")
    version = parser.parse_args().version
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        folder = scratch / "dist"
        steps: list[tuple[str, Callable[[], str]]] = [
            ("version", version_of_package),
            ("citation", check_citation),
        ]
        if version:
            steps += [("versions", lambda: check_versions(version)), ("tree", check_clean)]
        steps += [
            ("build", lambda: build(folder)),
            ("metadata", lambda: check_metadata(folder)),
            ("contents", lambda: check_contents(folder)),
            ("wheel", lambda: check_installs(next(folder.glob("*.whl")), scratch)),
            ("sdist", lambda: check_installs(next(folder.glob("*.tar.gz")), scratch)),
        ]
        failed = False
        for name, step in steps:
            try:
                print(f"[ok]     {name}: {step()}", flush=True)
            except (ChecklistError, StopIteration, OSError) as error:
                print(f"[FAILED] {name}: {error}", flush=True)
                failed = True
                if name == "build":
                    break
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
