"""Default values are what the documentation says they are."""

import ast
import importlib
import inspect
import re

import pytest

MODULES = [
    "gmpll.datasets.corruption",
    "gmpll.matching.full",
    "gmpll.matching.loop",
    "gmpll.evidence.ridge",
    "gmpll.uncertainty.reliability",
]


def documented(module):
    """Functions and classes of a module whose documentation names default values."""
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", None) == module.__name__ and thing.__doc__:
            defaults = re.findall(r"^ *(\w+) : .*default=(\S+)$", thing.__doc__, re.MULTILINE)
            if defaults:
                yield name, thing, dict(defaults)


@pytest.mark.parametrize("name", MODULES)
def test_defaults_are_as_documented(name):
    module = importlib.import_module(name)
    found = list(documented(module))
    assert found
    for _, thing, defaults in found:
        parameters = inspect.signature(thing).parameters
        for parameter, text in defaults.items():
            value = getattr(module, text) if text.isupper() else ast.literal_eval(text)
            assert parameters[parameter].default == value, (thing, parameter)
