"""Make the archived samples that are missing; see README.md."""

from __future__ import annotations

import csv
import sqlite3
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from gmpll.apps.decisions import store as review_store
from gmpll.apps.experiments import Declaration, Experiment, run
from gmpll.apps.experiments import store as run_store
from gmpll.apps.tables import model_file, saved

HERE = Path(__file__).resolve().parent
#: What a reviewer said about the first rows: the codes of labels.
DECISIONS = {0: 1, 3: 0, 4: 1}


def main() -> None:
    """Make what is missing, and say what was made."""
    version = max(saved.FORMAT, model_file.FORMAT)
    samples = {
        HERE / f"resolved-{version}": _resolved,
        HERE / "review-0.sqlite": _review_without_version,
        HERE / f"review-{review_store.FORMAT}.sqlite": _review,
        HERE / f"run-{run_store.FORMAT_VERSION}": _run,
        HERE / "data-1": _data,
    }
    for path, make in samples.items():
        if not path.exists():
            make(path)
            print(path.relative_to(HERE))


def _resolved(folder: Path) -> None:
    """Resolve forty rows: two clouds of numbers, and words that go with them."""
    import gmpll.apps.cli

    rng = np.random.RandomState(0)
    truth = np.arange(40) % 2
    names, words = ("cat", "dog"), ("purring at home", "barking at the gate")
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(scratch) / "in.csv"
        with table.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "size", "weight", "note", "truth", "tags"])
            for i, t in enumerate(truth):
                numbers = np.round(4 * t + rng.normal(size=2), 3)
                tags = "cat|dog" if i % 3 else names[t]
                writer.writerow([f"r{i}", *numbers, f"{words[t]}, number {i}", names[t], tags])
        sys.argv = ["gmpll", "disambiguate", str(table), "--out", str(folder)]
        sys.argv += ["--exclude", "truth"]
        with suppress(SystemExit):  # the end of any command
            gmpll.apps.cli.main()
    (folder / "report.html").unlink()  # written for people, never read again
    _without_source(folder)


def _without_source(folder: Path) -> None:
    """Take out of a matching where its input lay."""
    matching = replace(saved.read_matching(folder), source="")
    saved.write_matching(matching, folder / saved.FILE_NAME)


def _review(path: Path) -> None:
    matching = saved.read_matching(HERE / f"resolved-{saved.FORMAT}")
    store = review_store.Store(path, review_store.rows_key(matching))
    for row, code in DECISIONS.items():
        store.decide(row, review_store.Decision("label", code), seen_version=0, tab="a")
    store.decide(7, review_store.Decision("other", name="mole"), seen_version=0, tab="a")
    store.decide(9, review_store.Decision("none"), seen_version=0, tab="b")
    store.undo("b")
    store.save_rematched(
        "base",
        review_store.Rematched(
            "2026-01-01T00:00:00.000+00:00",
            matching.labels,
            matching.confidence,
            matching.labels,
            matching.confidence,
            np.array(list(DECISIONS)),
        ),
    )
    store.close()


def _review_without_version(path: Path) -> None:
    _review(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 0")
    connection.close()


def _run(folder: Path) -> None:
    iris = Experiment("controlled", ("iris",), ("Any candidate",), p=(0.5,), r=(1,), folds=3)
    run(Declaration((iris,)), folder)
    (folder / "claims.lock").unlink()
    for file in (folder / "starts").iterdir():
        file.unlink()
    start = {"started": "2026-01-01T00:00:00+00:00", "commit": "", "command": "gmpll reproduce"}
    run_store.RunFolder(folder).note_start(start)


def _data(folder: Path) -> None:
    rng = np.random.RandomState(0)
    rows = [["", *np.round(rng.rand(9), 4), 1 + i % 3] for i in range(20)]
    (folder / "openml").mkdir(parents=True)
    with (folder / "openml" / "glass.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
