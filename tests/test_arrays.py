import numpy as np
import pytest

from gmpll.arrays import (
    array_namespace,
    beside,
    default_float,
    inverse_of_positive,
    submatrix,
    to_host,
)


def test_the_default_float_is_the_library_s_own():
    assert default_float(array_namespace(np.zeros(1))) == np.float64
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert default_float(array_namespace(torch.zeros(1))) == torch.float32


def test_tensors_come_to_the_host():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    there = torch.arange(3, dtype=torch.float32, requires_grad=True)
    here = to_host(there)
    assert isinstance(here, np.ndarray)
    np.testing.assert_array_equal(here, [0, 1, 2])


def test_submatrices_are_of_one_part_or_of_several():
    matrix = np.arange(20.0).reshape(4, 5)
    rows, columns = np.array([0, 3]), np.array([1, 2, 4])
    np.testing.assert_array_equal(submatrix(matrix, rows, columns), matrix[np.ix_(rows, columns)])
    several = submatrix(matrix, np.array([[0, 3], [1, 2]]), np.array([[1, 2], [0, 4]]))
    np.testing.assert_array_equal(several[1], matrix[np.ix_([1, 2], [0, 4])])
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    found = submatrix(torch.as_tensor(matrix), rows, columns)
    np.testing.assert_array_equal(found, matrix[np.ix_(rows, columns)])


def test_what_is_a_tensor_already_stays_as_it_is():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    single = torch.zeros(2)
    assert beside(single, torch.zeros(1, dtype=torch.float64)) is single


def test_positive_definite_tensors_are_inverted():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rng = np.random.RandomState(0)
    roots = rng.normal(size=(3, 6, 6))
    matrices = roots @ roots.transpose(0, 2, 1) + np.eye(6)
    found = inverse_of_positive(torch.as_tensor(matrices))
    np.testing.assert_allclose(found, np.linalg.inv(matrices), atol=1e-10)
