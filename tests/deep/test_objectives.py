"""Losses and label updates: worked numbers, literal loops, and what published code gets wrong."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gmpll.deep.objectives import (  # noqa: E402
    Activation,
    Leverage,
    Objective,
    Purification,
    WeightedCandidates,
    activation_values,
    candidate_loss,
    cross_entropy,
    posterior,
    uniform_weights,
)
from gmpll.deep.trainer import Trainer  # noqa: E402

Z = torch.tensor([[1.0, 0.0, -1.0, 0.5]], dtype=torch.float64)
S = torch.tensor([[True, True, False, True]])


def leverage_weights(logits, mask):
    return started(Leverage(), mask).posterior(logits, torch.arange(len(logits)))


def leveraged_loss(logits, mask, weights, leverage, kind="sigmoid"):
    objective = started(Leverage(leverage=leverage, kind=kind), mask)
    objective.weights = weights
    return objective.loss(logits, torch.arange(len(logits)))


def problem(seed=0, m=40, d=3, q=4, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(m, d, generator=generator, dtype=dtype)
    y = torch.randint(q, (m,), generator=generator)
    mask = torch.rand(m, q, generator=generator) < 0.3
    mask[torch.arange(m), y] = True
    return X, mask, y


def zero_linear(d, q):
    module = torch.nn.Linear(d, q, dtype=torch.float64)
    torch.nn.init.zeros_(module.weight)
    torch.nn.init.zeros_(module.bias)
    return module


def started(objective, mask):
    objective.start(mask, None, None)
    return objective


def close(a, b, atol=1e-6):
    np.testing.assert_allclose(a.detach().numpy(), b, rtol=0, atol=atol)


def test_worked_numbers_of_the_likelihood():
    z = Z.clone().requires_grad_()
    loss = candidate_loss(z, S)
    loss.backward()
    close(loss, 0.066298)
    close(z.grad[0], [-0.032490, -0.011952, 0.064148, -0.019706])
    close(posterior(Z, S)[0], [0.506480, 0.186324, 0.0, 0.307196])
    close(cross_entropy(Z, uniform_weights(S)), 1.246567)
    close(cross_entropy(Z, posterior(Z, S)), 1.086489)


def test_zero_logits_and_singletons():
    X, mask, y = problem()
    zeros = torch.zeros(mask.shape, dtype=torch.float64)
    expected = np.mean([math.log(4 / int(row.sum())) for row in mask])
    close(candidate_loss(zeros, mask), expected)
    close(cross_entropy(zeros, uniform_weights(mask)), math.log(4))
    alone = torch.nn.functional.one_hot(y, 4).bool()
    logits = X @ torch.randn(3, 4, dtype=torch.float64)
    usual = torch.nn.functional.cross_entropy(logits, y).numpy()
    close(candidate_loss(logits, alone), usual, 1e-12)
    rows = torch.arange(len(y))
    for objective in (WeightedCandidates(), WeightedCandidates(True), Activation(), Purification()):
        close(started(objective, alone).loss(logits, rows), usual, 1e-6)


@pytest.mark.parametrize("loss", [candidate_loss, lambda z, s: cross_entropy(z, posterior(z, s))])
def test_a_shift_changes_nothing_and_extreme_logits_stay_finite(loss):
    close(loss(Z + 7.0, S), loss(Z, S).numpy(), 1e-12)
    z = torch.tensor([[1e4, -1e4, 1e4], [-1e4, 1e4, -1e4]], dtype=torch.float32, requires_grad=True)
    mask = torch.tensor([[False, True, False], [True, False, True]])  # every candidate underflows
    value = loss(z, mask)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(z.grad).all()


def test_all_labels_as_candidates_say_nothing():
    every = torch.ones_like(S)
    close(candidate_loss(Z, every), 0.0, 1e-12)
    close(posterior(Z, every), torch.softmax(Z, dim=1), 1e-12)
    z = Z.clone().requires_grad_()
    cross_entropy(z, posterior(Z, every)).backward()
    close(z.grad, np.zeros((1, 4)), 1e-12)
    weights = leverage_weights(Z, every)
    alone = (weights * torch.sigmoid(-Z)).sum()  # there is no other side
    close(leveraged_loss(Z, every, weights, 1.0), alone.numpy(), 1e-12)


def literal_path(X, mask, n_steps, rate, method):
    """Full-batch gradient descent of a linear model, written with loops over rows and labels."""
    X, mask = X.numpy(), mask.numpy()
    (m, d), q = X.shape, mask.shape[1]
    A, b = np.zeros((d, q)), np.zeros(q)
    w = mask / mask.sum(axis=1, keepdims=True)

    def softmax(values):
        e = np.exp(values - values.max())
        return e / e.sum()

    def restricted(z, row):
        inside = np.where(mask[row], z, -np.inf)
        return softmax(inside)

    for _ in range(n_steps):
        logits = X @ A + b
        gradient = np.zeros((m, q))
        for i in range(m):
            target = restricted(logits[i], i) if method == "CC" else w[i]
            gradient[i] = (softmax(logits[i]) - target) / m
        A, b = A - rate * X.T @ gradient, b - rate * gradient.sum(axis=0)
        after = X @ A + b if method == "RC" else logits
        for i in range(m):
            w[i] = restricted(after[i], i)
    return np.vstack([A, b])


def descended(objective, X, mask, n_steps, rate):
    """The same by the package: plain gradient descent through the trainer's step."""
    module = zero_linear(X.shape[1], mask.shape[1])
    trainer = Trainer()
    started(objective, mask)
    if hasattr(objective, "weights"):
        objective.weights = objective.weights.double()
    optimizer = torch.optim.SGD(module.parameters(), rate)
    for _ in range(n_steps):
        trainer.step(module, objective, X, torch.arange(len(X)), optimizer)
    return torch.cat([module.weight.T, module.bias[None]]).detach().numpy()


@pytest.mark.parametrize(
    ("method", "objective"),
    [
        ("CC", Objective),
        ("RC", lambda: WeightedCandidates(second_pass=True)),
        ("PRODEN", WeightedCandidates),
    ],
)
def test_paths_are_those_of_literal_loops(method, objective):
    X, mask, _ = problem()
    ours = descended(objective(), X, mask, 30, 0.5)
    np.testing.assert_allclose(ours, literal_path(X, mask, 30, 0.5, method), atol=1e-9)


def test_full_batch_rc_is_cc_and_proden_lags():
    X, mask, _ = problem()
    cc = descended(Objective(), X, mask, 100, 0.3)
    rc = descended(WeightedCandidates(second_pass=True), X, mask, 100, 0.3)
    proden = descended(WeightedCandidates(), X, mask, 100, 0.3)
    np.testing.assert_allclose(rc, cc, atol=1e-12)
    assert 1e-6 < np.abs(proden - cc).max() < 0.1


def test_an_underflowed_candidate_comes_back():
    objective = started(WeightedCandidates(), S)
    rows = torch.tensor([0])
    objective.after_step(rows, torch.tensor([[500.0, -500.0, 0.0, 0.0]]), None)
    assert objective.weights[0, 1] == 0.0
    objective.after_step(rows, torch.tensor([[-500.0, 500.0, 0.0, 0.0]]), None)
    assert objective.weights[0, 1] == 1.0


def test_worked_numbers_of_lws():
    close(leverage_weights(Z, S)[0], [0.506480, 0.186324, 1.0, 0.307196])
    start = torch.full((1, 4), 0.25, dtype=torch.float64)
    for leverage, first, later in ((1.0, 0.353856, 0.614296), (2.0, 0.421091, 0.883237)):
        close(leveraged_loss(Z, S, start, leverage), first)
        close(leveraged_loss(Z, S, leverage_weights(Z, S), leverage), later)
    z = torch.tensor([[1.0, 0.0, -1.0, 0.5, -2.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False, True, False]])
    weights = leverage_weights(z, mask)
    close(weights[0], [0.506480, 0.186324, 0.731059, 0.307196, 0.268941])
    for leverage, expected in ((0.0, 0.345354), (1.0, 0.574025), (2.0, 0.802695)):
        close(leveraged_loss(z, mask, weights, leverage), expected)
    p = torch.softmax(z, dim=1)[0]
    log_loss = sum(
        w * (-math.log(pc) if inside else -2.0 * math.log(1 - pc))
        for w, pc, inside in zip(weights[0], p, mask[0], strict=True)
    )
    close(leveraged_loss(z, mask, weights, 2.0, "log"), log_loss)


def test_lws_moves_from_zero_and_keeps_the_weight_of_far_labels():
    z = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    objective = started(Leverage(), S)
    loss = objective.loss(z, torch.tensor([0]))
    loss.backward()
    close(loss, 0.5)
    close(z.grad[0], np.array([-0.25, -0.25, 0.25, -0.25]) / 4)
    far = torch.tensor([[40.0, -40.0, -42.0]], dtype=torch.float32)
    weights = leverage_weights(far, torch.tensor([[True, False, False]]))
    close(weights[:, 1:].sum(), 1.0)  # their share of the softmax is 1e-35


def test_worked_numbers_of_cavl():
    close(activation_values(Z)[0], [0.0, 0.0, -2.0, 0.25])
    cases = [
        (Z, S, 3),  # the largest logit is another
        (torch.tensor([[0.5, 1.2, 2.0]]), torch.tensor([[True, True, False]]), 0),  # not monotone
        (torch.tensor([[3.0, 2.0, -4.0]]), torch.tensor([[True, True, False]]), 0),
        (torch.tensor([[-1.0, -0.5, 2.0]]), torch.tensor([[True, True, False]]), 1),  # all below 0
    ]
    for logits, mask, label in cases:
        objective = started(Activation(), mask)
        objective.after_step(torch.tensor([0]), None, lambda logits=logits: logits)
        expected = torch.nn.functional.one_hot(torch.tensor([label]), logits.shape[1]).float()
        assert torch.equal(objective.weights, expected)


def test_cavl_shares_ties_smooths_and_waits():
    objective = started(Activation(label_smoothing=0.3, warmup=1), S)
    rows, zeros = torch.tensor([0]), torch.zeros(1, 4)
    objective.after_step(rows, None, lambda: Z)
    close(objective.weights, uniform_weights(S).numpy())
    objective.after_epoch(0, 10, None)
    objective.after_step(rows, None, lambda: zeros)
    close(objective.weights, uniform_weights(S).numpy())
    objective.after_step(rows, None, lambda: Z)
    close(objective.weights[0], [0.1, 0.1, 0.0, 0.8])


def test_pop_strikes_exactly_what_is_below_the_threshold():
    mask = torch.tensor([[True, True, True], [True, False, False], [True, True, False]])
    objective = started(Purification(theta=1e-3), mask)
    means = torch.tensor([[0.9, 0.9 * 9e-4, 0.1], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    objective.weights = means.clone()
    objective.strike(means)
    assert objective.mask.tolist() == [
        [True, False, True],
        [True, False, False],
        [True, True, False],
    ]
    close(objective.weights[0], [0.9, 0.0, 0.1])
    assert mask[0, 1]  # the caller's candidates stay
    assert objective.theta == 1e-3  # one of nine is many


def test_pop_does_not_compare_with_a_candidate_that_is_struck_already():
    objective = started(Purification(theta=0.5), torch.tensor([[False, True, True]]))
    objective.strike(torch.tensor([[0.9, 0.06, 0.04]]))
    assert objective.mask.tolist() == [[False, True, True]]


def test_pop_never_empties_a_row_and_theta_stops():
    _, mask, _ = problem(m=30)
    objective = Purification(
        theta=0.3, increment=0.5, max_theta=0.4, warmup=0, window=3, interval=2
    )
    started(objective, mask)
    rows = torch.arange(30)
    previous, thetas = mask.clone(), []
    generator = torch.Generator().manual_seed(1)
    for epoch in range(12):
        objective.after_step(rows, 3 * torch.randn(mask.shape, generator=generator), None)
        objective.after_epoch(epoch, 12, None)
        assert not (objective.mask & ~previous).any()
        assert objective.mask.any(dim=1).all()
        assert (objective.mask[mask.sum(dim=1) == 1] == mask[mask.sum(dim=1) == 1]).all()
        close(objective.weights.sum(dim=1), np.ones(30), 1e-5)
        assert (objective.weights[~objective.mask] == 0).all()
        previous = objective.mask.clone()
        thetas.append(objective.theta)
    assert (mask & ~previous).any()
    assert thetas == sorted(thetas)
    assert thetas[-1] == pytest.approx(0.45)  # the first value that is 0.4 or more


def test_pop_without_threshold_is_proden():
    X, mask, _ = problem()
    trained = []
    for objective in (
        Purification(theta=0.0, increment=0.0, warmup=2, interval=1),
        WeightedCandidates(),
    ):
        module = zero_linear(3, 4)
        Trainer(batch_size=16, max_iter=12, learning_rate=0.1).train(module, objective, X, mask)
        trained.append(module.weight.detach().numpy())
    np.testing.assert_array_equal(*trained)


@pytest.mark.parametrize(
    "objective",
    [
        Objective,
        WeightedCandidates,
        lambda: WeightedCandidates(second_pass=True),
        Activation,
        Purification,
    ],
)
def test_certain_rows_are_learned_as_by_cross_entropy(objective):
    X, _, y = problem()
    expected = zero_linear(3, 4)
    optimizer = torch.optim.Adam(expected.parameters(), 0.1)
    for _ in range(10):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(expected(X), y).backward()
        optimizer.step()
    module, mask = zero_linear(3, 4), torch.nn.functional.one_hot(y, 4).bool()
    Trainer(max_iter=10, learning_rate=0.1, weight_decay=0.0).train(module, objective(), X, mask)
    close(module.weight, expected.weight.detach().numpy(), 1e-5)


@pytest.mark.parametrize(
    "objective",
    [Objective, WeightedCandidates, Leverage, lambda: Leverage(leverage=2.0, kind="log")],
)
def test_gradients_agree_with_differences(objective):
    _, mask, _ = problem(m=5)
    made = started(objective(), mask)
    rows = torch.arange(5)
    if hasattr(made, "weights"):
        made.weights = torch.rand(mask.shape, dtype=torch.float64)
    z = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda logits: made.loss(logits, rows), z)


@pytest.mark.parametrize("objective", [Objective, WeightedCandidates, Leverage, Activation])
def test_labels_can_be_renamed(objective):
    _, mask, _ = problem(m=6)
    z, order = torch.randn(6, 4), torch.tensor([2, 0, 3, 1])
    rows = torch.arange(6)
    losses = []
    for logits, sets in ((z, mask), (z[:, order], mask[:, order])):
        made = started(objective(), sets)
        made.after_step(rows, logits, lambda logits=logits: logits)
        losses.append(float(made.loss(logits, rows)))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
