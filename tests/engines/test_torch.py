import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from gmpll.engines.torch import padded, split  # noqa: E402


def test_two_halves_hold_nearly_a_single():
    third = torch.tensor(1 / 3)
    first, second = split(third, 2)
    assert first.dtype == second.dtype == torch.float16
    assert (third - first.float()).abs() > 1e-7
    assert (third - first.float() - second.float()).abs() < 1e-7


def test_padding_adds_zeros():
    values = torch.ones(1, 2)
    assert padded(values, 2, 3).tolist() == [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    assert padded(values, 1, 2) is values
