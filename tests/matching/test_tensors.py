"""Tensors give what the NumPy and the literal versions give.

In double precision up to 1e-9, as the NumPy classes themselves; sums of two half-precision
numbers (22 bits) up to about single precision.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from gmpll.graph.local import LocalGraph  # noqa: E402
from gmpll.graph.tensors import TensorLocalGraph  # noqa: E402
from gmpll.graph.views import unit_rows  # noqa: E402
from gmpll.matching import FullAffinity, LocalAffinity, match, uniform_start  # noqa: E402
from gmpll.matching.tensors import (  # noqa: E402
    TensorFullAffinity,
    TensorLocalAffinity,
    tensor_full_affinity,
)
from gmpll.rounding import best_labels, confidences_within  # noqa: E402
from literal import affinity, algorithm_1, assignments, standardize_features  # noqa: E402
from problems import problems, random_label_similarity, random_problem  # noqa: E402


def probabilities(mask, seed=0):
    P = np.where(mask, np.random.RandomState(seed).random_sample(mask.shape), 0.0)
    return P / P.sum(axis=1, keepdims=True)


def label_similarity(levels, q):
    if levels is None:
        return None
    return random_label_similarity(
        np.random.RandomState(0), q, None if levels == "many" else levels
    )


@settings(max_examples=40, deadline=None)
@given(
    problem=problems(),
    beta=st.sampled_from([0.0, 0.3, 0.6, 2.0]),
    levels=st.sampled_from([None, (0.0,), (0.0, 0.5), "many"]),
    store_bytes=st.sampled_from([0, 10**9]),
)
def test_product_sums_and_statistics_equal_the_dense_affinity(problem, beta, levels, store_bytes):
    X, mask, _ = problem
    A2 = label_similarity(levels, mask.shape[1])
    Z = standardize_features(X)
    dense = affinity(Z, mask, 0.0, beta, A2)
    where = tuple(np.array(assignments(mask)).T)
    P = probabilities(mask)
    operator = TensorFullAffinity(
        torch.from_numpy(unit_rows(Z)),
        torch.from_numpy(mask),
        beta=beta,
        label_similarity=A2,
        store_bytes=store_bytes,
    )
    for _ in range(2):  # the second time from what was kept
        support = operator.apply(torch.from_numpy(P)).numpy()
        np.testing.assert_allclose(support[where], dense @ P[where], atol=1e-9)
    sums = operator.row_sums().numpy()
    np.testing.assert_allclose(sums[where], dense.sum(axis=1), atol=1e-9)
    assert (sums[~mask] == 0).all()


@settings(max_examples=40, deadline=None)
@given(problem=problems(), levels=st.sampled_from([None, (0.0, 0.5), "many"]))
def test_closed_form_statistics_equal_those_of_all_pairs(problem, levels):
    X, mask, _ = problem
    A2 = label_similarity(levels, mask.shape[1])
    rows = unit_rows(standardize_features(X))
    expected = FullAffinity(rows, mask, label_similarity=A2).statistics()
    operator = tensor_full_affinity(
        torch.from_numpy(rows), torch.from_numpy(mask), label_similarity=A2
    )
    assert operator.statistics().n_assignments == expected.n_assignments
    assert operator.statistics().mean == pytest.approx(expected.mean, abs=1e-12)
    assert operator.statistics().std == pytest.approx(expected.std, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    problem=problems(),
    beta=st.sampled_from([0.0, 0.6, 5.0]),
    levels=st.sampled_from([None, (0.0, 0.5)]),
    balance=st.sampled_from([0.0, 0.5]),
)
def test_matching_equals_algorithm_1(problem, beta, levels, balance):
    X, mask, _ = problem
    A2 = label_similarity(levels, mask.shape[1])
    Z = standardize_features(X)
    sets = torch.from_numpy(mask)
    operator = tensor_full_affinity(
        torch.from_numpy(unit_rows(Z)), sets, beta=beta, label_similarity=A2
    )
    start = uniform_start(sets, torch.float64)
    found = match(operator, sets, balance=balance, max_iter=30, start=start)
    expected = algorithm_1(Z, mask, 0.0, beta, A2, balance, max_iter=30)
    assert found.probabilities.dtype == torch.float64
    np.testing.assert_allclose(found.probabilities.numpy(), expected, atol=1e-8)


@pytest.mark.parametrize("levels", [None, (0.0, 0.5)])
def test_unseen_rows_get_the_support_that_numpy_gives_them(levels):
    X, mask, _ = random_problem(2, m=30)
    rows = unit_rows(X)
    A2 = label_similarity(levels, mask.shape[1])
    P = probabilities(mask)
    expected = FullAffinity(rows[:20], mask[:20], label_similarity=A2).to_queries(rows[20:], P[:20])
    operator = tensor_full_affinity(
        torch.from_numpy(rows[:20]), torch.from_numpy(mask[:20]), label_similarity=A2
    )
    found = operator.to_queries(torch.from_numpy(rows[20:]), torch.from_numpy(P[:20]))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("precision", "tolerance"), [("highest", 2e-6), ("high", 2e-6), ("half", 2e-3)]
)
def test_kept_matrices_are_as_precise_as_they_claim(precision, tolerance):
    X, mask, _ = random_problem(7, m=200, d=12, q=6)
    rows = unit_rows(standardize_features(X))
    P = probabilities(mask)
    expected = FullAffinity(rows, mask, dtype=np.float64).apply(P)
    operator = TensorFullAffinity(
        torch.from_numpy(rows).float(), torch.from_numpy(mask), precision=precision
    )
    found = operator.apply(torch.from_numpy(P).float())
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy()[mask], expected[mask], rtol=tolerance)
    assert operator.stored


def test_tiles_do_not_depend_on_their_size(monkeypatch):
    X, mask, _ = random_problem(4, m=50)
    rows, sets = torch.from_numpy(unit_rows(X)), torch.from_numpy(mask)
    P = torch.from_numpy(probabilities(mask))
    whole = TensorFullAffinity(rows, sets, store_bytes=0).apply(P)
    monkeypatch.setattr("gmpll.matching.tensors.TILE_BYTES", 8 * 50 * 7)
    for store_bytes in (0, 10**9):
        pieces = TensorFullAffinity(rows, sets, store_bytes=store_bytes).apply(P)
        torch.testing.assert_close(pieces, whole, rtol=0, atol=1e-12)


def test_one_label_and_one_row():
    rows, mask = torch.ones(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.bool)
    found = match(tensor_full_affinity(rows, mask), mask)
    assert found.probabilities.tolist() == [[1.0]]


def test_what_tensors_cannot_do_is_said():
    X, mask, _ = random_problem(0)
    rows, sets = torch.from_numpy(X), torch.from_numpy(mask)
    with pytest.raises(ValueError, match=r"alpha=0\.1 is not available for tensors"):
        tensor_full_affinity(rows, sets, alpha=0.1)
    with pytest.raises(ValueError, match="choose one of highest, high, half"):
        tensor_full_affinity(rows, sets, precision="exact")
    with pytest.raises(ValueError, match="symmetric"):
        tensor_full_affinity(rows, sets, label_similarity=np.eye(4) + np.eye(4, k=1) * 0.5)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), with_similarity=st.booleans())
def test_the_local_affinity_equals_that_of_numpy(seed, with_similarity):
    X, mask, _ = random_problem(seed, m=25)
    A2 = label_similarity("many", mask.shape[1]) if with_similarity else None
    expected = LocalAffinity(LocalGraph(X, 5).weights, mask, A2)
    sets = torch.from_numpy(mask)
    operator = TensorLocalAffinity(TensorLocalGraph(torch.from_numpy(X), 5).weights, sets, A2)
    P = probabilities(mask)
    np.testing.assert_allclose(
        operator.apply(torch.from_numpy(P)).numpy()[mask], expected.apply(P)[mask], atol=1e-12
    )
    np.testing.assert_allclose(operator.row_sums().numpy(), expected.row_sums(), atol=1e-12)
    assert operator.statistics().mean == pytest.approx(expected.statistics().mean, abs=1e-12)
    assert operator.statistics().std == pytest.approx(expected.statistics().std, abs=1e-9)
    found = match(operator, sets, balance=0.5, start=uniform_start(sets, torch.float64))
    wanted = match(expected, mask, balance=0.5)
    np.testing.assert_allclose(found.probabilities.numpy(), wanted.probabilities, atol=1e-9)
    np.testing.assert_allclose(found.objective_path, wanted.objective_path, atol=1e-9)
    assert (found.n_iter, found.converged) == (wanted.n_iter, wanted.converged)


def test_the_matching_keeps_the_precision_of_its_start():
    X, mask, _ = random_problem(1)
    sets = torch.from_numpy(mask)
    operator = TensorLocalAffinity(TensorLocalGraph(torch.from_numpy(X), 3).weights, sets)
    assert match(operator, sets).probabilities.dtype == torch.float32
    start = uniform_start(sets, torch.float64)
    assert match(operator, sets, start=start).probabilities.dtype == torch.float64


def test_rounding_is_the_same_in_numpy_and_on_tensors():
    mask = random_problem(3, m=60)[1]
    scores = np.where(mask, np.random.RandomState(0).randint(3, size=mask.shape) / 2.0, -np.inf)
    for how in ({"priority": np.array([2, 0, 3, 1])}, {"rng": 5}):
        if "rng" in how:
            found, expected = (
                best_labels(values, rng=np.random.RandomState(5))
                for values in (torch.from_numpy(scores), scores)
            )
        else:
            found, expected = (
                best_labels(torch.from_numpy(scores), **how),
                best_labels(scores, **how),
            )
        np.testing.assert_array_equal(found.numpy(), expected)
    positive = np.where(mask, np.maximum(scores, 0.0), 3.0)
    np.testing.assert_allclose(
        confidences_within(torch.from_numpy(positive), torch.from_numpy(mask)).numpy(),
        confidences_within(positive, mask),
        atol=1e-15,
    )


def test_ties_in_single_precision_are_ties():
    almost = torch.tensor([[0.1 + 0.2, 0.3]] * 200)
    assert set(best_labels(almost, rng=np.random.RandomState(0)).tolist()) == {0, 1}
    apart = torch.tensor([[0.3, 0.30001]] * 200)
    assert set(best_labels(apart, rng=np.random.RandomState(0)).tolist()) == {1}
