"""Comparing methods on data of your own: what :mod:`gmpll.experiments` offers as ``compare``."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_array

from gmpll.apps.experiments import ExperimentError, known_methods, run, write_scores
from gmpll.apps.experiments.declaration import Declaration, parse_declaration
from gmpll.apps.experiments.methods import FULL_SUPERVISION
from gmpll.apps.experiments.own_data import (
    SUFFIX,
    archive_of,
    archive_of_table,
    is_archive,
    name_of,
    read_own,
)
from gmpll.apps.experiments.progress import RunProgress
from gmpll.apps.progress import working
from gmpll.candidates import as_candidates
from gmpll.datasets import dataset_info, get_data_home, is_available, list_datasets

#: Corruption of data sets that have plain labels, where none is asked for.
DEFAULT_P = (0.1, 0.4, 0.7)
DEFAULT_R = (1,)


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found.

    Attributes
    ----------
    scores : DataFrame
        One row per method, fold and setting, see :func:`gmpll.apps.experiments.scores`.
    ranking : DataFrame
        One row per method, best first: ``average_rank`` over the data sets, on how many it rests,
        and the mean of every measure. Floors and the ceiling come last and have no rank.
    folder : Path or None
        The run folder, None if nothing was kept.
    report : Path or None
        The page with the report, None if nothing was kept.
    """

    scores: pd.DataFrame
    ranking: pd.DataFrame
    folder: Path | None = None
    report: Path | None = None


def compare(
    data: Any,
    candidates: Any = None,
    truth: Any = None,
    *,
    methods: Sequence[str] = ("all",),
    p: Sequence[float] = (),
    r: Sequence[int] = (),
    folds: int = 10,
    seeds: Sequence[int] = (0,),
    tune: bool = True,
    out: str | PathLike[str] | None = None,
    n_jobs: int | None = None,
    retry_failed: bool = False,
    data_home: str | PathLike[str] | None = None,
    progress: RunProgress | None = None,
    name: str = "data",
    separator: str | None = None,
    text: str | Sequence[str] = (),
    features: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    id: str | None = None,
    annotators: str | Sequence[str] = (),
) -> Comparison:
    """Compare methods on your own data by the protocol of the experiments.

    Cross-validation with the same folds for all methods, tuning on the training folds without true
    labels, saved predictions that are scored afterwards, significance tests, and one report.

    Parameters
    ----------
    data : array-like, DataFrame, path, name or a list of paths and names
        The features; or a table with a row per item; or a ``.npz`` archive with ``X``, ``S``
        (candidate sets, 0 and 1), ``y`` (numbers of true labels) and ``names`` of the labels, of
        which ``S`` or ``y`` may be missing; or a data set of :func:`gmpll.datasets.list_datasets`.
    candidates : candidate sets or column names, default=None
        With features: the sets in any form that :func:`gmpll.as_candidates` reads. With a table:
        the column of the sets, or several of 0 and 1; guessed by default.
    truth : array-like or str, default=None
        The true labels, with a table their column. They are used for scoring, and to draw
        candidates where there are none (of a table: where p and r are given). Where no true label
        is known, methods are compared by the candidate lift on held-out rows, see
        :func:`gmpll.metrics.candidate_lift`.
    methods : sequence of str, default=("all",)
        Printed names, see :func:`gmpll.apps.experiments.known_methods`.
    p, r : sequences of numbers, default=()
        Draw candidates from the true labels: the share of rows that get wrong ones, and how many.
        By default 0.1, 0.4 and 0.7 with 1 where the data has no candidates.
    folds : int, default=10
        Folds of the cross-validation.
    seeds : sequence of int, default=(0,)
        Seeds of the shufflings.
    tune : bool, default=True
        Whether hyper-parameters are chosen on the training folds.
    out : path-like, default=None
        The run folder. Given again, the run goes on where it was stopped or killed. By default
        nothing is kept and no report is written.
    n_jobs : int, default=None
        Number of processes.
    retry_failed : bool, default=False
        Run the jobs again that failed earlier.
    data_home : path-like, default=None
        Folder of the data sets that are given by name.
    progress : RunProgress, default=None
        Told what happens; by default lines or a bar on the standard error output.
    name : str, default="data"
        What the report calls arrays or a DataFrame.
    separator, text, features, exclude, id, annotators : default=None or ()
        What the columns of a table are, as in :func:`gmpll.disambiguate`; guessed by default.
        Whatever one of the ``annotators`` said is a candidate; methods that take votes get them.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import io
    >>> from rich.console import Console
    >>> from gmpll.apps.experiments.progress import RunProgress
    >>> from gmpll.datasets import make_partial_label_problem
    >>> from gmpll.experiments import compare
    >>> problem = make_partial_label_problem(n_samples=60, random_state=0)
    >>> found = compare(
    ...     problem.data,
    ...     problem.candidates,
    ...     problem.target,
    ...     methods=["PL-KNN", "Random candidate"],
    ...     folds=3,
    ...     progress=RunProgress(Console(file=io.StringIO())),
    ... )
    >>> found.ranking["method"].tolist()
    ['PL-KNN', 'Random candidate']
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        is_list = isinstance(data, (list, tuple)) and len(data) > 0
        are_named = is_list and all(isinstance(item, (str, PathLike)) for item in data)
        columns = {"separator": separator, "text": text, "features": features, "id": id}
        columns |= {"exclude": exclude, "annotators": annotators}
        columns = {key: value for key, value in columns.items() if value}
        target = scratch / f"{name_of(f'{name}{SUFFIX}')}{SUFFIX}"
        sets = [
            _file_of(item, candidates, truth, columns, target, draws=bool(p))
            for item in (data if are_named else [data])
        ]
        for absent in (n for n in sets if not is_archive(n) and not is_available(n, data_home)):
            raise ExperimentError(
                f"The data set {absent} is not in the folder {get_data_home(data_home)}: see "
                "`gmpll datasets`, or name the folder with --data-home or GMPLL_DATA."
            )
        common = {"folds": folds, "seeds": list(seeds), "tune": "candidate lift" if tune else ""}
        folder = Path(out) if out is not None else scratch / "run"
        run(
            _declared(sets, list(methods), p, r, common),
            folder,
            n_jobs=n_jobs,
            retry_failed=retry_failed,
            data_home=data_home,
            progress=progress,
        )
        with working("scoring", None if progress is None else progress.console):
            table = write_scores(folder, data_home=data_home)
            from gmpll.apps.report import ranking, write_run_report

            kept = () if out is None else (folder, write_run_report(folder, table))
            return Comparison(table, ranking(table), *kept)


def _file_of(
    data: Any, candidates: Any, truth: Any, columns: dict[str, Any], target: Path, *, draws: bool
) -> str:
    """Return what a declaration calls the data: a name of the catalogue, or an archive.

    An archive is written as ``target``, of a file beside it. With ``draws`` a table needs no
    candidates.
    """
    is_table = hasattr(data, "columns") and (truth is None or isinstance(truth, str))
    if isinstance(data, (str, PathLike)):
        name, known = str(data), {info.name for info in list_datasets()}
        if name.strip().lower() in known or is_archive(name):
            if candidates is not None or truth is not None or columns:
                raise ExperimentError(
                    f"{name} says itself what its candidates and true labels are: columns are "
                    "named for tables only."
                )
            return name if is_archive(name) else name.strip().lower()
        data, is_table = Path(name), True
        target = target.with_name(f"{name_of(name)}{SUFFIX}")
    if is_table:
        named = {"candidates": candidates, "truth": truth}
        columns = columns | {key: value for key, value in named.items() if value is not None}
        content = archive_of_table(data, columns, draws=draws)
    elif columns:
        raise ExperimentError(f"{next(iter(columns))}= goes with a table only.")
    else:
        X = check_array(data, dtype=np.float64)
        if candidates is None and truth is None:
            raise ExperimentError(
                "Give candidates, or truth to draw them from, beside the features."
            )
        mask = None if candidates is None else as_candidates(candidates)
        classes = np.unique(np.asarray(truth)) if mask is None else mask.classes
        content = archive_of(X, classes, mask and mask.mask, truth)
    target.write_bytes(content)
    return str(target)


def _declared(
    sets: Sequence[str],
    methods: list[str],
    p: Sequence[float],
    r: Sequence[int],
    common: dict[str, Any],
) -> Declaration:
    """Declare one experiment for the sets with candidates, and one for those with plain labels."""
    if bool(p) != bool(r):
        raise ExperimentError("p and r belong together: give both or none.")
    kinds: dict[str, list[str]] = {}
    folds, is_blind = common["folds"], False
    for name in sets:
        if is_archive(name):
            own = read_own(Path(name))
            plain, is_blind = own.candidates is None, is_blind or bool((own.target < 0).any())
            if isinstance(folds, int) and len(own.data) < folds:
                raise ExperimentError(
                    f"{name} has {len(own.data)} rows, fewer than the {folds} folds: give fewer."
                )
        else:
            plain = dataset_info(name).mean_candidates is None
        kinds.setdefault("controlled" if plain or p else "real-world", []).append(name)
    if is_blind and methods == ["all"]:  # the ceiling is trained on true labels, and some lack
        in_all = [method.name for method in known_methods().values() if method.in_all]
        methods = [name for name in in_all if name != FULL_SUPERVISION]
    content = [
        {"kind": kind, "datasets": names, "methods": methods, **common}
        | ({"p": list(p or DEFAULT_P), "r": list(r or DEFAULT_R)} if kind == "controlled" else {})
        for kind, names in kinds.items()
    ]
    return parse_declaration({"experiment": content}, where="The comparison")
