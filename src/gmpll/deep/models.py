"""The modules that are trained: linear, perceptrons, or the user's own."""

import copy
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

#: Units of the hidden layer of the perceptron.
HIDDEN_UNITS = 500


def build_module(module: Any, n_features: int, n_labels: int) -> nn.Module:
    """Return a new module: a named one, one of these widths, a copy, or what a factory makes."""
    if module == "linear":
        linear = nn.Linear(n_features, n_labels)
        for parameter in linear.parameters():  # the same model whatever the seed
            nn.init.zeros_(parameter)
        return linear
    if module == "mlp":
        return nn.Sequential(
            nn.Linear(n_features, HIDDEN_UNITS), nn.ReLU(), nn.Linear(HIDDEN_UNITS, n_labels)
        )
    if isinstance(module, tuple):
        if not all(isinstance(width, int) and width > 0 for width in module):
            raise ValueError(f"module={module!r} must hold widths of layers, positive integers.")
        layers: list[nn.Module] = []
        for n_in, n_out in itertools.pairwise((n_features, *module)):
            layers += [nn.Linear(n_in, n_out), nn.ReLU(), nn.BatchNorm1d(n_out)]
        return nn.Sequential(*layers, nn.Linear((n_features, *module)[-1], n_labels))
    built = copy.deepcopy(module) if isinstance(module, nn.Module) else module(n_features, n_labels)
    if not isinstance(built, nn.Module):
        raise ValueError(
            f"module={module!r} returned {type(built).__name__}: it must be a torch.nn.Module or a "
            "callable that takes the numbers of features and labels and returns one."
        )
    return built


def check_logits(logits: Any, n_rows: int, n_labels: int) -> None:
    """Raise where a module does not return a score for every label."""
    if not isinstance(logits, Tensor) or logits.shape != (n_rows, n_labels):
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(
            f"The module returns {shape} for {n_rows} rows, but {n_labels} labels occur among the "
            f"candidates: it must return ({n_rows}, {n_labels}). Pass a callable that takes the "
            "numbers of features and labels where labels may be missing."
        )


def with_embedding(module: nn.Module, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits of rows and what goes into the last linear layer, else the logits."""
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        logits = module(inputs)
        return logits, torch.flatten(logits, start_dim=1)
    kept: list[Tensor] = []
    keep: Callable[..., None] = lambda _, given: kept.append(given[0])  # noqa: E731
    handle = layers[-1].register_forward_pre_hook(keep)
    try:
        logits = module(inputs)
    finally:
        handle.remove()
    return logits, torch.flatten(kept[-1], start_dim=1)
