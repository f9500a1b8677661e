"""Jobs: the smallest piece of a run, described in full.

A job is one method on one fold of one data set. Its id is a hash of its whole description, so
the same work has the same name in every process, on every machine, in every release, and work that
differs in anything that matters has another. (Python's own ``hash`` is salted anew for every
process: nothing that has to be found again after a restart may depend on it.)
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

#: Part of every id: raised when the protocol changes so that old results no longer stand.
PROTOCOL_VERSION = 1


def canonical_json(value: Any) -> str:
    """Write a value as JSON so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def stable_digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON in hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def stable_seed(*parts: Any) -> int:
    """Return a seed (0 to 2**32 - 1) that depends on the parts and on nothing else."""
    return int(stable_digest(list(parts))[:8], 16)


@dataclass(frozen=True)
class Job:
    """One method on one fold of one data set."""

    experiment: str  #: kind of the experiment
    dataset: str
    method: str  #: printed name
    estimator: str  #: what the method is made of, see :class:`Method`
    fold: int  #: the fold that is held out ...
    n_folds: int  #: ... of so many ...
    seed: int  #: ... in this shuffling
    settings: Mapping[str, Any] = field(default_factory=dict)  #: fixed parameters
    #: Values to choose from on the training fold.
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    criterion: str = ""  #: how that choice is made; empty if nothing is tuned
    p: float | None = None  #: share of rows that get extra candidates ...
    r: int | None = None  #: ... and how many
    parameter: str = ""  #: the varied parameter of a sensitivity run ...
    value: float | None = None  #: ... and its value
    max_rows: int | None = None  #: use only this many rows, drawn with the seed
    tune_fold: int | None = None  #: whose training rows the choice is made on; None: its own

    @cached_property
    def id(self) -> str:
        """The name of the job's files."""
        return stable_digest([PROTOCOL_VERSION, asdict(self)])[:24]

    @property
    def title(self) -> str:
        """A short text for people."""
        corruption = "" if self.p is None else f" p={self.p:g} r={self.r}"
        varied = f" {self.parameter}={self.value:g}" if self.value is not None else ""
        fold = f", fold {self.fold + 1}" if self.n_folds > 1 else ""
        seed = f", seed {self.seed}" if self.seed else ""
        return f"{self.dataset}{corruption}, {self.method}{varied}{fold}{seed}"
