import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmpll.graph.features import unit_rows
from gmpll.matching import AssignmentAffinity, FullAffinity, full_affinity, match, uniform_start
from literal import affinity, algorithm_1, assignments, standardize_features
from problems import problems, random_label_similarity, random_problem


def test_the_bare_affinity_is_the_operator_without_alpha():
    X, mask, _ = random_problem(0)
    assert isinstance(full_affinity(X, mask), FullAffinity)
    assert isinstance(full_affinity(X, mask, alpha=0.1), AssignmentAffinity)


@settings(max_examples=40, deadline=None)
@given(
    problem=problems(),
    alpha=st.sampled_from([0.0, 0.1, 0.2]),
    beta=st.sampled_from([0.0, 0.3, 0.6, 0.8, 2.0]),
    levels=st.sampled_from([None, (0.0,), (0.0, 0.5), "many"]),
)
def test_product_sums_and_statistics_equal_the_dense_affinity(problem, alpha, beta, levels):
    X, mask, _ = problem
    rng = np.random.RandomState(0)
    A2 = None
    if levels is not None:
        A2 = random_label_similarity(rng, mask.shape[1], None if levels == "many" else levels)
    Z = standardize_features(X)
    dense = affinity(Z, mask, alpha, beta, A2)
    where = tuple(np.array(assignments(mask)).T)

    P = np.where(mask, rng.random_sample(mask.shape), 0.0)
    P /= P.sum(axis=1, keepdims=True)
    operators = [full_affinity(unit_rows(Z), mask, alpha=alpha, beta=beta, label_similarity=A2)]
    if alpha == 0:
        for store_bytes in (0, 10**9):
            operators.append(
                FullAffinity(
                    unit_rows(Z),
                    mask,
                    beta=beta,
                    label_similarity=A2,
                    tile=5,
                    store_bytes=store_bytes,
                )
            )
    for operator in operators:
        for _ in range(2):  # the second time from what was kept
            np.testing.assert_allclose(operator.apply(P)[where], dense @ P[where], atol=1e-9)
        np.testing.assert_allclose(operator.row_sums()[where], dense.sum(axis=1), atol=1e-9)
        assert (operator.row_sums()[~mask] == 0).all()


def test_statistics_equal_those_of_the_dense_affinity():
    X, mask, _ = random_problem(3, m=20)
    rows = unit_rows(X)
    A = (1 + rows @ rows.T) / 2
    i, label = np.nonzero(mask)
    same = label[:, None] == label[None, :]
    K = np.where(same, A[np.ix_(i, i)], 1 - A[np.ix_(i, i)])
    for operator in (FullAffinity(rows, mask, tile=6), AssignmentAffinity(rows, mask)):
        found = operator.statistics()
        assert found.n_assignments == mask.sum()
        assert found.mean == pytest.approx(K.mean(), abs=1e-12)
        assert found.std == pytest.approx(K.std(), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    problem=problems(),
    alpha=st.sampled_from([0.0, 0.1, 0.2]),
    beta=st.sampled_from([0.0, 0.3, 0.6, 0.8, 5.0]),
    with_similarity=st.booleans(),
    balance=st.sampled_from([0.0, 0.5]),
)
def test_matching_equals_algorithm_1(problem, alpha, beta, with_similarity, balance):
    X, mask, _ = problem
    A2 = None
    if with_similarity:
        A2 = random_label_similarity(np.random.RandomState(1), mask.shape[1])
    Z = standardize_features(X)
    operator = full_affinity(unit_rows(Z), mask, alpha=alpha, beta=beta, label_similarity=A2)
    found = match(operator, mask, balance=balance, max_iter=30)
    expected = algorithm_1(Z, mask, alpha, beta, A2, balance, max_iter=30)
    np.testing.assert_allclose(found.probabilities, expected, atol=1e-8)


@settings(max_examples=40, deadline=None)
@given(problem=problems(), alpha=st.sampled_from([0.0, 0.2]), beta=st.sampled_from([0.0, 0.6]))
def test_the_objective_never_falls_without_balance(problem, alpha, beta):
    X, mask, _ = problem
    operator = full_affinity(unit_rows(standardize_features(X)), mask, alpha=alpha, beta=beta)
    path = match(operator, mask, tol=0.0, max_iter=40).objective_path
    assert (np.diff(path) >= -1e-10 * np.abs(path[1:])).all()


def test_nothing_survives_a_huge_threshold_and_the_start_is_kept():
    X, mask, _ = random_problem(5)
    found = match(full_affinity(unit_rows(X), mask, beta=1e6), mask)
    np.testing.assert_array_equal(found.probabilities, uniform_start(mask))
    assert found.converged
    assert found.n_iter == 1


def test_single_precision_tiles_are_close_to_double():
    X, mask, _ = random_problem(7, m=60, d=6)
    rows = unit_rows(standardize_features(X))
    P = uniform_start(mask)
    double = FullAffinity(rows, mask, dtype=np.float64).apply(P)
    single = FullAffinity(rows, mask, dtype=np.float32).apply(P)
    np.testing.assert_allclose(single[mask], double[mask], rtol=1e-3)


@pytest.mark.parametrize(
    ("similarity", "message"),
    [
        (np.eye(3), r"shape \(3, 3\), but there are 4 labels"),
        (np.eye(4) * 2, "between 0 and 1"),
        (np.eye(4) + np.eye(4, k=1) * 0.5, "symmetric"),
        (np.eye(4) * 0.5, "diagonal"),
    ],
)
def test_a_wrong_label_similarity_is_refused(similarity, message):
    X, mask, _ = random_problem(0)
    with pytest.raises(ValueError, match=message):
        full_affinity(X, mask, label_similarity=similarity)
