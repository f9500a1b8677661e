import inspect
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmpll.graph.views import unit_rows
from gmpll.matching import AssignmentAffinity, FullAffinity, full_affinity, match, uniform_start
from gmpll.matching import full as module
from gmpll.matching.affinity import AffinityStatistics
from gmpll.matching.full import DOUBLE_PAIRS, DOUBLE_ROWS, LOOKUP_COST
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
    operator = FullAffinity(unit_rows(Z), mask, beta=beta, tile=4, store_bytes=store_bytes)
    assert operator.packed(mask) is not None
    dense = affinity(Z, mask, beta=beta)
    where = tuple(np.array(assignments(mask)).T)
    P = uniform_start(mask)
    np.testing.assert_allclose(operator.apply(P)[where], dense @ P[where], atol=1e-9)
    np.testing.assert_allclose(operator.row_sums()[where], dense.sum(axis=1), atol=1e-9)
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
    found = FullAffinity(rows, mask, label_similarity=A2, tile=5).statistics()
    assert found.mean == pytest.approx(K.mean(), abs=1e-12)
    assert found.std == pytest.approx(K.std(), abs=1e-7)


def test_queries_equal_the_dense_affinity_of_queries_to_rows():
    X, mask, _ = random_problem(3, m=20)
    unseen, _, _ = random_problem(4, m=7)
    rows, queries = unit_rows(X), unit_rows(unseen)
    for A2 in (None, random_label_similarity(np.random.RandomState(1), 4, (0.0, 0.5))):
        operator = FullAffinity(rows, mask, beta=0.3, label_similarity=A2, tile=6)
        statistics = operator.statistics()
        A = (1 + queries @ rows.T) / 2
        P = uniform_start(mask)
        expected = np.zeros((7, 4))
        for label in range(4):
            v = (np.eye(4) if A2 is None else A2)[label]
            K = A[:, :, None] * v + (1 - A[:, :, None]) * (1 - v)
            K = (K - statistics.mean) / statistics.std
            expected[:, label] = np.where(K >= 0.3, K * P, 0.0).sum(axis=(1, 2))
        np.testing.assert_allclose(operator.to_queries(queries, P), expected, atol=1e-10)


def test_single_precision_differs_by_affinities_on_the_threshold_only():
    X, mask, _ = random_problem(7, m=200, d=6)
    rows = unit_rows(standardize_features(X))
    P = uniform_start(mask)
    double = FullAffinity(rows, mask, beta=0.6, dtype=np.float64)
    single = FullAffinity(rows, mask, beta=0.6, dtype=np.float32)
    assert single.rows.dtype == np.float32
    assert single.statistics() == double.statistics()
    difference = np.abs(single.apply(P) - double.apply(P))[mask]
    # An affinity that falls to the other side of the threshold counts 0.6, at most once a row
    # here; otherwise products are exact to six digits.
    assert np.median(difference / double.apply(P)[mask]) < 1e-6
    assert difference.max() < 0.6 * 1.001
    assert (difference > 1e-4).mean() < 0.01


def test_single_precision_finds_the_same_labels():
    X, mask, _ = random_problem(8, m=150, d=8)
    rows = unit_rows(standardize_features(X))
    double, single = (
        match(FullAffinity(rows, mask, dtype=dtype), mask, max_iter=50, tol=0.0).probabilities
        for dtype in (np.float64, np.float32)
    )
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, double, atol=1e-2)
    np.testing.assert_array_equal(single.argmax(axis=1), double.argmax(axis=1))


def test_many_affinities_are_rounded_and_move_the_probabilities_little():
    X, mask, _ = random_problem(10, m=900, d=6, q=3)
    mask = many_labels(mask, copies=2)
    assert np.square(mask.sum(axis=0)).sum() > DOUBLE_PAIRS
    rows = unit_rows(standardize_features(X))
    rounded, double = FullAffinity(rows, mask), FullAffinity(rows, mask, dtype=np.float64)
    assert rounded.packed(mask) is not None
    found = match(rounded, mask, max_iter=50, tol=0.0).probabilities
    expected = match(double, mask, max_iter=50, tol=0.0).probabilities
    assert (found != expected).any()
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_precision_follows_the_number_of_rows_and_the_deviation():
    X, mask, _ = random_problem(9, m=DOUBLE_ROWS + 1)
    rows = unit_rows(X)
    assert FullAffinity(rows[1:], mask[1:]).rows.dtype == np.float64
    assert FullAffinity(rows, mask).rows.dtype == np.float32
    assert FullAffinity(rows, mask, dtype=np.float64).rows.dtype == np.float64
    # Nearly parallel rows of one label: affinities that single precision cannot tell apart.
    alike = unit_rows(np.array([1.0, 0.0]) + 1e-3 * rows[:, :2])
    assert FullAffinity(alike, np.eye(1, 2, dtype=bool).repeat(len(rows), 0)).rows.dtype == (
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
    assert found.beta == 0.3
    np.testing.assert_array_equal(found.similarity, levels)


def test_all_forms_of_the_affinity_have_the_same_defaults():
    beta, alpha = (inspect.signature(full_affinity).parameters[name] for name in ("beta", "alpha"))
    for kind in (FullAffinity, AssignmentAffinity):
        assert inspect.signature(kind).parameters["beta"].default == beta.default == 0.6
    assert inspect.signature(AssignmentAffinity).parameters["alpha"].default == alpha.default == 0.0


def test_the_most_frequent_level_is_the_base():
    X, mask, _ = random_problem(0)
    A2 = np.array(
        [[1.0, 0.5, 0.5, 0.5], [0.5, 1.0, 0.5, 0.0], [0.5, 0.5, 1.0, 0.5], [0.5, 0.0, 0.5, 1.0]]
    )
    operator = FullAffinity(unit_rows(X), mask, label_similarity=A2)
    assert operator._base_level == 0.5
    assert operator._levels == [0.0, 1.0]


def test_the_base_support_is_computed_once():
    X, mask, _ = random_problem(0)
    operator = FullAffinity(unit_rows(X), mask)
    assert operator.base_support() is operator.base_support()


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
        operator = FullAffinity(unit_rows(X), mask, beta=0.1, dtype=np.float32)
        supports = [operator.apply(P)[mask]]
        packed = operator.packed(mask)
        assert (packed is not None) == (n_classes == 8)
        if packed is not None:
            supports.append(packed.apply(packed.pack(P))[packed.mask])
        for support in supports:
            assert (support >= 0).all()
            assert support.min() < 1e-4  # here rounding decides


def test_inner_products_are_kept_where_looking_them_up_is_cheaper(monkeypatch):
    rng = np.random.RandomState(0)
    mask = np.ones((9, 2), dtype=bool)
    rows = {d: unit_rows(rng.randn(9, d)) for d in (LOOKUP_COST - 1, LOOKUP_COST)}
    assert FullAffinity(rows[LOOKUP_COST - 1], mask)._gram() is None
    operator = FullAffinity(rows[LOOKUP_COST], mask)
    gram = operator._gram()
    np.testing.assert_allclose(gram, operator.rows @ operator.rows.T)
    np.testing.assert_array_equal(gram.diagonal(), operator._final.steepness)
    needed = 8 * 9 * 9
    for store_bytes, kept in ((needed, True), (needed - 1, False)):
        few = FullAffinity(rows[LOOKUP_COST], mask, store_bytes=store_bytes)
        assert (few._gram() is not None) == kept
        monkeypatch.setattr(module, "GRAM_BYTES", store_bytes)
        assert (operator._gram() is not None) == kept


def test_a_turn_goes_label_by_label_where_that_takes_fewer_steps():
    # With c labels of n/c instances each there are n^2/c pairs: fewer than n^2 c / 5 from c^2 = 5.
    for n_classes, by_label in ((1, False), (2, False), (3, True), (4, True)):
        mask = np.eye(n_classes, dtype=bool).repeat(12 // n_classes, axis=0)
        operator = FullAffinity(unit_rows(np.random.RandomState(0).randn(12, 3)), mask)
        assert (operator.packed(mask) is not None) == by_label
        dense = affinity(operator.rows, mask)
        P = uniform_start(mask)
        np.testing.assert_allclose(operator.apply(P)[mask], dense @ P[mask], atol=1e-9)


def test_single_precision_needs_a_deviation_that_it_can_tell():
    def precision(std, n_samples=DOUBLE_ROWS + 1):
        return module._sufficient_precision(n_samples, AffinityStatistics(9, 0.5, std))

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
        blocks, _ = FullAffinity(unit_rows(X), mask)._label_blocks()
        assert blocks.dtype == dtype
        blocks, _ = FullAffinity(unit_rows(X), mask, dtype=np.float64)._label_blocks()
        assert blocks.dtype == np.float64


def test_tensors_are_handed_on_with_all_parameters(monkeypatch):
    stand_in = SimpleNamespace(tensor_full_affinity=lambda *rows, **options: (rows, options))
    monkeypatch.setitem(sys.modules, "gmpll.matching.tensors", stand_in)
    monkeypatch.setattr(module, "is_torch_array", lambda rows: True)
    rows, mask, similarity = object(), object(), object()
    found = full_affinity(rows, mask, alpha=0.1, beta=0.2, label_similarity=similarity)
    options = {"alpha": 0.1, "beta": 0.2, "label_similarity": similarity}
    assert found == ((rows, mask), options)


def test_statistics_have_a_closed_form_where_labels_are_equal_or_different(monkeypatch):
    X, mask, _ = random_problem(0)
    in_tiles = []
    original = module._squares_in_tiles
    monkeypatch.setattr(
        module, "_squares_in_tiles", lambda *given: in_tiles.append(1) or original(*given)
    )
    FullAffinity(unit_rows(X), mask)
    assert not in_tiles
    half = np.where(np.eye(4, dtype=bool), 1.0, 0.5)
    FullAffinity(unit_rows(X), mask, label_similarity=half)
    assert in_tiles
