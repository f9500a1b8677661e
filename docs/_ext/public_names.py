"""The reference lists what the modules export, so a new public name needs no entry here."""

import importlib
import inspect
import pkgutil
from pathlib import Path
from shutil import rmtree

from sphinx.util import logging

logger = logging.getLogger(__name__)

HEAD = """\
Reference
=========

Every public name, by module. The same text is in Python's ``help``.

"""


def public_modules(package_name, skipped):
    """Yield the names of a package's public modules, outermost first."""
    yield package_name
    for module in sorted(pkgutil.iter_modules(importlib.import_module(package_name).__path__)):
        if module.name.startswith("_") or module.name in skipped:
            continue
        name = f"{package_name}.{module.name}"
        # A package that exports nothing of its own is a drawer: its modules are listed instead.
        if module.ispkg and not exported(name):
            yield from list(public_modules(name, skipped))[1:]
        else:
            yield name


def exported(module_name):
    """Return a module's own classes and functions; none if it cannot be imported."""
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        logger.info("The reference leaves out %s: %s", module_name, error)
        return []
    names = [name for name in getattr(module, "__all__", []) if not name.startswith("_")]
    package_name = module_name.partition(".")[0]
    return [name for name in names if _is_documented(getattr(module, name), package_name)]


def _is_documented(value, package_name):
    """Whether it is a class or function of the package, not of a library that it passes on."""
    return callable(value) and getattr(value, "__module__", "").startswith(package_name)


def reference(package_name, skipped):
    """Return the page as reStructuredText; every object is described where it is met first."""
    described, parts = {}, [HEAD]
    for module_name in public_modules(package_name, skipped):
        names = exported(module_name)
        if not names:
            continue
        module = importlib.import_module(module_name)
        new = [name for name in names if id(getattr(module, name)) not in described]
        described |= {id(getattr(module, name)): f"{module_name}.{name}" for name in new}
        summary = inspect.getdoc(module).partition("\n\n")[0].replace("*", r"\*")
        parts += [f"{module_name}\n{'-' * len(module_name)}\n"]
        parts += [f".. module:: {module_name}\n", f"{summary}\n"]
        if new:
            parts += [".. autosummary::\n   :toctree: generated\n   :nosignatures:\n"]
            classes = [name for name in new if inspect.isclass(getattr(module, name))]
            functions = [name for name in new if name not in classes]
            parts += [*(f"   {name}" for name in sorted(classes) + sorted(functions)), ""]
        old = [described[id(getattr(module, name))] for name in names if name not in new]
        if old:
            parts += ["See also " + ", ".join(f":py:obj:`{name}`" for name in sorted(old)) + ".\n"]
    return "\n".join(parts)


def write_reference(app, config):
    """Write the page before autosummary looks for what to document."""
    page = Path(app.srcdir) / "api" / "index.rst"
    text = reference(config.public_names_package, config.public_names_skipped)
    page.parent.mkdir(exist_ok=True)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")
        rmtree(page.parent / "generated", ignore_errors=True)  # pages of names that are gone


def setup(app):
    """Connect to Sphinx."""
    app.add_config_value("public_names_package", "", "env")
    app.add_config_value("public_names_skipped", [], "env")
    app.connect("config-inited", write_reference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
