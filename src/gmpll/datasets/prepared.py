"""Sets of which features, votes and candidate sets were made beforehand, as NumPy archives.

An archive holds ``X`` (n x d) and ``y`` (n), and where there are any the candidates ``S`` (n x q),
the ``counts`` of votes per label (n x q), the ``votes`` (n x annotators, -1 where there is none),
the ``names`` of the labels, parts ``X_test``, ``y_test``, ``X_valid``, ``y_valid``, and the
``texts`` or ``words`` that the features were made of. Rows that ``is_train`` (n) does not mark are
for testing.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from gmpll._typing import Folder, Places
from gmpll.datasets.catalogue import DatasetInfo, dataset_info
from gmpll.datasets.errors import DatasetFormatError, check_features, check_real, fault, refuse_rows
from gmpll.datasets.storage import find_file, make_bunch, unavailable

#: An archive that unpacks to more is none of these.
MAX_BYTES = 2**31
#: More labels without names than this are a slip.
MAX_CLASSES = 100_000
#: What is returned as it stands in the archive, by the names there.
_TEXTS = {"texts": "texts", "words": "texts", "texts_test": "texts_test"}
_OPTIONAL = (
    *("candidates", "votes", "vote_counts", "texts", "texts_test"),
    *("data_valid", "target_valid", "data_test", "target_test"),
)


def load_crowd(name: str, data_home: Folder = None) -> Bunch:
    """Load a set whose candidates are the votes of a crowd of annotators.

    The file, for instance ``crowd/labelme.npz``, must lie in the data folder: nothing is
    downloaded. LabelMe and the sentiment polarity come with
    https://github.com/fmenat/PyLearningCrowds (GPL), CIFAR-10N with
    https://github.com/UCSC-REAL/cifar-10-100n (CC BY-NC). The keys of the file are those of
    :mod:`gmpll.datasets.prepared`.

    Parameters
    ----------
    name : {"labelme", "sentiment-polarity", "cifar10n"}
        Which.
    data_home : str or path, default=None
        The data folder, see :func:`gmpll.datasets.get_data_home`.

    Returns
    -------
    Bunch
        As from :func:`gmpll.datasets.load_real_world`, in the number type of the file, and

        - ``votes``, int (n_samples, n_annotators), -1 where an annotator did not vote;
        - ``vote_counts``, int (n_samples, n_classes), which ``fit`` takes as
          ``candidate_weight``; ``candidates`` are the labels with votes, and the true one is not
          always among them;
        - ``data_test``, ``target_test``, ``data_valid``, ``target_valid``, parts without votes;
        - ``texts``, ``texts_test``.

        What a set does not have is None.

    Examples
    --------
    >>> from gmpll.datasets import load_crowd
    >>> load_crowd("labelme", "no-such-folder")
    Traceback (most recent call last):
        ...
    gmpll.datasets.errors.DatasetUnavailableError: LabelMe is not in the data folder ...
    """
    return _load(dataset_info(name, kind="crowd"), data_home)


def load_prepared(name: str, data_home: Folder = None) -> Bunch:
    """Load pos-swedish, slashdot-pl-f1, 20newsgroups or fashion-mnist, whose features are prepared.

    The file, for instance ``dictionary/pos-swedish.npz``, must lie in the data folder: nothing is
    downloaded. Swedish parts of speech were made from https://universaldependencies.org (CC
    BY-SA), Slashdot comes with https://github.com/jhjiangSEU/SDLPP, 20 Newsgroups with
    https://github.com/yao8839836/text_gcn, Fashion-MNIST with
    https://github.com/zalandoresearch/fashion-mnist (MIT). Arguments and result are those of
    :func:`gmpll.datasets.load_crowd`; ``candidates`` is None where the set has plain labels, to be
    corrupted with :mod:`gmpll.datasets.corruption`.

    Examples
    --------
    >>> from gmpll.datasets import load_prepared
    >>> load_prepared("pos-swedish", "no-such-folder")
    Traceback (most recent call last):
        ...
    gmpll.datasets.errors.DatasetUnavailableError: Swedish Parts of Speech is not in the data ...
    """
    return _load(dataset_info(name, kind="prepared"), data_home)


def _load(info: DatasetInfo, data_home: Folder) -> Bunch:
    path = find_file(info, data_home)
    if path is None:
        why = f"it is not downloaded; it comes from {info.source}"
        raise unavailable(info, data_home, why)
    return make_bunch(info, path=path, **read_npz(path))


def read_npz(path: Path, *, labelled: bool = True) -> dict[str, Any]:
    """Read and check an archive: arrays by the names that the loaders return, None if absent.

    Unless it has to be ``labelled``, the true label of a row may be missing: it is -1, or the
    archive holds candidate sets and no ``y``.
    """
    content = _contents(path)
    if not labelled and "y" not in content and {"S", "X"} <= content.keys():
        check_features(content["X"], "X", path)
        content["y"] = np.full(len(content["X"]), -1)
    found: dict[str, Any] = dict.fromkeys(_OPTIONAL)
    found["data"], found["target"] = data, target = _rows_and_labels(
        content, "", path, least=0 if labelled else -1
    )
    names = content.get("names")
    if names is None:
        n_classes = np.shape(content["S"])[-1:] if "S" in content else (int(target.max()) + 1,)
        if not n_classes or n_classes[0] > MAX_CLASSES:
            raise fault(path, f"it has no or more than {MAX_CLASSES} labels, numbered from 0")
        names = np.arange(n_classes[0])
    found["target_names"] = names
    size = len(data), len(names)
    if "S" in content:
        candidates = _numbers(content["S"], "S", size, path) != 0
        refuse_rows(~candidates.any(axis=1), "has no candidate label", path)
        found["candidates"] = candidates
    if "counts" in content:
        counts = _numbers(content["counts"], "counts", size, path)
        refuse_rows((counts < 0).any(axis=1), "has a negative number of votes", path)
        found["vote_counts"] = counts
    if "votes" in content:
        votes = _numbers(content["votes"], "votes", (size[0], None), path)
        wrong = (votes < -1) | (votes >= len(names))
        refuse_rows(wrong.any(axis=1), "has a vote for a label that there is not", path)
        found["votes"] = votes
    for part in ("_valid", "_test"):
        if f"X{part}" in content:
            rows, labels = _rows_and_labels(content, part, path)
            _numbers(rows, f"X{part}", (None, data.shape[1]), path)
            found |= {f"data{part}": rows, f"target{part}": labels}
    found |= {ours: content[key] for key, ours in _TEXTS.items() if key in content}
    if "is_train" in content:
        train = _numbers(content["is_train"], "is_train", size[:1], path) != 0
        found |= {"data": data[train], "target": target[train]}
        found |= {"data_test": data[~train], "target_test": target[~train]}
    for key in ("target", "target_valid", "target_test"):
        if found[key] is not None:
            refuse_rows(found[key] >= len(names), f"of {key} has none of the labels", path)
    return found


def _contents(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise fault(path, f"it unpacks to more than {MAX_BYTES} bytes")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except DatasetFormatError:
        raise
    except Exception as error:  # a damaged archive shows in a dozen kinds of exception
        raise fault(path, f"it is no sound NumPy archive ({type(error).__name__})") from error


def _rows_and_labels(
    content: dict[str, NDArray[Any]], part: str, path: Path, *, least: int = 0
) -> tuple[NDArray[Any], Places]:
    for key in (f"X{part}", f"y{part}"):
        if key not in content:
            raise fault(path, f"it has no array {key}")
    data = content[f"X{part}"]
    check_features(data, f"X{part}", path)
    labels = _numbers(content[f"y{part}"], f"y{part}", (len(data),), path)
    refuse_rows(~(np.isfinite(labels) & (labels >= least)), f"of y{part} has no label", path)
    return data, labels.astype(np.intp)


def _numbers(
    array: NDArray[Any], key: str, shape: tuple[int | None, ...], path: Path
) -> NDArray[Any]:
    """Return an array of numbers if it has the shape; None stands for any length."""
    check_real(array, key, path)
    fits = array.ndim == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = tuple("any" if length is None else length for length in shape)
        raise fault(path, f"{key} has the shape {array.shape}, not {wanted}")
    return array
