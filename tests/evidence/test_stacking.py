import numpy as np
import pytest
from scipy.optimize import minimize

from gmpll.evidence import stacking as module
from gmpll.evidence.stacking import Stacker, fit_stacker, is_stackable


def rated(n=80, q=4, seed=0):
    rng = np.random.RandomState(seed)
    ratings = rng.rand(n, q)
    return ratings, rng.dirichlet(np.ones(q), size=n)


def literal_objective(stacker, ratings, confidences, penalty):
    unit, q = ratings.std(), ratings.shape[1]
    W = stacker.weights * unit
    D = W - np.trace(W) / q * np.eye(q)
    value = penalty / 2 * (sum(D.ravel() ** 2) + sum(stacker.shift**2))
    for f, p in zip(ratings / unit, confidences, strict=True):
        strengths = np.exp(f @ W + stacker.shift)
        value -= sum(p * np.log(strengths / strengths.sum()))
    return value


@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_no_other_stacker_is_better(penalty):
    ratings, confidences = rated(q=3)
    found = fit_stacker(ratings, confidences, penalty)

    def value(flat):
        other = Stacker(flat[:9].reshape(3, 3), flat[9:])
        return literal_objective(other, ratings, confidences, penalty)

    here = np.concatenate([found.weights.ravel(), found.shift])
    start = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    assert value(here) < value(start)
    assert value(here) <= minimize(value, start).fun + 1e-4


def test_a_heavy_penalty_keeps_the_order_of_the_labels():
    ratings, _ = rated()
    target = np.eye(4)[ratings.argmax(axis=1)]
    stacker = fit_stacker(ratings, target, penalty=1e9)
    np.testing.assert_array_equal(stacker(ratings).argmax(axis=1), ratings.argmax(axis=1))
    sharper = stacker(ratings).max(axis=1).mean()
    assert sharper > (ratings / ratings.sum(axis=1, keepdims=True)).max(axis=1).mean()


def test_a_label_that_others_mask_is_found():
    """On a line the middle one of three labels is nowhere rated best by a straight regression."""
    position = np.linspace(-1, 1, 90)
    truth = np.digitize(position, [-1 / 3, 1 / 3])
    P = np.eye(3)[truth]
    line = np.vander(position, 2)
    ratings = line @ np.linalg.lstsq(line, P, rcond=None)[0]
    assert (ratings.argmax(axis=1) == truth).mean() < 0.7
    read = fit_stacker(ratings, P, penalty=0.01)(ratings)
    assert (read.argmax(axis=1) == truth).mean() > 0.95
    np.testing.assert_allclose(read.sum(axis=1), 1.0)


def test_numbering_and_scale_do_not_matter():
    ratings, confidences = rated()
    order = np.array([2, 0, 3, 1])
    plain = fit_stacker(ratings, confidences, 1.0)(ratings)
    renumbered = fit_stacker(ratings[:, order], confidences[:, order], 1.0)(ratings[:, order])
    np.testing.assert_allclose(renumbered, plain[:, order], atol=1e-3)
    scaled = fit_stacker(1000 * ratings, confidences, 1.0)(1000 * ratings)
    np.testing.assert_allclose(scaled, plain, atol=1e-8)


def test_ratings_that_say_nothing_leave_the_frequencies():
    P = np.repeat(np.eye(2), [30, 10], axis=0)
    read = fit_stacker(np.ones((40, 2)), P, penalty=1e-6)(np.ones((1, 2)))
    np.testing.assert_allclose(read, [[0.75, 0.25]], atol=1e-3)


def test_many_rows_are_thinned_out(monkeypatch):
    ratings, confidences = rated(n=298)
    thin = fit_stacker(ratings[::3], confidences[::3], 1.0)
    monkeypatch.setattr(module, "MAX_ROWS", 100)
    np.testing.assert_array_equal(fit_stacker(ratings, confidences, 1.0).weights, thin.weights)


@pytest.mark.parametrize(("q", "expected"), [(1, False), (2, True), (200, True), (201, False)])
def test_how_many_labels_are_read(q, expected):
    assert is_stackable(q) == expected
