import numpy as np
import pytest

from gmpll.arrays import array_namespace, default_float, to_host


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
