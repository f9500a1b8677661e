"""Experiments: compare methods on your own data, and run declared experiments.

>>> from gmpll.experiments import compare
>>> compare.__name__
'compare'
"""

from gmpll.apps.compare import Comparison, compare
from gmpll.apps.experiments import (
    Declaration,
    Experiment,
    ExperimentError,
    Method,
    known_methods,
    read_declaration,
    run,
    scores,
)

__all__ = [
    "Comparison",
    "Declaration",
    "Experiment",
    "ExperimentError",
    "Method",
    "compare",
    "known_methods",
    "read_declaration",
    "run",
    "scores",
]
