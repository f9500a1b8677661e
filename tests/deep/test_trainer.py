"""The training loop: batches, schedules, early stopping, seeds."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gmpll.deep import Objective, Trainer  # noqa: E402
from gmpll.deep.models import build_module, with_embedding  # noqa: E402
from gmpll.deep.objectives import candidate_loss  # noqa: E402
from gmpll.deep.trainer import SCHEDULES  # noqa: E402


def problem(m=50):
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(m, 3, generator=generator)
    mask = torch.rand(m, 3, generator=generator) < 0.4
    mask[torch.arange(m), X.argmax(dim=1)] = True
    return X, mask


def test_every_row_is_met_once_an_epoch_and_no_batch_has_one_row():
    class Counting(Objective):
        def loss(self, logits, rows):
            met.extend(rows.tolist())
            sizes.append(len(rows))
            return super().loss(logits, rows)

    X, mask = problem(33)
    met, sizes = [], []
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3))
    Trainer(batch_size=16, max_iter=2).train(module, Counting(), X, mask)
    assert sizes == [16, 17] * 2
    assert sorted(met) == sorted([*range(33)] * 2)
    assert met[:33] != met[33:]
    assert not module.training


def test_a_step_of_adam_by_hand():
    X, mask = problem()
    module, expected = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    expected.load_state_dict(module.state_dict())
    Trainer(max_iter=3, learning_rate=0.1, weight_decay=0.01).train(module, Objective(), X, mask)
    optimizer = torch.optim.Adam(expected.parameters(), 0.1, weight_decay=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        candidate_loss(expected(X), mask).backward()
        optimizer.step()
    np.testing.assert_allclose(
        module.weight.detach(), expected.weight.detach(), rtol=1e-3, atol=1e-5
    )


def test_schedules():
    assert SCHEDULES["constant"](7, 10) == 1.0
    assert SCHEDULES["cosine"](5, 10) == pytest.approx(0.5)
    assert SCHEDULES["exponential"](50, 250) == 0.5
    cycle = [SCHEDULES["onecycle"](epoch, 100) for epoch in range(101)]
    assert max(cycle) == cycle[30] == 1.0
    assert cycle[100] == pytest.approx(0.0, abs=1e-12)


def test_early_stopping_keeps_the_best_epoch_by_held_out_candidates():
    X, mask = problem(40)
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 200), torch.nn.ReLU(), torch.nn.Linear(200, 3))
    trainer = Trainer(
        early_stopping=True, validation_fraction=0.5, n_iter_no_change=3, max_iter=500,
        learning_rate=0.03,
    )  # fmt: skip
    history = trainer.train(module, Objective(), X, mask)
    curve = history.validation_curve
    assert len(curve) == history.best_iter + 3 < 500
    assert curve[history.best_iter - 1] == min(curve)
    held_out = np.setdiff1d(np.arange(40), history.rows)
    assert len(held_out) == 20
    logits, _ = trainer.evaluate(module, X[held_out])
    assert float(candidate_loss(logits, mask[held_out])) == pytest.approx(min(curve), rel=1e-5)


def test_seeds_decide_and_the_users_own_random_numbers_stay():
    X, mask = problem()
    trained = []
    for seed in (0, 0, 1):
        module = build_module("linear", 3, 3)
        torch.manual_seed(5)
        before = torch.random.get_rng_state()
        Trainer(batch_size=8, max_iter=3, seed=seed).train(module, Objective(), X, mask)
        assert torch.equal(before, torch.random.get_rng_state())
        trained.append(module.weight.detach().numpy())
    np.testing.assert_array_equal(trained[0], trained[1])
    assert (trained[0] != trained[2]).any()


def test_a_loss_that_is_no_number_is_said():
    X, mask = problem()
    with pytest.raises(FloatingPointError, match="lower learning_rate, now 1e\\+30"):
        Trainer(optimizer="sgd", learning_rate=1e30, max_iter=50).train(
            torch.nn.Sequential(torch.nn.Linear(3, 9), torch.nn.ReLU(), torch.nn.Linear(9, 3)),
            Objective(), X, mask,
        )  # fmt: skip


def test_augmented_inputs_are_what_the_module_gets(capsys):
    X, mask = problem()
    seen = []

    class Watching(torch.nn.Linear):
        def forward(self, inputs):
            if self.training:
                seen.append(float(inputs.mean()))
            return super().forward(inputs)

    trainer = Trainer(max_iter=1, augment=lambda inputs: torch.full_like(inputs, 7.0), verbose=True)
    trainer.train(Watching(3, 3), Objective(), X, mask)
    assert seen == [7.0]
    assert capsys.readouterr().out.startswith("epoch 1 of 1: loss ")


def test_the_embedding_is_what_goes_into_the_last_linear_layer():
    X, _ = problem(4)
    module = build_module("mlp", 3, 2)
    logits, embedding = with_embedding(module, X)
    assert torch.equal(logits, module(X))
    assert torch.equal(embedding, module[:2](X))
    assert torch.equal(with_embedding(torch.nn.Linear(3, 2), X)[1], X)
    assert not module[2]._forward_pre_hooks
    assert math.isclose(float(build_module("linear", 3, 2).weight.detach().abs().sum()), 0.0)
