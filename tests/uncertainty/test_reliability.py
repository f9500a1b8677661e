from itertools import pairwise

import numpy as np
import pytest

from gmpll.uncertainty.reliability import (
    accuracy_coverage_curve,
    expected_calibration_error,
    reliability_curve,
)


def literal_error(confidence, right, n_bins):
    total = 0.0
    edges = np.linspace(0, 1, n_bins + 1)
    for low, high in pairwise(edges):
        inside = (confidence >= low) & ((confidence < high) | (high == 1.0))
        if inside.any():
            total += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    return total


@pytest.mark.parametrize("n_bins", [1, 8, 16])
def test_error_equals_the_definition(n_bins):
    rng = np.random.RandomState(0)
    confidence = np.concatenate([rng.random_sample(300), [0.0, 1.0]])
    right = rng.random_sample(302) < confidence**2
    np.testing.assert_allclose(
        expected_calibration_error(confidence, right, n_bins=n_bins),
        literal_error(confidence, right, n_bins),
    )


def test_honest_confidences_have_a_small_error_and_boasts_a_large_one():
    rng = np.random.RandomState(1)
    confidence = rng.uniform(0.3, 1.0, size=20_000)
    right = rng.random_sample(20_000) < confidence
    assert expected_calibration_error(confidence, right) < 0.02
    assert expected_calibration_error(np.ones(20_000), right) > 0.3
    curve = reliability_curve(confidence, right)
    assert curve.n_rows.sum() == 20_000
    np.testing.assert_allclose(curve.confidence, curve.accuracy, atol=0.04)


def test_accuracy_of_the_most_confident_rows():
    rng = np.random.RandomState(3)
    confidence, right = rng.random_sample(40), rng.random_sample(40) < 0.6
    curve = accuracy_coverage_curve(confidence, right)
    for coverage, accuracy, threshold in zip(*curve, strict=True):
        answered = confidence >= threshold
        assert answered.mean() == coverage
        assert np.isclose(right[answered].mean(), accuracy)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="one number each per row"):
        reliability_curve([0.5, 0.5], [True])
