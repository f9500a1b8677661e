r"""The paper's instance similarity, Eq. (1), normalised to [0, 1], one tile at a time.

.. math:: A_{ij} = \tfrac12 \left(1 + \frac{x_i^\top x_j}{\|x_i\| \|x_j\|}\right)

A zero row has cosine 0 with everything but itself. The m x m matrix is never made: callers walk
over tiles of it, and because it is symmetric over those of its upper triangle only.
"""

from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np
from sklearn.utils import gen_batches

from gmpll._typing import AnyFloats

#: Similarities closer to 0 or 1 than this are 0 or 1: whether two copies of a row count as equal
#: must not depend on the rounding of their inner product.
SNAP = 1e-12


def cosine_similarity_tile(rows: AnyFloats, columns: AnyFloats, *, same: bool = False) -> AnyFloats:
    """Similarity in [0, 1] between unit (or zero) rows.

    ``same`` says whether both are the same instances, which are fully similar to themselves.
    """
    tile = rows @ columns.T
    tile += 1.0
    tile *= 0.5
    snap = max(SNAP, 4.0 * float(np.finfo(tile.dtype).eps))
    tile[tile < snap] = 0.0
    tile[tile > 1.0 - snap] = 1.0
    if same:
        np.fill_diagonal(tile, 1.0)
    return tile


def upper_triangle(n: int, size: int) -> Iterator[tuple[slice, slice]]:
    """Tiles (rows, columns) of an n x n matrix on and above its diagonal."""
    return combinations_with_replacement(gen_batches(n, size), 2)
