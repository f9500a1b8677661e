"""Declared runs -> saved predictions -> scores.

A declaration is expanded into independent jobs, :func:`run` saves the predictions of each, and
:func:`scores` compares them with the truth, at any time and as often as wanted.
"""

from gmpll.apps.experiments.declaration import (
    Declaration,
    Experiment,
    built_in_declaration,
    expand,
    read_declaration,
)
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.jobs import Job
from gmpll.apps.experiments.methods import Method, known_methods
from gmpll.apps.experiments.runner import RunSummary, run
from gmpll.apps.experiments.scoring import scores, write_scores

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
