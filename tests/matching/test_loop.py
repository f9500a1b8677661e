import numpy as np
import pytest

from gmpll.arrays import to_host
from gmpll.graph.local import LocalGraph
from gmpll.matching import DenseLayout, LocalAffinity, match, support_of, uniform_start
from problems import random_problem


class Constant:
    """An affinity that gives every assignment a fixed support."""

    layout = DenseLayout()

    def __init__(self, support):
        self.support = support

    def apply(self, p):
        return self.support


class Dense:
    """Nothing but a product with a dense matrix of weights."""

    layout = DenseLayout()

    def __init__(self, weights):
        self.weights = weights

    def apply(self, p):
        return self.weights @ p


def constant(library, support):
    return Constant(library.array(np.array(support)))


def test_probabilities_follow_the_support(library):
    mask = library.array(np.array([[True, True, True]]))
    found = match(constant(library, [[1.0, 2.0, 1.0]]), mask, max_iter=1)
    assert type(found.probabilities) is type(mask)
    np.testing.assert_allclose(to_host(found.probabilities), [[0.25, 0.5, 0.25]])


def test_the_start_weighs_the_support(library):
    mask = library.array(np.array([[True, True]]))
    start = library.array(np.array([[0.9, 0.1]]))
    found = match(constant(library, [[1.0, 3.0]]), mask, max_iter=1, start=start)
    np.testing.assert_allclose(to_host(found.probabilities), [[0.75, 0.25]])


def test_balance_divides_by_the_mass_of_the_label(library):
    mask = library.array(np.array([[True, True], [True, False], [True, False]]))
    found = match(constant(library, np.ones((3, 2))), mask, balance=1.0, max_iter=1)
    mass = np.array([2.5, 0.5])
    expected = (1 / mass) / (1 / mass).sum()
    np.testing.assert_allclose(to_host(found.probabilities)[0], expected, rtol=1e-6)


def test_rows_stay_distributions_and_singletons_stay_certain():
    X, mask, _ = random_problem(11, m=30)
    found = match(LocalAffinity(LocalGraph(X, 5).weights, mask), mask, balance=0.5)
    P = found.probabilities
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (P[~mask] == 0).all()
    single = mask.sum(axis=1) == 1
    np.testing.assert_array_equal(P[single], mask[single].astype(float))
    assert len(found.objective_path) == found.n_iter


def test_convergence_is_reported():
    X, mask, _ = random_problem(11, m=30)
    operator = LocalAffinity(LocalGraph(X, 5).weights, mask)
    assert not match(operator, mask, tol=0.0, max_iter=3).converged
    assert match(operator, mask, tol=10.0).n_iter == 1


def test_the_start_has_the_precision_asked_for():
    mask = np.array([[True, True], [False, True]])
    assert uniform_start(mask).dtype == np.float64
    single = uniform_start(mask, np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, [[0.5, 0.5], [0.0, 1.0]])


def test_iterations_are_double_whatever_the_start():
    mask = np.array([[True, True]])
    start = np.array([[0.5, 0.5]], dtype=np.float32)
    found = match(Constant(np.array([[1.0, 2.0]])), mask, start=start, max_iter=1)
    assert found.probabilities.dtype == np.float64
    np.testing.assert_allclose(found.probabilities, [[1 / 3, 2 / 3]], rtol=1e-14)
    whole = match(Constant(np.array([[1.0, 2.0]])), mask, start=np.array([[0, 1]]), max_iter=1)
    assert whole.probabilities.dtype == np.float64


def test_on_tensors_the_matching_keeps_the_precision_of_its_start():
    torch = pytest.importorskip("torch")
    mask = torch.tensor([[True, True]])
    support = Constant(torch.tensor([[1.0, 2.0]]))
    assert match(support, mask).probabilities.dtype == torch.float32
    start = uniform_start(mask, torch.float64)
    assert match(support, mask, start=start).probabilities.dtype == torch.float64


def test_the_objective_is_that_before_every_iteration(library):
    mask = library.array(np.array([[True, True]]))
    found = match(constant(library, [[1.0, 3.0]]), mask, max_iter=2, tol=0.0)
    np.testing.assert_allclose(found.objective_path, [2.0, 0.25 * 1.0 + 0.75 * 3.0])


def test_without_support_the_start_is_kept_and_nothing_is_divided_by_zero(library):
    mask = library.array(np.array([[True, True, False], [True, True, False]]))
    start = np.array([[0.3, 0.7, 0.0], [0.5, 0.5, 0.0]])
    support = constant(library, [[0.0, 0.0, 0.0], [1.0, 3.0, 0.0]])
    with np.errstate(all="raise"):
        found = match(support, mask, balance=0.5, start=library.array(start), max_iter=1)
    P = to_host(found.probabilities)
    np.testing.assert_array_equal(P[0], start[0])
    mass = np.array([0.8, 1.2])
    expected = np.array([1.0, 3.0]) / mass**0.5
    np.testing.assert_allclose(P[1, :2], expected / expected.sum())
    assert P[1, 2] == 0


def test_converged_means_moved_by_less_than_tol():
    mask, support = np.array([[True, True]]), Constant(np.array([[1.0, 0.0]]))
    moved = float(np.linalg.norm([0.5, -0.5]))
    exactly = match(support, mask, tol=moved, max_iter=1)
    assert not exactly.converged
    more = match(support, mask, tol=np.nextafter(moved, 1), max_iter=1)
    assert more.converged
    settled = match(support, mask)
    assert settled.converged
    assert settled.n_iter == 2  # the second iteration moves nothing


def weighted_problem():
    X, mask, _ = random_problem(3, m=20)
    rng = np.random.RandomState(0)
    start = np.where(mask, rng.random_sample(mask.shape), 0.0)
    arguments = {
        "start": start / start.sum(axis=1, keepdims=True),
        "priors": rng.random_sample(mask.shape),
        "expected_mass": np.array([8.0, 6.0, 4.0, 2.0]),
    }
    return LocalGraph(X, 4).weights, mask, arguments


class Packed(LocalAffinity):
    """On the candidates alone, whether or not that gains anything."""

    def _few_shared(self):
        return True


@pytest.mark.parametrize("left_out", [None, "start", "priors", "expected_mass"])
def test_every_library_and_every_layout_finds_the_same(library, left_out):
    weights, mask, arguments = weighted_problem()
    arguments.pop(left_out, None)
    limits = {"balance": 0.5, "max_iter": 4, "tol": 0.0}
    expected = match(Dense(weights.toarray()), mask, **limits, **arguments)
    packed = match(Packed(weights, mask), mask, **limits, **arguments)
    np.testing.assert_allclose(packed.probabilities, expected.probabilities, atol=1e-12)
    there = {name: library.array(value) for name, value in arguments.items()}
    there.setdefault("start", library.array(uniform_start(mask)))
    found = match(Dense(library.array(weights.toarray())), library.array(mask), **limits, **there)
    np.testing.assert_allclose(to_host(found.probabilities), expected.probabilities, atol=1e-12)
    np.testing.assert_allclose(found.objective_path, expected.objective_path)
    assert found[1:3] == expected[1:3] == (4, False)


def test_fewer_candidates_than_the_affinitys_can_be_matched():
    weights, mask, _ = weighted_problem()
    fewer = mask.copy()
    row = np.flatnonzero(mask.sum(axis=1) > 1)[0]
    fewer[row, np.flatnonzero(mask[row])[0]] = False
    expected = match(Dense(weights.toarray()), fewer, balance=0.5)
    found = match(Packed(weights, mask), fewer, balance=0.5)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-12)
    assert (found.probabilities[~fewer] == 0).all()


def test_what_is_kept_is_what_the_next_iteration_starts_from(library):
    weights, mask, _ = weighted_problem()
    operator = Dense(library.array(weights.toarray()))
    seen = []

    def keep(p):
        seen.append(to_host(p))
        return p * 1.0

    start = library.array(uniform_start(mask))
    found = match(operator, library.array(mask), start=start, keep=keep, max_iter=3, tol=0.0)
    assert len(seen) == 3
    np.testing.assert_array_equal(to_host(found.probabilities), seen[-1])


def test_an_iteration_on_dask_arrays_multiplies_once():
    da = pytest.importorskip("dask.array")
    weights, mask, _ = weighted_problem()
    dense, products = weights.toarray(), []

    class Counting:
        layout = DenseLayout()

        def apply(self, p):
            def multiply(block):
                products.append(1)
                return dense @ block

            return da.map_blocks(multiply, p, dtype=float, meta=np.empty((0, 0)))

    found = match(Counting(), da.from_array(mask, chunks=-1), balance=0.5, max_iter=5, tol=1e-9)
    assert len(products) == found.n_iter == 5
    expected = match(Dense(dense), mask, balance=0.5, max_iter=5, tol=1e-9)
    np.testing.assert_allclose(to_host(found.probabilities), expected.probabilities)


def test_the_support_has_the_shape_of_the_probabilities_in_every_layout():
    weights, mask, _ = weighted_problem()
    P = uniform_start(mask)
    expected = np.where(mask, weights @ P, 0.0)
    for affinity in (Packed(weights, mask), Dense(weights.toarray())):
        np.testing.assert_allclose(np.where(mask, support_of(affinity, P), 0.0), expected)


@pytest.mark.parametrize("balance", [0.0, 0.5])
def test_several_problems_at_once_end_as_each_would_alone(balance):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rng = np.random.RandomState(0)
    weights = rng.uniform(size=(3, 25, 25)) ** np.array([1, 4, 30])[:, None, None]
    weights = weights + weights.transpose(0, 2, 1)
    masks = rng.uniform(size=(3, 25, 4)) < 0.6
    masks[:, :, 0] |= ~masks.any(axis=2)
    mass = rng.dirichlet(np.ones(4), size=3) * 25
    options = {"tol": 1e-3, "max_iter": 60, "balance": balance}

    start = masks / masks.sum(axis=2, keepdims=True)

    def matched(weights, mask, expected, start):
        given = {} if balance else {"expected_mass": expected}
        return match(LocalAffinity(weights, mask), mask, start=start, **options, **given)

    alone = [matched(*each) for each in zip(weights, masks, mass, start, strict=True)]
    together = matched(*(torch.as_tensor(each) for each in (weights, masks, mass, start)))
    assert len({found.n_iter for found in alone}) > 1
    assert together.n_iter == max(found.n_iter for found in alone)
    assert together.converged == all(found.converged for found in alone)
    wanted = [found.probabilities for found in alone]
    np.testing.assert_allclose(together.probabilities, wanted, atol=1e-10)
