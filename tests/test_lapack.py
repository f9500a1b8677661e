"""The routines are those that SciPy calls: results are the same to the last bit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg

from gmpll import _lapack


def positive_definite(n, dtype=np.float64, seed=0):
    rows = np.random.RandomState(seed).randn(n + 3, n)
    return np.asfortranarray((rows.T @ rows).astype(dtype))


@pytest.fixture(params=[np.float32, np.float64])
def matrix(request):
    return positive_definite(70, request.param)


@pytest.mark.parametrize("lower", [False, True])
def test_a_factor_is_that_of_scipy_and_the_other_triangle_stays(matrix, lower):
    potrf = scipy.linalg.get_lapack_funcs("potrf", (matrix,))
    expected, _ = potrf(matrix, lower=lower, clean=False)
    assert _lapack.factorise(matrix, lower=lower)
    np.testing.assert_array_equal(matrix, expected)


def test_an_indefinite_matrix_has_no_factor(matrix):
    matrix[40, 40] = -1.0
    assert not _lapack.factorise(matrix)


def test_an_inverse_is_that_of_scipy(matrix):
    assert _lapack.factorise(matrix)
    expected, _ = scipy.linalg.get_lapack_funcs("potri", (matrix,))(matrix)
    _lapack.invert(matrix)
    np.testing.assert_array_equal(matrix, expected)


@pytest.mark.parametrize("shape", [(70, 5), (70,), (70, 0)])
def test_solutions_are_those_of_scipy(matrix, shape):
    assert _lapack.factorise(matrix)
    right = np.random.RandomState(1).randn(*shape).astype(matrix.dtype, order="F")
    solution = right.copy(order="F")
    _lapack.solve(matrix, solution)
    np.testing.assert_array_equal(solution, scipy.linalg.cho_solve((matrix, False), right))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_solutions_for_a_triangle_are_those_of_scipy(matrix, lower, transposed):
    right = np.random.RandomState(1).randn(70, 5).astype(matrix.dtype)
    solution = np.asfortranarray(right)
    _lapack.solve_triangle(matrix, solution, lower=lower, transposed=transposed)
    expected = scipy.linalg.solve_triangular(matrix, right, lower=lower, trans=int(transposed))
    np.testing.assert_array_equal(solution, expected)


def test_singular_matrices_have_no_solution(matrix):
    matrix[3, 3] = 0.0
    with pytest.raises(np.linalg.LinAlgError, match=r"entry 3 of its diagonal"):
        _lapack.solve_triangle(matrix, np.ones(70, dtype=matrix.dtype), lower=True)
    with pytest.raises(np.linalg.LinAlgError, match=r"entry 3 of its diagonal"):
        _lapack.invert(matrix)


def test_a_product_is_that_of_scipy(matrix):
    rows = np.asfortranarray(matrix[:20])
    syrk = scipy.linalg.blas.get_blas_funcs("syrk", (rows,))
    np.testing.assert_array_equal(_lapack.product_with_transpose(rows), syrk(1.0, rows))


@pytest.mark.parametrize("shape", [(70, 5), (70,)])
def test_arrays_that_a_routine_would_misread_are_refused(matrix, shape):
    with pytest.raises(ValueError, match=r"of one precision and in Fortran's order"):
        _lapack.factorise(np.ascontiguousarray(matrix[:60, :60]))
    other = np.float32 if matrix.dtype == np.float64 else np.float64
    with pytest.raises(ValueError, match=r"of one precision and in Fortran's order"):
        _lapack.solve_triangle(matrix, np.ones(shape, dtype=other, order="F"), lower=True)
    with pytest.raises(KeyError):
        _lapack.factorise(matrix.astype(int))


def test_arguments_that_a_routine_does_not_take_are_refused(matrix):
    with pytest.raises(ValueError, match=r"potrf was not given what it takes: argument 2"):
        _lapack._lapack("potrf", b"U", -1, matrix, 70)
    with pytest.raises(TypeError):
        _lapack._lapack("potrf", b"U", 70, matrix)


def test_threads_may_call_at_the_same_time():
    matrices = [positive_definite(60, seed=seed) for seed in range(8)]
    expected = [scipy.linalg.cholesky(matrix) for matrix in matrices]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(_lapack.factorise, matrices))
    for found, wanted in zip(matrices, expected, strict=True):
        np.testing.assert_array_equal(np.triu(found), wanted)
