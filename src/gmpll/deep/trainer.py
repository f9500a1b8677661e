"""The one training loop: minibatches, schedules, early stopping by held-out candidates."""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gmpll.deep.models import check_logits, with_embedding
from gmpll.deep.objectives import Objective, candidate_loss

__all__ = ["SCHEDULES", "History", "Trainer", "seeded"]

#: Rows that go through the module at a time where nothing is learned.
EVALUATION_ROWS = 8192
#: Epochs in which the exponential schedule halves the learning rate, and the part of the one-cycle
#: schedule in which it rises.
HALVING_EPOCHS = 50
RISING_PART = 0.3

#: Factor of the learning rate at an epoch, which may be a fraction, of so many.
SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "constant": lambda epoch, n_epochs: 1.0,
    "cosine": lambda epoch, n_epochs: 0.5 * (1.0 + math.cos(math.pi * epoch / n_epochs)),
    "exponential": lambda epoch, n_epochs: 0.5 ** (epoch / HALVING_EPOCHS),
    "onecycle": lambda epoch, n_epochs: _one_cycle(epoch / n_epochs),
}


def _one_cycle(part: float) -> float:
    if part < RISING_PART:
        return 0.04 + 0.96 * part / RISING_PART
    return 0.5 * (1.0 + math.cos(math.pi * (part - RISING_PART) / (1.0 - RISING_PART)))


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed PyTorch inside, and leave the user's own random numbers as they were."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


@dataclass
class History:
    """What happened in training.

    Attributes
    ----------
    loss_curve, validation_curve : list of float
        Mean loss of every epoch; held-out loss of the candidates where some rows were held out.
    best_iter : int
        The epoch, counted from 1, whose weights the module has.
    rows : Tensor
        The rows that were trained on; the others were held out.
    """

    rows: Tensor
    loss_curve: list[float] = field(default_factory=list)
    validation_curve: list[float] = field(default_factory=list)
    best_iter: int = 0


@dataclass
class Trainer:
    """Train a module on rows with candidates, by the objective of any method.

    The estimators of :mod:`gmpll.deep` are this with a choice of model, scaling and checks; use it
    directly for tensors that are on their device already.

    Parameters
    ----------
    optimizer, learning_rate, ..., verbose
        As in :class:`gmpll.deep.PartialLabelNetwork`; a last batch of a single row joins the one
        before.
    seed : int, default=0
        Of everything random.

    Examples
    --------
    >>> import torch
    >>> from gmpll.deep import Objective, Trainer
    >>> X = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    >>> mask = torch.tensor([[1, 0], [1, 1], [0, 1], [1, 1]]).bool()
    >>> module = torch.nn.Linear(1, 2)
    >>> history = Trainer(learning_rate=0.1, max_iter=100).train(module, Objective(), X, mask)
    >>> module(X).argmax(dim=1)
    tensor([0, 0, 1, 1])
    >>> history.loss_curve[-1] < history.loss_curve[0]
    True
    """

    optimizer: str = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    batch_size: int = 256
    max_iter: int = 250
    schedule: str = "constant"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    augment: Callable[[Tensor], Tensor] | None = None
    verbose: bool = False
    seed: int = 0

    def train(self, module: nn.Module, objective: Objective, X: Tensor, mask: Tensor) -> History:
        """Train the module in place, and leave it in evaluation mode.

        Parameters
        ----------
        module : torch.nn.Module
            Returns a score for every label; on the device of X.
        objective : Objective
            The method.
        X : Tensor of shape (n_samples, ...)
            Inputs.
        mask : Tensor of shape (n_samples, n_labels), bool
            Candidates.
        """
        order = torch.Generator().manual_seed(self.seed)  # the same on every device
        with seeded(self.seed, X.device):
            rows, held_out = self._split(len(X), order, X.device)
            history = History(rows)
            X_train = X if held_out is None else X[rows]
            mask_train = mask if held_out is None else mask[rows]
            optimizer = self.begin(module, objective, X_train, mask_train)
            best = None
            for epoch in range(self.max_iter):
                module.train()
                total = torch.zeros((), device=X.device)
                drawn = torch.randperm(len(X_train), generator=order).to(X.device)
                batches = self.batches(drawn)
                for number, part in enumerate(batches):
                    factor = SCHEDULES[self.schedule](epoch + number / len(batches), self.max_iter)
                    for group in optimizer.param_groups:
                        group["lr"] = self.learning_rate * factor
                    inputs = X_train[part]
                    total += len(part) * self.step(module, objective, inputs, part, optimizer)
                history.loss_curve.append(float(total) / len(X_train))
                if not math.isfinite(history.loss_curve[-1]):
                    raise FloatingPointError(
                        f"The loss is {history.loss_curve[-1]} in epoch {epoch + 1}: lower "
                        f"learning_rate, now {self.learning_rate:g}, or scale the features."
                    )
                network = lambda: self.evaluate(module, X_train)  # noqa: E731
                objective.after_epoch(epoch, self.max_iter, network)
                if held_out is not None:
                    logits, _ = self.evaluate(module, X[held_out])
                    history.validation_curve.append(float(candidate_loss(logits, mask[held_out])))
                if self.verbose:
                    curves = (history.loss_curve, history.validation_curve)
                    said = ", held out ".join(f"{curve[-1]:.4f}" for curve in curves if curve)
                    print(f"epoch {epoch + 1} of {self.max_iter}: loss {said}", flush=True)
                curve = history.validation_curve or [0.0]
                if held_out is None or curve[-1] <= min(curve):
                    history.best_iter = epoch + 1
                    best = copy.deepcopy(module.state_dict()) if held_out is not None else None
                elif epoch + 1 - history.best_iter >= self.n_iter_no_change:
                    break
            if best is not None:
                module.load_state_dict(best)
        module.eval()
        return history

    def begin(
        self, module: nn.Module, objective: Objective, X: Tensor, mask: Tensor
    ) -> torch.optim.Optimizer:
        """Start the objective on these rows and return the optimizer."""
        with torch.no_grad():
            module.eval()
            check_logits(module(X[:2]), len(X[:2]), mask.shape[1])
        objective.start(mask, module, X[:2])
        parameters = [*module.parameters(), *objective.parameters()]
        settings: dict[str, Any] = {"lr": self.learning_rate, "weight_decay": self.weight_decay}
        if self.optimizer == "sgd":
            return torch.optim.SGD(parameters, momentum=0.9, **settings)
        return torch.optim.Adam(parameters, fused=X.device.type == "cuda", **settings)

    def step(
        self,
        module: nn.Module,
        objective: Objective,
        inputs: Tensor,
        rows: Tensor,
        optimizer: torch.optim.Optimizer,
    ) -> Tensor:
        """Take a step on a batch and return its loss; ``rows`` are those of the objective."""
        if self.augment is not None:
            inputs = self.augment(inputs)
        loss, logits = objective.forward(module, inputs, rows)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            objective.after_step(rows, logits.detach(), lambda: module(inputs))
        return loss.detach()

    @torch.no_grad()
    def evaluate(self, module: nn.Module, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits and embeddings of rows, in evaluation mode."""
        was_training = module.training
        module.eval()
        parts = [with_embedding(module, part) for part in X.split(EVALUATION_ROWS)]
        module.train(was_training)
        logits, embeddings = zip(*parts, strict=True)
        return torch.cat(logits), torch.cat(embeddings)

    def batches(self, rows: Tensor) -> list[Tensor]:
        """Cut rows into batches, none of them of a single row if that can be."""
        parts = list(rows.split(self.batch_size))
        if len(parts) > 1 and len(parts[-1]) == 1:  # batch normalisation fails on it
            parts[-2:] = [torch.cat(parts[-2:])]
        return parts

    def _split(
        self, n_rows: int, order: torch.Generator, device: torch.device
    ) -> tuple[Tensor, Tensor | None]:
        n_held_out = int(self.validation_fraction * n_rows)
        if not self.early_stopping or n_held_out == 0:
            return torch.arange(n_rows, device=device), None
        drawn = torch.randperm(n_rows, generator=order).to(device)
        return drawn[n_held_out:].sort().values, drawn[:n_held_out].sort().values
