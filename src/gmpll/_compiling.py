"""Compiled functions that hold no lock, kept on disk where that can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])

# fastmath is limited to what keeps infinities and NaN intact: sums may be reordered.
_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract", "arcp"}}


def compiled(function: Function) -> Function:
    """Compile a function by numba when it is called first."""
    try:
        return njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # no folder for the compiled code can be written
        return njit(**_OPTIONS)(function)
