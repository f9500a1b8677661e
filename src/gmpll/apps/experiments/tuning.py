"""Choosing hyper-parameters on the training fold, without any true label."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import ParameterGrid, ShuffleSplit

from gmpll._typing import AnyFloats, Floats, Mask
from gmpll.metrics import row_lifts

#: Share of the training rows that is held out to compare settings.
HELD_OUT_SHARE = 0.2


@dataclass(frozen=True)
class Choice:
    """The chosen parameters, and every setting tried with its value (None: could not be fitted)."""

    parameters: dict[str, Any]
    tried: list[tuple[dict[str, Any], float | None]]


#: Takes candidates of held-out rows, the predicted columns, and the share of the training candidate
#: sets that contain each label.
Criterion = Callable[[Mask, NDArray[np.integer], AnyFloats], float]
#: Label-free criteria by name; larger is better.
CRITERIA: dict[str, Criterion] = {
    "candidate lift": lambda mask, predicted, frequency: float(
        row_lifts(mask, predicted, frequency).mean()
    ),
    "covering rate": lambda mask, predicted, _: float(mask[np.arange(len(mask)), predicted].mean()),
}


def choose_parameters(
    make: Callable[[Mapping[str, Any]], Any],
    grid: Mapping[str, Sequence[Any]],
    X: Floats,
    mask: Mask,
    *,
    criterion: str,
    random_state: int,
) -> Choice:
    """Fit every setting of the grid on part of the rows and compare them on the rest.

    The held-out rows' candidates are used by the criterion only. Of several settings with the
    largest value the first in the grid is chosen.
    """
    (train, held_out), *_ = ShuffleSplit(
        1, test_size=HELD_OUT_SHARE, random_state=random_state
    ).split(X)
    frequency = mask[train].mean(axis=0)
    tried: list[tuple[dict[str, Any], float | None]] = []
    last_error: Exception | None = None
    for parameters in ParameterGrid({name: list(values) for name, values in grid.items()}):
        try:
            predicted = make(parameters).fit(X[train], mask[train]).predict(X[held_out])
        except Exception as error:  # one impossible setting must not spoil the others
            tried.append((parameters, None))
            last_error = error
            continue
        tried.append((parameters, CRITERIA[criterion](mask[held_out], predicted, frequency)))
    values = [-np.inf if value is None else value for _, value in tried]
    if last_error is not None and max(values) == -np.inf:
        raise last_error
    return Choice(tried[int(np.argmax(values))][0], tried)
