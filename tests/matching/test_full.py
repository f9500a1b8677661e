import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmpll.arrays import to_host
from gmpll.graph.views import unit_rows
from gmpll.matching import (
    AssignmentAffinity,
    FullAffinity,
    full_affinity,
    full_tiles,
    match,
    uniform_start,
)
from gmpll.matching import full_blocks as module
from gmpll.matching.affinity import AffinityStatistics
from gmpll.matching.full_blocks import DOUBLE_PAIRS, DOUBLE_ROWS, LOOKUP_COST
from gmpll.matching.full_tiles import affinity_statistics
from literal import affinity, algorithm_1, assignments, standardize_features
from problems import problems, random_label_similarity, random_problem


def support_of(operator, P):
    """K p as a matrix, whatever the layout."""
    return operator.layout.unpack(operator.apply(operator.layout.pack(P)))


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
def test_the_product_equals_the_dense_affinity(problem, alpha, beta, levels):
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
                full_affinity(
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
            np.testing.assert_allclose(support_of(operator, P)[where], dense @ P[where], atol=1e-9)


def test_statistics_equal_those_of_the_dense_affinity():
    X, mask, _ = random_problem(3, m=20)
    rows = unit_rows(X)
    A = (1 + rows @ rows.T) / 2
    i, label = np.nonzero(mask)
    same = label[:, None] == label[None, :]
    K = np.where(same, A[np.ix_(i, i)], 1 - A[np.ix_(i, i)])
    for operator in (full_affinity(rows, mask), AssignmentAffinity(rows, mask)):
        found = operator.statistics
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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("levels", [None, (0.0, 0.5), "many"])
@pytest.mark.parametrize("balance", [0.0, 0.5])
def test_on_every_library_the_matching_equals_algorithm_1(library, seed, levels, balance):
    X, mask, _ = random_problem(seed, zero_rows=True, duplicates=True, absent=True)
    A2 = None
    if levels is not None:
        A2 = random_label_similarity(
            np.random.RandomState(1), mask.shape[1], None if levels == "many" else levels
        )
    Z = standardize_features(X)
    there = library.array(mask)
    operator = full_affinity(library.array(unit_rows(Z)), there, label_similarity=A2)
    start = library.array(uniform_start(mask))
    found = match(operator, there, balance=balance, max_iter=6, start=start)
    assert type(found.probabilities) is type(there)
    expected = algorithm_1(Z, mask, 0.0, 0.6, A2, balance, max_iter=6)
    np.testing.assert_allclose(to_host(found.probabilities), expected, atol=1e-8)


def test_nothing_survives_a_huge_threshold_and_the_start_is_kept():
    X, mask, _ = random_problem(5)
    found = match(full_affinity(unit_rows(X), mask, beta=1e6), mask)
    np.testing.assert_array_equal(found.probabilities, uniform_start(mask))
    assert found.converged
    assert found.n_iter == 1


def many_labels(mask, copies=6):
    """Give the candidates of every row to one of several copies of the labels."""
    m, q = mask.shape
    wide = np.zeros((m, copies, q), dtype=bool)
    wide[np.arange(m), np.random.RandomState(0).randint(copies, size=m)] = mask
    return wide.reshape(m, -1)


@settings(max_examples=40, deadline=None)
@given(
    problem=problems(),
    beta=st.sampled_from([0.0, 0.3, 0.6, 2.0]),
    balance=st.sampled_from([0.0, 0.5]),
    store_bytes=st.sampled_from([0, 10**9]),
    many_features=st.booleans(),
)
def test_label_by_label_equals_algorithm_1(problem, beta, balance, store_bytes, many_features):
    X, mask, _ = problem
    if many_features:  # inner products are looked up
        X = np.tile(X, LOOKUP_COST)
    mask = many_labels(mask)
    Z = standardize_features(X)
    operator = full_affinity(unit_rows(Z), mask, beta=beta, tile=4, store_bytes=store_bytes)
    assert operator.by_label
    dense = affinity(Z, mask, beta=beta)
    where = tuple(np.array(assignments(mask)).T)
    P = uniform_start(mask)
    np.testing.assert_allclose(support_of(operator, P)[where], dense @ P[where], atol=1e-9)
    found = match(operator, mask, balance=balance, max_iter=30)
    expected = algorithm_1(Z, mask, beta=beta, balance=balance, max_iter=30)
    np.testing.assert_allclose(found.probabilities, expected, atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(problem=problems(), many=st.booleans(), wide=st.booleans())
def test_statistics_with_label_similarity_and_any_shape(problem, many, wide):
    X, mask, _ = problem
    if wide:  # more features than rows
        X = np.hstack([X] * 5) @ np.random.RandomState(0).randn(5 * X.shape[1], 20)
    rows = unit_rows(standardize_features(X))
    A2 = random_label_similarity(
        np.random.RandomState(1), mask.shape[1], None if many else (0.0, 1.0)
    )
    A = np.clip((1 + rows @ rows.T) / 2, 0, 1)
    np.fill_diagonal(A, 1.0)
    i, label = np.nonzero(mask)
    v, a = A2[np.ix_(label, label)], A[np.ix_(i, i)]
    K = v * a + (1 - v) * (1 - a)
    found = full_affinity(rows, mask, label_similarity=A2).statistics
    assert found.mean == pytest.approx(K.mean(), abs=1e-12)
    assert found.std == pytest.approx(K.std(), abs=1e-7)


def test_queries_equal_the_dense_affinity_of_queries_to_rows(library):
    X, mask, _ = random_problem(3, m=20)
    unseen, _, _ = random_problem(4, m=7)
    rows, queries = unit_rows(X), unit_rows(unseen)
    for A2 in (None, random_label_similarity(np.random.RandomState(1), 4, (0.0, 0.5))):
        operator = full_affinity(
            library.array(rows), library.array(mask), beta=0.3, label_similarity=A2, tile=6
        )
        statistics = operator.statistics
        A = (1 + queries @ rows.T) / 2
        P = uniform_start(mask)
        expected = np.zeros((7, 4))
        for label in range(4):
            v = (np.eye(4) if A2 is None else A2)[label]
            K = A[:, :, None] * v + (1 - A[:, :, None]) * (1 - v)
            K = (K - statistics.mean) / statistics.std
            expected[:, label] = np.where(K >= 0.3, K * P, 0.0).sum(axis=(1, 2))
        found = operator.to_queries(library.array(queries), library.array(P))
        np.testing.assert_allclose(to_host(found), expected, atol=1e-10)


def test_single_precision_differs_by_affinities_on_the_threshold_only():
    X, mask, _ = random_problem(7, m=200, d=6)
    rows = unit_rows(standardize_features(X))
    P = uniform_start(mask)
    double = full_affinity(rows, mask, beta=0.6, precision="highest")
    single = full_affinity(rows, mask, beta=0.6, precision="high")
    assert single.rows.dtype == np.float32
    assert single.statistics == double.statistics
    difference = np.abs(support_of(single, P) - support_of(double, P))[mask]
    # An affinity that falls to the other side of the threshold counts 0.6, at most once a row
    # here; otherwise products are exact to six digits.
    assert np.median(difference / support_of(double, P)[mask]) < 1e-6
    assert difference.max() < 0.6 * 1.001
    assert (difference > 1e-4).mean() < 0.01


def test_single_precision_finds_the_same_labels():
    X, mask, _ = random_problem(8, m=150, d=8)
    rows = unit_rows(standardize_features(X))
    double, single = (
        match(
            full_affinity(rows, mask, precision=precision), mask, max_iter=50, tol=0.0
        ).probabilities
        for precision in ("highest", "high")
    )
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, double, atol=1e-2)
    np.testing.assert_array_equal(single.argmax(axis=1), double.argmax(axis=1))


def test_many_affinities_are_rounded_and_move_the_probabilities_little():
    X, mask, _ = random_problem(10, m=900, d=6, q=3)
    mask = many_labels(mask, copies=2)
    assert np.square(mask.sum(axis=0)).sum() > DOUBLE_PAIRS
    rows = unit_rows(standardize_features(X))
    rounded, double = full_affinity(rows, mask), full_affinity(rows, mask, precision="highest")
    assert rounded.by_label
    found = match(rounded, mask, max_iter=50, tol=0.0).probabilities
    expected = match(double, mask, max_iter=50, tol=0.0).probabilities
    assert (found != expected).any()
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_precision_follows_the_number_of_rows_and_the_deviation():
    X, mask, _ = random_problem(9, m=DOUBLE_ROWS + 1)
    rows = unit_rows(X)
    assert full_affinity(rows[1:], mask[1:]).rows.dtype == np.float64
    assert full_affinity(rows, mask).rows.dtype == np.float32
    assert full_affinity(rows, mask, precision="highest").rows.dtype == np.float64
    # Nearly parallel rows of one label: affinities that single precision cannot tell apart.
    alike = unit_rows(np.array([1.0, 0.0]) + 1e-3 * rows[:, :2])
    assert full_affinity(alike, np.eye(1, 2, dtype=bool).repeat(len(rows), 0)).rows.dtype == (
        np.float64
    )


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


def test_the_cheaper_operator_is_taken():
    rng = np.random.RandomState(0)
    X = unit_rows(rng.randn(30, 4))
    single = np.eye(100, dtype=bool)[rng.randint(100, size=30)]
    # 90 000 products against 40 x 30^2 pairs of assignments, but labels equal or not go by label.
    assert isinstance(full_affinity(X, single), FullAffinity)
    many_levels = random_label_similarity(rng, 100)
    assert isinstance(full_affinity(X, single, label_similarity=many_levels), AssignmentAffinity)
    three_levels = random_label_similarity(rng, 100, (0.0, 0.5))
    assert isinstance(full_affinity(X, single, label_similarity=three_levels), AssignmentAffinity)
    dense, levels = np.ones((30, 4), dtype=bool), random_label_similarity(rng, 4, (0.0, 0.5))
    found = full_affinity(X, dense, beta=0.3, label_similarity=levels)
    assert isinstance(found, FullAffinity)
    assert found.final.threshold == pytest.approx(0.3)
    np.testing.assert_array_equal(found.levels.similarity, levels)


def test_all_forms_of_the_affinity_have_the_same_defaults():
    beta, alpha = (inspect.signature(full_affinity).parameters[name] for name in ("beta", "alpha"))
    for kind in (FullAffinity, AssignmentAffinity):
        assert inspect.signature(kind).parameters["beta"].default == beta.default == 0.6
    assert inspect.signature(AssignmentAffinity).parameters["alpha"].default == alpha.default == 0.0


def test_the_base_support_is_computed_once():
    X, mask, _ = random_problem(0)
    operator = full_affinity(unit_rows(X), mask)
    assert operator.base_support is operator.base_support


@pytest.mark.parametrize("n_classes", [2, 8])
def test_support_is_never_negative(n_classes):
    """What differences take from the base support must not leave less than nothing."""
    rng = np.random.RandomState(0)
    for _ in range(20):
        # The first rows are unlike all others, and might have the label of those.
        X = np.vstack([-np.ones((3, 5)), np.ones((30, 5))]) + 0.3 * rng.randn(33, 5)
        mask = np.zeros((33, n_classes), dtype=bool)
        mask[:, 0] = mask[:3, 1] = True
        P = np.eye(n_classes)[(np.arange(33) < 3).astype(int)]
        operator = full_affinity(unit_rows(X), mask, beta=0.1, precision="high")
        assert operator.by_label == (n_classes == 8)
        support = support_of(operator, P)[mask]
        assert (support >= 0).all()
        assert support.min() < 1e-4  # here rounding decides


def test_inner_products_are_kept_where_looking_them_up_is_cheaper(monkeypatch):
    rng = np.random.RandomState(0)
    mask = np.ones((9, 2), dtype=bool)
    rows = {d: unit_rows(rng.randn(9, d)) for d in (LOOKUP_COST - 1, LOOKUP_COST)}
    assert full_affinity(rows[LOOKUP_COST - 1], mask).gram() is None
    operator = full_affinity(rows[LOOKUP_COST], mask)
    gram = operator.gram()
    np.testing.assert_allclose(gram, operator.rows @ operator.rows.T)
    np.testing.assert_array_equal(gram.diagonal(), operator.final.steepness)
    needed = 8 * 9 * 9
    for store_bytes, kept in ((needed, True), (needed - 1, False)):
        few = full_affinity(rows[LOOKUP_COST], mask, store_bytes=store_bytes)
        assert (few.gram() is not None) == kept
        monkeypatch.setattr(module, "GRAM_BYTES", store_bytes)
        assert (operator.gram() is not None) == kept


def test_an_iteration_goes_label_by_label_where_that_takes_fewer_steps():
    # With c labels of n/c instances each there are n^2/c pairs: fewer than n^2 c / 5 from c^2 = 5.
    for n_classes, by_label in ((1, False), (2, False), (3, True), (4, True)):
        mask = np.eye(n_classes, dtype=bool).repeat(12 // n_classes, axis=0)
        operator = full_affinity(unit_rows(np.random.RandomState(0).randn(12, 3)), mask)
        assert operator.by_label == by_label
        dense = affinity(operator.rows, mask)
        P = uniform_start(mask)
        np.testing.assert_allclose(support_of(operator, P)[mask], dense @ P[mask], atol=1e-9)


def test_single_precision_needs_a_deviation_that_it_can_tell(monkeypatch):
    def precision(std, n_samples=DOUBLE_ROWS + 1):
        rows, mask = np.zeros((n_samples, 1)), np.ones((n_samples, 1), dtype=bool)
        found = AffinityStatistics(9, 0.5, std)
        monkeypatch.setattr(full_tiles, "affinity_statistics", lambda *given: found)
        return full_affinity(rows, mask).rows.dtype

    enough = float(np.finfo(np.float32).eps) / 1e-4
    assert precision(enough * 1.001) == np.float32
    assert precision(enough * 0.999) == np.float64
    assert precision(0.0) == np.float64
    assert precision(1.0, DOUBLE_ROWS) == np.float64
    assert DOUBLE_ROWS == 10_000


def test_blocks_are_rounded_from_so_many_pairs_on(monkeypatch):
    X, mask, _ = random_problem(10, m=40, d=6, q=3)
    mask = many_labels(mask)
    pairs = int(np.square(mask.sum(axis=0)).sum())
    for limit, dtype in ((pairs, np.float64), (pairs - 1, np.float32)):
        monkeypatch.setattr(module, "DOUBLE_PAIRS", limit)
        assert full_affinity(unit_rows(X), mask).blocks.dtype == dtype
        exact = full_affinity(unit_rows(X), mask, precision="highest")
        assert exact.blocks.dtype == np.float64


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("levels", [(0.0,), (0.0, 0.5), None])
def test_statistics_are_those_of_all_pairs_on_every_library(library, wide, levels):
    X, mask, _ = random_problem(5, d=20 if wide else 4, zero_rows=True)
    rows = unit_rows(standardize_features(X))
    A2 = random_label_similarity(np.random.RandomState(1), 4, levels)
    A = np.clip((1 + rows @ rows.T) / 2, 0, 1)
    np.fill_diagonal(A, 1.0)
    i, label = np.nonzero(mask)
    v, a = A2[np.ix_(label, label)], A[np.ix_(i, i)]
    K = v * a + (1 - v) * (1 - a)
    found = affinity_statistics(library.array(rows), library.array(mask), A2)
    assert found.n_assignments == mask.sum()
    assert found.mean == pytest.approx(K.mean(), abs=1e-12)
    assert found.std == pytest.approx(K.std(), abs=1e-9)


def test_what_a_library_cannot_do_is_said(library):
    X, mask, _ = random_problem(0)
    rows, sets = library.array(unit_rows(X)), library.array(mask)
    with pytest.raises(ValueError, match="choose one of highest, high, half"):
        full_affinity(rows, sets, precision="exact")
    with pytest.raises(ValueError, match="symmetric"):
        full_affinity(rows, sets, label_similarity=np.eye(4) + np.eye(4, k=1) * 0.5)
    if library.name != "numpy":
        with pytest.raises(ValueError, match=r"alpha=0\.1 is available for NumPy arrays only"):
            full_affinity(rows, sets, alpha=0.1)
    with pytest.raises(ValueError, match="needs PyTorch tensors on a CUDA device"):
        full_affinity(rows, sets, precision="half")


def test_single_precision_can_be_asked_for(library):
    X, mask, _ = random_problem(7, m=30)
    rows = library.array(unit_rows(X))
    P = uniform_start(mask)
    operator = full_affinity(rows, library.array(mask), beta=0.0, precision="high")
    found = to_host(support_of(operator, library.array(P)))
    assert found.dtype == np.float64
    exact = full_affinity(unit_rows(X), mask, beta=0.0, precision="highest")
    expected = support_of(exact, P)
    np.testing.assert_allclose(found[mask], expected[mask], rtol=1e-5)
    assert (found[mask] != expected[mask]).any()
