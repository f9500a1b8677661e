import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gmpll.graph.local import LocalGraph
from gmpll.matching import LocalAffinity, local, match, same_label
from gmpll.matching.same_label import SameLabelAffinity
from literal import assignments
from problems import problems, random_label_similarity, random_problem


def dense_affinity(W, mask, A2):
    pairs = assignments(mask)
    return np.array([[A2[la, lb] * W[i, j] for j, lb in pairs] for i, la in pairs])


@settings(max_examples=30, deadline=None)
@given(problem=problems(), with_similarity=st.booleans())
def test_product_sums_and_statistics_equal_the_dense_affinity(problem, with_similarity):
    X, mask, _ = problem
    rng = np.random.RandomState(0)
    A2 = random_label_similarity(rng, mask.shape[1]) if with_similarity else None
    weights = LocalGraph(X, 3).weights
    operator = LocalAffinity(weights, mask, A2)
    K = dense_affinity(weights.toarray(), mask, np.eye(mask.shape[1]) if A2 is None else A2)
    where = tuple(np.array(assignments(mask)).T)
    P = np.where(mask, rng.random_sample(mask.shape), 0.0)
    np.testing.assert_allclose(operator.apply(P)[where], K @ P[where], atol=1e-12)
    np.testing.assert_allclose(operator.row_sums()[where], K.sum(axis=1), atol=1e-12)
    assert operator.statistics().mean == pytest.approx(K.mean(), abs=1e-12)
    assert operator.statistics().std == pytest.approx(K.std(), abs=1e-7)


@settings(max_examples=30, deadline=None)
@given(problem=problems())
def test_the_objective_never_falls_without_balance(problem):
    X, mask, _ = problem
    path = match(LocalAffinity(LocalGraph(X, 4).weights, mask), mask, tol=0.0).objective_path
    assert (np.diff(path) >= -1e-10 * np.abs(path[1:])).all()


def few_candidates(seed, m=60, q=12):
    rng = np.random.RandomState(seed)
    X, _, truth = random_problem(seed, m=m, q=q)
    mask = np.eye(q, dtype=bool)[truth]
    mask[np.arange(m), rng.randint(q, size=m)] = True
    mask[:, 3] = False
    mask[~mask.any(axis=1), 0] = True
    return X, mask


@settings(max_examples=30, deadline=None)
@given(problem=problems())
def test_the_affinity_of_equal_labels_is_the_whole_affinity(problem):
    X, mask, _ = problem
    weights = LocalGraph(X, 3).weights
    whole, parts = LocalAffinity(weights, mask), SameLabelAffinity(weights, mask)
    P = np.where(mask, np.random.RandomState(0).random_sample(mask.shape), 0.0)
    np.testing.assert_array_equal(parts.unpack(parts.pack(P)), P)
    np.testing.assert_allclose(
        parts.unpack(parts.apply(parts.pack(P))), np.where(mask, whole.apply(P), 0), atol=1e-12
    )
    np.testing.assert_allclose(parts.unpack(parts.row_sums()), whole.row_sums(), atol=1e-12)
    assert parts.statistics().mean == pytest.approx(whole.statistics().mean, abs=1e-12)
    assert parts.statistics().std == pytest.approx(whole.statistics().std, abs=1e-7)


@pytest.mark.parametrize("balance", [0.0, 0.5])
def test_matching_on_the_candidates_alone_is_the_same(balance, monkeypatch):
    X, mask = few_candidates(0)
    weights = LocalGraph(X, 6).weights.tolil()
    weights[5], weights[:, 5] = 0, 0  # an instance without any support
    affinity = LocalAffinity(weights.tocsr(), mask)
    assert affinity.packed(mask) is not None
    packed = match(affinity, mask, balance=balance)
    monkeypatch.setattr(LocalAffinity, "packed", lambda self, mask: None)
    whole = match(affinity, mask, balance=balance)
    np.testing.assert_allclose(packed.probabilities, whole.probabilities, atol=1e-10)
    np.testing.assert_allclose(packed.objective_path, whole.objective_path)
    assert packed.n_iter == whole.n_iter
    np.testing.assert_allclose(packed.probabilities[5][mask[5]], 1 / mask[5].sum())


def test_candidates_are_packed_only_where_that_gains():
    X, mask = few_candidates(1)
    weights = LocalGraph(X, 6).weights
    assert LocalAffinity(weights, mask).packed(mask) is not None
    assert LocalAffinity(weights, mask).packed(~mask) is None  # not the affinity's candidates
    everything = np.ones_like(mask)
    assert LocalAffinity(weights, everything).packed(everything) is None
    similarity = random_label_similarity(np.random.RandomState(0), mask.shape[1])
    assert LocalAffinity(weights, mask, similarity).packed(mask) is None


def test_blocks_and_threads_do_not_change_products(monkeypatch):
    X, mask = few_candidates(2)
    weights = LocalGraph(X, 6).weights
    P = np.where(mask, np.random.RandomState(0).random_sample(mask.shape), 0.0)
    whole = LocalAffinity(weights, mask).apply(P)
    for module, size in ((local, "BLOCK_EDGES"), (same_label, "BLOCK_ENTRIES")):
        monkeypatch.setattr(module, size, 10)
    for module in ("gmpll.matching.local", "gmpll._threads"):
        monkeypatch.setattr(f"{module}.n_threads", lambda: 3)
    np.testing.assert_array_equal(LocalAffinity(weights, mask).apply(P), whole)
    parts = SameLabelAffinity(weights, mask)
    assert len(parts._blocks) > mask.shape[1]
    np.testing.assert_allclose(parts.apply(parts.pack(P)), parts.pack(whole), atol=1e-12)


def test_single_precision_weights_give_double_precision_support():
    X, mask = few_candidates(3)
    weights = LocalGraph(X, 6).weights
    single = weights.astype(np.float32)
    exact = match(LocalAffinity(weights, mask), mask, balance=0.5, max_iter=10)
    found = match(LocalAffinity(single, mask), mask, balance=0.5, max_iter=10)
    assert found.probabilities.dtype == np.float64
    np.testing.assert_allclose(found.probabilities, exact.probabilities, atol=1e-4)


def rings(mask):
    """Connect every row with the next but one, so that rows of two kinds do not meet."""
    m = len(mask)
    weights = sp.lil_array((m, m))
    for i in range(m):
        weights[i, (i + 2) % m] = weights[(i + 2) % m, i] = 1.0
    return weights.tocsr()


@pytest.mark.parametrize(
    ("n_classes", "size", "other", "packed"),
    [
        (6, 6, 0, False),  # neighbours share three labels on average, two are few of six
        (6, 4, 0, True),  # two, just as many
        (30, 6, 6, False),  # six of thirty would be few, but take too much memory
        (30, 4, 4, True),
        (30, 5, 4, False),
    ],
)
@pytest.mark.parametrize("sample", [10_000, 7])
def test_shared_labels_of_neighbours_decide(n_classes, size, other, packed, sample, monkeypatch):
    monkeypatch.setattr(local, "SHARED_SAMPLE", sample)
    mask = np.zeros((40, n_classes), dtype=bool)
    mask[::2, :size] = True
    mask[1::2, n_classes - other :] = True
    affinity = LocalAffinity(rings(mask), mask)
    assert (affinity.packed(mask) is not None) == packed
    assert affinity.packed(mask) is affinity.packed(mask)


def test_labels_that_neighbours_do_not_share_do_not_count():
    mask = np.zeros((40, 6), dtype=bool)
    mask[np.arange(40) % 4 < 2, :3] = True
    mask[np.arange(40) % 4 >= 2, 3:] = True
    assert LocalAffinity(rings(mask), mask).packed(mask) is not None


def test_without_edges_nothing_is_packed():
    mask = np.eye(4, dtype=bool)
    empty = LocalAffinity(sp.csr_array((4, 4)), mask)
    assert empty.packed(mask) is None
    found = match(empty, mask)
    np.testing.assert_array_equal(found.probabilities, mask)


def test_sums_are_zero_outside_the_candidates_and_all_assignments_count():
    X, mask = few_candidates(4)
    weights = LocalGraph(X, 6).weights
    similarity = random_label_similarity(np.random.RandomState(0), mask.shape[1])
    affinity = LocalAffinity(weights, mask, similarity)
    assert (affinity.row_sums()[~mask] == 0).all()
    assert affinity.statistics().n_assignments == mask.sum()
    parts = SameLabelAffinity(weights, mask)
    assert parts.statistics().n_assignments == mask.sum()
    assert parts.mask.shape == (mask.sum(),)
    assert parts.mask.all()


def test_threads_are_used_only_where_there_is_enough_to_do(monkeypatch):
    X, mask = few_candidates(5)
    weights = LocalGraph(X, 6).weights
    P = np.where(mask, np.random.RandomState(0).random_sample(mask.shape), 0.0)
    started = []

    def in_threads(work, parts):
        started.append(len(parts))
        return [work(part) for part in parts]

    for module in (local, same_label):
        monkeypatch.setattr(module, "in_threads", in_threads)
    parts = SameLabelAffinity(weights, mask)
    started.clear()
    for n_threads, size, few in ((1, 10, True), (3, weights.nnz + 1, True), (3, 10, False)):
        monkeypatch.setattr(local, "n_threads", lambda n_threads=n_threads: n_threads)
        monkeypatch.setattr(local, "BLOCK_EDGES", size)
        found = LocalAffinity(weights, mask).apply(P)
        np.testing.assert_array_equal(found, weights @ P)
        assert bool(started) != few
    # A row has at least six edges, so that every block is of one row.
    assert started == [len(mask)]
    monkeypatch.setattr(local, "BLOCK_EDGES", weights.nnz // 2)
    LocalAffinity(weights, mask).apply(P)
    assert 2 <= started[-1] <= 6
    started.clear()
    n_entries = sum(block.matrix.nnz for block in parts._blocks)
    for size, few in ((n_entries + 1, True), (n_entries, False)):
        monkeypatch.setattr(same_label, "BLOCK_ENTRIES", size)
        np.testing.assert_allclose(parts.apply(parts.pack(P)), parts.pack(weights @ P))
        assert bool(started) != few


def test_labels_without_edges_or_instances_give_no_support():
    mask = np.array([[1, 0, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    weights = sp.csr_array(np.array([[0, 0.5, 0.25], [0.5, 0, 0], [0.25, 0, 0]]))
    parts = SameLabelAffinity(weights, mask)
    np.testing.assert_array_equal(parts.apply(np.array([1.0, 0.5, 1.0])), [0.125, 0.25, 0.0])
    p = np.array([1.0, 0.5, 0.75])
    np.testing.assert_array_equal(parts.weighted_support(p), p * parts.apply(p))
    np.testing.assert_array_equal(parts.class_mass(p), [1.5, 1.5, 0.75])
    np.testing.assert_array_equal(parts.correction(p, 2.0), [2.25, 2.25, 0.5625])
    np.testing.assert_array_equal(parts.correction(np.zeros(3), 2.0), [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(
        parts.pack(np.array([[1.0, 2.0, 3.0]])), [1.0, 1.0, 3.0]
    )  # one row for all
    with np.errstate(all="raise"):
        kept = parts.normalise(np.array([0.2, 0.0, 0.4]), np.array([0.6, 0.5, 0.8]))
    np.testing.assert_array_equal(kept, [1.0, 0.5, 1.0])
