"""The plan of the house: what may import what, and whose private names are whose.

A list at the head holds what does not stand yet; an entry that is no longer needed fails the test.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import gmpll

SOURCE = Path(gmpll.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
#: Imports (of the second by the first) that still close a circle.
CYCLES: set[tuple[str, str]] = set()
#: Modules that still import a private name of another package.
PRIVATE_IMPORTS: set[str] = set()
#: Modules that still read a private attribute of something defined elsewhere.
PRIVATE_ATTRIBUTES: set[str] = set()
#: Modules of the library that still import an application, and applications out of order.
UPWARD_IMPORTS: set[str] = set()

#: Applications that each may import, besides itself and the library.
MAY_IMPORT = {
    "progress": set(),
    "pages": set(),
    "decisions": set(),
    "tables": {"pages", "decisions"},
    "web": set(),
    "review": {"pages", "decisions", "tables", "web"},
    "serving": {"tables", "web"},
    "experiments": {"tables", "progress"},
    "report": {"pages", "experiments"},
    "compare": {"experiments", "report", "progress"},
    "cli": {
        *("progress", "pages", "decisions", "tables", "web", "review", "serving"),
        *("experiments", "report", "compare"),
    },
}
#: What outside of the applications may load them: the command, and names that load when asked for.
DOORS = {"gmpll", "gmpll.__main__", "gmpll.experiments"}
#: The one home of what scikit-learn offers to developers under private names.
SKLEARN_DOOR = "gmpll._sklearn"
#: Public in spite of the underscore: Python's documentation describes these.
DOCUMENTED = {"_asdict", "_exit", "_fields", "_replace"}


class Import(NamedTuple):
    module: str  # what is imported, or imported from
    names: tuple[str, ...]


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {
    module_name(path): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(SOURCE.rglob("*.py"))
}


def running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below this one but those that only a type checker sees."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from running_nodes(child)


def imports_of(module: str) -> Iterator[Import]:
    for node in running_nodes(TREES[module]):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute."
            yield Import(str(node.module), tuple(alias.name for alias in node.names))


def modules_of(imported: Import) -> set[str]:
    """Modules of this package that an import loads, but for the packages around them."""
    below = {f"{imported.module}.{name}" for name in imported.names} & TREES.keys()
    names_of_its_own = len(below) < len(imported.names) or not imported.names
    own = {imported.module} & TREES.keys() if names_of_its_own else set()
    return below | own


def package_of(module: str) -> str:
    """gmpll.graph of gmpll.graph.cells, gmpll.apps.tables of gmpll.apps.tables.cells."""
    parts = module.split(".")
    depth = 3 if parts[1:2] == ["apps"] else 2
    if len(parts) == depth and not is_package(module):  # a single module stands for itself
        return module
    return ".".join(parts[:depth])


def is_package(module: str) -> bool:
    return any(name.startswith(f"{module}.") for name in TREES)


def application_of(module: str) -> str | None:
    parts = module.split(".")
    is_one = parts[1:2] == ["apps"] and len(parts) > 2 and parts[2] != "errors"
    return parts[2] if is_one else None


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def check(found: dict[str, list[str]], excepted: set[str]) -> None:
    """Nothing is found but in the modules that are excepted, and there something is."""
    new = [f"{module}: {what}" for module in found.keys() - excepted for what in found[module]]
    assert not new, "\n".join(sorted(new))
    assert not excepted - found.keys(), "These exceptions are no longer needed."


def test_imports_do_not_run_in_circles():
    graph = {
        module: set().union(*(modules_of(imported) for imported in imports_of(module))) - {module}
        for module in TREES
    }
    for module, imported in CYCLES:
        assert imported in graph.get(module, ()), f"{module} no longer imports {imported}."
        assert module in reached_from(imported, graph), f"{module}: the circle is open."
    for module, imported in CYCLES:
        graph[module].discard(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def reached_from(start: str, graph: dict[str, set[str]]) -> set[str]:
    reached, waiting = set(), [start]
    while waiting:
        for module in graph[waiting.pop()] - reached:
            reached.add(module)
            waiting.append(module)
    return reached


def test_private_names_stay_in_their_package():
    found: dict[str, list[str]] = {}
    for module in TREES.keys() - {SKLEARN_DOOR}:
        for imported in imports_of(module):
            parts = imported.module.split(".")
            hidden = [part for part in (*parts, *imported.names) if is_private(part)]
            # The private modules at the top serve the whole of gmpll.
            if parts[0] == "gmpll" and len(parts) == 2:
                hidden = [name for name in hidden if name != parts[1]]
            if imported.module == "gmpll":
                hidden = []
            same = parts[0] == "gmpll" and package_of(imported.module) == package_of(module)
            if hidden and not same:
                said = f"{imported.module} {' '.join(imported.names)}".strip()
                found.setdefault(module, []).append(f"imports {said}")
    check(found, PRIVATE_IMPORTS)


def test_private_attributes_are_read_by_their_own_file():
    found: dict[str, list[str]] = {}
    for module, tree in TREES.items():
        own = attributes_defined_in(tree) | DOCUMENTED
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
                whose = ast.unparse(node.value)
                if whose not in ("self", "cls", "super()"):
                    found.setdefault(module, []).append(f"reads {whose}.{node.attr}")
    check(found, PRIVATE_ATTRIBUTES)


def attributes_defined_in(tree: ast.AST) -> set[str]:
    """Attributes of the classes of a file: it may read them on any of their objects."""
    names = set()
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in cls.body:
            if isinstance(node, ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
        for node in ast.walk(cls):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names |= {node.attr} if ast.unparse(node.value) in ("self", "cls") else set()
    return names


def test_arrows_point_one_way():
    found: dict[str, list[str]] = {}
    for module in TREES.keys() - DOORS:
        ours = application_of(module)
        for imported in imports_of(module):
            theirs = application_of(imported.module)
            allowed = MAY_IMPORT[ours] | {ours} if ours else set()
            if theirs is not None and theirs not in allowed:
                found.setdefault(module, []).append(f"imports {imported.module}")
    check(found, UPWARD_IMPORTS)


def rows_of_the_page(heading: str) -> list[list[str]]:
    """The cells of the table under a line that starts with a heading, without its head."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n{heading}")[2]
    table = text[text.index("\n|") :].partition("\n\n")[0].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def test_the_page_lists_packages_above_those_that_import_them():
    lines = rows_of_the_page("Imports point one way")
    place = {
        name: number
        for number, (cell, *_) in enumerate(lines)
        for name in re.findall(r"gmpll\.[a-z_]+", cell)
    }
    packages = {package_of(module) for module in TREES} - DOORS
    packages -= {"gmpll.apps", "gmpll.apps.errors"}
    library = {name for name in packages if "._" not in name and application_of(name) is None}
    assert place.keys() == library
    upwards = [
        f"{module} imports {imported.module}"
        for module in TREES
        for imported in imports_of(module)
        if imported.module in TREES
        and place.get(package_of(imported.module), 0) > place.get(package_of(module), len(lines))
    ]
    assert not upwards


def test_the_page_says_what_applications_may_import():
    said = {}
    for name, _, allowed in rows_of_the_page("Applications stand apart"):
        for one in re.findall(r"`(?:gmpll\.apps\.)?(\w+)`", name):
            known = re.findall(r"\w+", allowed)
            said[one] = {other for other in known if other in MAY_IMPORT}
            said[one] |= MAY_IMPORT.keys() - {one} if allowed == "all of them" else set()
    assert said == MAY_IMPORT
