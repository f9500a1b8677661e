"""The losses of the softmax family, each with what it remembers of the rows.

Logarithms of probabilities come from ``log_softmax`` and ``logsumexp``, never from the logarithm of
a softmax: probabilities underflow in single precision, and 0 times minus infinity ruins a model.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

#: Returns the logits and embeddings of all training rows.
Network = Callable[[], tuple[Tensor, Tensor]]

#: POP raises its threshold when fewer than this share of all entries was struck.
FEW_STRUCK = 1e-4
#: Largest probability of a label that is no candidate, in the logarithmic loss of LWS.
NEARLY_ONE = 1.0 - 1e-6


def posterior(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax over the candidates alone: zero outside, rows sum to one."""
    return torch.softmax(logits.masked_fill(~mask, -torch.inf), dim=1)


def uniform_weights(mask: Tensor) -> Tensor:
    """Return equal weights of the candidates of every row."""
    return mask / mask.sum(dim=1, keepdim=True)


def candidate_loss(logits: Tensor, mask: Tensor) -> Tensor:
    """Return minus the mean logarithm of the probability of the candidate set."""
    inside = torch.logsumexp(logits.masked_fill(~mask, -torch.inf), dim=1)
    return (torch.logsumexp(logits, dim=1) - inside).mean()


def cross_entropy(logits: Tensor, weights: Tensor) -> Tensor:
    """Return the mean cross-entropy against weights of the labels."""
    return -(weights * torch.log_softmax(logits, dim=1)).sum(dim=1).mean()


def activation_values(logits: Tensor) -> Tensor:
    """Return the class activation values of CAVL, |1 - z| z."""
    return (1.0 - logits).abs() * logits


class Objective:
    """What a method adds to the trainer: a loss, and what it remembers of the rows.

    A subclass writes ``loss``; everything else may stay as it is, which is CC: nothing is
    remembered. Rows are given by their numbers among the training rows.

    Attributes
    ----------
    mask : Tensor of shape (n_samples, n_labels), bool
        Candidates; a method may strike some of them.
    epoch : int
        Number of epochs that have ended.
    seed : int
        Of what the method draws itself.

    Examples
    --------
    >>> import torch
    >>> from gmpll.deep import Objective, PartialLabelNetwork
    >>> class LargestCandidate(Objective):
    ...     def loss(self, logits, rows):
    ...         best = logits.masked_fill(~self.mask[rows], -torch.inf).argmax(dim=1)
    ...         return torch.nn.functional.cross_entropy(logits, best)
    >>> X, y = [[0.0], [0.1], [5.0], [5.1]], [{"a"}, {"a", "b"}, {"b"}, {"a", "b"}]
    >>> model = PartialLabelNetwork("linear", objective=LargestCandidate, random_state=0)
    >>> model.fit(X, y).predict([[0.2], [4.9]])
    array(['a', 'b'], dtype='<U1')
    """

    mask: Tensor
    epoch: int = 0
    seed: int = 0

    def start(self, mask: Tensor, module: nn.Module, inputs: Tensor) -> None:
        """Begin with these rows; ``inputs`` are a few of them, to see what the module returns."""
        self.next_rows(mask, None)

    def next_rows(self, mask: Tensor, logits: Tensor | None) -> None:
        """Take these rows for the training rows; what is known of them is their logits, if any.

        Rows of a stream come once: their labels are judged by the model as it is.
        """
        self.mask = mask
        if logits is not None:
            known: Tensor = logits
            self.after_step(torch.arange(len(mask), device=mask.device), known, lambda: known)

    def parameters(self) -> Iterable[nn.Parameter]:
        """Return parameters of the method that are trained beside the module's."""
        return ()

    def forward(self, module: nn.Module, inputs: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss of a batch and its logits."""
        logits = module(inputs)
        return self.loss(logits, rows), logits

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch, which is differentiated."""
        return candidate_loss(logits, self.mask[rows])

    def after_step(self, rows: Tensor, before: Tensor, fresh: Callable[[], Tensor]) -> None:
        """Update the rows: by the logits before the step, or by a second pass after it."""

    def after_epoch(self, epoch: int, n_epochs: int, network: Network) -> None:
        """Update all rows; ``network()`` returns the logits and embeddings of all of them."""
        self.epoch = epoch + 1

    def confidences(self, logits: Tensor, embeddings: Tensor) -> Tensor:
        """Return the confidences of the training rows by the final model."""
        return posterior(logits, self.mask)


@dataclass(eq=False)
class WeightedCandidates(Objective):
    """PRODEN and RC: cross-entropy against weights, which follow the model's posterior.

    They come from the logits before a step (PRODEN), or from a second pass after it (RC).
    """

    second_pass: bool = False

    def next_rows(self, mask: Tensor, logits: Tensor | None) -> None:
        """Begin with the first weights, or with the posterior of the model as it is."""
        self.weights = self.first_weights(mask)
        super().next_rows(mask, logits)

    def first_weights(self, mask: Tensor) -> Tensor:
        """Return the weights before anything is known of the rows."""
        return uniform_weights(mask)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Cross-entropy against the weights."""
        return cross_entropy(logits, self.weights[rows])

    def after_step(self, rows: Tensor, before: Tensor, fresh: Callable[[], Tensor]) -> None:
        """Let the weights be the posterior within the candidates."""
        self.weights[rows] = self.posterior(fresh() if self.second_pass else before, rows)

    def posterior(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the weights that logits of these rows speak for."""
        return posterior(logits.to(self.weights.dtype), self.mask[rows])


@dataclass(eq=False, kw_only=True)
class Activation(WeightedCandidates):
    """CAVL: from the second visit on a row has one label, see :class:`gmpll.deep.CAVL`."""

    second_pass: bool = True
    label_smoothing: float = 0.0
    warmup: int = 0

    def after_step(self, rows: Tensor, before: Tensor, fresh: Callable[[], Tensor]) -> None:
        """Choose the labels of the batch."""
        if self.epoch >= self.warmup:
            super().after_step(rows, before, fresh)

    def posterior(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return all weight on the best candidate; tied ones share it."""
        mask = self.mask[rows]
        values = activation_values(logits).masked_fill(~mask, -torch.inf)
        best = values == values.max(dim=1, keepdim=True).values
        chosen = torch.lerp(uniform_weights(best), uniform_weights(mask), self.label_smoothing)
        return chosen.to(self.weights.dtype)


@dataclass(eq=False, kw_only=True)
class Leverage(WeightedCandidates):
    """LWS: weighted losses of candidates and of all others, see :class:`gmpll.deep.LWS`."""

    second_pass: bool = True
    leverage: float = 1.0
    kind: str = "sigmoid"

    def first_weights(self, mask: Tensor) -> Tensor:
        """Return 1/q for each of q labels."""
        return torch.full_like(mask, 1.0 / mask.shape[1], dtype=torch.float32)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the leveraged weighted loss."""
        if self.kind == "sigmoid":
            inside, outside = torch.sigmoid(-logits), torch.sigmoid(logits)
        else:
            inside = -torch.log_softmax(logits, dim=1)
            outside = -torch.log1p(-torch.softmax(logits, dim=1).clamp(max=NEARLY_ONE))
        losses = torch.where(self.mask[rows], inside, self.leverage * outside)
        return (self.weights[rows] * losses).sum(dim=1).mean()

    def posterior(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the softmax over the candidates and, apart, over the other labels."""
        mask = self.mask[rows]
        # No other label at all: a softmax over nothing is NaN, the weight is 0.
        return posterior(logits, mask) + torch.nan_to_num(posterior(logits, ~mask))


@dataclass(eq=False, kw_only=True)
class Purification(WeightedCandidates):
    """POP: PRODEN whose candidates are struck out for good, see :class:`gmpll.deep.POP`."""

    theta: float = 1e-3
    increment: float = 1e-3
    max_theta: float = 0.4
    warmup: int = 20
    window: int = 5
    interval: int = 5

    def start(self, mask: Tensor, module: nn.Module, inputs: Tensor) -> None:
        """Begin with all candidates."""
        self._recent: deque[Tensor] = deque(maxlen=self.window)
        super().start(mask.clone(), module, inputs)

    def after_epoch(self, epoch: int, n_epochs: int, network: Network) -> None:
        """Strike what the model has given up."""
        super().after_epoch(epoch, n_epochs, network)
        self._recent.append(self.weights.clone())
        if epoch >= self.warmup and epoch % self.interval == 0:
            self.strike(torch.stack(tuple(self._recent)).mean(dim=0))

    def strike(self, means: Tensor) -> None:
        """Strike candidates by their mean weights; a row keeps its best one."""
        # Intersected first: the largest of the means may belong to a label that is struck already.
        means = torch.where(self.mask, means, 0.0)
        kept = self.mask & (means >= self.theta * means.max(dim=1, keepdim=True).values)
        struck = self.mask & ~kept
        self.mask &= kept
        # Rows without a strike keep their weights, so that theta = 0 is PRODEN.
        means = torch.where(self.mask, means, 0.0)
        means = means / means.sum(dim=1, keepdim=True)
        self.weights = torch.where(struck.any(dim=1, keepdim=True), means, self.weights)
        if self.theta < self.max_theta and int(struck.sum()) < FEW_STRUCK * struck.numel():
            self.theta *= 1.0 + self.increment
