"""Short names for types that most functions take and return."""

import os

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
AnyFloats = NDArray[np.floating]  # in the precision that is asked for
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]  # numbers of rows, of columns or of labels
Integers = NDArray[np.int64]  # codes of labels, -1 for none; rows as they are saved
Names = NDArray[np.str_]  # of rows or labels
Folder = str | os.PathLike[str] | None  # of the data sets
RandomSource = int | np.random.RandomState
