"""Runs are declared, not coded: a TOML file says what is run on what.

``docs/experiments.md`` shows one, and ``declarations/`` holds those that come with the package.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NoReturn, Self

from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.jobs import Job
from gmpll.apps.experiments.methods import Method, find_method, known_methods
from gmpll.apps.experiments.own_data import TABLE_KEYS, is_archive, names_a_file
from gmpll.apps.experiments.tuning import CRITERIA

KINDS = ("real-world", "controlled", "sensitivity", "timing", "crowd")

#: More folds, larger numbers and more jobs than these are slips of the keyboard.
MAX_FOLDS = 10_000
MAX_JOBS = 2_000_000
LARGEST_NUMBER = 1e300
_LONGEST = 60
#: What is varied where nothing is: parameter and value.
_UNVARIED: list[tuple[str, Any]] = [("", None)]
#: Names of the declarations that come with the package.
BUILT_IN = (*KINDS, "quick")


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

    def fits_beside(self, other: Self) -> bool:
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
    """Everything that a run does: its experiments, and the methods that it defines itself.

    ``tables`` says which column is what in a table that experiments name as a data set: file ->
    one of :data:`~gmpll.apps.experiments.own_data.TABLE_KEYS` -> column or columns.
    """

    experiments: tuple[Experiment, ...]
    variants: Mapping[str, Method] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def change(self, how: Callable[[Experiment], Experiment]) -> Self:
        """Return the declaration with every experiment changed."""
        return replace(self, experiments=tuple(how(item) for item in self.experiments))

    def rename_datasets(self, new_name: Callable[[str], str]) -> Self:
        """Return the declaration with new names of its data sets."""
        return self.change(lambda item: replace(item, datasets=tuple(map(new_name, item.datasets))))

    def plain(self) -> dict[str, Any]:
        """Return it as plain values, which :func:`parse_declaration` reads."""
        variants = {}
        for name, item in self.variants.items():
            key = "class" if ":" in item.estimator else "method"
            grid = {parameter: list(values) for parameter, values in item.grid.items()}
            variants[name] = {key: item.estimator, "settings": dict(item.settings), "grid": grid}
        experiments = [asdict(item) for item in self.experiments]
        return {"experiment": experiments, "variants": variants, "tables": self.tables}


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
    read = parse_declaration(content, where=str(path))
    # Files are named as they lie beside the declaration.
    folder = Path(path).parent

    def placed(name: str) -> str:
        return str(folder / name) if names_a_file(name) else name

    tables = {placed(file): columns for file, columns in read.tables.items()}
    return replace(read, tables=tables).rename_datasets(placed)


def built_in_declaration(name: str) -> Declaration:
    """Return a declaration that comes with the package."""
    if name not in BUILT_IN:
        raise ExperimentError(
            f"There is no declaration {_shown(name)}; there are {', '.join(BUILT_IN)}."
        )
    file = resources.files("gmpll.apps.experiments") / "declarations" / f"{name}.toml"
    return parse_declaration(tomllib.loads(file.read_text(encoding="utf-8")), where=name)


def parse_declaration(content: Mapping[str, Any], *, where: str) -> Declaration:
    """Check what a TOML file holds; ``where`` names it in messages."""
    parts = _table(content, where, ("experiment", "variants", "tables"))
    experiments = parts.get("experiment")
    if not isinstance(experiments, list) or not experiments:
        _refuse(where, "it declares no [[experiment]]")
    for name in ("variants", "tables"):
        if not isinstance(parts.setdefault(name, {}), Mapping):
            _refuse(where, f"{name} must be a table")
    read = [
        _experiment(experiment, f"{where}, experiment {number}")
        for number, experiment in enumerate(experiments, start=1)
    ]
    variants = {
        name: _variant(name, variant, f"{where}, variant {_shown(name)}")
        for name, variant in parts["variants"].items()
    }
    tables = {
        file: _columns(columns, f"{where}, table {_shown(file)}")
        for file, columns in parts["tables"].items()
    }
    for file in tables:
        if not any(file in experiment.datasets for experiment in read):
            _refuse(where, f"the table {_shown(file)} is a data set of no experiment")
        if is_archive(file) or not names_a_file(file):
            _refuse(where, f"{_shown(file)} is no table, of which columns could be named")
    return Declaration(tuple(read), variants, tables)


def expand(declaration: Declaration) -> list[Job]:
    """Return the independent jobs of a declaration, in the order in which they are started."""
    parts = [_jobs_of(item, declaration.variants) for item in declaration.experiments]
    return list({job.id: job for jobs in parts for job in jobs}.values())


def methods_of(experiment: Experiment, variants: Mapping[str, Method]) -> list[Method]:
    """Return the methods that an experiment names."""
    known = known_methods(variants, kind=experiment.kind)
    if experiment.methods == ("all",):
        return [method for method in known.values() if method.in_all]
    return [find_method(name, known) for name in experiment.methods]


def _jobs_of(experiment: Experiment, variants: Mapping[str, Method]) -> Iterator[Job]:
    methods = methods_of(experiment, variants)
    drawn: list[tuple[Any, Any]] = list(product(experiment.p, experiment.r)) or [(None, None)]
    varied = [(name, value) for name, values in experiment.vary.items() for value in values]
    folds = range(experiment.run_folds or experiment.folds)
    # The data set comes first, so that a worker reads each one once.
    factors = (experiment.datasets, drawn, experiment.seeds, folds, methods, varied or _UNVARIED)
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


def _is_number(value: Any) -> bool:
    # Larger integers are no floating point numbers, and NaN is no value of anything.
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_one and abs(value) <= LARGEST_NUMBER


def _is_integer(value: Any, least: int = 0, most: float = LARGEST_NUMBER) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _all(values: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(values, (list, tuple)) and all(map(fits, values))


_KEYS = tuple(item.name for item in fields(Experiment))
#: What is wrong with an experiment, in this order, unless the rule holds. Names in braces are keys.
_RULES: tuple[tuple[str, Callable[[Experiment], Any]], ...] = (
    ("kind must be a word in quotes", lambda e: _is_word(e.kind)),
    ("tune must be a word in quotes", lambda e: _is_word(e.tune)),
    ("datasets must be a list of names", lambda e: _all(e.datasets, _is_word)),
    ("methods must be a list of names", lambda e: _all(e.methods, _is_word)),
    ("p must be a list of numbers", lambda e: _all(e.p, _is_number)),
    ("r must be a list of integers that are not negative", lambda e: _all(e.r, _is_integer)),
    (
        "seeds must be a list of integers that are not negative",
        lambda e: _all(e.seeds, _is_integer),
    ),
    ("vary must be a table", lambda e: isinstance(e.vary, Mapping)),
    ("fixed must be a table", lambda e: isinstance(e.fixed, Mapping)),
    (
        "a crowd experiment has folds = 1 and neither p, r, tune nor vary",
        lambda e: e.kind != "crowd" or not (e.folds != 1 or e.tune or e.p or e.vary),
    ),
    (
        f"folds is {{folds}} but must be an integer of at least 2 and at most {MAX_FOLDS}",
        lambda e: e.kind == "crowd" or _is_integer(e.folds, 2, MAX_FOLDS),
    ),
    (f"kind is {{kind}} but must be one of {', '.join(KINDS)}", lambda e: e.kind in KINDS),
    ("datasets is empty", lambda e: e.datasets),
    ("methods is empty", lambda e: e.methods),
    ("seeds is empty", lambda e: e.seeds),
    ("p and r belong together: give both or none", lambda e: bool(e.p) == bool(e.r)),
    ("a controlled experiment needs p and r", lambda e: e.kind != "controlled" or e.p),
    ("p must lie between 0 and 1", lambda e: all(0 <= share <= 1 for share in e.p)),
    ("r must be at least 1", lambda e: all(number >= 1 for number in e.r)),
    (
        "run_folds is {run_folds} but must lie between 1 and folds",
        lambda e: e.run_folds is None or _is_integer(e.run_folds, 1, e.folds),
    ),
    (
        f"tune is {{tune}} but must be one of {', '.join(CRITERIA)}",
        lambda e: e.tune in ("", *CRITERIA),
    ),
    ("a sensitivity experiment needs a table vary", lambda e: e.kind != "sensitivity" or e.vary),
    ("tune_once is {tune_once} but must be true or false", lambda e: isinstance(e.tune_once, bool)),
    (
        "max_rows is {max_rows} but must be an integer, at least folds",
        lambda e: e.max_rows is None or _is_integer(e.max_rows, e.folds),
    ),
)


def _refuse(where: str, problem: str) -> NoReturn:
    raise ExperimentError(f"{where}: {problem}.")


def _table(content: Any, where: str, keys: Sequence[str]) -> dict[str, Any]:
    if not isinstance(content, Mapping):
        _refuse(where, "it must be a table")
    for key in content:
        if key not in keys:
            _refuse(where, f"there is no key {_shown(key)}; the keys are {', '.join(keys)}")
    return dict(content)


def _settings(settings: Any, key: str, where: str) -> dict[str, Any]:
    """Return values that can be written down again, in the id of a job and in JSON."""
    if not isinstance(settings, Mapping):
        _refuse(where, f"{key} must be a table")
    try:
        json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        _refuse(where, f"{key} must hold numbers, words, true, false and lists of these")
    return dict(settings)


def _experiment(content: Any, where: str) -> Experiment:
    given = {"kind": "", "datasets": ()} | _table(content, where, _KEYS)
    if given.get("methods") == "all":
        del given["methods"]
    plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
    read = Experiment(**plain)
    for problem, holds in _RULES:
        if not holds(read):
            _refuse(where, problem.format(**{key: _shown(getattr(read, key)) for key in _KEYS}))
    for name, values in read.vary.items():
        if not _all(values, _is_number):
            _refuse(where, f"vary.{name} must be a list of numbers")
    return replace(
        read,
        p=tuple(map(float, read.p)),
        vary={name: tuple(values) for name, values in read.vary.items()},
        fixed={name: _settings(value, name, where) for name, value in read.fixed.items()},
    )


def _columns(content: Any, where: str) -> dict[str, Any]:
    """Return which column is what in a table that is a data set."""
    columns = _table(content, where, TABLE_KEYS)
    for key, names in columns.items():
        is_one = key in ("truth", "separator", "id")
        if not (_is_word(names) or (not is_one and _all(names, _is_word))):
            what = "a word in quotes" if is_one else "a word in quotes or a list of them"
            _refuse(where, f"{key} must be {what}")
    return columns


def _variant(name: str, content: Any, where: str) -> Method:
    table = _table(content, where, ("method", "class", "settings", "grid"))
    if ("method" in table) == ("class" in table):
        _refuse(where, "it needs either method or class")
    if name in known_methods() | known_methods(kind="crowd"):
        _refuse(where, "a method of this name exists; choose another name")
    settings = _settings(table.get("settings", {}), "settings", where)
    grid = _settings(table.get("grid", {}), "grid", where)
    for key, values in grid.items():
        if not isinstance(values, (list, tuple)) or not values:
            _refuse(where, f"grid.{key} must be a list of values to choose from")
        grid[key] = tuple(values)
    for key in table.keys() & {"method", "class"}:
        if not isinstance(table[key], str):
            _refuse(where, f"{key} must be a word in quotes")
    if "method" in table:
        base = find_method(table["method"], known_methods())
        settings = {**base.settings, **settings}
        return replace(base, name=name, settings=settings, grid=grid or base.grid, in_all=True)
    if ":" not in table["class"]:
        _refuse(where, "class must have the form package.module:Class")
    return Method(name, table["class"], settings, grid)


def _shown(value: object) -> str:
    """Show a value in a sentence, shortened: whatever it is, the sentence stays readable."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
