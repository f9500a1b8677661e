"""How a job is carried out: rows, candidates, folds, tuning, fitting, predicting.

The truth is kept away from all of it. A :class:`Problem` has no true labels; they are used to
draw controlled candidates before a method comes near, by the upper bound, and afterwards for
scoring.
"""

import hashlib
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from gmpll._typing import Floats, Integers, Mask
from gmpll.apps.experiments.crowd import AGGREGATIONS, Aggregation, draw_items, votes_of
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.jobs import Job, stable_seed
from gmpll.apps.experiments.methods import FULL_SUPERVISION, FullSupervision, make_estimator
from gmpll.apps.experiments.own_data import SUFFIX, read_own
from gmpll.apps.experiments.store import Result
from gmpll.apps.experiments.tuning import Choice, choose_parameters
from gmpll.datasets import load_dataset, random_candidates
from gmpll.side_information import weight_argument

#: More distinct warnings of one job than this are not worth keeping.
_MAX_WARNINGS = 5


@dataclass(frozen=True)
class Problem:
    """What a method may see: features and candidate sets."""

    X: Floats
    mask: Mask


@dataclass(frozen=True)
class Truth:
    """What only scoring may see.

    The fingerprint is that of features, candidates and labels: predictions are scored against the
    data set they were made on, or not at all.
    """

    target: Integers  # number of the true label of every row, -1 where it is not known
    fingerprint: str
    label_values: Floats | None = None  # what labels stand for, where it is an order


def load_problem(job: Job, data_home: str | None = None, own: str | None = None) -> Problem:
    """Return features and candidates of a job's data set, corrupted where the job says so.

    The corruption depends on data set, p, r and seed, not on the method or the fold: every
    method meets the same candidates. ``own`` is the folder of data sets that the catalogue lacks.
    """
    bunch = _load(job.dataset, data_home, own)
    if job.p is None or job.r is None:
        if bunch.candidates is None:
            raise ExperimentError(
                f"{job.dataset} has no candidate sets of its own: give p and r to draw them."
            )
        return Problem(bunch.data, np.asarray(bunch.candidates, dtype=bool))
    if (bunch.target < 0).any():
        raise ExperimentError(
            f"{job.dataset} lacks true labels, from which candidates could be drawn: leave out p "
            "and r."
        )
    mask = random_candidates(
        bunch.target,
        job.p,
        job.r,
        n_classes=len(bunch.target_names),
        random_state=stable_seed("corruption", job.dataset, job.p, job.r, job.seed),
    )
    return Problem(bunch.data, np.asarray(mask, dtype=bool))


def load_truth(dataset: str, data_home: str | None = None, own: str | None = None) -> Truth:
    """Return the true labels of a data set, and their numbers where they are ordered."""
    bunch = _load(dataset, data_home, own)
    parts = [bunch.target]
    if bunch.get("votes") is not None and bunch.target_test is not None:
        parts.append(bunch.target_test)  # its rows are numbered on from those of the items
    return Truth(
        np.concatenate(parts).astype(np.int64),
        _fingerprint(dataset, data_home, own),
        np.asarray(bunch.target_names, dtype=np.float64) if bunch.get("ordered") else None,
    )


def split_rows(job: Job, n_samples: int) -> tuple[Integers, Integers]:
    """Return the training and test rows of a job's fold.

    Plain shuffled folds: stratifying them would need the truth.
    """
    rows = np.arange(n_samples)
    if job.max_rows is not None and job.max_rows < n_samples:
        rng = np.random.RandomState(stable_seed("rows", job.dataset, job.max_rows, job.seed))
        rows = np.sort(rng.permutation(n_samples)[: job.max_rows])
    folds = KFold(job.n_folds, shuffle=True, random_state=job.seed).split(rows)
    train, test = list(folds)[job.fold]
    return rows[train], rows[test]


def run_job(
    job: Job,
    data_home: str | None = None,
    settled: Mapping[str, Any] | None = None,
    own: str | None = None,
) -> Result:
    """Carry out a job; errors are raised, not recorded.

    One thread per numerical library, so that timings of jobs that run side by side mean something.
    ``settled`` are the facts of the job that has already made this job's choice of parameters (the
    one of ``job.tune_fold``); without them the choice is made here, with the same outcome.
    """
    bunch = _load(job.dataset, data_home, own)
    is_crowd = job.experiment == "crowd"
    given: Any
    if is_crowd:
        train, votes = draw_items(job, bunch)
        X = bunch.data[train]
        X_test = bunch.data[:0] if bunch.data_test is None else bunch.data_test
        test = len(bunch.data) + np.arange(len(X_test))
        given = votes if job.estimator in AGGREGATIONS else votes.candidates()
    else:
        problem = load_problem(job, data_home, own)
        train, test = split_rows(job, problem.X.shape[0])
        X, given, X_test = problem.X[train], problem.mask[train], problem.X[test]
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        choice, tune_seconds = Choice({}, []), 0.0
        if settled is not None:
            choice = Choice(settled["chosen"], settled["tried"])
        elif job.criterion:
            choice, tune_seconds = _timed(lambda: _tuned(job, problem))
        learner: Any
        if job.estimator == FULL_SUPERVISION:
            learner, given = FullSupervision(), bunch.target[train]
            if (given < 0).any():
                raise ExperimentError(
                    f"{job.dataset} lacks true labels, which {FULL_SUPERVISION} is trained on: "
                    "leave this method out."
                )
        elif is_crowd and job.estimator in AGGREGATIONS:
            learner = Aggregation(job.estimator, job.seed)
        else:
            settings = {**job.settings, **choice.parameters}
            seed = job.seed if is_crowd else _seed(job)
            learner = make_estimator(job.estimator, settings, seed)
            has_votes = not is_crowd and job.p is None and bunch.get("votes") is not None
            if has_votes and weight_argument(learner):  # the others get the sets alone
                given = votes_of(job.dataset, bunch, train).candidates()
        fit = learner.fit_on_truth if job.estimator == FULL_SUPERVISION else learner.fit
        _, fit_seconds = _timed(lambda: fit(X, given))
        predicted, predict_seconds = _timed(lambda: learner.predict(X_test) if len(X_test) else ())
    facts = {
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "tune_seconds": tune_seconds,
        "chosen": choice.parameters,
        "tried": choice.tried,
        "status": "ok",
        "error": "",
        "fingerprint": _fingerprint(job.dataset, data_home, own),
        "warnings": sorted({str(item.message) for item in caught})[:_MAX_WARNINGS],
    }
    labels = np.asarray(getattr(learner, "labels_", ()), dtype=np.int64)
    return Result(np.asarray(predicted, dtype=np.int64), labels, test, train, facts)


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return action(), time.perf_counter() - start


def _seed(job: Job) -> int:
    return stable_seed("method", job.dataset, job.p, job.r, job.seed, job.fold)


def _tuned(job: Job, problem: Problem) -> Choice:
    """Choose on the job's own training rows, or on those of its ``tune_fold``."""
    where = job if job.tune_fold is None else replace(job, fold=job.tune_fold)
    rows, _ = split_rows(where, problem.X.shape[0])
    seed = _seed(where)
    return choose_parameters(
        lambda chosen: make_estimator(job.estimator, {**job.settings, **chosen}, seed),
        job.grid,
        problem.X[rows],
        problem.mask[rows],
        criterion=job.criterion,
        random_state=seed,
    )


@lru_cache(maxsize=2)
def _load(dataset: str, data_home: str | None, own: str | None) -> Any:
    file = Path(own, f"{dataset}{SUFFIX}") if own else None
    if file is not None and file.exists():
        return read_own(file)
    # Several workers that download one file at once would help nobody.
    return load_dataset(dataset, data_home=data_home, download_if_missing=False)


@lru_cache(maxsize=32)
def _fingerprint(dataset: str, data_home: str | None, own: str | None) -> str:
    bunch = _load(dataset, data_home, own)
    digest = hashlib.sha256()
    parts = [bunch.data, bunch.candidates, np.asarray(bunch.target, dtype=np.int64)]
    if bunch.get("votes") is not None:
        parts += [bunch.votes, bunch.data_test, bunch.target_test]
    for part in parts:
        if part is not None:
            array = np.ascontiguousarray(part)
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()[:16]
