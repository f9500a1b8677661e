"""Where a report comes from, as named lines for the end of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gmpll.apps.report.scores_table import printable

__all__ = ["provenance_groups"]

#: Heading of the facts that stand in no group.
GENERAL = "General"


def provenance_groups(provenance: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Arrange nested facts in groups of named lines.

    Parameters
    ----------
    provenance : mapping
        A value that is a mapping becomes a group of its own, with deeper ones flattened.

    Returns
    -------
    list of (heading, list of (name, value))
        Empty values are left out, empty groups too.

    Examples
    --------
    >>> from gmpll.apps.report.provenance import provenance_groups
    >>> provenance_groups({"commit": "3a1ee69", "run": {"versions": {"numpy": "2.4"}}})
    [('General', [('commit', '3a1ee69')]), ('run', [('versions: numpy', '2.4')])]
    """
    general = {key: value for key, value in provenance.items() if not isinstance(value, Mapping)}
    groups = [(GENERAL, list(_lines(general)))]
    groups += [
        (printable(key), list(_lines(value)))
        for key, value in provenance.items()
        if isinstance(value, Mapping)
    ]
    return [(heading, lines) for heading, lines in groups if lines]


def _lines(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in facts.items():
        name = printable(f"{prefix}{key}".replace("_", " "))
        if isinstance(value, Mapping):
            yield from _lines(value, f"{name}: ")
        elif isinstance(value, (list, tuple)):
            if value:
                yield name, printable(", ".join(map(str, value)))
        elif value is not None and value != "":
            yield name, printable(value)
