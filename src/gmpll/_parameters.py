"""Parameters of estimators, each declared once: its name, type, limits and default.

So are they described: docstrings take over what those of base classes say.
"""

import inspect
import re
import typing as t
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Annotated, Any, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator

from gmpll._sklearn import HasMethods, Integral, Interval, Real

Estimator = t.TypeVar("Estimator", bound=BaseEstimator)

Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
NotNegative = Annotated[float, Interval(Real, 0, None, closed="left")]
Switch = Annotated[bool, "boolean"]
Verbosity = Annotated[int, "verbose"]
Jobs = Annotated[int | None, None, Integral]
Learner = Annotated[Any, None, HasMethods(["fit", "predict"])]
Seed = Annotated[int | np.random.RandomState | None, "random_state"]


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def with_parameters(cls: type[Estimator]) -> type[Estimator]:
    """Write the constructor of an estimator, and the table of limits that scikit-learn checks.

    A parameter is a line in the body of the class, ``name: Annotated[type, limit] = default``, or
    a union of such types. It is keyword-only unless ``field(default=..., kw_only=False)`` says no.
    Parameters and attributes that only a base class describes are added to the docstring.
    """
    cls = dataclass(kw_only=True, eq=False, repr=False)(cls)
    hints = t.get_type_hints(cls.__init__, include_extras=True)
    limits = {parameter.name: _limits_of(hints[parameter.name]) for parameter in fields(cls)}
    cls._parameter_constraints = {**cls._parameter_constraints, **limits}
    cls.__init__.__annotations__ = t.get_type_hints(cls.__init__)  # readers need no limits
    for name in limits.keys() & vars(cls).keys():  # those of a base class are gone already
        delattr(cls, name)  # a parameter belongs to the object, not to its class
    cls.__doc__ = _with_inherited(cls)
    return cls


def _limits_of(hint: Any) -> list[Any]:
    if t.get_origin(hint) is Annotated:
        return list(hint.__metadata__)
    if hint is NoneType:
        return [None]
    return [limit for part in t.get_args(hint) for limit in _limits_of(part)]


def _with_inherited(cls: type) -> str:
    """Return the docstring of a class with the entries of base classes that it lacks."""
    kinds = {name: given.kind for name, given in inspect.signature(cls).parameters.items()}
    sections = [_sections(one) for one in cls.__mro__]
    for title in ("Parameters", "Attributes"):
        entries: dict[str, str] = {}
        for section in sections:
            for entry in re.split(r"\n(?=\w)", section.get(title, ""))[1:]:
                for name in re.findall(r"\w+", entry.partition("\n")[0].partition(" :")[0]):
                    entries.setdefault(name, entry)
        names = [name for name in entries if name in kinds or title == "Attributes"]
        names.sort(key=lambda name: kinds.get(name, 0))  # positional parameters first
        if names:
            found = dict.fromkeys(entries[name] for name in names)
            sections[0][title] = "\n".join([title, "-" * len(title), *found])
    first = ["", "Parameters", "Attributes"]
    order = sorted(sections[0], key=lambda title: first.index(title) if title in first else 3)
    return "\n\n".join(sections[0][title] for title in order)


def _sections(cls: type) -> dict[str, str]:
    """Return the sections of a docstring by their titles; the first one has none."""
    text = inspect.cleandoc(cls.__doc__ or "")
    parts = re.split(r"\n\n(?=[A-Z][\w ]+\n---)", text)
    return {part.partition("\n")[0] if n else "": part for n, part in enumerate(parts)}
