"""Where figures come from: command, versions, commit, kind of processor. No host or user names."""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gmpll import __version__
from gmpll.apps.experiments.store import RunFolder

_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "pandas")


def collect_provenance() -> dict[str, Any]:
    """Describe what is running now; ``commit`` is empty outside a repository."""
    return {
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {"gmpll": __version__, **{name: version(name) for name in _PACKAGES}},
        "commit": _commit(Path(__file__).resolve().parent),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "processor_count": os.cpu_count() or 1,
    }


def provenance_of_run(folder: RunFolder) -> dict[str, Any]:
    """Describe how the results of a folder came about: last start, number of starts, protocol."""
    starts = folder.starts()
    protocol = {
        f"{experiment.kind} ({', '.join(experiment.datasets)})": experiment.protocol()
        for experiment in folder.declaration().experiments
    }
    commits = sorted({start.get("commit", "") for start in starts} - {""})
    last = starts[-1] if starts else {}
    return {**last, "commit": commits, "starts": len(starts), "protocol": protocol}


def _commit(folder: Path) -> str:
    # Asked for this very file: a virtual environment inside somebody's repository is not tracked.
    if _git(folder, "ls-files", "--error-unmatch", __file__) is None:
        return ""
    commit = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}+changes" if commit and changes else commit or ""


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
