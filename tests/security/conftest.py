import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

# The folder of a small run, and how to serve it, are those of the tests of the review.
sys.path.insert(0, str(Path(__file__).parent.parent / "apps" / "review"))


class Hostile:
    """Unpickling it runs code: a file appears."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


@pytest.fixture
def mark(tmp_path):
    """A file that must not exist at the end: only executed code makes it."""
    path = tmp_path / "executed"
    yield path
    assert not path.exists(), "code was executed"


@pytest.fixture
def hostile(mark):
    """An array of objects that run code when they are unpickled."""
    array = np.empty(1, dtype=object)
    array[0] = Hostile(mark)
    return array


@pytest.fixture
def pickled(mark):
    return pickle.dumps(Hostile(mark))
