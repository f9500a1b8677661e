"""The kernels against the same in double precision.

They run on a CUDA device, or on the CPU by Triton's interpreter (TRITON_INTERPRET=1, with a
version of NumPy that it supports).
"""

import os
from importlib.util import find_spec

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from gmpll.engines.torch import GroupedSearch, TorchEngine  # noqa: E402
from gmpll.graph.views import unit_rows  # noqa: E402
from gmpll.matching import full_affinity, match, uniform_start  # noqa: E402
from literal import standardize_features  # noqa: E402
from problems import random_label_similarity, random_problem  # noqa: E402

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or not (INTERPRETED or torch.cuda.is_available()),
    reason="needs Triton and a CUDA device (or Triton's interpreter)",
)

#: Largest error of a support, relative and absolute, by precision.
TOLERANCE = {"high": 1e-5, "half": 2e-2}
#: In half precision single affinities fall on the other side of a threshold, where they jump; at 0
#: they do not.
BETA = {"high": 0.6, "half": 0.0}


def problem(m, d, q):
    X, mask, _ = random_problem(m, m=m, d=d, q=q, zero_rows=True, duplicates=True)
    rows = unit_rows(standardize_features(X))
    return torch.from_numpy(rows).to(DEVICE), torch.from_numpy(mask).to(DEVICE)


def fused(rows, mask, precision, **options):
    return full_affinity(
        rows.float(), mask, precision=precision, store_bytes=0, fused=True, **options
    )


@pytest.mark.parametrize("precision", ["high", "half"])
@pytest.mark.parametrize(
    ("m", "d", "q", "levels"),
    [(150, 5, 3, None), (70, 150, 5, None), (140, 8, 140, None), (60, 4, 4, (0.0, 0.5))],
)
def test_the_fused_product_equals_that_of_double_precision(m, d, q, levels, precision):
    rows, mask = problem(m, d, q)
    A2 = None if levels is None else random_label_similarity(np.random.RandomState(0), q, levels)
    options = {"label_similarity": A2, "beta": BETA[precision]}
    exact = full_affinity(rows, mask, **options)
    operator = fused(rows, mask, precision, **options)
    P = uniform_start(mask, torch.float64)
    expected, tolerance = exact.apply(P), TOLERANCE[precision]
    for _ in range(2):  # the second iteration without the base sums
        support = operator.apply(P.float()).double()
        torch.testing.assert_close(support[mask], expected[mask], rtol=tolerance, atol=tolerance)
    queries = rows[:17]
    torch.testing.assert_close(
        operator.to_queries(queries.float(), P.float()).double(),
        exact.to_queries(queries, P),
        rtol=tolerance,
        atol=tolerance,
    )


@pytest.mark.parametrize(("precision", "tolerance"), [("high", 1e-5), ("half", 2e-3)])
@pytest.mark.parametrize(("m", "d", "q"), [(150, 5, 3), (70, 150, 5), (20, 3, 1)])
def test_the_kept_matrix_gives_the_product_of_double_precision(m, d, q, precision, tolerance):
    rows, mask = problem(m, d, max(q, 2))
    mask = mask[:, :q] | (q == 1)
    P = uniform_start(mask, torch.float64)
    expected = full_affinity(rows, mask, beta=0.3).apply(P)
    operator = full_affinity(
        rows.float(), mask, beta=0.3, precision=precision, store_bytes=2**30, fused=True
    )
    for _ in range(2):
        support = operator.apply(P.float()).double()
        torch.testing.assert_close(support[mask], expected[mask], rtol=tolerance, atol=tolerance)
    assert operator.stored


def test_the_fused_matching_finds_the_labels_of_double_precision():
    rows, mask = problem(150, 6, 4)
    exact = match(
        full_affinity(rows, mask), mask, max_iter=20, start=uniform_start(mask, torch.float64)
    )
    found = match(fused(rows, mask, "high"), mask, max_iter=20)
    torch.testing.assert_close(found.probabilities.double(), exact.probabilities, rtol=0, atol=1e-4)


def test_a_single_label_needs_only_the_base():
    rows, _ = problem(20, 3, 2)
    mask = torch.ones((20, 1), dtype=torch.bool, device=DEVICE)
    P = uniform_start(mask)
    torch.testing.assert_close(
        fused(rows, mask, "high").apply(P).double(),
        full_affinity(rows, mask).apply(P.double()),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize("d", [3, 20, 140])
def test_the_grouped_search_is_exact(d):
    rng = np.random.RandomState(d)
    rows = rng.randn(3000, d)
    rows[7] = 0.0
    rows[100] = rows[3]
    rows = torch.from_numpy(rows).float().to(DEVICE)
    for queries in (None, rows[:130] + 0.01):
        if queries is None and INTERPRETED:
            continue  # takes minutes there
        found = TorchEngine().nearest_neighbors(rows, 6, queries, grouped=True)
        expected = TorchEngine().nearest_neighbors(rows, 6, queries, grouped=False)
        torch.testing.assert_close(found.distances, expected.distances, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("d", [3, 20, 140])
def test_rows_of_groups_are_scored_as_by_products(d):
    from gmpll.engines.triton_products import GROUP, group_scores

    rng = np.random.RandomState(d)
    rows = torch.from_numpy(rng.randn(8 * GROUP, d)).to(DEVICE)
    handicap = torch.from_numpy(rng.rand(8 * GROUP)).to(DEVICE)
    groups = torch.from_numpy(rng.randint(8, size=(5, 3))).to(DEVICE)
    found = group_scores(rows[:5], rows, handicap, groups)
    columns = (groups[:, :, None] * GROUP + torch.arange(GROUP, device=DEVICE)).flatten(1)
    expected = (rows[:5, None, :] * rows[columns]).sum(dim=2) - handicap[columns]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_uncertain_rows_are_found_out():
    """In one dense heap half precision cannot tell the neighbours, and must say so."""
    rng = np.random.RandomState(0)
    heap = np.array([1.0, 0.0, 0.0]) + 1e-4 * rng.randn(3000, 3)
    rows = torch.from_numpy(heap).float().to(DEVICE)
    search = GroupedSearch(rows, 3)
    _, certain = search._search(rows[:64], None, 1)
    assert not certain.any()
    found = TorchEngine().nearest_neighbors(rows, 3, rows[:64], grouped=True)
    expected = TorchEngine().nearest_neighbors(rows, 3, rows[:64], grouped=False)
    torch.testing.assert_close(found.distances, expected.distances, rtol=0, atol=1e-6)
