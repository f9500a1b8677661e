"""The graph and the matching on it: probabilities stay probabilities, order does not matter."""

import numpy as np
import pytest
import scipy.sparse as sp
from generic import awkward_features, examples, generic_problems, masks, refused
from hypothesis import given
from hypothesis import strategies as st

from gmpll.graph.local import LocalGraph
from gmpll.graph.neighbors import nearest_neighbors
from gmpll.graph.reconstruction import reconstruction_weights
from gmpll.graph.views import CosineView, RankView, Scaling, unit_rows
from gmpll.matching import (
    AssignmentAffinity,
    FullAffinity,
    LocalAffinity,
    Matching,
    full_affinity,
    match,
    uniform_start,
)

pytestmark = pytest.mark.filterwarnings("ignore")
betas = st.sampled_from([0.0, 0.3, 0.6, 5.0])


def assert_probabilities(P, mask):
    assert np.isfinite(P).all()
    assert (P >= 0).all()
    assert (P[~mask] == 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


@given(st.data(), masks(), betas, st.sampled_from([0.0, 0.3]), st.floats(0, 2))
@examples(60)
def test_matching_yields_probabilities(data, mask, beta, alpha, balance):
    rows = CosineView(data.draw(awkward_features(len(mask)))).rows
    affinity = full_affinity(rows, mask, alpha=alpha, beta=beta)
    assert isinstance(affinity, (FullAffinity, AssignmentAffinity))
    assert_probabilities(uniform_start(mask), mask)
    found = match(affinity, mask, balance=balance)
    assert isinstance(found, Matching)
    assert_probabilities(found.probabilities, mask)
    assert np.isfinite(found.objective_path).all()
    if balance == 0 and not found.converged:
        assert (np.diff(found.objective_path) >= -1e-9 * found.objective_path[:-1]).all()


@given(generic_problems(), st.randoms(use_true_random=False), betas)
@examples(30)
def test_the_full_matching_ignores_the_order_of_rows_and_labels(problem, random, beta):
    X, mask, _ = problem
    rows = CosineView(X).rows
    m, q = mask.shape
    r, c = random.sample(range(m), m), random.sample(range(q), q)
    one = match(full_affinity(rows, mask, beta=beta), mask, max_iter=10).probabilities
    other = mask[np.ix_(r, c)]
    found = match(full_affinity(rows[r], other, beta=beta), other, max_iter=10).probabilities
    np.testing.assert_allclose(found, one[np.ix_(r, c)], atol=1e-6)


@given(st.data(), masks(), st.integers(1, 9))
@examples(60)
def test_the_local_graph_is_symmetric_and_bounded(data, mask, k):
    rows = CosineView(data.draw(awkward_features(len(mask)))).rows
    weights = LocalGraph(rows, k).weights
    assert isinstance(weights, sp.csr_array)
    dense = weights.toarray()
    np.testing.assert_allclose(dense, dense.T)
    assert ((dense >= 0) & (dense <= 1)).all()
    assert (dense.diagonal() == 0).all()
    found = match(LocalAffinity(weights, mask), mask, balance=0.5)
    assert_probabilities(found.probabilities, mask)


@given(st.data(), st.integers(1, 8), st.integers(1, 9))
@examples(60)
def test_neighbours_are_others_nearest_first(data, m, k):
    rows = CosineView(data.draw(awkward_features(m))).rows
    found = nearest_neighbors(rows, k)
    assert found.indices.shape == (m, min(k, m - 1))
    assert (np.diff(found.distances, axis=1) >= 0).all()
    for row, indices in enumerate(found.indices):
        assert len(set(indices.tolist())) == len(indices)
        assert row not in indices
    weights = reconstruction_weights(rows, rows, found.indices)
    assert (weights >= 0).all()
    if weights.shape[1]:
        np.testing.assert_allclose(weights.sum(axis=1), 1.0)


@given(st.data(), st.integers(1, 9))
@examples(80)
def test_spaces_are_finite_and_units_do_not_matter(data, m):
    X = data.draw(awkward_features(m))
    for space in (CosineView(X), RankView(X)):
        lengths = np.linalg.norm(space.rows, axis=1)
        assert ((np.abs(lengths - 1) < 1e-9) | (lengths == 0)).all()
        for queries in (X, np.zeros_like(X), np.full_like(X, 1e308), np.full_like(X, 5e-324)):
            assert np.isfinite(space.transform(queries)).all()
    powers = 2.0 ** data.draw(st.integers(-20, 20))
    np.testing.assert_array_equal(
        Scaling(X * powers).transform(X * powers), Scaling(X).transform(X)
    )
    assert np.isfinite(unit_rows(np.clip(X, -1e150, 1e150))).all()


@given(generic_problems(), st.integers(0, 3))
@examples(20)
def test_a_wrong_label_similarity_is_refused_in_a_sentence(problem, kind):
    X, mask, _ = problem
    q = mask.shape[1]
    similarity = np.eye(q)
    if kind == 0:
        similarity = np.eye(q + 1)
    elif kind == 1:
        similarity[0, -1] = 0.5
    elif kind == 2:
        similarity[:] = np.nan
    else:
        similarity = similarity / 2
    error, _ = refused(lambda: full_affinity(CosineView(X).rows, mask, label_similarity=similarity))
    assert "label_similarity" in str(error)
