"""Jobs: the smallest piece of a run, described in full.

A job is one method on one fold of one data set. Its id is a hash of its whole description, so
the same work has the same name in every process, and work that differs in anything that matters
has another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from gmpll.apps.experiments.stable import stable_digest

__all__ = ["Job"]

#: Part of every id: raised when the protocol changes so that old results no longer stand.
PROTOCOL_VERSION = 1


@dataclass(frozen=True)
class Job:
    """One method on one fold of one data set.

    Attributes
    ----------
    experiment : str
        ``"real-world"``, ``"controlled"``, ``"sensitivity"`` or ``"timing"``.
    dataset, method : str
        Name of the data set and printed name of the method.
    estimator : str
        What the method is made of, see :func:`gmpll.apps.experiments.methods.make_estimator`.
    fold, n_folds, seed : int
        The fold that is held out, of how many, in which shuffling.
    settings, grid : mapping
        Fixed parameters, and values to choose from on the training fold.
    criterion : str
        How that choice is made; empty if nothing is tuned.
    tune_fold : int or None
        The fold on whose training rows it is made; None for the job's own.
    p, r : float and int, or None
        Controlled corruption: share of rows that get extra candidates, and how many.
    parameter, value : str and float
        The varied parameter of a sensitivity run.
    max_rows : int or None
        Use only this many rows, drawn with the seed.

    Examples
    --------
    >>> from gmpll.apps.experiments.jobs import Job
    >>> job = Job("timing", "lost", "Any candidate", "Any candidate", fold=0, n_folds=10, seed=0)
    >>> job.title
    'lost, Any candidate, fold 1'
    >>> len(job.id)
    24
    """

    experiment: str
    dataset: str
    method: str
    estimator: str
    fold: int
    n_folds: int
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    criterion: str = ""
    p: float | None = None
    r: int | None = None
    parameter: str = ""
    value: float | None = None
    max_rows: int | None = None
    tune_fold: int | None = None

    @cached_property
    def id(self) -> str:
        """The name of the job's files."""
        return stable_digest([PROTOCOL_VERSION, asdict(self)])[:24]

    @property
    def title(self) -> str:
        """A short text for people."""
        corruption = "" if self.p is None else f" p={self.p:g} r={self.r}"
        varied = f" {self.parameter}={self.value:g}" if self.value is not None else ""
        return f"{self.dataset}{corruption}, {self.method}{varied}, fold {self.fold + 1}" + (
            f", seed {self.seed}" if self.seed else ""
        )
