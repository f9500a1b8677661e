"""Runs are declared, not coded: a TOML file says what is run on what.

.. code-block:: toml

    [[experiment]]
    kind = "controlled"          # or real-world, sensitivity, timing, crowd
    datasets = ["glass", "ecoli"]
    p = [0.3, 0.7]               # share of rows that get extra candidates
    r = [1, 3]                   # how many
    methods = "all"              # or a list of printed names
    folds = 10
    seeds = [0]
    tune = "candidate lift"      # or "covering rate"; left out: nothing is tuned
    tune_once = true             # on the first fold's training rows, not on every fold's

    [variants."My GM-PLL"]       # a method of your own, from a registered one ...
    method = "GM-PLL"
    settings = { graph_neighbors = 20 }

    [variants."My learner"]      # ... or from any scikit-learn style class
    class = "my_package.my_module:MyLearner"
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NoReturn

from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.jobs import Job
from gmpll.apps.experiments.methods import Method, find_method, known_methods
from gmpll.apps.experiments.tuning import CRITERIA

KINDS = ("real-world", "controlled", "sensitivity", "timing", "crowd")

#: More folds, larger numbers and more jobs than these are slips of the keyboard.
MAX_FOLDS = 10_000
MAX_JOBS = 2_000_000
LARGEST_NUMBER = 1e300
_LONGEST = 60
#: Names of the declarations that come with the package.
BUILT_IN = (*KINDS, "quick", "quick-embedded")


@dataclass(frozen=True)
class Experiment:
    """One table of a run: data sets times corruption times methods times folds times seeds."""

    kind: str  #: one of :data:`KINDS`
    datasets: tuple[str, ...]
    methods: tuple[str, ...] = ("all",)  #: printed names; ``("all",)`` are all that exist
    p: tuple[float, ...] = ()  #: corruption of sets without candidates of their own: every p ...
    r: tuple[int, ...] = ()  #: ... with every r
    folds: int = 10  #: of the cross-validation
    run_folds: int | None = None  #: if given, only the first so many of the folds are run
    seeds: tuple[int, ...] = (0,)  #: of the shufflings
    tune: str = ""  #: criterion of the tuning, or empty for none
    #: Parameter -> values; every value is a job of its own.
    vary: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    #: Data set -> parameter -> value, for parameters that are held fixed on that data set.
    fixed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    max_rows: int | None = None  #: use only so many rows of every data set
    tune_once: bool = False  #: whether what is chosen on the first fold is kept for the others

    def fits_beside(self, other: Experiment) -> bool:
        """Tell whether the figures of two experiments may stand in one table."""
        if self.kind != other.kind:
            return True
        shared = set(self.datasets) & set(other.datasets)
        alike = ("folds", "run_folds", "tune", *(("max_rows", "tune_once") if shared else ()))
        return all(getattr(self, name) == getattr(other, name) for name in alike)

    def protocol(self) -> str:
        """Say in a line how the figures are made."""
        if self.kind == "crowd":
            items = f"at most {self.max_rows}" if self.max_rows else "all"
            return f"{items} items, random states {', '.join(map(str, self.seeds))}"
        folds = f"{self.folds} folds" + (f", {self.run_folds} run" if self.run_folds else "")
        seeds = f"seed{'s' * (len(self.seeds) > 1)} {', '.join(map(str, self.seeds))}"
        tuned = f"tuned by held-out {self.tune}" if self.tune else "not tuned"
        if self.tune and self.tune_once:
            tuned += " on the first fold's training rows"
        rows = f", at most {self.max_rows} rows" if self.max_rows else ""
        return f"{folds}, {seeds}, {tuned}{rows}"


@dataclass(frozen=True)
class Declaration:
    """Everything that a run does: its experiments, and the methods that it defines itself."""

    experiments: tuple[Experiment, ...]
    variants: Mapping[str, Method] = field(default_factory=dict)

    def change(self, how: Callable[[Experiment], Experiment]) -> Declaration:
        """Return the declaration with every experiment changed."""
        return replace(self, experiments=tuple(how(item) for item in self.experiments))

    def plain(self) -> dict[str, Any]:
        """Return it as plain values, which :func:`parse_declaration` reads."""
        return {
            "experiment": [asdict(item) for item in self.experiments],
            "variants": {name: _plain_variant(item) for name, item in self.variants.items()},
        }


def read_declaration(path: Path | str) -> Declaration:
    """Read a declaration from a TOML file."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ExperimentError(
            f"The declaration {path} cannot be read: {error.strerror}."
        ) from error
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ExperimentError(f"The declaration {path} is not valid TOML: {reason}.") from error
    return parse_declaration(content, where=str(path))


def built_in_declaration(name: str) -> Declaration:
    """Return a declaration that comes with the package.

    Examples
    --------
    >>> from gmpll.apps.experiments.declaration import built_in_declaration
    >>> built_in_declaration("controlled").experiments[0].r
    (1, 2, 3)
    """
    if name not in BUILT_IN:
        raise ExperimentError(
            f"There is no declaration {_shown(name)}; there are {', '.join(BUILT_IN)}."
        )
    file = resources.files("gmpll.apps.experiments") / "declarations" / f"{name}.toml"
    return parse_declaration(tomllib.loads(file.read_text(encoding="utf-8")), where=name)


def parse_declaration(content: Mapping[str, Any], *, where: str) -> Declaration:
    """Check what a TOML file holds; ``where`` names it in messages."""
    table = _Table(content, where, ("experiment", "variants"))
    experiments = table.content.get("experiment", [])
    if not isinstance(experiments, list) or not experiments:
        table.refuse("it declares no [[experiment]]")
    variants = {
        name: _variant(name, variant, f"{where}, variant {_shown(name)}")
        for name, variant in table.table("variants").content.items()
    }
    return Declaration(
        tuple(
            _experiment(experiment, f"{where}, experiment {number}")
            for number, experiment in enumerate(experiments, start=1)
        ),
        variants,
    )


def expand(declaration: Declaration) -> list[Job]:
    """Return the independent jobs of a declaration, in the order in which they are started.

    Examples
    --------
    >>> from gmpll.apps.experiments.declaration import Declaration, Experiment, expand
    >>> iris = Experiment("controlled", ("iris",), ("Any candidate",), p=(0.5,), r=(1,), folds=3)
    >>> [job.fold for job in expand(Declaration((iris,)))]
    [0, 1, 2]
    """
    jobs = {
        job.id: job
        for experiment in declaration.experiments
        for job in _jobs_of(experiment, declaration.variants)
    }
    return list(jobs.values())


def _jobs_of(experiment: Experiment, variants: Mapping[str, Method]) -> Iterator[Job]:
    known = known_methods(variants, kind=experiment.kind)
    names = known if experiment.methods == ("all",) else experiment.methods
    methods = [find_method(name, known) for name in names]
    corruption: list[tuple[float | None, int | None]] = [(None, None)]
    if experiment.p:
        corruption = list(product(experiment.p, experiment.r))
    varied: list[tuple[str, Any]] = [("", None)]
    if experiment.vary:
        varied = [(name, value) for name, values in experiment.vary.items() for value in values]
    folds = range(experiment.run_folds or experiment.folds)
    # The data set comes first, so that a worker reads each one once.
    factors = (experiment.datasets, corruption, experiment.seeds, folds, methods, varied)
    n_jobs = prod(len(values) for values in factors)
    if n_jobs > MAX_JOBS:
        raise ExperimentError(
            f"The {experiment.kind} experiment has {n_jobs} jobs, more than the {MAX_JOBS} that "
            "are taken: declare fewer data sets, methods, folds or values."
        )
    for dataset, (p, r), seed, fold, method, (parameter, value) in product(*factors):
        fixed = dict(experiment.fixed.get(dataset, {}))
        settings = {**method.settings, **fixed, **({parameter: value} if parameter else {})}
        set_already = {parameter, *fixed}
        tuned = {k: v for k, v in method.grid.items() if experiment.tune and k not in set_already}
        yield Job(
            experiment=experiment.kind,
            dataset=dataset,
            method=method.name,
            estimator=method.estimator,
            fold=fold,
            n_folds=experiment.folds,
            seed=seed,
            settings=settings,
            grid=tuned,
            criterion=experiment.tune if tuned else "",
            p=p,
            r=r,
            parameter=parameter,
            value=None if value is None else float(value),
            max_rows=experiment.max_rows,
            tune_fold=0 if tuned and experiment.tune_once else None,
        )


class _Table:
    """A table of a declaration, whose values are checked as they are read."""

    def __init__(self, content: Any, where: str, keys: Sequence[str] | None = None) -> None:
        if not isinstance(content, Mapping):
            raise ExperimentError(f"{where}: it must be a table.")
        unknown = [key for key in content if keys is not None and key not in keys]
        if keys is not None and unknown:
            raise ExperimentError(
                f"{where}: there is no key {_shown(unknown[0])}; the keys are {', '.join(keys)}."
            )
        self.content, self.where = content, where

    def refuse(self, problem: str) -> NoReturn:
        raise ExperimentError(f"{self.where}: {problem}.")

    def word(self, key: str) -> str:
        value = self.content.get(key, "")
        return value if isinstance(value, str) else self.refuse(f"{key} must be a word in quotes")

    def names(self, key: str) -> tuple[str, ...]:
        values = self.content.get(key, ())
        if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
            self.refuse(f"{key} must be a list of names")
        return tuple(values)

    def numbers(self, key: str, named: str = "", default: Any = ()) -> tuple[Any, ...]:
        values = self.content.get(key, default)
        good = isinstance(values, (list, tuple)) and all(
            isinstance(value, (int, float)) and not isinstance(value, bool) for value in values
        )
        # Larger integers are no floating point numbers, and NaN is no value of anything.
        if not good or not all(abs(value) <= LARGEST_NUMBER for value in values):
            self.refuse(f"{named or key} must be a list of numbers")
        return tuple(values)

    def integers(self, key: str, default: Any = ()) -> tuple[int, ...]:
        numbers = self.numbers(key, default=default)
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            self.refuse(f"{key} must be a list of integers that are not negative")
        return numbers

    def table(self, key: str) -> _Table:
        content = self.content.get(key, {})
        if not isinstance(content, Mapping):
            self.refuse(f"{key} must be a table")
        return _Table(content, self.where)

    def settings(self, key: str) -> dict[str, Any]:
        """Return values that can be written down again, in the id of a job and in JSON."""
        settings = self.table(key).content
        try:
            json.dumps(settings, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            self.refuse(f"{key} must hold numbers, words, true, false and lists of these")
        return dict(settings)


def _experiment(content: Any, where: str) -> Experiment:
    table = _Table(content, where, [item.name for item in fields(Experiment)])
    given = table.content
    vary, fixed = table.table("vary"), table.table("fixed")
    experiment = Experiment(
        kind=table.word("kind"),
        datasets=table.names("datasets"),
        methods=("all",) if given.get("methods", "all") == "all" else table.names("methods"),
        p=tuple(float(value) for value in table.numbers("p")),
        r=table.integers("r"),
        folds=given.get("folds", 10),
        run_folds=given.get("run_folds"),
        seeds=table.integers("seeds", default=(0,)),
        tune=table.word("tune"),
        vary={name: vary.numbers(name, f"vary.{name}") for name in vary.content},
        fixed={name: fixed.settings(name) for name in fixed.content},
        max_rows=given.get("max_rows"),
        tune_once=given.get("tune_once", False),
    )
    problem = _first_problem(experiment)
    if problem:
        table.refuse(problem)
    return experiment


def _first_problem(experiment: Experiment) -> str | None:
    kind, p, r, tune = experiment.kind, experiment.p, experiment.r, experiment.tune
    folds, run_folds, max_rows = experiment.folds, experiment.run_folds, experiment.max_rows
    if kind == "crowd" and (folds != 1 or tune or p or experiment.vary):
        return "a crowd experiment has folds = 1 and neither p, r, tune nor vary"
    if kind != "crowd" and not _is_integer(folds, 2, MAX_FOLDS):
        return (
            f"folds is {_shown(folds)} but must be an integer of at least 2 and at most {MAX_FOLDS}"
        )
    holds = {
        f"kind is {_shown(kind)} but must be one of {', '.join(KINDS)}": kind in KINDS,
        "datasets is empty": experiment.datasets,
        "methods is empty": experiment.methods,
        "seeds is empty": experiment.seeds,
        "p and r belong together: give both or none": bool(p) == bool(r),
        "a controlled experiment needs p and r": kind != "controlled" or p,
        "p must lie between 0 and 1": all(0 <= share <= 1 for share in p),
        "r must be at least 1": all(number >= 1 for number in r),
        f"run_folds is {_shown(run_folds)} but must lie between 1 and folds": (
            run_folds is None or _is_integer(run_folds, 1, folds)
        ),
        f"tune is {_shown(tune)} but must be one of {', '.join(CRITERIA)}": tune in ("", *CRITERIA),
        "a sensitivity experiment needs a table vary": kind != "sensitivity" or experiment.vary,
        f"tune_once is {_shown(experiment.tune_once)} but must be true or false": (
            isinstance(experiment.tune_once, bool)
        ),
        f"max_rows is {_shown(max_rows)} but must be an integer, at least folds": (
            max_rows is None or _is_integer(max_rows, folds)
        ),
    }
    return next((problem for problem, is_fine in holds.items() if not is_fine), None)


def _variant(name: str, content: Any, where: str) -> Method:
    table = _Table(content, where, ("method", "class", "settings", "grid"))
    if ("method" in table.content) == ("class" in table.content):
        table.refuse("it needs either method or class")
    if name in known_methods() | known_methods(kind="crowd"):
        table.refuse("a method of this name exists; choose another name")
    settings, grid = table.settings("settings"), table.settings("grid")
    for key, values in grid.items():
        if not isinstance(values, (list, tuple)) or not values:
            table.refuse(f"grid.{key} must be a list of values to choose from")
        grid[key] = tuple(values)
    if "class" in table.content:
        path = table.word("class")
        if ":" not in path:
            table.refuse("class must have the form package.module:Class")
        return Method(name, path, settings, grid)
    base = find_method(table.word("method"), known_methods())
    return Method(name, base.estimator, {**base.settings, **settings}, grid or base.grid)


def _plain_variant(method: Method) -> dict[str, Any]:
    key = "class" if ":" in method.estimator else "method"
    grid = {name: list(values) for name, values in method.grid.items()}
    return {key: method.estimator, "settings": dict(method.settings), "grid": grid}


def _shown(value: object) -> str:
    """Show a value in a sentence, shortened: whatever it is, the sentence stays readable."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _is_integer(value: Any, least: int, most: float = float("inf")) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
