"""The full graph on tensors of the CPU; ``test_triton.py`` has the kernels."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from gmpll.graph.views import unit_rows  # noqa: E402
from gmpll.matching import full_affinity, match  # noqa: E402
from literal import affinity, standardize_features  # noqa: E402
from problems import random_label_similarity, random_problem  # noqa: E402


def probabilities(mask, seed=0):
    P = np.where(mask, np.random.RandomState(seed).random_sample(mask.shape), 0.0)
    return P / P.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("levels", [None, (0.0, 0.5)])
@pytest.mark.parametrize("store_bytes", [0, 10**9])
@pytest.mark.parametrize("tile", [5, 100])
def test_kept_or_made_anew_the_product_is_that_of_the_dense_affinity(
    seed, levels, store_bytes, tile
):
    X, mask, _ = random_problem(seed, zero_rows=True, duplicates=True)
    A2 = None if levels is None else random_label_similarity(np.random.RandomState(0), 4, levels)
    Z = standardize_features(X)
    P = probabilities(mask)
    operator = full_affinity(
        torch.from_numpy(unit_rows(Z)),
        torch.from_numpy(mask),
        label_similarity=A2,
        store_bytes=store_bytes,
        tile=tile,
    )
    for _ in range(2):  # the second time from what was kept
        support = operator.apply(torch.from_numpy(P)).numpy()
        np.testing.assert_allclose(support[mask], affinity(Z, mask, A2=A2) @ P[mask], atol=1e-9)


@pytest.mark.parametrize("precision", ["highest", "high"])
def test_single_precision_tensors_stay_so(precision):
    X, mask, _ = random_problem(7, m=200, d=12, q=6)
    rows = torch.from_numpy(unit_rows(standardize_features(X)))
    P = torch.from_numpy(probabilities(mask))
    expected = full_affinity(rows, torch.from_numpy(mask)).apply(P)
    operator = full_affinity(rows.float(), torch.from_numpy(mask), precision=precision)
    found = operator.apply(P.float())
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy()[mask], expected.numpy()[mask], rtol=2e-6)


def test_one_label_and_one_row():
    rows, mask = torch.ones(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.bool)
    found = match(full_affinity(rows, mask), mask)
    assert found.probabilities.tolist() == [[1.0]]
