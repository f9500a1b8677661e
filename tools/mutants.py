"""Say how many mutants of the core the tests have noticed, after ``mutmut run``.

    python tools/mutants.py

``make mutants`` does both. The modules and their tests stand under ``tool.mutmut`` in
``pyproject.toml``. Exits with 1 if fewer than 85 percent were noticed: most of the others change
nothing that anybody can see (the wording of an error, a type or device that is the default).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

<<<<<<< HEAD
STATISTICS = Path("mutants") / "mutmut-cicd-stats.json"
MIN_NOTICED = 0.85
=======
ROOT = Path(__file__).resolve().parent.parent
SURVIVORS = ROOT / "tools" / "mutants.toml"
#: Share of the mutants, the equivalent ones among them, that the tests must notice.
LEAST_KILLED = 0.9
#: The mutant that is none: the tests must pass on it, or else they notice nothing.
UNCHANGED = "unchanged"

_LOOP = ["loop", "masses", "packed", "clamped", "local"]
_TILES = ["full_tiles", "packed", "full"]
_AFFINITY = ["affinity", "full_tiles", "full", "local"]
_LOCAL = ["local", "loop", "masses", "clamped"]
#: The core, and the tests of each of its modules: the nearest first, as the first failure ends a
#: run. Before them come the examples in its docstrings and ``tests/test_defaults.py``.
CORE = {
    "matching/loop": [f"matching/test_{name}" for name in _LOOP],
    "matching/affinity": [f"matching/test_{name}" for name in _AFFINITY],
    "matching/local": [f"matching/test_{name}" for name in _LOCAL],
    "matching/per_label": [f"matching/test_{name}" for name in _LOCAL],
    "matching/masses": ["matching/test_masses"],
    "matching/feedback": ["matching/test_feedback", "matching/test_masses"],
    "matching/full": [f"matching/test_{name}" for name in ["full", "packed", "full_tiles"]],
    "matching/full_blocks": ["matching/test_full_blocks", "matching/test_full"],
    "matching/full_tiles": [f"matching/test_{name}" for name in _TILES],
    "matching/packed": [f"matching/test_{name}" for name in ["packed", "full_tiles", "full"]],
    "matching/assignments": ["matching/test_assignments", "matching/test_full"],
    "rounding": ["test_rounding"],
    "metrics": ["test_metrics"],
    "ridge": ["test_ridge"],
}
#: Sizes of blocks and costs by which one of several equal ways is chosen. They are set by
#: measurement (``benchmarks/``); no result depends on them, so they are left as they are.
SPEED_ONLY = {
    "BLOCK_BYTES",
    "BLOCK_EDGES",
    "BLOCK_ENTRIES",
    "CACHED_ENTRIES",
    "ELEMENTWISE_COST",
    "GRAM_BYTES",
    "LABELS_PER_SHARED",
    "LOOKUP_COST",
    "MOST_SHARED",
    "PADDING",
    "SHARED_SAMPLE",
    "STORE_BYTES",
    "TILE",
    "VECTOR_COST",
}

_BOUNDARIES: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATIONS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_TWINS = {"min": "max", "minimum": "maximum", "any": "all", "argmax": "argmin", "zeros": "ones"}
_NAMES = _TWINS | {other: name for name, other in _TWINS.items()}


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes
    ----------
    module : str
        Path of the module below ``src/gmpll``, without its suffix.
    line : int
        Where it is today.
    code, change : str
        The source line, and what is changed from which of its characters on. They name the mutant
        in ``tools/mutants.toml``.
    """

    module: str
    line: int
    code: str
    change: str
    holder: ast.AST
    field: str
    index: int | None
    new: Any

    def apply(self) -> None:
        """Change the tree that the mutant was made from."""
        if self.index is None:
            setattr(self.holder, self.field, self.new)
        else:
            getattr(self.holder, self.field)[self.index] = self.new


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: a row of the table."""

    module: str
    line: int
    code: str
    change: str
    outcome: str
    by: str


def mutants_of(module: str) -> tuple[ast.Module, list[Mutant]]:
    """Return the tree of a module and every change of it."""
    source = (ROOT / "src" / "gmpll" / f"{module}.py").read_text()
    tree, lines = ast.parse(source), source.splitlines()
    found = []
    for holder, field, index, node in _places(tree):
        for new in _changes(node):
            ast.copy_location(new, node)
            line = lines[node.lineno - 1]
            column = node.col_offset - (len(line) - len(line.lstrip()))
            change = f"@{column} {_short(node)} -> {_short(new)}"
            found.append(
                Mutant(module, node.lineno, line.strip(), change, holder, field, index, new)
            )
    return tree, found


def _places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, Any]]:
    """Yield all that may be changed, and where it hangs; no annotations, strings or imports."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases"):
            continue
        several = isinstance(value, list)
        for index, child in enumerate(value if several else [value]):
            if isinstance(child, ast.stmt | ast.expr) and not _left_alone(child):
                yield node, field, index if several else None, child
            if isinstance(child, ast.AST) and not _left_alone(child):
                yield from _places(child)


def _left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id in SPEED_ONLY | {"__all__"}
    if isinstance(node, ast.ClassDef):  # nothing is ever called of a protocol
        return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.Assert | ast.Raise | ast.JoinedStr)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, [operation], comparators):
            yield ast.Compare(left, [_BOUNDARIES[type(operation)]()], comparators)
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATIONS:
            yield ast.BinOp(left, _OPERATIONS[type(operation)](), right)
        case ast.AugAssign(target, operation, value):
            yield ast.AugAssign(target, _OPERATIONS[type(operation)](), value)
            yield ast.Pass()
        case ast.BoolOp(operation, values):
            yield ast.BoolOp(_OPERATIONS[type(operation)](), values)
        case ast.UnaryOp(ast.Not() | ast.Invert() | ast.USub(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield from (ast.Constant(other) for other in ([1 - value] if value in (0, 1) else []))
            yield from (ast.Constant(value + step) for step in (1, -1) if value not in (0, 1))
        case ast.Constant(float(value)):
            yield ast.Constant(1.0 - value if value in (0.0, 1.0) else 2.0 * value)
        case ast.Name(name, ast.Load()) if name in _NAMES:
            yield ast.Name(_NAMES[name], ast.Load())
        case ast.Attribute(value, name, ast.Load()) if name in _NAMES:
            yield ast.Attribute(value, _NAMES[name], ast.Load())
        case ast.Return(ast.expr()):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()) | ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.If(test, body, orelse):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
            if not orelse:
                yield ast.If(ast.Constant(False), body, orelse)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)


def _short(node: ast.AST) -> str:
    """Return the first line of the code of a node."""
    return ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0]


class _MutatedModule(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives out a changed tree as the module of that name."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self.name = "gmpll." + module.replace("/", ".")
        self.path = str(ROOT / "src" / "gmpll" / f"{module}.py")
        self.tree = ast.fix_missing_locations(tree)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        exec(compile(self.tree, self.path, "exec"), module.__dict__)


class _FirstFailure:
    """A plugin for pytest that remembers what failed."""

    name = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.rpartition("/")[2]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = f"import of {report.nodeid.rpartition('/')[2]}"


def _try(tree: ast.Module, mutant: Mutant, seconds: int, answer: Connection) -> None:
    """Run the tests of a module on a mutant of it; the body of a process."""
    import pytest

    _limit(seconds)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    mutant.apply()
    finder = _MutatedModule(mutant.module, tree)
    sys.meta_path.insert(0, finder)
    try:
        importlib.import_module(finder.name)
    except Exception as error:
        answer.send(("killed", f"import: {type(error).__name__}"))
        return
    failure = _FirstFailure()
    tests = [ROOT / "tests" / f"{name}.py" for name in ["test_defaults", *CORE[mutant.module]]]
    paths = [finder.path, *(str(path) for path in tests if path.exists())]
    status = pytest.main(
        [*paths, "-x", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT)], plugins=[failure]
    )
    answer.send(("survived" if status == 0 else "killed", failure.name))
    os._exit(0)  # nothing is left to be done, and taking all modules down takes its time


def _limit(seconds: int) -> None:
    """Bound time and memory: a mutant may run for ever or ask for the whole machine."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))


def _prepare() -> None:
    """Import once what all processes need, but nothing of the package itself."""
    sys.path.insert(0, str(ROOT / "src"))
    sys.path.insert(0, str(ROOT / "tests"))
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # importing them takes longest of all
    for name in ("pytest", "numpy.testing", "scipy.sparse.csgraph", "scipy.linalg"):
        importlib.import_module(name)
    for name in ("sklearn.neighbors", "sklearn.kernel_ridge", "sklearn.model_selection"):
        importlib.import_module(name)
    from hypothesis import Phase, settings

    # The same examples for every mutant; a failing one need not be made small.
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile(
        "mutants", derandomize=True, database=None, phases=phases, deadline=None
    )
    settings.load_profile("mutants")
    gc.freeze()


def judge(chosen: list[tuple[ast.Module, Mutant]], jobs: int, seconds: int) -> Iterator[Verdict]:
    """Try mutants, some at a time, and yield what became of each."""
    processes = multiprocessing.get_context("fork")
    waiting = list(reversed(chosen))
    running: dict[Any, tuple[Any, Connection, Mutant]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            tree, mutant = waiting.pop()
            receiver, sender = processes.Pipe(duplex=False)
            process = processes.Process(target=_try, args=(tree, mutant, seconds, sender))
            process.start()
            sender.close()
            running[process.sentinel] = (process, receiver, mutant)
        for sentinel in wait(list(running)):
            process, receiver, mutant = running.pop(sentinel)
            try:
                outcome, by = receiver.recv()
            except EOFError:  # it ran out of time or memory, or crashed
                outcome, by = "killed", "time or memory"
            process.join()
            yield Verdict(*_key(mutant), outcome, by)


def explained() -> dict[tuple[str, str, str], str]:
    """Return why listed survivors change nothing that is promised."""
    listed = tomllib.loads(SURVIVORS.read_text()) if SURVIVORS.exists() else {}
    return {
        (entry["module"], entry["code"], change): entry["why"]
        for entry in listed.get("survivor", [])
        for change in entry["changes"]
    }


def _outdated(reasons: dict[tuple[str, str, str], str]) -> list[str]:
    """Return the listed survivors that are no mutants of today's code."""
    today = {(m.module, m.code, m.change) for module in CORE for m in mutants_of(module)[1]}
    return [f"{module}: {change} in {code}" for module, code, change in reasons.keys() - today]


def _chosen(arguments: argparse.Namespace) -> list[tuple[ast.Module, Mutant]]:
    """Choose the mutants to try: a sample of every module, all, or those that survived before."""
    survived = {_key(v) for v in _read(arguments.again) if v.outcome != "killed"}
    chosen = []
    for module in arguments.modules or CORE:
        tree, mutants = mutants_of(module)
        rng = random.Random(f"{arguments.seed} {module}")
        n_sampled = len(mutants) if arguments.all else min(arguments.sample, len(mutants))
        sampled = sorted(rng.sample(range(len(mutants)), n_sampled))
        kept = [mutants[index] for index in sampled]
        if arguments.again:
            kept = [mutant for mutant in mutants if _key(mutant) in survived]
        unchanged = Mutant(module, 0, "", UNCHANGED, tree, "body", None, tree.body)
        print(f"{module}: {len(kept)} of {len(mutants)} mutants", flush=True)
        chosen += [(tree, mutant) for mutant in [unchanged, *kept]]
    return chosen


def _key(mutant: Mutant | Verdict) -> tuple[str, int, str, str]:
    return mutant.module, mutant.line, mutant.code, mutant.change


def _read(path: Path | None) -> list[Verdict]:
    if path is None:
        return []
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [Verdict(module, int(line), *others) for module, line, *others in rows]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(CORE)}")
    parser.add_argument("--sample", type=int, default=40, help="mutants of every module")
    parser.add_argument("--all", action="store_true", help="every mutant instead of a sample")
    parser.add_argument("--again", type=Path, help="try the survivors of this table once more")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--seconds", type=int, default=60, help="processor time for a mutant")
    parser.add_argument("--output", type=Path, help="table of all mutants and what became of them")
    arguments = parser.parse_args()
    for module in arguments.modules:
        if module not in CORE:
            parser.error(f"{module} is not a module of the core: {', '.join(CORE)}.")
    return arguments
>>>>>>> 308bda3 (Matching: kept tiles are one thing for NumPy and PyTorch; kernels are the one special product)


def main() -> int:
    """Print the share of mutants that were noticed; return the exit status."""
    counts = json.loads(STATISTICS.read_text(encoding="utf-8"))
    total = counts["total"]
    noticed = counts["killed"] + counts["timeout"] + counts["segfault"]
    if not total:
        print("There are no mutants: see tool.mutmut in pyproject.toml.")
        return 1
    print(
        f"{noticed} of {total} mutants were noticed ({noticed / total:.1%}; at least "
        f"{MIN_NOTICED:.0%} are wanted). `mutmut results` lists the others, `mutmut show NAME` "
        "shows one."
    )
    return int(noticed < MIN_NOTICED * total)


if __name__ == "__main__":
    sys.exit(main())
