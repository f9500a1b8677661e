"""The reference lists what the modules export, so a new public name needs no entry here.

What users call comes first; the modules that the library is built of follow on a page of their own.
"""

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

What users call, by module. The same text is in Python's ``help``. :doc:`inside` lists the parts
that the library is built of, for who extends it.

"""
INSIDE = """\
Inside the library
==================

The parts that the methods are built of, by module. They may change with any version.

"""
TOCTREE = """\
.. toctree::
   :hidden:

   inside
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
    """Return a module's own classes and functions; none if it cannot be imported.

    They are those in ``__all__`` or, where a module has no such list, the public ones it defines.
    """
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        logger.info("The reference leaves out %s: %s", module_name, error)
        return []
    home = module_name.partition(".")[0] if hasattr(module, "__all__") else module_name
    names = [name for name in getattr(module, "__all__", dir(module)) if not name.startswith("_")]
    return [name for name in names if _is_documented(getattr(module, name), home)]


def _is_documented(value, home):
    """Whether it is a class or function defined there, not one of a library that is passed on."""
    return callable(value) and f"{getattr(value, '__module__', '')}.".startswith(f"{home}.")


def reference(package_name, skipped, inside):
    """Return both pages as reStructuredText; every object is described where it is met first."""
    described = {}
    modules = list(public_modules(package_name, skipped))
    internal = [name for name in modules if f"{name}.".startswith(inside)]
    users = [name for name in modules if name not in internal]
    first = [HEAD, *sections(users, described), TOCTREE]
    return "\n".join(first), "\n".join([INSIDE, *sections(internal, described)])


def sections(module_names, described):
    """Return the sections of some modules."""
    parts = []
    for module_name in module_names:
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
    return parts


def write_reference(app, config):
    """Write the pages before autosummary looks for what to document."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    inside = tuple(f"{config.public_names_package}.{name}." for name in config.public_names_inside)
    texts = reference(config.public_names_package, config.public_names_skipped, inside)
    for name, text in zip(("index.rst", "inside.rst"), texts, strict=True):
        page = folder / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            rmtree(folder / "generated", ignore_errors=True)  # pages of names that are gone


def setup(app):
    """Connect to Sphinx."""
    app.add_config_value("public_names_package", "", "env")
    app.add_config_value("public_names_skipped", [], "env")
    app.add_config_value("public_names_inside", [], "env")
    app.connect("config-inited", write_reference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
