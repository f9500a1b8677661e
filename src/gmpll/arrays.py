"""The array vocabulary: algorithms are written once, for whatever array library holds the data.

What an algorithm needs of NumPy or PyTorch it takes from :func:`array_namespace`, which speaks the
array API standard. Where a value has to leave its device the call says so: :func:`to_host`.
"""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_dask_array, is_torch_array
from numpy.typing import NDArray

__all__ = [
    "Array",
    "array_namespace",
    "beside",
    "default_float",
    "device",
    "evaluated",
    "from_host",
    "inverse_of_positive",
    "is_dask_array",
    "is_torch_array",
    "submatrix",
    "to_host",
]

#: An array of any library that follows the array API standard.
Array = Any


def default_float(xp: Any) -> Any:
    """Return the floating type in which a library computes by default."""
    return xp.__array_namespace_info__().default_dtypes()["real floating"]


def beside(values: NDArray[Any], reference: Array) -> Array:
    """Bring a small NumPy array to where it can be combined with an array.

    Tensors get a tensor of their precision on their device; Dask arrays take NumPy arrays as they
    are. What is a tensor already stays as it is.
    """
    if not is_torch_array(reference) or is_torch_array(values):
        return values
    tensor = array_namespace(reference).asarray(values, device=device(reference))
    both_float = values.dtype.kind == "f" and reference.is_floating_point()
    return tensor.to(reference.dtype) if both_float else tensor


def from_host(values: NDArray[Any], reference: Array) -> Array:
    """Bring a NumPy array with a row for every row of another array to where that one lives."""
    if is_dask_array(reference):
        import dask.array as da

        return da.from_array(values, chunks=(reference.chunks[0], *values.shape[1:]))
    return beside(values, reference)


def evaluated(*arrays: Array) -> tuple[Array, ...]:
    """Let lazy arrays be computed together, where they live; others are returned as they are."""
    if any(is_dask_array(array) for array in arrays):
        import dask

        return dask.persist(*arrays)
    return arrays


def to_host(array: Array) -> NDArray[Any]:
    """Copy an array, wherever it lives, into the main memory as a NumPy array."""
    if is_torch_array(array):
        return array.detach().cpu().numpy()
    if is_dask_array(array):
        array = array.compute()
    return np.asarray(array)


def submatrix(matrix: Array, rows: NDArray[Any], columns: NDArray[Any]) -> Array:
    """Return the entries of some rows and columns; (n, k) places of them give n such matrices."""
    rows, columns = beside(rows, matrix), beside(columns, matrix)
    return matrix[rows[..., :, None], columns[..., None, :]]


def inverse_of_positive(matrix: Array) -> Array:
    """Return the inverse of a positive definite tensor, or of several."""
    import torch

    return torch.cholesky_inverse(torch.linalg.cholesky(matrix))
