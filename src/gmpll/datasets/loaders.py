"""One door to all data sets, and the small ones that come with scikit-learn."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from gmpll._typing import Folder
from gmpll.datasets.catalogue import dataset_info
from gmpll.datasets.prepared import load_crowd, load_prepared
from gmpll.datasets.realworld import load_real_world
from gmpll.datasets.storage import make_bunch
from gmpll.datasets.uci import load_uci


def load_dataset(name: str, data_home: Folder = None, *, download_if_missing: bool = True) -> Bunch:
    """Load any data set of :func:`gmpll.datasets.list_datasets` by name.

    The other arguments and the result are those of :func:`gmpll.datasets.load_real_world`;
    ``candidates`` is None where the set has plain labels.

    Examples
    --------
    >>> from gmpll.datasets import load_dataset
    >>> load_dataset("wine").data.shape
    (178, 13)
    """
    kind = dataset_info(name).kind
    if kind == "embedded":
        return load_embedded(name)
    if kind in ("crowd", "prepared"):
        return (load_crowd if kind == "crowd" else load_prepared)(name, data_home)
    load = load_real_world if kind == "real-world" else load_uci
    return load(name, data_home, download_if_missing=download_if_missing)


def load_embedded(name: str) -> Bunch:
    """Load "digits", "iris" or "wine", which need no file.

    The result is as from :func:`gmpll.datasets.load_real_world`; ``candidates`` is None.

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
    return make_bunch(
        info,
        np.asarray(raw.data, dtype=np.float64),
        np.asarray(raw.target, dtype=np.intp),
        np.asarray(raw.target_names),
        feature_names=[str(feature) for feature in raw.feature_names],
    )
