"""Short names for the types of arrays that most functions take and return."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Columns = NDArray[np.intp]
