"""Matching inside training."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gmpll import GMPLL  # noqa: E402
from gmpll.deep import DeepGMPLL, MatchingTargets, Trainer  # noqa: E402
from gmpll.deep.objectives import (  # noqa: E402
    WeightedCandidates,
    cross_entropy,
    posterior,
    uniform_weights,
)
from gmpll.graph.local import LocalGraph  # noqa: E402
from gmpll.graph.views import CosineView  # noqa: E402
from problems import random_problem  # noqa: E402


def targets_of(mask, **settings):
    objective = MatchingTargets(**settings)
    objective.start(torch.tensor(mask), None, None)
    return objective


def after_warmup(mask, **settings):
    objective = targets_of(mask, **settings)
    objective.all_alike = False
    return objective


def test_the_matching_is_that_of_the_library_on_the_embeddings():
    X, mask, _ = random_problem(0, m=60)
    objective = targets_of(mask, n_neighbors=10, balance=0.5, max_iter=3, start_exponent=0.0)
    objective.rematch(torch.randn(mask.shape), torch.tensor(X))
    reference = GMPLL("local", n_graph_neighbors=10, balance=0.5, max_iter=3).fit(X, mask)
    np.testing.assert_allclose(objective.matched, reference.label_confidences_, atol=1e-4)


def test_targets_are_the_last_posterior_times_a_power_of_the_matching():
    _, mask, _ = random_problem(0, m=6)
    objective, rows = after_warmup(mask, exponent=0.5), torch.arange(6)
    objective.matched = torch.where(objective.mask, torch.rand(mask.shape), 0.0)
    objective.left = 0.6
    last, logits = torch.randn(mask.shape), torch.randn(mask.shape, requires_grad=True)
    objective.after_step(rows, last, None)
    objective.loss(logits, rows).backward()
    targets = torch.softmax(logits, dim=1).detach() - 6 * logits.grad  # they are held fixed
    for row in range(6):
        raw = {
            label: np.exp(last[row, label].item())
            * (float(objective.matched[row, label]) + 1e-4) ** (0.6 * 0.5)
            for label in np.flatnonzero(mask[row])
        }
        for label in range(mask.shape[1]):
            expected = raw.get(label, 0.0) / sum(raw.values())
            assert float(targets[row, label]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("n_epochs", "matched_after"), [(150, [2, 5, 8]), (250, [3, 6]), (15, [1, 4, 7])]
)
def test_all_candidates_count_alike_until_the_first_matching(n_epochs, matched_after):
    X, mask, _ = random_problem(0, m=30)
    objective = targets_of(mask, interval=3)
    logits, rows = torch.randn(mask.shape), torch.arange(30)
    asked = []

    def network():
        asked.append(epoch + 1)
        return logits, torch.tensor(X)

    alike = float(cross_entropy(logits, uniform_weights(objective.mask)))
    for epoch in range(8):
        loss = float(objective.loss(logits, rows))
        assert (loss == alike) == (epoch < matched_after[0])
        objective.after_step(rows, logits, None)
        objective.after_epoch(epoch, n_epochs, network)
    assert asked == matched_after


def test_the_power_of_the_matching_falls_evenly_to_zero():
    objective = targets_of(random_problem(0, m=6)[1])
    left = []
    for epoch in range(4):
        objective.after_epoch(epoch, 4, lambda: (torch.zeros(2, 3), torch.zeros(2, 1)))
        left.append(objective.left)
    assert left == [0.75, 0.5, 0.25, 0.0]


def test_exponent_zero_is_proden_after_the_warm_up():
    _, mask, _ = random_problem(0, m=6)
    objective, proden = after_warmup(mask, exponent=0.0), WeightedCandidates()
    proden.start(torch.tensor(mask), None, None)
    rows = torch.arange(6)
    for logits in torch.randn(3, *mask.shape):
        expected = proden.loss(logits, rows)
        assert float(objective.loss(logits, rows)) == pytest.approx(float(expected), rel=1e-5)
        objective.after_step(rows, logits, None)
        proden.after_step(rows, logits, None)


def test_a_candidate_that_underflows_does_no_harm():
    objective, rows = after_warmup(np.array([[True, True, False]]), exponent=50.0), torch.arange(1)
    objective.after_step(rows, torch.tensor([[500.0, -500.0, 0.0]]), None)
    objective.matched = torch.tensor([[0.0, 1.0, 0.0]])
    logits = torch.zeros(1, 3, requires_grad=True)
    objective.loss(logits, rows).backward()
    np.testing.assert_allclose(logits.grad, [[1 / 3 - 1, 1 / 3, 1 / 3]], rtol=1e-5)


def test_the_matching_starts_from_a_power_of_the_posterior():
    X, mask, _ = random_problem(0, m=30)
    logits = torch.randn(mask.shape)
    objective = targets_of(mask, max_iter=1, n_neighbors=5, balance=0.0, start_exponent=0.5)
    objective.rematch(logits, torch.tensor(X))
    start = posterior(logits / 2, torch.tensor(mask)).numpy()
    weights = LocalGraph(CosineView(X).rows, 5).weights.toarray()
    expected = np.zeros(mask.shape)
    for row in range(30):
        for label in np.flatnonzero(mask[row]):
            support = sum(weights[row, other] * start[other, label] for other in range(30))
            expected[row, label] = start[row, label] * support
    expected /= expected.sum(axis=1, keepdims=True)
    supported = ~np.isnan(expected).any(axis=1)
    assert supported.sum() > 20
    np.testing.assert_allclose(objective.matched[supported], expected[supported], atol=1e-4)


def test_neighbours_overrule_what_a_network_would_memorise():
    """Two clusters; a label that sits in half of the sets of both is wrong everywhere."""
    rng = np.random.RandomState(0)
    truth = np.repeat([0, 1], 60)
    X = np.array([[-2.0, 0.0], [2.0, 0.0]])[truth] + 0.5 * rng.randn(120, 2)
    mask = np.eye(3, dtype=bool)[truth]
    mask[:, 2] = rng.rand(120) < 0.6
    model = DeepGMPLL("mlp", max_iter=20, random_state=0, device="cpu").fit(X, mask)
    assert (model.labels_ == truth).all()


def test_few_rows_and_any_module():
    X, mask = torch.randn(2, 1, 4, 4), torch.ones(2, 3, dtype=torch.bool)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 4), torch.nn.Flatten())  # no linear layer
    objective = MatchingTargets(interval=1)
    Trainer(max_iter=2).train(module, objective, X, mask)
    assert torch.isfinite(objective.confidences(*Trainer().evaluate(module, X))).all()
