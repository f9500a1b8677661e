"""From a table of ambiguous labels to resolved ones.

The way of the data: file -> ``tables`` -> ``guesses`` (which column is what) -> ``candidate_sets``
and ``features`` -> ``resolving`` -> ``saved``, ``page`` and ``output``.
"""

from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.loaded import LoadedModel, load
from gmpll.apps.tables.resolving import Disambiguation, disambiguate
from gmpll.apps.tables.saved import SavedMatching, read_matching, rematch

__all__ = [
    "Disambiguation",
    "InputError",
    "LoadedModel",
    "SavedMatching",
    "disambiguate",
    "load",
    "read_matching",
    "rematch",
]
