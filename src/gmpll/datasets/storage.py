"""The data folder: where it is, what lies in it, and how files come into it unharmed."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sklearn.utils import Bunch

from gmpll._typing import Folder, Mask, Places
from gmpll.datasets.catalogue import DatasetInfo, dataset_info
from gmpll.datasets.errors import DatasetUnavailableError

DATA_HOME_VARIABLE = "GMPLL_DATA"
#: What came through OpenML lies apart from what a user put into the data folder, because its rows
#: may stand in another order.
OPENML_FOLDER = "openml"
_CHUNK_BYTES = 2**16


def get_data_home(data_home: Folder = None) -> Path:
    """Return the folder in which data sets are looked for and kept; it need not exist.

    By default it is that of the environment variable ``GMPLL_DATA``, else ``gmpll`` in the user's
    cache folder (``XDG_CACHE_HOME``, else ``~/.cache``).

    Examples
    --------
    >>> from gmpll.datasets import get_data_home
    >>> get_data_home("my-data").name
    'my-data'
    """
    if data_home is None:
        data_home = os.environ.get(DATA_HOME_VARIABLE) or None
    if data_home is None:
        data_home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "gmpll"
    return Path(data_home).expanduser()


def expected_path(info: DatasetInfo, data_home: Folder = None) -> Path:
    """Return where the file of a data set belongs."""
    return get_data_home(data_home) / info.folder / info.file_name


def find_file(info: DatasetInfo, data_home: Folder = None) -> Path | None:
    """Return the file of a data set, or None.

    Spelling is forgiven: ``SoccerPlayer.mat`` is as good as ``Soccer Player.mat``.
    """
    home = get_data_home(data_home)
    for folder in (home / info.folder, home, home / OPENML_FOLDER):
        exact = folder / info.file_name
        for path in (exact, *sorted(folder.glob(f"*{exact.suffix}"))):
            if same_name(path.name, info.file_name) and path.is_file():
                return path
    return None


def is_available(name: str, data_home: Folder = None) -> bool:
    """Whether a data set can be loaded without downloading anything.

    Examples
    --------
    >>> from gmpll.datasets import is_available
    >>> is_available("iris")
    True
    """
    info = dataset_info(name)
    return info.kind == "embedded" or find_file(info, data_home) is not None


def unavailable(
    info: DatasetInfo, data_home: Folder, why: object = None
) -> DatasetUnavailableError:
    """Say that a data set cannot be had, why, and which file to put where."""
    path, reason = expected_path(info, data_home), f" ({why})" if why else ""
    return DatasetUnavailableError(
        f"{info.title} is not in the data folder{reason}: put {path.name} into {path.parent}, or "
        f"name another folder with data_home or the environment variable GMPLL_DATA."
    )


def same_name(one: str, other: str) -> bool:
    """Whether two file names agree in their letters and digits, upper or lower case."""
    first, second = ("".join(filter(str.isalnum, name.lower())) for name in (one, other))
    return first == second


def has_checksum(path: Path, checksum: str) -> bool:
    """Whether a file has the digest ``sha256:...`` or ``git-blob:...``."""
    kind, _, digest = checksum.partition(":")
    if kind == "sha256":
        state = hashlib.sha256()
    elif kind == "git-blob":  # the hash that `git hash-object` prints: a header, then the bytes
        state = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    else:
        raise ValueError(f"A checksum begins with sha256: or git-blob:, not {checksum!r}.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: state).hexdigest() == digest


def chunks(source: Any, limit: int, too_much: OSError) -> Iterator[bytes]:
    """Read a stream to its end in pieces; raise the error if it gives more than so many bytes."""
    received = 0
    while chunk := source.read(_CHUNK_BYTES):
        received += len(chunk)
        if received > limit:
            raise too_much
        yield chunk


def make_bunch(
    info: DatasetInfo,
    data: NDArray[Any],
    target: Places,
    target_names: NDArray[Any],
    *,
    candidates: Mask | None = None,
    feature_names: list[str] | None = None,
    path: Path | None = None,
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
        verified=path is None or has_checksum(path, info.checksum),
        **more,
    )
