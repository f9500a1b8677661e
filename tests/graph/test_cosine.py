import numpy as np

from gmpll.graph.cosine import cosine_similarity_tile, upper_triangle
from gmpll.graph.views import CosineView, RankView, unit_rows


def test_similarity_is_the_normalised_cosine():
    X = np.random.RandomState(0).randn(6, 4)
    expected = [[(1 + a @ b / np.linalg.norm(a) / np.linalg.norm(b)) / 2 for b in X] for a in X]
    U = unit_rows(X)
    np.testing.assert_allclose(cosine_similarity_tile(U, U, same=True), expected)


def test_equal_opposite_and_zero_rows():
    U = unit_rows(np.array([[0.3, 0.7], [0.6, 1.4], [-0.3, -0.7], [0.0, 0.0]]))
    A = cosine_similarity_tile(U, U, same=True)
    assert A[0, 1] == 1.0
    assert A[0, 2] == 0.0
    assert A[0, 3] == 0.5
    assert A[3, 3] == 1.0


def test_tiles_cover_the_upper_triangle_once():
    seen = np.zeros((10, 10), dtype=int)
    for rows, columns in upper_triangle(10, 4):
        seen[rows, columns] += 1
        if rows != columns:
            seen[columns, rows] += 1
    assert (seen == 1).all()


def test_unseen_rows_are_scaled_with_training_statistics():
    X = np.array([[1.0, 5.0, 2.0], [3.0, 5.0, 0.0], [5.0, 5.0, 1.0]])
    view = CosineView(X)
    z = (np.array([4.0, 5.0, 4.0]) - X.mean(axis=0)) / np.array([X[:, 0].std(), 1, X[:, 2].std()])
    np.testing.assert_allclose(
        view.transform(np.array([[4.0, 5.0, 4.0]]))[0], z / np.linalg.norm(z)
    )
    assert (view.rows[:, 1] == 0).all()


def test_ranks_ignore_the_scale_of_a_feature():
    X = np.random.RandomState(0).randn(50, 3)
    stretched = np.column_stack([np.exp(5 * X[:, 0]), X[:, 1] ** 3, X[:, 2]])
    np.testing.assert_allclose(RankView(X).rows, RankView(stretched).rows, atol=1e-6)
    np.testing.assert_allclose(RankView(X).transform(X), RankView(X).rows)
    assert np.isfinite(RankView(np.ones((4, 2))).rows).all()
