"""Every package that the source imports is declared, in the core or in the extra that needs it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import gmpll

SOURCE = Path(gmpll.__file__).parent
PROJECT = SOURCE.parents[1] / "pyproject.toml"
pytestmark = pytest.mark.skipif(not PROJECT.exists(), reason="pyproject.toml is not here")

#: Import name -> distribution, where they differ.
DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "crowdkit": "crowd-kit",
    "markdown_it": "markdown-it-py",
    "triton": "torch",  # which GPU builds of torch bring
}
#: Extras that no user of the package installs to run it.
FOR_DEVELOPERS = {"docs", "test", "audit", "lint"}
#: Modules, with all below them, that cannot be imported without an extra.
NEEDS = {
    "gmpll.apps.cli": "cli",
    "gmpll.apps.compare": "experiments",
    "gmpll.apps.experiments": "experiments",
    "gmpll.apps.pages.svg": "experiments",
    "gmpll.apps.report": "experiments",
    "gmpll.apps.review": "review",
    "gmpll.apps.serving": "review",
    "gmpll.apps.web": "review",
    "gmpll.apps.progress": "cli",
    "gmpll.apps.tables": "tables",
    "gmpll.experiments": "experiments",
    "gmpll.deep": "torch",
    "gmpll.engines.cells": "neighbors",
    "gmpll.engines.dask": "dask",
    "gmpll.engines.dask_blocks": "dask",
    "gmpll.engines.dask_inputs": "dask",
    "gmpll.engines.dask_search": "dask",
    "gmpll.engines.torch": "torch",
    "gmpll.engines.triton_products": "torch",
    "gmpll.matching._triton": "torch",
    "gmpll.matching.full_tensors": "torch",
}


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def declared() -> dict[str, set[str]]:
    """Distributions by extra, those of other extras that it includes among them; core is ""."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]

    def of_extra(extra: str) -> set[str]:
        names = set()
        for requirement in extras[extra]:
            own = re.fullmatch(r"gmpll\[(.*)\]", requirement)
            included = own[1].split(",") if own else []
            names |= set().union(*map(of_extra, included)) if own else {name_of(requirement)}
        return names

    core = {name_of(requirement) for requirement in project["dependencies"]}
    return {"": core} | {extra: of_extra(extra) for extra in extras.keys() - FOR_DEVELOPERS}


def imports(node: ast.AST, certain: bool = True) -> Iterator[tuple[str, bool]]:
    """Imported modules, and whether they are imported whenever the module is."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from ((alias.name, certain) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield str(child.module), certain
            yield from ((f"{child.module}.{alias.name}", certain) for alias in child.names)
        optional = isinstance(child, ast.FunctionDef | ast.Try)
        yield from imports(child, certain and not optional)


def source_imports() -> Iterator[tuple[str, str, bool]]:
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        module = module.removesuffix(".__init__")
        for imported, certain in imports(ast.parse(path.read_text(encoding="utf-8"))):
            yield module, imported, certain


def extra_of(module: str) -> str:
    return next((extra for name, extra in NEEDS.items() if f"{module}.".startswith(f"{name}.")), "")


def distribution_of(imported: str) -> str | None:
    top = imported.partition(".")[0]
    if top in sys.stdlib_module_names or top == "gmpll":
        return None
    return DISTRIBUTIONS.get(top, top.replace("_", "-"))


def test_every_imported_package_is_declared():
    everywhere = set().union(*declared().values())
    missing = {
        f"{module} imports {imported}"
        for module, imported, _ in source_imports()
        if distribution_of(imported) not in {None, *everywhere}
    }
    assert not missing, sorted(missing)


def test_what_a_module_cannot_do_without_is_in_the_core_or_in_its_extra():
    by_extra = declared()
    wrong = {
        f"{module} imports {imported}"
        for module, imported, certain in source_imports()
        if certain
        and distribution_of(imported) not in {None, *by_extra[""], *by_extra[extra_of(module)]}
    }
    assert not wrong, sorted(wrong)


def test_modules_that_need_an_extra_are_loaded_by_those_that_need_it_too():
    by_extra = declared()
    wrong = {
        f"{module} imports {imported}"
        for module, imported, certain in source_imports()
        if certain and not by_extra[extra_of(imported)] - by_extra[""] <= by_extra[extra_of(module)]
    }
    assert not wrong, sorted(wrong)


def test_modules_that_need_an_extra_exist():
    modules = {f"{module}." for module, _, _ in source_imports()}
    gone = [name for name in NEEDS if not any(m.startswith(f"{name}.") for m in modules)]
    assert not gone


def test_nothing_is_declared_in_vain():
    used = {distribution_of(imported) for _, imported, _ in source_imports()}
    assert declared()[""] <= used


def test_without_the_command_line_a_sentence_names_its_extra():
    code = "import sys; sys.modules['typer'] = None; import gmpll.__main__ as door; door.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "gmpll: The command line needs typer: pip install 'gmpll[cli]'.\n"
