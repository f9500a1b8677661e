"""Every command that writes, with what must hold however it ends."""

from __future__ import annotations

import csv
import http.server
import importlib
import io
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from injection import Fault, Outcome, Runs

#: What the commands import on use.
_MODULES = (
    "gmpll.apps.cli",
    "gmpll.apps.tables.output",
    "gmpll.apps.tables.guesses",
    "gmpll.apps.tables.saved",
    "gmpll.apps.experiments",
    "gmpll.apps.report",
    "gmpll.apps.review.applying",
    "gmpll.apps.review.export",
    "gmpll.apps.review.session",
    "jinja2",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "pandas",
    "pyarrow.csv",
    "pyarrow.parquet",
    "rich.progress",
    "rich.table",
    "scikit_posthocs",
    "scipy.io",
    "sklearn.feature_extraction.text",
    "sklearn.linear_model",
    "skops.io",
)


def _gmpll(sandbox: Path, *arguments: str) -> None:
    import gmpll.apps.cli

    sys.argv = ["gmpll", *arguments]
    gmpll.apps.cli.main()


def _demo(sandbox: Path, *arguments: str) -> None:
    """The demo on a hundred digits: what it computes is not in question here."""
    import sklearn.datasets

    X, y = sklearn.datasets.load_digits(return_X_y=True)
    with mock.patch("sklearn.datasets.load_digits", return_value=(X[:100], y[:100])):
        _gmpll(sandbox, "demo", *arguments)


def _decide(sandbox: Path, *arguments: str) -> None:
    """Decide row after row like the page does; say which ones have been acknowledged."""
    from gmpll.apps.decisions.store import Decision
    from gmpll.apps.review.session import open_review

    with _sentences():
        session = open_review(sandbox / "out")
        for row in range(int(arguments[0])):
            seen = session.store.version(row)
            session.decide(row, Decision("label", code=row % 2), seen_version=seen, tab="a")
            os.write(1, f"{row}\n".encode())
        session.store.close()


def _accept(sandbox: Path, *arguments: str) -> None:
    """Accept all rows that are very sure together, as the page does."""
    from gmpll.apps.review.session import open_review

    with _sentences():
        session = open_review(sandbox / "out")
        accepted = session.accept_sure(0.9, tab="a", reviewer="Ben")
        os.write(1, f"{accepted}\n".encode())
        session.store.close()


def _download(sandbox: Path, *arguments: str) -> None:
    """Load a set that is not there, from a server on this machine."""
    from gmpll.datasets import catalogue, realworld

    tools = str(sandbox / "tools")
    checksum = (sandbox / "checksum").read_text()
    info = replace(catalogue.dataset_info("lost"), checksum=checksum)
    with (
        _sentences(),
        _server(sandbox / "origin") as address,
        mock.patch.object(realworld, "ORIGIN", address),
        mock.patch.dict(catalogue._ALL, {"lost": info}),
        mock.patch.dict(os.environ, {"PATH": f"{tools}:/usr/bin:/bin"}),
    ):
        realworld.load_real_world("lost", sandbox / "data")


def _convert(sandbox: Path, *arguments: str) -> None:
    """Bring a table of OpenML's into the columns of the repository."""
    from gmpll.datasets import uci

    rng = np.random.RandomState(0)
    features = np.array([[str(x) for x in row] for row in rng.rand(40, 9).tolist()], dtype=object)
    labels = np.array([str(1 + i % 3) for i in range(40)], dtype=object)
    with _sentences(), mock.patch.object(uci, "fetch_table", return_value=(features, labels)):
        uci.load_uci("glass", sandbox / "data")


@contextmanager
def _sentences() -> Iterator[None]:
    """Do as a command would with the errors that the library promises."""
    from gmpll.apps.cli import stoppable
    from gmpll.apps.decisions.errors import ReviewError
    from gmpll.datasets import DatasetUnavailableError
    from gmpll.datasets.errors import DatasetFormatError

    try:
        with stoppable():
            yield
    except (DatasetUnavailableError, DatasetFormatError, ReviewError) as error:
        print(f"gmpll: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("gmpll: interrupted.", file=sys.stderr)
        sys.exit(130)


def _careless(sandbox: Path, *arguments: str) -> None:
    """Write as it should not be done; for the test of the bench itself."""
    (sandbox / "result.csv").write_text("a,b\n" * 100)
    beside = sandbox / f".second-{os.getpid()}"
    beside.write_text("a,b\n")
    beside.rename(sandbox / "second.csv")


class _server:
    def __init__(self, folder: Path) -> None:
        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments, directory=str(folder))

            def log_message(self, *arguments: Any) -> None:
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{self._http.server_address[1]}/"

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def import_everything() -> None:
    """Import what the commands import on use, so that no run has to."""
    for name in _MODULES:
        importlib.import_module(name)


JOBS = {
    "gmpll": _gmpll,
    "demo": _demo,
    "decide": _decide,
    "accept": _accept,
    "download": _download,
    "convert": _convert,
    "careless": _careless,
}


@dataclass(frozen=True)
class Scenario:
    """A command, the folder it begins with, and what it leaves.

    Attributes
    ----------
    name : str
    job : str
        Key of :data:`JOBS`.
    arguments : tuple of str
    targets : tuple of str
        Patterns of the files that the command makes, relative to the sandbox.
    needs : tuple of str
        Scenarios whose results it begins with.
    replaces : bool
        Whether the files are there before, from an earlier run that differs.
    keeps : bool
        Whether the command refuses to replace its own complete results.
    """

    name: str
    job: str
    arguments: tuple[str, ...]
    targets: tuple[str, ...]
    needs: tuple[str, ...] = ()
    replaces: bool = False
    keeps: bool = False

    def run(self, runs: Runs, sandbox: Path, fault: Fault | None = None) -> Outcome:
        """Run the command in a sandbox."""
        return runs.run(self.job, sandbox, *self.arguments, fault=fault)

    def prepare(self, runs: Runs, sandbox: Path) -> None:
        """Fill a sandbox with what the command needs."""
        sandbox.mkdir(parents=True)
        _write_inputs(sandbox)
        for name in self.needs:
            outcome = SCENARIOS[name].run(runs, sandbox)
            if outcome.code:
                raise RuntimeError(f"{name} fails without a fault: {outcome.err}")

    def files(self, sandbox: Path) -> dict[str, Path]:
        """Return the files that the command has made, by name."""
        found = (path for pattern in self.targets for path in sandbox.glob(pattern))
        return {str(path.relative_to(sandbox)): path for path in found if path.is_file()}


def problems_after(
    scenario: Scenario, fault: Fault, outcome: Outcome, sandbox: Path, before: dict[str, str]
) -> list[str]:
    """Return what is wrong after a run with a fault; ``before`` holds digests of all files."""
    problems = []
    killed = outcome.code < 0
    if fault.is_kill and not killed and outcome.code:
        problems.append(f"exit code {outcome.code} instead of death or success")
    if not fault.is_kill and killed and outcome.operations:  # before, nothing had begun
        problems.append(f"the process died of signal {-outcome.code}")
    if "Traceback" in outcome.err:
        problems.append(f"a traceback: {outcome.err[-600:]}")
    if outcome.code > 0:
        said = [line for line in outcome.err.splitlines() if _is_verdict(line)]
        if len(said) != 1:
            problems.append(f"not one sentence but: {outcome.err!r}")
    for name, path in scenario.files(sandbox).items():
        try:
            check_whole(path)
        except Exception as error:
            problems.append(f"{name} is damaged: {type(error).__name__}: {error}")
    if not killed and not fault.hits_tidying(outcome.operations):
        left = leftovers(sandbox)
        if left:
            problems.append(f"left behind: {left}")
    changed = [n for n, digest in before.items() if _digest(sandbox / n) != digest]
    foreign = [n for n in changed if n not in scenario.files(sandbox) and not _is_own(scenario, n)]
    if foreign:
        problems.append(f"files of others were changed: {foreign}")
    problems += _mixture(scenario, outcome, sandbox, before)
    if scenario.job == "decide":
        problems += _forgotten(outcome, sandbox)
    if scenario.job == "accept":
        problems += _halved(outcome, sandbox)
    if scenario.name == "review --apply":
        problems += _not_kept(sandbox, before)
    return problems


def problems_after_another_run(scenario: Scenario, outcome: Outcome, sandbox: Path) -> list[str]:
    """Return what is wrong after the same command was given again without a fault."""
    problems = []
    # Complete results are kept unless --force is given, so there was nothing to do.
    kept = scenario.keeps and "holds results already" in outcome.err
    if outcome.code and not (kept and len(scenario.files(sandbox)) == len(_RESOLVED_FILES)):
        problems.append(f"given again it fails: {outcome.err!r}")
    if leftovers(sandbox):
        problems.append(f"given again it leaves: {leftovers(sandbox)}")
    for name, path in scenario.files(sandbox).items():
        try:
            check_whole(path)
        except Exception as error:
            problems.append(f"given again, {name} is damaged: {type(error).__name__}: {error}")
    return problems


def digests(sandbox: Path) -> dict[str, str]:
    """Return a digest of every file in a sandbox."""
    return {str(p.relative_to(sandbox)): _digest(p) for p in sandbox.rglob("*") if p.is_file()}


def leftovers(sandbox: Path) -> list[str]:
    """Return hidden files and folders; no command has any that are meant to stay."""
    return sorted(str(p.relative_to(sandbox)) for p in sandbox.rglob("*") if p.name.startswith("."))


def check_whole(path: Path) -> None:
    """Read a file to its end with the library's own reader, or by its kind."""
    if path.name == "matching.npz":
        from gmpll.apps.tables.saved import read_matching

        read_matching(path.parent)
    elif path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            assert {name: arrays[name] for name in arrays.files}
    elif path.suffix == ".skops":
        from gmpll.apps.tables.saved import load_model

        load_model(path)
    elif path.suffix == ".csv":
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
        assert path.read_bytes().endswith(b"\n"), "the last line is cut"
        assert len({len(row) for row in rows}) == 1, "rows differ in length"
    elif path.suffix == ".json":
        json.loads(path.read_text(encoding="utf-8"))
    elif path.suffix == ".html":
        assert path.read_text(encoding="utf-8").rstrip().endswith("</html>"), "cut"
    elif path.suffix == ".svg":
        assert path.read_text(encoding="utf-8").rstrip().endswith("</svg>"), "cut"
    elif path.suffix == ".png":
        assert path.read_bytes().endswith(b"IEND\xaeB`\x82"), "cut"
    elif path.suffix == ".mat":
        from gmpll.datasets.matfile import read_mat

        read_mat(path)
    elif path.suffix in (".md", ".tex"):
        assert path.read_bytes().endswith(b"\n"), "cut"
    elif path.suffix == ".sqlite":
        _check_database(path)


def _check_database(path: Path) -> None:
    import sqlite3

    with tempfile.TemporaryDirectory() as elsewhere:  # opening writes, and the disk may be full
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, elsewhere)
        connection = sqlite3.connect(Path(elsewhere) / path.name)
        found = connection.execute("PRAGMA integrity_check").fetchone()
        connection.close()
    assert found == ("ok",)


def _mixture(
    scenario: Scenario, outcome: Outcome, sandbox: Path, before: dict[str, str]
) -> list[str]:
    """Tell whether results of an earlier and of this run lie side by side."""
    if not scenario.replaces:
        return []
    files = scenario.files(sandbox)
    old = {name for name, path in files.items() if before.get(name) == _digest(path)}
    were = {name for name in before if _is_own(scenario, name)}
    if outcome.code > 0 and (old != were or set(files) != were):
        return [f"it failed, but only {sorted(old)} of {sorted(were)} are as they were"]
    if old and set(files) - old:
        return [f"a mixture: {sorted(old)} are old, {sorted(set(files) - old)} are new"]
    return [f"it said it was done, but {sorted(old)} are old"] if outcome.code == 0 and old else []


def _forgotten(outcome: Outcome, sandbox: Path) -> list[str]:
    """Tell which decisions were acknowledged and are not there."""
    from gmpll.apps.review.session import open_review

    acknowledged = {int(line) for line in outcome.out.split("\n")[:-1]}
    with tempfile.TemporaryDirectory() as elsewhere:  # opening writes, and the disk may be full
        copy = shutil.copytree(sandbox / "out", Path(elsewhere) / "out")
        session = open_review(copy)
        missing = acknowledged - set(session.store.decisions())
        session.store.close()
    return [f"acknowledged decisions are gone: {sorted(missing)}"] if missing else []


def _halved(outcome: Outcome, sandbox: Path) -> list[str]:
    """Tell whether some, but not all, of the rows that were accepted together are there."""
    from gmpll.apps.review.session import open_review

    with tempfile.TemporaryDirectory() as elsewhere:  # opening writes, and the disk may be full
        copy = shutil.copytree(sandbox / "out", Path(elsewhere) / "out")
        session = open_review(copy)
        there, missing = len(session.store.decisions()), session.sure_rows()[-1]["rows"]
        session.store.close()
    if there and missing:
        return [f"{there} rows were accepted, but {missing} as sure ones were not"]
    promised = int(outcome.out or 0)
    return [f"{promised} rows were acknowledged, {there} are there"] if there < promised else []


def _not_kept(sandbox: Path, before: dict[str, str]) -> list[str]:
    """Tell which of the results before are neither in their place nor kept beside it."""
    there = set(digests(sandbox).values())
    lost = [name for name in _RESOLVED_FILES if before[name] not in there]
    return [f"results are gone: {lost}"] if lost else []


def _is_own(scenario: Scenario, name: str) -> bool:
    return any(Path(name).match(pattern) for pattern in scenario.targets)


def _is_verdict(line: str) -> bool:
    return line.startswith(("gmpll: ", "Stopped; "))


def _digest(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _write_inputs(sandbox: Path) -> None:
    from scipy.io import savemat

    rng = np.random.RandomState(0)
    truth = rng.randint(0, 2, 40)
    names = ("cat", "dog")
    rows = [
        [i, *np.round(4 * t + rng.normal(size=2), 3), "cat|dog" if i % 3 else names[t]]
        for i, t in enumerate(truth)
    ]
    for name, columns in (("in.csv", 4), ("new.csv", 3)):
        with (sandbox / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "size", "weight", "tags"][:columns])
            writer.writerows(row[:columns] for row in rows)
    (sandbox / "run.toml").write_text(
        '[[experiment]]\nkind = "controlled"\ndatasets = ["mine.npz"]\n'
        'methods = ["Any candidate"]\np = [0.5]\nr = [1]\nfolds = 3\n'
    )
    np.savez(sandbox / "mine.npz", X=rng.normal(size=(60, 3)), y=np.arange(60) % 3)
    (sandbox / "origin").mkdir()
    target = np.eye(3)[np.arange(300) % 3].T
    arrays = {"data": rng.normal(size=(300, 20)), "partial_target": target, "target": target}
    savemat(sandbox / "origin" / "lost.rar", arrays)  # the tool below unpacks by copying
    (sandbox / "checksum").write_text("sha256:" + _digest(sandbox / "origin" / "lost.rar"))
    tool = sandbox / "tools" / "bsdtar"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nif [ "$1" = -tf ]; then echo lost.mat; else cat "$2"; fi\n')
    tool.chmod(0o755)


_RESOLVE = ("disambiguate", "in.csv", "--out", "out", "--method")
_RESOLVED_FILES = (
    "out/resolved.csv",
    "out/model.skops",
    "out/report.html",
    "out/matching.npz",
)
_RUN = ("reproduce", "--declaration", "run.toml", "--out", "run", "--jobs", "1")
_RUN_FILES = tuple(
    f"run/{name}"
    for name in ("declaration.json", "data/*.npz", "jobs/*.npz", "starts/*.json", "scores.csv")
)


def _pages(folder: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in ("index.html", "tables/*.*", "figures/*.svg"))


_ALL = (
    Scenario("demo", "demo", ("--out", "out", "--force"), ("out/*.*",)),
    Scenario("disambiguate", "gmpll", (*_RESOLVE, "plknn"), _RESOLVED_FILES, keeps=True),
    Scenario(
        "disambiguate --force",
        "gmpll",
        (*_RESOLVE, "clpl", "--review-below", "0.5", "--force"),
        _RESOLVED_FILES,
        needs=("disambiguate", "decide"),
        replaces=True,
    ),
    Scenario(
        "predict",
        "gmpll",
        ("predict", "out", "new.csv", "--force"),
        ("new-predicted.csv",),
        needs=("disambiguate",),
    ),
    Scenario("decide", "decide", ("20",), ("out/review.sqlite",), needs=("disambiguate",)),
    Scenario("accept", "accept", (), ("out/review.sqlite",), needs=("disambiguate",)),
    Scenario(
        "review --apply",
        "gmpll",
        ("review", "out", "--apply"),
        (*_RESOLVED_FILES, "out/earlier-results-*/*"),
        needs=("disambiguate", "decide"),
    ),
    Scenario(
        "review --export",
        "gmpll",
        ("review", "out", "--export", "reviewed.csv", "--force"),
        ("reviewed.csv",),
        needs=("disambiguate", "decide"),
    ),
    Scenario("reproduce", "gmpll", _RUN, (*_RUN_FILES, *_pages("run/report"))),
    Scenario(
        "report", "gmpll", ("report", "run", "--out", "page"), _pages("page"), needs=("reproduce",)
    ),
    Scenario("download", "download", (), ("data/realworld/*.mat",)),
    Scenario("convert", "convert", (), ("data/openml/*.csv",)),
)
SCENARIOS = {scenario.name: scenario for scenario in _ALL}
