"""What is tuned, per method, by its printed name.

The values are those that the paper names for each method, with the exceptions noted. A method that
is not listed runs at its defaults, which the paper suggests for it too, or, as gmpll, chooses for
itself.
"""

from __future__ import annotations

from typing import Any


def _powers_of_ten(first: int, last: int) -> tuple[float, ...]:
    # 10.0**-3 is not 1e-3 in the last bit; the text of the number is part of a job's identity.
    return tuple(float(f"1e{exponent}") for exponent in range(first, last + 1))


#: Printed name -> parameter -> values.
GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    # alpha is left at 0: with similarities in [0, 1] nearly all affinities are positive, so that
    # the bias is nearly constant and moves no label (docs/experiments.md).
    "GM-PLL": {"beta": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)},
    "PL-SVM": {"regularization": _powers_of_ten(-3, 3)},
    # The paper goes on to 100. From 1 on a fit takes minutes, and LIBLINEAR runs into its iteration
    # limit from 10 on: the grid is cut for time.
    "M3PL": {"C_max": (0.01, 0.1)},
    # With the defaults of the published package alone PL-ECOC stays below its published figures.
    "PL-ECOC": {"C": (1.0, 10.0), "n_columns": (None, 200)},
    "CLPL": {"C": _powers_of_ten(-3, 3)},
}
