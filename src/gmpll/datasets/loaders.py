"""One door to all data sets."""

from __future__ import annotations

import os

from sklearn.utils import Bunch

from gmpll.datasets.catalogue import dataset_info
from gmpll.datasets.embedded import load_embedded
from gmpll.datasets.realworld import load_real_world
from gmpll.datasets.uci import load_uci

__all__ = ["load_dataset"]


def load_dataset(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    *,
    download_if_missing: bool = True,
) -> Bunch:
    """Load any data set by name.

    Parameters
    ----------
    name : str
        Any of :func:`gmpll.datasets.list_datasets`.
    data_home : str or path, default=None
        The data folder, see :func:`gmpll.datasets.get_data_home`.
    download_if_missing : bool, default=True
        With False, a missing file is an error.

    Returns
    -------
    Bunch
        As from :func:`gmpll.datasets.load_real_world`; ``candidates`` is None where the set has
        plain labels.

    Examples
    --------
    >>> from gmpll.datasets import load_dataset
    >>> load_dataset("wine").data.shape
    (178, 13)
    """
    kind = dataset_info(name).kind
    if kind == "embedded":
        return load_embedded(name)
    load = load_real_world if kind == "real-world" else load_uci
    return load(name, data_home, download_if_missing=download_if_missing)
