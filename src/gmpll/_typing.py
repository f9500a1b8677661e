"""Short names for types that most functions take and return."""

import os

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
AnyFloats = NDArray[np.floating]  # in the precision that is asked for
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]  # numbers of rows, of columns or of labels
Folder = str | os.PathLike[str] | None  # of the data sets
RandomSource = int | np.random.RandomState
