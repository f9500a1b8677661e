"""Archives of prepared arrays: small ones of the real layout, and what is refused."""

import io
import zipfile

import numpy as np
import pytest

from gmpll.datasets import (
    DatasetFormatError,
    DatasetUnavailableError,
    load_crowd,
    load_dataset,
    load_prepared,
    prepared,
)


def crowd_arrays():
    votes = np.array([[0, 0, -1], [1, 2, 1], [-1, -1, 2], [2, 0, 1]])
    counts = np.stack([(votes == label).sum(axis=1) for label in range(3)], axis=1)
    return {
        "X": np.arange(8, dtype=np.float32).reshape(4, 2),
        "y": np.array([0, 1, 2, 2]),
        "S": counts > 0,
        "counts": counts,
        "votes": votes,
        "X_test": np.ones((2, 2), dtype=np.float32),
        "y_test": np.array([1, 0]),
        "texts": np.array(["a", "b", "c", "d"]),
    }


@pytest.fixture
def write_npz(tmp_path):
    def write(name="crowd/labelme.npz", **changes):
        arrays = {**crowd_arrays(), **changes}
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        np.savez_compressed(path, **{k: a for k, a in arrays.items() if a is not None})
        return path

    return write


def test_votes_candidates_and_parts_arrive(write_npz, tmp_path):
    path, arrays = write_npz(), crowd_arrays()
    bunch = load_crowd("LabelMe", tmp_path)
    for key, ours in {
        "X": "data", "y": "target", "S": "candidates", "counts": "vote_counts", "votes": "votes",
        "X_test": "data_test", "y_test": "target_test", "texts": "texts",
    }.items():  # fmt: skip
        np.testing.assert_array_equal(bunch[ours], arrays[key])
    assert bunch.data.dtype == np.float32
    assert bunch.candidates.dtype == bool
    assert bunch.target_names.tolist() == [0, 1, 2]
    assert bunch.data_valid is None
    assert bunch.target_valid is None
    assert bunch.filename == str(path)
    assert not bunch.verified
    assert "fmenat/PyLearningCrowds" in bunch.DESCR
    assert load_dataset("labelme", tmp_path).votes.shape == (4, 3)


def test_plain_labels_names_and_marked_rows(write_npz, tmp_path):
    marked = np.array([True, False, True, True])
    write_npz(
        "sets/20newsgroups.npz", S=None, counts=None, votes=None, X_test=None, y_test=None,
        names=np.array(["x", "y", "z", "never"]), is_train=marked,
    )  # fmt: skip
    bunch = load_prepared("20newsgroups", tmp_path)
    assert bunch.candidates is None
    assert bunch.target_names.tolist() == ["x", "y", "z", "never"]
    assert bunch.target.tolist() == [0, 2, 2]
    assert bunch.target_test.tolist() == [1]
    np.testing.assert_array_equal(bunch.data_test, crowd_arrays()["X"][[1]])


def test_labels_without_names_are_counted(write_npz, tmp_path):
    write_npz("images/fashion-mnist.npz", S=None, counts=None, votes=None)
    assert load_prepared("fashion-mnist", tmp_path).target_names.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": None}, "it has no array X"),
        ({"y_test": None}, "it has no array y_test"),
        ({"X": np.array([["a"] * 2] * 4)}, "X is not a matrix of real numbers"),
        ({"X": np.full((4, 2), np.nan)}, "row 0 has a feature that is not finite"),
        ({"X_test": np.ones((2, 3))}, r"X_test has the shape \(2, 3\), not \('any', 2\)"),
        ({"y": np.array([0, 1, 2])}, r"y has the shape \(3,\), not \(4,\)"),
        ({"y": np.array([0, -1, 2, 2])}, "row 1 of y has no label"),
        ({"y": np.array([0, 1, 2, 3])}, "row 3 of target has none of the labels"),
        ({"y_test": np.array([1, 7])}, "row 1 of target_test has none of the labels"),
        ({"S": np.zeros((4, 3))}, "row 0 has no candidate label"),
        ({"counts": -np.ones((4, 3))}, "negative number of votes"),
        ({"counts": np.ones((4, 2))}, "counts has the shape"),
        ({"votes": np.full((4, 3), 3)}, "has a vote for a label that there is not"),
        ({"votes": np.ones(4)}, "votes has the shape"),
        ({"is_train": np.ones(3)}, "is_train has the shape"),
        ({"X": np.array([{}], dtype=object)}, "no sound NumPy archive"),
    ],
)
def test_faults_are_named(write_npz, tmp_path, changes, message):
    write_npz(**changes)
    with pytest.raises(DatasetFormatError, match=message):
        load_crowd("labelme", tmp_path)


def test_no_archive_a_cut_one_and_a_bomb(write_npz, tmp_path, monkeypatch):
    path = write_npz()
    content = path.read_bytes()
    monkeypatch.setattr(prepared, "MAX_BYTES", 1000)
    with pytest.raises(DatasetFormatError, match="unpacks to more than 1000 bytes"):
        load_crowd("labelme", tmp_path)
    monkeypatch.undo()
    for damaged in (b"", b"junk", content[: len(content) // 2], content[:-30]):
        path.write_bytes(damaged)
        with pytest.raises(DatasetFormatError, match="no sound NumPy archive"):
            load_crowd("labelme", tmp_path)


def test_a_header_that_promises_more_than_there_is(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**10)}
    )
    path = tmp_path / "labelme.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(16))
    with pytest.raises(DatasetFormatError, match="no sound NumPy archive"):
        load_crowd("labelme", tmp_path)


def test_a_missing_file_names_its_place_and_its_source(tmp_path):
    with pytest.raises(DatasetUnavailableError) as caught:
        load_crowd("labelme", tmp_path)
    assert f"put labelme.npz into {tmp_path / 'crowd'}" in str(caught.value)
    assert "fmenat/PyLearningCrowds" in str(caught.value)
    with pytest.raises(ValueError, match="There is no crowd set 'lost'"):
        load_crowd("lost")
