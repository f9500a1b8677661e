"""Declared runs -> saved predictions -> scores.

A declaration (:mod:`~gmpll.experiments.declaration`) is expanded into independent jobs, the
runner (:mod:`~gmpll.experiments.runner`) saves the predictions of each, and
:func:`~gmpll.experiments.scoring.scores` compares them with the truth, at any time and as often
as wanted.
"""

from gmpll.experiments.declaration import (
    Declaration,
    Experiment,
    built_in_declaration,
    expand,
    read_declaration,
)
from gmpll.experiments.errors import ExperimentError
from gmpll.experiments.jobs import Job
from gmpll.experiments.methods import Method, known_methods
from gmpll.experiments.runner import RunSummary, run
from gmpll.experiments.scoring import scores, write_scores

__all__ = [
    "Declaration",
    "Experiment",
    "ExperimentError",
    "Job",
    "Method",
    "RunSummary",
    "built_in_declaration",
    "expand",
    "known_methods",
    "read_declaration",
    "run",
    "scores",
    "write_scores",
]
