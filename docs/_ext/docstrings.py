"""Docstrings are written to be read in a terminal; this makes them fit for the site.

A name like ``n_features_in_`` in the type of a parameter would read as a reference: its last
character is escaped. A name that is mentioned without its module is found by its ending, and one
that is not part of the reference is shown without a link. A name that does not exist at all stays
an error.
"""

import pydoc
import re
import sys

from sphinx.util.nodes import make_refnode

_TYPE_LINE = re.compile(r"^\s*[\w*, ]+ : ")
_TRAILING = re.compile(r"(?<=\w)_(?=[,)\s]|$)")


def escape_types(app, what, name, obj, options, lines):
    """Escape the last underscore of names in the types of parameters."""
    for number, line in enumerate(lines):
        if _TYPE_LINE.match(line):
            names, _, kind = line.partition(" : ")
            lines[number] = f"{names} : {_TRAILING.sub(chr(92) + '_', kind)}"


def resolve(app, env, node, content):
    """Find what a name means that Sphinx did not find."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    known = env.domaindata["py"]["objects"]
    full_names = [name for name in known if name.endswith(f".{target}")]
    if len(full_names) == 1:
        found = known[full_names[0]]
        return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, content)
    return content if full_names or exists(target) else None


def exists(target):
    """Whether a name is that of something in the package, with or without its module."""
    if target.startswith("gmpll."):
        return pydoc.locate(target) is not None
    modules = [module for name, module in sys.modules.items() if name.startswith("gmpll")]
    return any(hasattr(module, target) for module in modules)


def setup(app):
    """Connect to Sphinx."""
    app.connect("autodoc-process-docstring", escape_types, priority=100)  # before numpydoc
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
