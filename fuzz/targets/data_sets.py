"""Readers of data sets: MATLAB files, UCI tables, NumPy and RAR archives."""

from __future__ import annotations

import io
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from fuzz.mutators import (
    after_the_first_byte,
    bytes_changed,
    csv_changed,
    mat_changed,
    npy_changed,
    zip_changed,
)
from fuzz.target import Target, scratch, written
from scipy.io import savemat

from gmpll.datasets import DatasetFormatError, archive, load_uci
from gmpll.datasets.catalogue import dataset_info, list_datasets
from gmpll.datasets.matfile import read_mat
from gmpll.datasets.prepared import read_npz


def _read_mat(data: bytes) -> None:
    arrays = read_mat(written("mat", "set.mat", data))
    assert arrays.candidates[np.arange(len(arrays.target)), arrays.target].all()
    assert np.isfinite(arrays.data).all()


def _mat_seeds() -> list[bytes]:
    rng = np.random.RandomState(0)
    target = np.eye(3)[rng.randint(3, size=5)].T
    partial = np.maximum(target, rng.randint(2, size=(3, 5)))
    seeds = []
    for compressed in (False, True):
        for form in (np.asarray, sp.csc_matrix):
            file = io.BytesIO()
            content = {"data": rng.randn(5, 2), "partial_target": form(partial)}
            savemat(file, content | {"target": form(target)}, do_compression=compressed)
            seeds.append(file.getvalue())
    return seeds


UCI_NAMES = sorted(info.name for info in list_datasets() if info.kind == "uci")


def _read_uci(data: bytes) -> None:
    name = UCI_NAMES[(data[0] if data else 0) % len(UCI_NAMES)]
    written("uci", f"uci/{dataset_info(name).file_name}", data[1:])
    bunch = load_uci(name, scratch("uci"), download_if_missing=False)
    assert np.isfinite(bunch.data).all()
    assert len(bunch.target) == len(bunch.data)


def _uci_seeds() -> list[bytes]:
    seeds = []
    for place, name in enumerate(UCI_NAMES):
        layout = dataset_info(name).layout
        assert layout is not None
        lines = []
        for row in range(3):
            cells = [f"{column}.{row}" for column in range(layout.n_columns)]
            for feature, words in layout.categories.items():
                column = layout.first_feature + layout.feature_names.index(feature)
                cells[column] = words[row % len(words)]
            cells[layout.class_column] = str(row % 2)
            lines.append(",".join(cells))
        seeds.append(bytes([place]) + "\n".join(lines).encode())
    return seeds


def _read_npz(data: bytes) -> None:
    arrays = read_npz(written("npz", "set.npz", data))
    assert np.isfinite(arrays["data"]).all()
    assert len(arrays["data"]) == len(arrays["target"])


def _npz_seeds() -> list[bytes]:
    arrays: dict[str, Any] = {"X": np.arange(8.0).reshape(4, 2), "y": np.arange(4) % 3}
    votes = np.array([[0, -1], [1, 2], [2, 2], [0, 1]])
    counts = np.stack([(votes == label).sum(axis=1) for label in range(3)], axis=1)
    crowd = {"S": counts > 0, "counts": counts, "votes": votes, "texts": np.array(list("abcd"))}
    parts = {"X_test": np.ones((2, 2)), "y_test": np.array([0, 1])}
    plain = {"names": np.array(list("xyz")), "is_train": np.array([True, True, True, False])}
    seeds = []
    for more in (crowd | parts, plain):
        file = io.BytesIO()
        np.savez(file, **arrays | more)
        seeds.append(file.getvalue())
    return seeds


class _Process:
    """Stands for the program that unpacks."""

    def __init__(self, content: bytes, returncode: int) -> None:
        self.stdout = io.BytesIO(content)
        self.returncode = returncode

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *error: Any) -> None:
        self.stdout.close()

    def kill(self) -> None:
        self.returncode = -9


def _read_archive(data: bytes) -> None:
    """Hand what a tool prints to the reader; the tools themselves are not ours."""
    listing, _, content = data[1:].partition(b"\n--\n")
    codes = data[0] if data else 0
    file, target = scratch("archive") / "a.rar", scratch("archive") / "member"
    asked = []

    def popen(command: list[str], **_: Any) -> _Process:
        if command[-1] == str(file):
            return _Process(listing, codes & 1)
        asked.append(command[-1])
        return _Process(content, codes >> 1 & 1)

    with (
        patch.object(archive.shutil, "which", return_value="tool"),
        patch.object(archive.subprocess, "Popen", popen),
    ):
        try:
            archive.extract_member(file, "Soccer Player.mat", target)
        finally:
            for member in asked:  # nothing that a tool could take for an option or a pattern
                assert member[0] not in "-@/*?", member
                assert not set(member) & set("*?[]\n\r\0"), member
    assert target.read_bytes() == content


def _archive_seeds() -> list[bytes]:
    return [
        b"\0Soccer Player.mat\n--\ncontent",
        b"\0folder/SoccerPlayer.mat\nfolder/readme.txt\n--\ncontent",
        b"\0Path = x\\soccer_player.mat\nSize = 3\n--\ncontent",
        b"\x01\n--\n",
    ]


TARGETS = (
    Target("mat", _read_mat, _mat_seeds, (DatasetFormatError,), mat_changed),
    Target(
        "uci", _read_uci, _uci_seeds, (DatasetFormatError,), after_the_first_byte(csv_changed)
    ),
    Target(
        "npz", _read_npz, _npz_seeds, (DatasetFormatError,), zip_changed(lambda name: npy_changed)
    ),
    Target(
        "archive", _read_archive, _archive_seeds, (archive.ArchiveError,),
        after_the_first_byte(bytes_changed),
    ),
)  # fmt: skip
