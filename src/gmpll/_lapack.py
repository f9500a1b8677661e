"""LAPACK and BLAS that let other threads run while they compute.

SciPy's functions hold Python's lock. Here the same routines of the same library are called by the
addresses that SciPy exports for compiled code, through :mod:`ctypes`, which releases the lock for
as long as a call takes. Arrays are of single or double precision and in Fortran's order; what a
function says it replaces it overwrites.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import LowLevelCallable
from scipy.linalg import LinAlgError, cython_blas, cython_lapack

Real = TypeVar("Real", np.float32, np.float64)

#: SciPy's libraries take integers of 32 bits or, from 1.18 on where they were built so, of 64. With
#: the low bytes first a small one of 64 bits is read right as either.
_Integer = ctypes.c_int64 if sys.byteorder == "little" else ctypes.c_int32
_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
_SCALARS = {"s": ctypes.c_float, "d": ctypes.c_double}


def factorise(matrix: NDArray[Real], *, lower: bool = False) -> bool:
    """Replace a triangle of a symmetric matrix by its Cholesky factor; the other one stays.

    Return whether it could: only that of a positive definite matrix is one.
    """
    return _lapack("potrf", b"L" if lower else b"U", len(matrix), matrix, len(matrix)) == 0


def invert(factor: NDArray[Real]) -> None:
    """Replace the upper triangle U by that of the inverse of ``U.T @ U``."""
    _solvable(_lapack("potri", b"U", len(factor), factor, len(factor)))


def solve(factor: NDArray[Real], right: NDArray[Real]) -> None:
    """Replace the right side by the solution for ``U.T @ U``, of an upper triangle U."""
    n = len(factor)
    _lapack("potrs", b"U", n, right.size // n, factor, n, right, n)


def solve_triangle(
    triangle: NDArray[Real], right: NDArray[Real], *, lower: bool, transposed: bool = False
) -> None:
    """Replace the right side by the solution for a triangle, or for that transposed."""
    n = len(triangle)
    how = b"L" if lower else b"U", b"T" if transposed else b"N", b"N"
    _solvable(_lapack("trtrs", *how, n, right.size // n, triangle, n, right, n))


def product_with_transpose(matrix: NDArray[Real]) -> NDArray[Real]:
    """Return the upper triangle of ``matrix @ matrix.T``, zero below."""
    n, k = matrix.shape
    product = np.zeros((n, n), dtype=matrix.dtype, order="F")
    _call(cython_blas, "syrk", b"U", b"N", n, k, 1.0, matrix, n, 0.0, product, n)
    return product


def _solvable(info: int) -> None:
    if info:
        raise LinAlgError(f"The matrix is singular: entry {info - 1} of its diagonal is zero.")


def _lapack(name: str, *arguments: Any) -> int:
    """Call a routine and return its last argument: 0, or where the matrix did not allow it."""
    info = _Integer(0)
    _call(cython_lapack, name, *arguments, info)
    code = ctypes.c_int32(info.value).value
    if code < 0:
        raise ValueError(f"LAPACK's {name} was not given what it takes: argument {-code}.")
    return code


def _call(library: ModuleType, name: str, *arguments: Any) -> None:
    """Call a routine by its name without the letter for the precision, which is the arrays'."""
    arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
    if len({array.dtype for array in arrays}) > 1 or not all(a.flags.f_contiguous for a in arrays):
        raise ValueError("Arrays must be of one precision and in Fortran's order.")
    letter = _LETTERS[arrays[0].dtype]
    _routine(library, letter + name)(*(_reference(each, _SCALARS[letter]) for each in arguments))


def _reference(argument: Any, scalar: Callable[[float], Any]) -> Any:
    """Return a pointer to an argument: Fortran takes no values."""
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    if isinstance(argument, int):
        argument = _Integer(argument)
    elif isinstance(argument, float):
        argument = scalar(argument)
    return argument if isinstance(argument, bytes) else ctypes.byref(argument)


@cache
def _routine(library: ModuleType, name: str) -> Callable[..., None]:
    exported = LowLevelCallable.from_cython(library, name)
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    address_of = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
    address = address_of(exported.function, exported.signature.encode())
    n_arguments = exported.signature.count(",") + 1  # calls with fewer are refused
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)
