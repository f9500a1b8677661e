"""Readers of experiments: declarations, the files of a run folder, the table of scores."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from importlib import resources

import numpy as np
import pandas as pd
from fuzz.mutators import (
    csv_changed,
    json_changed,
    npy_changed,
    toml_changed,
    zip_changed,
)
from fuzz.target import Target, scratch, written

from gmpll.apps.experiments import (
    Declaration,
    Experiment,
    ExperimentError,
    Job,
    built_in_declaration,
    expand,
    read_declaration,
)
from gmpll.apps.experiments.jobs import canonical_json
from gmpll.apps.experiments.own_data import read_own
from gmpll.apps.experiments.provenance import provenance_of_run
from gmpll.apps.experiments.store import FORMAT_VERSION, RunFolder
from gmpll.apps.report.scores_table import SCORE_COLUMNS, checked_scores, read_scores

DECLARATION = Declaration((Experiment("controlled", ("iris",), p=(0.5,), r=(1,), folds=2),))
JOB = Job("timing", "iris", "PL-KNN", "PL-KNN", fold=0, n_folds=2, seed=0)


def _read_declaration(data: bytes) -> None:
    expand(read_declaration(written("declaration", "run.toml", data)))


def _declaration_seeds() -> list[bytes]:
    folder = resources.files("gmpll.apps.experiments") / "declarations"
    seeds = [(folder / "quick.toml").read_bytes()]
    variants = b"""
[[experiment]]
kind = "sensitivity"
datasets = ["iris"]
methods = ["Mine", "Other"]
folds = 3
run_folds = 1
max_rows = 50
tune = "candidate lift"
vary = { beta = [0.1, 0.5] }
fixed = { iris = { alpha = 0.5 } }
[variants."Mine"]
method = "GM-PLL"
settings = { graph_neighbors = 20 }
grid = { beta = [0.1, 0.2] }
[variants."Other"]
class = "package.module:Learner"
"""
    tables = b"""
[[experiment]]
kind = "real-world"
datasets = ["votes.csv", "iris"]
methods = ["PL-KNN"]
[tables."votes.csv"]
truth = "correct"
annotators = ["anna", "bjoern"]
exclude = "row"
"""
    return [*seeds, variants, tables]


def _read_run_folder(data: bytes) -> None:
    folder = RunFolder(written("run", "declaration.json", data).parent)
    folder.jobs()


def _run_folder_seeds() -> list[bytes]:
    declarations = [DECLARATION, *(built_in_declaration(name) for name in ("quick",))]
    return [
        json.dumps({"format": FORMAT_VERSION, **declaration.plain()}).encode()
        for declaration in declarations
    ]


def _read_result(data: bytes) -> None:
    folder = RunFolder(scratch("results"))
    written("results", f"jobs/{JOB.id}.npz", data)
    result = folder.load(JOB)
    if result is None:  # not readable: the job is run again
        raise ExperimentError("There is no readable result.")
    assert result.failed in (True, False)
    assert isinstance(result.facts["error"], str)


def _result_seeds() -> list[bytes]:
    good = {"status": "ok", "error": "", "fingerprint": "x", "fit_seconds": 0.5, "attempt": 1}
    bad = {"status": "failed", "error": "ValueError", "traceback": "..."}
    seeds = []
    for facts in (good, bad):
        text = canonical_json({"format": FORMAT_VERSION, "job": asdict(JOB), **facts})
        rows = np.arange(3)
        for save in (np.savez, np.savez_compressed):
            file = io.BytesIO()
            save(
                file,
                facts=np.frombuffer(text.encode(), dtype=np.uint8),
                predicted=rows,
                labels=rows,
                test_rows=rows,
                train_rows=rows,
            )
            seeds.append(file.getvalue())
    return seeds


def _read_starts(data: bytes) -> None:
    content = json.dumps({"format": FORMAT_VERSION, **DECLARATION.plain()})
    written("starts", "declaration.json", content.encode())
    written("starts", "starts/one.json", data)
    provenance_of_run(RunFolder(scratch("starts")))


def _starts_seeds() -> list[bytes]:
    start = {"commit": "abc", "started": "2024-01-01T00:00:00", "versions": {"numpy": "2"}}
    return [json.dumps(start).encode()]


def _read_scores(data: bytes) -> None:
    checked_scores(read_scores(written("scores", "scores.csv", data)))


def _scores_seeds() -> list[bytes]:
    rows = [
        {"experiment": "controlled", "dataset": "iris", "p": 0.5, "r": 1, "method": "PL-KNN",
         "seed": 0, "fold": 0, "inductive": 0.9, "chosen": '{"k":5}', "status": "ok"},
        {"experiment": "real-world", "dataset": "lost", "method": "GM-PLL", "parameter": "beta",
         "value": 0.3, "seed": 0, "fold": 1, "status": "failed", "error": "it, broke"},
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=list(SCORE_COLUMNS))
    return [table.to_csv(index=False).encode()]


def _read_own(data: bytes) -> None:
    bunch = read_own(written("own", "mine.npz", data))
    assert np.isfinite(bunch.data).all()
    assert len(bunch.data) == len(bunch.target)
    assert (bunch.target < len(bunch.target_names)).all()
    assert bunch.candidates is not None or (bunch.target >= 0).all()


def _own_seeds() -> list[bytes]:
    X, sets, y = np.arange(8.0).reshape(4, 2), np.eye(4, 3) + 1 > 1, np.array([0, 1, -1, 2])
    sets[3] = True
    names = np.array(["a", "b", "c"])
    seeds = []
    votes = np.array([[0, -1], [1, 0], [2, 2], [-1, 1]])
    voted = {"S": sets, "y": y, "votes": votes}
    for arrays in ({"S": sets, "y": y, "names": names}, {"S": sets}, {"y": abs(y)}, voted):
        file = io.BytesIO()
        np.savez(file, X=X, **arrays)
        seeds.append(file.getvalue())
    return seeds


_EXPERIMENT = (ExperimentError,)
TARGETS = (
    Target("declaration", _read_declaration, _declaration_seeds, _EXPERIMENT, toml_changed),
    Target("run-folder", _read_run_folder, _run_folder_seeds, _EXPERIMENT, json_changed),
    Target(
        "result", _read_result, _result_seeds, _EXPERIMENT, zip_changed(lambda name: npy_changed)
    ),
    Target("own-data", _read_own, _own_seeds, _EXPERIMENT, zip_changed(lambda name: npy_changed)),
    Target("starts", _read_starts, _starts_seeds, _EXPERIMENT, json_changed),
    Target("scores", _read_scores, _scores_seeds, (ValueError,), csv_changed),
)
