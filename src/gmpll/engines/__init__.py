"""The few primitives in which NumPy, PyTorch and Dask differ.

Algorithms are written once over ``engine.xp``, the array API standard; for neighbours, sparse
weights and what is kept between steps they call the engine of their arrays::

    engine = engine_of(X)

PyTorch and Dask are loaded when an array of theirs is met.
"""

from gmpll.arrays import Array, is_dask_array, is_torch_array
from gmpll.engines.base import Engine, Neighbors, Weights
from gmpll.engines.numpy import NumpyEngine

__all__ = ["Engine", "Neighbors", "Weights", "engine_of"]

_NUMPY = NumpyEngine()


def engine_of(array: Array) -> Engine:
    """Return the engine that works on an array: that of PyTorch, of Dask, or else of NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from gmpll.engines import engine_of
    >>> engine_of(np.zeros((2, 2))).name
    'numpy'
    """
    if is_torch_array(array):
        from gmpll.engines.torch import TorchEngine

        return TorchEngine()
    if is_dask_array(array):
        from gmpll.engines.dask import DaskEngine

        return DaskEngine()
    return _NUMPY
