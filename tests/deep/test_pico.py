"""PiCO: the contrastive losses, prototypes, the queue and the targets."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gmpll.deep import Trainer  # noqa: E402
from gmpll.deep.pico import (  # noqa: E402
    PrototypeContrast,
    contrast_loss,
    moved_prototypes,
    plain_contrast_loss,
)
from gmpll.deep.views import noisy_rows, strong_images, weak_images  # noqa: E402

QUERIES = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
KEYS = torch.tensor([[0.6, 0.8], [0.0, 1.0]])
QUEUE = torch.tensor([[-1.0, 0.0], [0.8, 0.6]])


def test_worked_numbers_of_the_contrast():
    labels, queue_labels = torch.tensor([0, 1]), torch.tensor([0, 1])
    others, other_labels = torch.cat([KEYS, QUEUE]), torch.cat([labels, queue_labels])
    assert float(contrast_loss(QUERIES, others, labels, other_labels, 0.5)) == pytest.approx(
        2.007024, abs=1e-5
    )
    assert float(plain_contrast_loss(QUERIES, KEYS, QUEUE, 0.5)) == pytest.approx(
        0.694807, abs=1e-5
    )


def test_the_contrast_is_a_double_loop():
    rng = np.random.RandomState(0)
    queries, others = rng.randn(5, 3), rng.randn(9, 3)
    labels, other_labels = rng.randint(3, size=5), rng.randint(3, size=9)
    other_labels[:5] = labels  # the own keys
    total = 0.0
    for i in range(5):
        pairs = [(queries[j], labels[j]) for j in range(5) if j != i]
        pairs += list(zip(others, other_labels, strict=True))
        scores = [queries[i] @ row / 0.07 for row, _ in pairs]
        log_sum = max(scores) + np.log(sum(np.exp(s - max(scores)) for s in scores))
        agreeing = [s - log_sum for s, (_, y) in zip(scores, pairs, strict=True) if y == labels[i]]
        total -= np.mean(agreeing) / 5
    tensors = [torch.tensor(values) for values in (queries, others, labels, other_labels)]
    assert float(contrast_loss(*tensors, 0.07)) == pytest.approx(total)


def test_prototypes_move_as_row_by_row():
    rng = np.random.RandomState(1)
    start = rng.randn(4, 3)
    rows, labels = rng.randn(12, 3), rng.randint(3, size=12)  # the last label has no row
    expected = start.copy()
    for row, label in zip(rows, labels, strict=True):
        expected[label] = 0.99 * expected[label] + 0.01 * row
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    moved = moved_prototypes(torch.tensor(start), torch.tensor(rows), torch.tensor(labels), 0.99)
    np.testing.assert_allclose(moved.numpy(), expected, atol=1e-12)
    first = moved_prototypes(torch.zeros(2, 2), QUERIES[:1], torch.tensor([1]), 0.99)
    np.testing.assert_allclose(first.numpy(), [[0.0, 0.0], [1.0, 0.0]], atol=1e-6)


def made(mask, width=2, **settings):
    objective = PrototypeContrast(embedding=2, **settings)
    objective.start(mask, torch.nn.Linear(width, mask.shape[1]), torch.zeros(2, width))
    return objective


def test_targets_drift_to_the_nearest_known_prototype():
    mask = torch.tensor([[True, True, False], [True, False, True]])
    objective = made(mask, warmup=0)
    objective.prototypes = torch.tensor([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    # Label 1 has no prototype: its score of 0 must not beat the negative one of label 0.
    queries = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    objective._follow_prototypes(queries, torch.tensor([0, 2]), torch.arange(2))
    np.testing.assert_allclose(objective.weights, [[0.525, 0.475, 0.0], [0.475, 0.0, 0.525]])
    assert not objective.prototypes.requires_grad


def test_targets_stay_where_no_candidate_has_a_prototype():
    objective = made(torch.tensor([[True, True, False]] * 2), warmup=0)
    objective._follow_prototypes(QUERIES, torch.tensor([0, 1]), torch.arange(2))
    np.testing.assert_allclose(objective.weights, [[0.5, 0.5, 0.0]] * 2)


def test_the_queue_is_a_ring_of_at_most_as_many_keys_as_rows():
    objective = made(torch.ones(5, 2, dtype=torch.bool), queue=8192)
    assert len(objective.ring) == 5
    for first in (0, 3, 6):  # three at a time: does not divide
        keys = torch.arange(first, first + 3.0)[:, None].repeat(1, 2)
        objective._fresh_keys = keys, torch.arange(first, first + 3)
        objective.after_step(None, None, None)
    assert objective.ring_labels.tolist() == [5, 6, 7, 8, 4]
    assert objective.ring[:, 0].tolist() == [5.0, 6.0, 7.0, 8.0, 4.0]


def test_targets_move_faster_with_the_epochs():
    objective = made(torch.ones(2, 2, dtype=torch.bool))
    expected = {1: 0.95, 400: 0.875188, 799: 0.800375}
    phis = {}
    for epoch in range(800):
        phis[epoch] = objective.phi
        objective.after_epoch(epoch, 800, None)
    for epoch, phi in expected.items():
        assert phis[epoch] == pytest.approx(phi, abs=1e-6)


def test_training_keeps_targets_in_the_sets_and_keys_behind():
    torch.manual_seed(0)
    X = torch.randn(50, 2)
    mask = torch.rand(50, 3) < 0.4
    mask[torch.arange(50), torch.arange(50) % 3] = True
    module = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    before = module[0].weight.detach().clone()
    objective = PrototypeContrast(embedding=4, queue=20)
    Trainer(max_iter=4, batch_size=16, learning_rate=0.01).train(module, objective, X, mask)
    assert (objective.weights[~mask] == 0).all()
    np.testing.assert_allclose(objective.weights.sum(dim=1), np.ones(50), atol=1e-5)
    after, keys = module[0].weight.detach(), objective.keys[0][0].weight
    assert 0 < (keys - before).abs().max() < 0.2 * (after - before).abs().max()
    lengths = objective.ring[: min(objective.n_pushed, 20)].norm(dim=1)
    np.testing.assert_allclose(lengths, np.ones(20), atol=1e-5)


@pytest.mark.parametrize("view", [weak_images, strong_images, noisy_rows])
def test_views_keep_the_shape_and_differ(view):
    images = torch.rand(4, 3, 12, 10) if view is not noisy_rows else torch.rand(4, 7)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first, second = view(images), view(images)
    assert first.shape == images.shape
    assert torch.isfinite(first).all()
    assert not torch.equal(first, second)
