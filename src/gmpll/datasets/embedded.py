"""The small sets that come with scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from gmpll.datasets.catalogue import dataset_info

__all__ = ["load_embedded"]


def load_embedded(name: str) -> Bunch:
    """Load a data set that needs no file.

    Parameters
    ----------
    name : {"digits", "iris", "wine"}
        Which.

    Returns
    -------
    Bunch
        As from :func:`gmpll.datasets.load_real_world`; ``candidates`` is None.

    Examples
    --------
    >>> from gmpll.datasets import load_embedded
    >>> iris = load_embedded("iris")
    >>> iris.data.shape, iris.target_names.tolist()
    ((150, 4), ['setosa', 'versicolor', 'virginica'])
    """
    import sklearn.datasets

    info = dataset_info(name, kind="embedded")
    raw: Any = getattr(sklearn.datasets, f"load_{info.name}")()
    return Bunch(
        name=info.name,
        data=np.asarray(raw.data, dtype=np.float64),
        candidates=None,
        target=np.asarray(raw.target, dtype=np.intp),
        target_names=np.asarray(raw.target_names),
        ordered=info.ordered,
        feature_names=[str(feature) for feature in raw.feature_names],
        DESCR=info.description(),
        filename=None,
        verified=True,
    )
