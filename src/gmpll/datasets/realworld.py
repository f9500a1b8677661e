"""The six real-world partial label data sets."""

import warnings
from pathlib import Path
from urllib.parse import quote

import numpy as np
from sklearn.utils import Bunch

from gmpll._atomic_io import atomic_write
from gmpll._typing import Folder
from gmpll.datasets.archive import ArchiveError, NoToolError, extract_member
from gmpll.datasets.catalogue import DatasetInfo, dataset_info
from gmpll.datasets.download import DownloadError, download
from gmpll.datasets.matfile import read_mat
from gmpll.datasets.storage import (
    expected_path,
    find_file,
    has_checksum,
    make_bunch,
    unavailable,
)

#: The authors' own page. It has no https: what comes from there is believed for its checksum only.
ORIGIN = "http://palm.seu.edu.cn/zhangml/files/"


def load_real_world(
    name: str, data_home: Folder = None, *, download_if_missing: bool = True
) -> Bunch:
    """Load a real-world partial label data set.

    A file in the data folder is used, be it ``realworld/lost.mat`` or ``lost.mat``; otherwise
    the archive of the origin is downloaded, unpacked, checked and kept. The origin allows
    academic use only.

    Parameters
    ----------
    name : {"lost", "msrcv2", "fg-net", "birdsong", "soccer-player", "yahoo-news"}
        Which.
    data_home : str or path, default=None
        The data folder, see :func:`gmpll.datasets.get_data_home`.
    download_if_missing : bool, default=True
        With False, a missing file is an error.

    Returns
    -------
    Bunch
        With the keys

        - ``name``, the name asked for;
        - ``data``, float64 (n_samples, n_features);
        - ``candidates``, bool (n_samples, n_classes), a column per label of the file, also for
          labels that are never true;
        - ``target``, int (n_samples,), the column of the true label;
        - ``target_names``, the labels: the files have no names, so these are the numbers of their
          label rows (in FG-NET, ages);
        - ``ordered``, whether the labels are numbers whose differences count;
        - ``feature_names``, ``DESCR``, ``filename``;
        - ``verified``, whether the file is byte for byte the known one.

    Examples
    --------
    >>> from gmpll.datasets import load_real_world
    >>> load_real_world("lost", "no-such-folder", download_if_missing=False)
    Traceback (most recent call last):
        ...
    gmpll.datasets.errors.DatasetUnavailableError: Lost is not in the data folder: put ...
    """
    info = dataset_info(name, kind="real-world")
    path = find_file(info, data_home)
    if path is None:
        if not download_if_missing:
            raise unavailable(info, data_home)
        path = _fetch(info, data_home)
    data, candidates, target = read_mat(path)
    names = np.arange(candidates.shape[1])
    bunch = make_bunch(info, data, target, names, candidates=candidates, path=path)
    if not bunch.verified:
        warnings.warn(
            f"{path} is well formed but not the known file of {info.title}: results may not be "
            "comparable.",
            stacklevel=2,
        )
    return bunch


def _fetch(info: DatasetInfo, data_home: Folder) -> Path:
    """Download, unpack and check a set; return its file."""
    path = expected_path(info, data_home)
    archive = path.with_suffix(".rar")
    url = ORIGIN + quote(archive.name, safe="!")
    keep_archive = archive.is_file()  # it stays where the user has put it or has to unpack it
    try:
        if not keep_archive:
            download(url, archive)
        with atomic_write(path) as temporary:
            extract_member(archive, info.file_name, temporary)
            if not has_checksum(temporary, info.checksum):
                raise ArchiveError(f"{info.file_name} has another checksum than the known file")
    except OSError as error:
        keep_archive = keep_archive or isinstance(error, NoToolError)
        match error:
            case DownloadError():
                why = f"{url} could not be fetched: {error}"
            case NoToolError():
                why = f"{archive} is to be unpacked but {error}"
            case ArchiveError():
                why = f"what {url} gave is of no use: {error}"
            case _:  # the data folder cannot be written
                why = f"it cannot be downloaded to there: {error}"
        raise unavailable(info, data_home, why) from error
    finally:
        if not keep_archive and archive.is_file():
            archive.unlink()
    return path
