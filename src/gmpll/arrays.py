"""The array vocabulary: algorithms are written once, for whatever array library holds the data.

What an algorithm needs of NumPy or PyTorch it takes from :func:`array_namespace`, which speaks the
array API standard. Where a value has to leave its device the call says so: :func:`to_host`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from array_api_compat import (
        array_namespace,
        device,
        is_dask_array,
        is_torch_array,
    )
except ImportError:  # scikit-learn carries a copy
    from sklearn.externals.array_api_compat import (
        array_namespace,
        device,
        is_dask_array,
        is_torch_array,
    )

__all__ = [
    "Array",
    "array_namespace",
    "default_float",
    "device",
    "evaluated",
    "is_dask_array",
    "is_torch_array",
    "to_host",
]

#: An array of any library that follows the array API standard.
Array = Any


def default_float(xp: Any) -> Any:
    """Return the floating type in which a library computes by default.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.arrays import array_namespace, default_float
    >>> default_float(array_namespace(np.zeros(2)))
    dtype('float64')
    """
    return xp.__array_namespace_info__().default_dtypes()["real floating"]


def evaluated(*arrays: Array) -> tuple[Array, ...]:
    """Let lazy arrays be computed together, where they live; others are returned as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.arrays import evaluated
    >>> evaluated(np.arange(3))
    (array([0, 1, 2]),)
    """
    if any(is_dask_array(array) for array in arrays):
        import dask

        return dask.persist(*arrays)
    return arrays


def to_host(array: Array) -> NDArray[Any]:
    """Copy an array, wherever it lives, into the main memory as a NumPy array.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.arrays import to_host
    >>> to_host(np.arange(3))
    array([0, 1, 2])
    """
    if is_torch_array(array):
        return array.detach().cpu().numpy()
    if is_dask_array(array):
        array = array.compute()
    return np.asarray(array)
