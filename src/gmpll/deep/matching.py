"""Matching inside training: graph matching on the embeddings of the network that is trained."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gmpll.deep.objectives import (
    Network,
    WeightedCandidates,
    cross_entropy,
    posterior,
    uniform_weights,
)
from gmpll.graph.local import LocalGraph
from gmpll.graph.views import CosineView
from gmpll.matching import LocalAffinity, match

#: Added to the matching probabilities: a candidate with a posterior must not be lost by them.
MIN_PROBABILITY = 1e-4
#: Part of the epochs, at least one of them, before the first matching.
WARMUP = 0.01


@dataclass(eq=False, kw_only=True)
class MatchingTargets(WeightedCandidates):
    """Targets that the neighbours in the network's own embedding agree on.

    Every ``interval`` epochs the training rows are matched to their candidates on the local graph
    of their embeddings, as by :class:`gmpll.GMPLL` with ``graph="local"``. The matching starts from
    a power of the network's posterior. The targets of a row are those of PRODEN, the posterior when
    the row was last seen, times a power of the matching probabilities. The power falls evenly to
    zero over the epochs: what neighbours say is the more useful the less the network has learnt,
    and at the end it knows it all. In the first hundredth of the epochs, one at least, all
    candidates count alike, so that no label gets ahead before rows have found their like.

    Parameters
    ----------
    interval : int, default=3
        Epochs between two matchings.
    n_neighbors : int, default=20
        Neighbours of a row in the graph.
    balance : float, default=0.5
        Exponent of the class-mass correction, as in :class:`gmpll.GMPLL`.
    exponent : float, default=0.25
        Power of the matching probabilities in the targets of the first epoch, and in the
        confidences.
    start_exponent : float, default=0.25
        Power of the posterior that the matching starts from; 0: from equal probabilities.
    max_iter : int, default=3
        Iterations of the matching.

    Attributes
    ----------
    matched : Tensor of shape (n_samples, n_labels)
        The matching probabilities, equal for all candidates before the first matching.
    left : float
        Share of the epochs that are still to come.

    Examples
    --------
    >>> import torch
    >>> from gmpll.deep import MatchingTargets, Trainer
    >>> X = torch.cat([torch.linspace(-3, -2, 30), torch.linspace(2, 3, 30)])[:, None]
    >>> mask = torch.ones(60, 2, dtype=torch.bool)
    >>> mask[:30:2, 1] = mask[30::2, 0] = False
    >>> module, targets = torch.nn.Linear(1, 2), MatchingTargets()
    >>> history = Trainer(learning_rate=0.01, max_iter=20).train(module, targets, X, mask)
    >>> targets.matched[[0, 1, 30, 31]].argmax(dim=1)
    tensor([0, 0, 1, 1])
    """

    interval: int = 3
    n_neighbors: int = 20
    balance: float = 0.5
    exponent: float = 0.25
    start_exponent: float = 0.25
    max_iter: int = 3

    def next_rows(self, mask: Tensor, logits: Tensor | None) -> None:
        """Begin without a matching; rows of a stream have no graph, and need no warm-up."""
        self.matched = uniform_weights(mask)
        self.all_alike, self.left = logits is None, 1.0
        super().next_rows(mask, logits)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Cross-entropy against the targets."""
        if self.all_alike:
            return cross_entropy(logits, uniform_weights(self.mask[rows]))
        exponent = self.left * self.exponent
        return cross_entropy(logits, self.with_matching(self.weights[rows].log(), rows, exponent))

    def with_matching(self, logits: Tensor, rows: Tensor, exponent: float) -> Tensor:
        """Return the posterior of logits times a power of the matching probabilities."""
        matched = self.matched[rows] + MIN_PROBABILITY
        return posterior(logits + exponent * matched.log(), self.mask[rows])

    def after_epoch(self, epoch: int, n_epochs: int, network: Network) -> None:
        """Match the rows anew."""
        super().after_epoch(epoch, n_epochs, network)
        self.left = 1.0 - self.epoch / n_epochs
        since_first = self.epoch - max(1, math.ceil(WARMUP * n_epochs))
        if since_first >= 0 and since_first % self.interval == 0:
            self.all_alike = False
            self.rematch(*network())

    @torch.no_grad()
    def rematch(self, logits: Tensor, embeddings: Tensor) -> None:
        """Match the rows on the graph of their embeddings."""
        if len(embeddings) <= 2:  # nobody to ask
            return
        rows = CosineView(embeddings.float()).rows
        graph = LocalGraph(rows, min(self.n_neighbors, len(rows) - 1))
        matching = match(
            LocalAffinity(graph.weights, self.mask),
            self.mask,
            balance=self.balance,
            max_iter=self.max_iter,
            start=posterior(self.start_exponent * logits.float(), self.mask),
        )
        self.matched = matching.probabilities.to(self.matched.dtype)

    def confidences(self, logits: Tensor, embeddings: Tensor) -> Tensor:
        """Return the posterior of the final model times the matching of its embeddings."""
        self.rematch(logits, embeddings)
        every = torch.arange(len(logits), device=logits.device)
        return self.with_matching(logits, every, self.exponent)
