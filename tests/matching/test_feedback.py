import numpy as np

from gmpll.matching.feedback import feedback

MASK = np.array([[True, True, False], [False, True, True], [True, True, True]])


def test_opinions_are_squared_and_normalised_within_the_candidates():
    opinions = np.array([[0.3, 0.1, 0.9], [0.5, 0.2, 0.2], [0.1, -0.4, 0.2]])
    found = feedback(lambda P: opinions, MASK, MASK / 3, balance=0.0, turns=1)
    np.testing.assert_allclose(found[0], [0.9, 0.1, 0.0], atol=1e-4)
    np.testing.assert_allclose(found[1], [0.0, 0.5, 0.5], atol=1e-4)
    np.testing.assert_allclose(found[2], [0.2, 0.0, 0.8], atol=1e-4)


def test_balance_divides_by_the_mass():
    P = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]])
    found = feedback(lambda P: np.ones((3, 3)), MASK, P, balance=1.0, turns=1)
    np.testing.assert_allclose(found[0], [0.8, 0.2, 0.0], atol=1e-6)


def test_no_turn_changes_nothing_and_silence_is_uniform():
    P = MASK / MASK.sum(axis=1, keepdims=True)
    assert feedback(lambda P: P, MASK, P, balance=0.5, turns=0) is P
    silent = feedback(lambda P: np.zeros((3, 3)), MASK, P, balance=0.0)
    np.testing.assert_allclose(silent, P)
