import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gmpll.arrays import to_host
from gmpll.graph.local import LocalGraph
from gmpll.matching import DenseLayout, LocalAffinity, local, match, uniform_start
from gmpll.matching.affinity import PackedLayout
from literal import assignments
from problems import problems, random_label_similarity, random_problem


class PackedAffinity(LocalAffinity):
    """On the candidates alone, whether or not that gains anything."""

    def _few_shared(self):
        return True


def dense_affinity(W, mask, A2):
    pairs = assignments(mask)
    return np.array([[A2[la, lb] * W[i, j] for j, lb in pairs] for i, la in pairs])


def support_of(operator, P):
    """K p as a matrix, whatever the layout."""
    return operator.layout.unpack(operator.apply(operator.layout.pack(P)))


def weights_like(library, weights):
    """The weights as the library multiplies them."""
    if library.name == "numpy":
        return weights
    dense = library.array(weights.toarray())
    return dense.to_sparse_csr() if library.name == "torch" else dense


@settings(max_examples=30, deadline=None)
@given(problem=problems(), with_similarity=st.booleans())
def test_the_product_equals_the_dense_affinity(problem, with_similarity):
    X, mask, _ = problem
    rng = np.random.RandomState(0)
    A2 = random_label_similarity(rng, mask.shape[1]) if with_similarity else None
    weights = LocalGraph(X, 3).weights
    K = dense_affinity(weights.toarray(), mask, np.eye(mask.shape[1]) if A2 is None else A2)
    where = tuple(np.array(assignments(mask)).T)
    P = np.where(mask, rng.random_sample(mask.shape), 0.0)
    operators = [LocalAffinity(weights, mask, A2)]
    if not with_similarity:
        operators.append(PackedAffinity(weights, mask))
    for operator in operators:
        np.testing.assert_allclose(support_of(operator, P)[where], K @ P[where], atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("with_similarity", [False, True])
def test_every_library_multiplies_and_matches_alike(library, seed, with_similarity):
    X, mask, _ = random_problem(seed, m=25)
    rng = np.random.RandomState(seed)
    A2 = random_label_similarity(rng, mask.shape[1]) if with_similarity else np.eye(mask.shape[1])
    weights = LocalGraph(X, 5).weights
    P = uniform_start(mask)
    there = library.array(mask)
    given = library.array(A2) if with_similarity else None
    operator = LocalAffinity(weights_like(library, weights), there, given)
    support = to_host(support_of(operator, library.array(P)))
    expected = weights.toarray() @ P @ A2
    np.testing.assert_allclose(support[mask], expected[mask], atol=1e-12)
    queries = sp.csr_array(weights[:7])
    found = operator.to_queries(weights_like(library, queries), library.array(P))
    np.testing.assert_allclose(to_host(found), expected[:7], atol=1e-12)
    found = match(operator, there, balance=0.5, max_iter=10, start=library.array(P))
    for _ in range(found.n_iter):
        support = P * (weights.toarray() @ P @ A2) / P.sum(axis=0) ** 0.5
        P = DenseLayout().normalise(support, P)
    np.testing.assert_allclose(to_host(found.probabilities), P, atol=1e-9)


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


def is_packed(affinity):
    return isinstance(affinity.layout, PackedLayout)


@pytest.mark.parametrize("balance", [0.0, 0.5])
def test_matching_on_the_candidates_alone_is_the_same(balance, monkeypatch):
    X, mask = few_candidates(0)
    weights = LocalGraph(X, 6).weights.tolil()
    weights[5], weights[:, 5] = 0, 0  # an instance without any support
    weights = weights.tocsr()
    affinity = LocalAffinity(weights, mask)
    assert is_packed(affinity)
    packed = match(affinity, mask, balance=balance)
    monkeypatch.setattr(LocalAffinity, "_few_shared", lambda self: False)
    affinity = LocalAffinity(weights, mask)
    assert not is_packed(affinity)
    whole = match(affinity, mask, balance=balance)
    np.testing.assert_allclose(packed.probabilities, whole.probabilities, atol=1e-10)
    np.testing.assert_allclose(packed.objective_path, whole.objective_path)
    assert packed.n_iter == whole.n_iter
    np.testing.assert_allclose(packed.probabilities[5][mask[5]], 1 / mask[5].sum())


def test_candidates_are_packed_only_where_that_gains():
    X, mask = few_candidates(1)
    weights = LocalGraph(X, 6).weights
    assert is_packed(LocalAffinity(weights, mask))
    assert not is_packed(LocalAffinity(weights, np.ones_like(mask)))
    similarity = random_label_similarity(np.random.RandomState(0), mask.shape[1])
    assert not is_packed(LocalAffinity(weights, mask, similarity))


def test_blocks_and_threads_do_not_change_products(monkeypatch):
    X, mask = few_candidates(2)
    weights = LocalGraph(X, 6).weights
    P = np.where(mask, np.random.RandomState(0).random_sample(mask.shape), 0.0)
    whole = LocalAffinity(weights, mask).to_queries(weights, P)
    monkeypatch.setattr(local, "BLOCK_EDGES", 10)
    for module in ("gmpll.matching.local", "gmpll._threads"):
        monkeypatch.setattr(f"{module}.n_threads", lambda: 3)
    np.testing.assert_array_equal(LocalAffinity(weights, mask).to_queries(weights, P), whole)
    packed = PackedAffinity(weights, mask)
    np.testing.assert_allclose(support_of(packed, P), np.where(mask, whole, 0.0), atol=1e-12)


def test_single_precision_weights_give_double_precision_support():
    X, mask = few_candidates(3)
    weights = LocalGraph(X, 6).weights
    single = weights.astype(np.float32)
    exact = match(LocalAffinity(weights, mask), mask, balance=0.5, max_iter=10)
    found = match(LocalAffinity(single, mask), mask, balance=0.5, max_iter=10)
    assert found.probabilities.dtype == np.float64
    np.testing.assert_allclose(found.probabilities, exact.probabilities, atol=1e-4)


def test_tensors_keep_the_precision_of_the_probabilities():
    torch = pytest.importorskip("torch")
    X, mask = few_candidates(3)
    weights = torch.from_numpy(LocalGraph(X, 6).weights.toarray()).to_sparse_csr()
    sets = torch.from_numpy(mask)
    assert LocalAffinity(weights, sets).apply(uniform_start(sets)).dtype == torch.float32
    double = uniform_start(sets, torch.float64)
    assert LocalAffinity(weights, sets).apply(double).dtype == torch.float64


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
    assert is_packed(LocalAffinity(rings(mask), mask)) == packed


def test_labels_that_neighbours_do_not_share_do_not_count():
    mask = np.zeros((40, 6), dtype=bool)
    mask[np.arange(40) % 4 < 2, :3] = True
    mask[np.arange(40) % 4 >= 2, 3:] = True
    affinity = LocalAffinity(rings(mask), mask)
    assert is_packed(affinity)
    assert affinity.layout is affinity.layout


def test_without_edges_nothing_is_packed():
    mask = np.eye(4, dtype=bool)
    empty = LocalAffinity(sp.csr_array((4, 4)), mask)
    assert not is_packed(empty)
    found = match(empty, mask)
    np.testing.assert_array_equal(found.probabilities, mask)


def test_threads_are_used_only_where_there_is_enough_to_do(monkeypatch):
    X, mask = few_candidates(5)
    weights = LocalGraph(X, 6).weights
    P = np.where(mask, np.random.RandomState(0).random_sample(mask.shape), 0.0)
    started = []

    def in_threads(work, parts):
        started.append(len(parts))
        return [work(part) for part in parts]

    monkeypatch.setattr(local, "in_threads", in_threads)
    for n_threads, size, few in ((1, 10, True), (3, weights.nnz + 1, True), (3, 10, False)):
        monkeypatch.setattr(local, "n_threads", lambda n_threads=n_threads: n_threads)
        monkeypatch.setattr(local, "BLOCK_EDGES", size)
        found = LocalAffinity(weights, mask).to_queries(weights, P)
        np.testing.assert_array_equal(found, weights @ P)
        assert bool(started) != few
    # A row has at least six edges, so that every block is of one row.
    assert started == [len(mask)]
    monkeypatch.setattr(local, "BLOCK_EDGES", weights.nnz // 2)
    LocalAffinity(weights, mask).to_queries(weights, P)
    assert 2 <= started[-1] <= 6


def test_labels_without_edges_or_instances_give_no_support():
    mask = np.array([[1, 0, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    weights = sp.csr_array(np.array([[0, 0.5, 0.25], [0.5, 0, 0], [0.25, 0, 0]]))
    parts = PackedAffinity(weights, mask)
    np.testing.assert_array_equal(parts.apply(np.array([1.0, 0.5, 1.0])), [0.125, 0.25, 0.0])
