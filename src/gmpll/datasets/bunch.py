"""The form in which every loader returns a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from gmpll.datasets.catalogue import DatasetInfo

__all__ = ["make_bunch"]


def make_bunch(
    info: DatasetInfo,
    data: NDArray[Any],
    target: NDArray[np.intp],
    target_names: NDArray[Any],
    *,
    candidates: NDArray[np.bool_] | None = None,
    feature_names: list[str] | None = None,
    path: Path | None = None,
    verified: bool = True,
    **more: Any,
) -> Bunch:
    """Return a data set with the keys that all have, and whatever more one of them has."""
    return Bunch(
        name=info.name,
        data=data,
        candidates=candidates,
        target=target,
        target_names=target_names,
        # A file of one's own may have words for numbers.
        ordered=info.ordered and target_names.dtype.kind == "i",
        feature_names=feature_names or [f"feature{j}" for j in range(data.shape[1])],
        DESCR=info.description(),
        filename=None if path is None else str(path),
        verified=verified,
        **more,
    )
