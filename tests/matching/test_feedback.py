import numpy as np
import pytest

from gmpll.arrays import to_host
from gmpll.matching.feedback import feedback
from gmpll.matching.masses import HALF_AN_INSTANCE, N_STEPS

MASK = np.array([[True, True, False], [False, True, True], [True, True, True]])


def refined(library, predicted, P, **options):
    """Feedback by predictions that never change."""
    predictions = library.array(np.asarray(predicted))
    options = {
        name: library.array(value) if isinstance(value, np.ndarray) else value
        for name, value in options.items()
    }
    found = feedback(lambda P: predictions, library.array(MASK), library.array(P), **options)
    return to_host(found)


def test_predictions_are_squared_and_normalised_within_the_candidates(library):
    predicted = np.array([[0.3, 0.1, 0.9], [0.5, 0.2, 0.2], [0.1, -0.4, 0.2]])
    found = refined(library, predicted, MASK / 3, balance=0.0, n_iterations=1)
    np.testing.assert_allclose(found[0], [0.9, 0.1, 0.0], atol=1e-4)
    np.testing.assert_allclose(found[1], [0.0, 0.5, 0.5], atol=1e-4)
    np.testing.assert_allclose(found[2], [0.2, 0.0, 0.8], atol=1e-4)


def test_balance_divides_by_the_mass(library):
    P = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]])
    found = refined(library, np.ones((3, 3)), P, balance=1.0, n_iterations=1)
    np.testing.assert_allclose(found[0], [0.8, 0.2, 0.0], atol=1e-6)


def test_no_iteration_changes_nothing_and_silence_is_uniform(library):
    P = MASK / MASK.sum(axis=1, keepdims=True)
    assert feedback(lambda P: P, MASK, P, balance=0.5, n_iterations=0) is P
    silent = refined(library, np.zeros((3, 3)), P, balance=0.0)
    np.testing.assert_allclose(silent, P)


def test_the_regression_is_asked_ten_times_at_most():
    asked = []

    def predict(P):
        asked.append(P)
        return np.eye(3)[:, :: (-1) ** len(asked)]  # never settles

    P = MASK / MASK.sum(axis=1, keepdims=True)
    feedback(predict, MASK, P, balance=0.5)
    assert len(asked) == 10
    assert asked[0] is P
    assert asked[1] is not P


def test_nothing_is_asked_any_more_when_it_has_settled(library):
    asked = []

    def predict(P):
        asked.append(P)
        return library.array(np.eye(3))

    P = library.array(MASK / MASK.sum(axis=1, keepdims=True))
    feedback(predict, library.array(MASK), P)
    assert len(asked) == 2


def test_a_candidate_that_gets_nothing_keeps_a_millionth(library):
    predicted = np.array([[1.0, -0.5, 0.0]] * 3)
    found = refined(library, predicted, MASK / 3, balance=0.0, n_iterations=1)
    assert found[0, 1] == pytest.approx(1e-6, rel=1e-4)


def test_a_label_without_mass_divides_nothing_by_zero(library):
    P = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
    predicted = np.array([[0.3, 0.1, 0.9], [0.5, 0.2, 0.4], [0.1, 0.4, 0.2]])
    with np.errstate(all="raise"):
        found = refined(library, predicted, P, balance=1.0, n_iterations=1)
    support = MASK * (predicted**2 + 1e-6) / np.array([1.0, 2.0, 1.0])
    np.testing.assert_allclose(found, support / support.sum(axis=1, keepdims=True))


def test_iterations_are_the_formula(library):
    rng = np.random.RandomState(0)
    predicted, priors = rng.random_sample((2, 3, 3))
    expected_mass = np.array([1.5, 0.5, 1.0])
    P = MASK / MASK.sum(axis=1, keepdims=True)
    factors = library.array(predicted)
    found = feedback(
        lambda P: factors * P,
        library.array(MASK),
        library.array(P),
        balance=0.5,
        n_iterations=2,
        priors=library.array(priors),
        expected_mass=library.array(expected_mass),
    )
    for _ in range(2):
        support = MASK * priors * ((predicted * P) ** 2 + 1e-6)
        P = support / support.sum(axis=1, keepdims=True)
        for _ in range(N_STEPS):
            P = P * (expected_mass + HALF_AN_INSTANCE) / (P.sum(axis=0) + HALF_AN_INSTANCE)
            P /= P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(to_host(found), P)


def test_priors_and_expected_masses_count(library):
    P = MASK / MASK.sum(axis=1, keepdims=True)
    predicted = np.full((3, 3), 0.5)
    priors = np.array([[1.0, 0.25, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.5]])
    found = refined(library, predicted, P, balance=0.0, n_iterations=1, priors=priors)
    np.testing.assert_allclose(found, priors / priors.sum(axis=1, keepdims=True))
    drawn = refined(library, predicted, P, balance=0.0, expected_mass=np.array([0.2, 0.3, 2.5]))
    assert drawn[:, 2].sum() > P[:, 2].sum()
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)


def test_several_problems_at_once_end_as_each_would_alone():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rng = np.random.RandomState(0)
    masks = rng.uniform(size=(3, 30, 4)) < 0.5
    masks[:, :, 0] |= ~masks.any(axis=2)
    P = masks / masks.sum(axis=2, keepdims=True)
    # The first one settles at once, the others later.
    mixing = np.stack([np.eye(4), *rng.dirichlet(np.full(4, 2.0), size=(2, 4))])
    mass = P.sum(axis=1)
    alone = [
        feedback(lambda P, m=m: P @ m, mask, p, expected_mass=e)
        for m, mask, p, e in zip(mixing, masks, P, mass, strict=True)
    ]
    tensors = [torch.as_tensor(each) for each in (mixing, masks, P, mass)]
    found = feedback(lambda P: P @ tensors[0], *tensors[1:3], expected_mass=tensors[3])
    np.testing.assert_allclose(found, alone, atol=1e-10)
