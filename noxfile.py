"""The tests on the oldest and the newest supported libraries, on every Python found.

    nox                                   all sessions whose Python is here; the others are skipped
    nox --list                            what there is
    nox -s oldest -- tests/test_metrics.py

The oldest versions are the lower bounds in ``pyproject.toml``, so a bound that is too low fails.
"""

from pathlib import Path

import nox

PYTHONS = ("3.11", "3.12", "3.13")

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False


def _test(session: nox.Session, *constraints: str) -> None:
    session.install("--quiet", "--editable", ".[test]", *constraints)
    session.run(
        "python", "-m", "pytest", "--numprocesses=2", "--dist=worksteal", "-q", *session.posargs,
        env={"OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@nox.session(python=PYTHONS)
def newest(session: nox.Session) -> None:
    """Run the tests on the newest libraries."""
    _test(session)


@nox.session(python=PYTHONS[0])
def oldest(session: nox.Session) -> None:
    """Run the tests on the oldest libraries that are allowed."""
    constraints = Path(session.create_tmp()) / "constraints.txt"
    bounds = session.run("python", "-m", "tools.bounds", silent=True)
    constraints.write_text(str(bounds), encoding="utf-8")
    _test(session, "--constraint", str(constraints.resolve()))
