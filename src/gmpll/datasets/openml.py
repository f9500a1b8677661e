"""Tables from OpenML, by way of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fetch_table"]


def fetch_table(data_id: int) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Fetch a data set from OpenML as text.

    Parameters
    ----------
    data_id : int
        OpenML's number of the set.

    Returns
    -------
    features : ndarray of shape (n_samples, n_features), str
        Words as words, numbers in full precision, ``nan`` where a value is unknown.
    labels : ndarray of shape (n_samples,), str
    """
    from sklearn.datasets import fetch_openml

    # This parser needs no pandas; nothing is cached because the table is kept in our own form.
    raw: Any = fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff", cache=False)
    codes = np.asarray(raw.data, dtype=np.float64)
    features = np.empty(codes.shape, dtype=object)
    for column, name in enumerate(raw.feature_names):
        words = (raw.categories or {}).get(name)
        features[:, column] = _texts(codes[:, column], words)
    return features, np.array([str(label) for label in raw.target], dtype=object)


def _texts(codes: NDArray[np.float64], words: list[Any] | None) -> list[str]:
    if words is None:
        return [repr(value) for value in codes.tolist()]
    # Columns of words arrive as numbers of their categories.
    return ["nan" if np.isnan(code) else str(words[int(code)]) for code in codes]
