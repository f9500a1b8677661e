"""PiCO: contrastive learning and prototypes decide between candidates."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from gmpll.deep.models import with_embedding
from gmpll.deep.objectives import Network, WeightedCandidates, cross_entropy
from gmpll.deep.views import noisy_rows, strong_images, weak_images

View = Callable[[Tensor], Tensor]


def contrast_loss(
    queries: Tensor, others: Tensor, labels: Tensor, other_labels: Tensor, temperature: float
) -> Tensor:
    """Return the contrastive loss in which rows with the same pseudo-label belong together."""
    # The own key of a query is among the others: it always has somebody to agree with.
    everybody = torch.cat([queries, others])
    scores = queries @ everybody.T / temperature
    itself = torch.zeros_like(scores, dtype=torch.bool)
    itself.fill_diagonal_(True)
    scores = scores - torch.logsumexp(scores.masked_fill(itself, -torch.inf), dim=1, keepdim=True)
    same = (labels[:, None] == torch.cat([labels, other_labels])[None, :]) & ~itself
    return -((scores * same).sum(dim=1) / same.sum(dim=1)).mean()


def plain_contrast_loss(queries: Tensor, keys: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """Return the contrastive loss in which a query belongs to its own key alone."""
    own = (queries * keys).sum(dim=1, keepdim=True)
    scores = torch.cat([own, queries @ queue.T], dim=1) / temperature
    return (torch.logsumexp(scores, dim=1) - scores[:, 0]).mean()


def moved_prototypes(
    prototypes: Tensor, embeddings: Tensor, labels: Tensor, momentum: float
) -> Tensor:
    """Return unit prototypes after each row in turn has moved the one of its label."""
    members = functional.one_hot(labels, len(prototypes)).to(prototypes.dtype)
    sizes = members.sum(dim=0)
    later = sizes - members.cumsum(dim=0)
    shares = (1.0 - momentum) * members * momentum**later
    moved = momentum ** sizes[:, None] * prototypes + shares.T @ embeddings.to(prototypes.dtype)
    return functional.normalize(moved, dim=1)


@dataclass(eq=False, kw_only=True)
class PrototypeContrast(WeightedCandidates):
    """PiCO: targets drift to the candidate of the nearest prototype, see :class:`gmpll.deep.PiCO`.

    The seed breaks ties between labels.
    """

    embedding: int = 128
    queue: int = 8192
    key_momentum: float = 0.999
    prototype_momentum: float = 0.99
    confidence_momentum: tuple[float, float] = (0.95, 0.8)
    temperature: float = 0.07
    contrast_weight: float = 0.5
    warmup: int = 1
    weak: View | None = None
    strong: View | None = None
    seed: int = 0

    def start(self, mask: Tensor, module: nn.Module, inputs: Tensor) -> None:
        """Build the projection head, the key network, and an empty queue."""
        super().start(mask, module, inputs)
        self.phi, self.n_pushed = self.confidence_momentum[0], 0
        with torch.no_grad():
            width = with_embedding(module, inputs)[1].shape[1]
        device, n_labels = mask.device, mask.shape[1]
        hidden = nn.Linear(width, width)
        self.head = nn.Sequential(hidden, nn.ReLU(), nn.Linear(width, self.embedding)).to(device)
        self.keys = copy.deepcopy(nn.ModuleList([module, self.head])).requires_grad_(False)
        n_keys = min(self.queue, len(mask))  # a longer queue has rows twice
        self.prototypes = torch.zeros(n_labels, self.embedding, device=device)
        self.ring = torch.zeros(n_keys, self.embedding, device=device)
        self.ring_labels = torch.zeros(n_keys, dtype=torch.long, device=device)
        self.order = torch.randperm(n_labels, generator=torch.Generator().manual_seed(self.seed))
        self.order = self.order.to(device)

    def parameters(self) -> Iterable[nn.Parameter]:
        """Return those of the projection head."""
        return self.head.parameters()

    def forward(self, module: nn.Module, inputs: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the classification loss plus the contrastive one, and the logits."""
        weak, strong = self._views(inputs)
        logits, embeddings = with_embedding(module, inputs if weak is None else weak(inputs))
        queries = functional.normalize(self.head(embeddings), dim=1)
        with torch.no_grad():
            self._follow_queries(module)
            key_module, key_head = self.keys.train()
            _, key_embeddings = with_embedding(key_module, strong(inputs))
            keys = functional.normalize(key_head(key_embeddings), dim=1)
            labels = self.best(logits.detach(), self.mask[rows])
            self._follow_prototypes(queries.detach(), labels, rows)
        loss = cross_entropy(logits, self.weights[rows])
        loss = loss + self.contrast_weight * self._contrast(queries, keys, labels)
        self._fresh_keys = keys, labels
        return loss, logits

    def _follow_queries(self, module: nn.Module) -> None:
        """Move the parameters of the key network; its other state comes from its own passes."""
        followed = [*module.parameters(), *self.head.parameters()]
        for key, query in zip(self.keys.parameters(), followed, strict=True):
            key.lerp_(query, 1.0 - self.key_momentum)

    def _views(self, inputs: Tensor) -> tuple[View | None, View]:
        is_image = inputs.ndim == 4
        weak = self.weak or (weak_images if is_image else None)
        return weak, self.strong or (strong_images if is_image else noisy_rows)

    def best(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Return the best label of a mask; ties are broken by an order drawn in the beginning."""
        inside = scores.masked_fill(~mask, -torch.inf)
        return self.order[inside[:, self.order].argmax(dim=1)]

    def _follow_prototypes(self, queries: Tensor, labels: Tensor, rows: Tensor) -> None:
        """Move the targets by the prototypes as they are, and then the prototypes."""
        if self.epoch >= self.warmup:
            known = self.mask[rows] & self.prototypes.any(dim=1)
            nearest = self.best(queries @ self.prototypes.T, known)
            chosen = functional.one_hot(nearest, len(self.prototypes)).to(self.weights.dtype)
            # Where no candidate has a prototype yet, the targets stay.
            weights = self.weights[rows]
            moved = self.phi * weights + (1.0 - self.phi) * chosen
            self.weights[rows] = torch.where(known.any(dim=1, keepdim=True), moved, weights)
        self.prototypes = moved_prototypes(
            self.prototypes, queries, labels, self.prototype_momentum
        )

    def _contrast(self, queries: Tensor, keys: Tensor, labels: Tensor) -> Tensor:
        queue, queue_labels = self.ring[: self.n_pushed], self.ring_labels[: self.n_pushed]
        if self.epoch < self.warmup:
            return plain_contrast_loss(queries, keys, queue, self.temperature)
        others, other_labels = torch.cat([keys, queue]), torch.cat([labels, queue_labels])
        return contrast_loss(queries, others, labels, other_labels, self.temperature)

    def after_step(self, rows: Tensor, before: Tensor, fresh: Callable[[], Tensor]) -> None:
        """Push the keys of the batch into the queue, a ring."""
        size = len(self.ring)
        keys, labels = (values[-size:] for values in self._fresh_keys)
        places = (self.n_pushed + torch.arange(len(keys), device=keys.device)) % size
        self.ring[places], self.ring_labels[places] = keys, labels
        self.n_pushed += len(keys)

    def next_rows(self, mask: Tensor, logits: Tensor | None) -> None:
        """Begin with equal targets, or with the posterior of the model as it is."""
        super().next_rows(mask, None)
        if logits is not None:
            self.weights = self.posterior(logits, torch.arange(len(mask), device=mask.device))

    def after_epoch(self, epoch: int, n_epochs: int, network: Network) -> None:
        """Let the targets move faster."""
        super().after_epoch(epoch, n_epochs, network)
        first, last = self.confidence_momentum
        self.phi = first + epoch / n_epochs * (last - first)
