"""From a table of ambiguous labels to resolved ones.

The way of the data: file -> ``tables`` -> ``guesses`` (which column is what) -> ``candidate_sets``
and ``features`` -> ``resolving`` -> ``output``, ``saved``, ``model_file`` and the page.
"""

from gmpll.disambiguation.errors import InputError
from gmpll.disambiguation.frames import disambiguate
from gmpll.disambiguation.saved import SavedMatching, read_matching, rematch

__all__ = ["InputError", "SavedMatching", "disambiguate", "read_matching", "rematch"]
