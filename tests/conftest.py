import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # literal.py and problems.py

# Whoever starts the tests in the background may have let them ignore Ctrl-C, and what they start
# with them; several tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class ArrayLibrary(NamedTuple):
    """An array library under test: how its arrays are made; ``to_host`` brings them back."""

    name: str
    array: Callable[[Any], Any]


def _array_library(name: str) -> ArrayLibrary:
    if name == "numpy":
        return ArrayLibrary(name, np.asarray)
    if name == "torch":
        torch = pytest.importorskip("torch")
        return ArrayLibrary(name, lambda values: torch.from_numpy(np.array(values)))
    da = pytest.importorskip("dask.array")

    def in_chunks(values: Any) -> Any:
        values = np.asarray(values)
        rows = max(1, -(-len(values) // 3))
        return da.from_array(values, chunks=(rows, *values.shape[1:]))

    return ArrayLibrary(name, in_chunks)


@pytest.fixture(params=["numpy", "torch", "dask"])
def library(request: pytest.FixtureRequest) -> ArrayLibrary:
    """Each array library in turn: the same test decides about all engines."""
    return _array_library(request.param)
