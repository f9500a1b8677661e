import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from gmpll._atomic_io import write_atomically
from gmpll.apps.experiments import store
from gmpll.apps.experiments.claims import claimed
from gmpll.apps.experiments.declaration import Declaration, Experiment
from gmpll.apps.experiments.errors import ExperimentError
from gmpll.apps.experiments.methods import Method
from gmpll.apps.experiments.store import Result, RunFolder

IRIS = Experiment("controlled", ("iris",), ("Any candidate",), p=(0.5,), r=(1,), folds=3)
RESULT = Result(
    np.array([2, 0]), np.array([1, 1, 0]), np.array([3, 4]), np.array([0, 1, 2]),
    {"status": "ok", "error": "", "fit_seconds": 0.1, "chosen": {"beta": 0.3}},
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.declare(Declaration((IRIS,)))
    return folder


def test_a_result_is_read_back(folder):
    job = folder.jobs()[0]
    assert folder.load(job) is None
    folder.save(job, RESULT)
    loaded = folder.load(job)
    for name in ("predicted", "labels", "test_rows", "train_rows"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(RESULT, name))
    assert loaded.facts == RESULT.facts
    assert list(folder.load_all(folder.jobs())) == [job.id]


def test_files_hold_no_pickles_and_describe_themselves(folder):
    job = folder.jobs()[0]
    folder.save(job, RESULT)
    with np.load(folder.file_of(job), allow_pickle=False) as file:
        facts = json.loads(file["facts"].tobytes())
        assert all(file[name].dtype != object for name in file.files)
    assert facts["format"] == store.FORMAT_VERSION
    assert facts["job"]["dataset"] == "iris"


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_damaged_file_is_no_result(folder, keep):
    job = folder.jobs()[0]
    folder.save(job, RESULT)
    content = folder.file_of(job).read_bytes()
    folder.file_of(job).write_bytes(content[:keep])
    assert folder.load(job) is None


def test_a_result_of_another_format_is_no_result(folder, monkeypatch):
    job = folder.jobs()[0]
    folder.save(job, RESULT)
    monkeypatch.setattr(store, "FORMAT_VERSION", 99)
    assert folder.load(job) is None


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch, step):
    file = tmp_path / "file"
    write_atomically(file, b"old")

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_content_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    steps = []
    fsync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (steps.append("fsync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append("replace"), rename(a, b)))
    write_atomically(tmp_path / "file", b"content")
    assert steps == ["fsync", "replace", "fsync"]


def test_leftovers_of_killed_processes_are_removed_but_not_those_being_written(folder):
    dead, alive = folder.jobs()[:2]
    leftovers = [folder.path / "jobs" / f".{job.id}.npz.123.tmp" for job in (dead, alive)]
    for leftover in leftovers:
        leftover.write_bytes(b"half")
    child, parent = os.pipe()
    pid = os.fork()
    if pid == 0:  # another process that holds a claim
        with claimed(folder.lock_file, alive.id):
            os.write(parent, b"1")
            signal.pause()
    os.read(child, 1)
    try:
        folder.remove_leftovers()
        assert [leftover.exists() for leftover in leftovers] == [False, True]
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(child)
        os.close(parent)
    folder.remove_leftovers()
    assert not leftovers[1].exists()


def test_declarations_add_up(folder):
    wine = replace(IRIS, datasets=("wine",))
    folder.declare(Declaration((wine,)))
    folder.declare(Declaration((IRIS, wine)))
    assert folder.declaration() == Declaration((IRIS, wine))
    assert len(folder.jobs()) == 6


@pytest.mark.parametrize("change", [{"folds": 10}, {"tune": "covering rate"}, {"max_rows": 50}])
def test_protocols_are_not_mixed(folder, change):
    with pytest.raises(ExperimentError, match="controlled run with another protocol"):
        folder.declare(Declaration((replace(IRIS, **change),)))
    assert folder.declaration() == Declaration((IRIS,))


def test_one_name_does_not_mean_two_variants(folder):
    mine = replace(IRIS, methods=("Mine",))
    folder.declare(Declaration((mine,), {"Mine": Method("Mine", "a:B")}))
    with pytest.raises(ExperimentError, match="another variant named 'Mine'"):
        folder.declare(Declaration((mine,), {"Mine": Method("Mine", "a:C")}))


def test_folders_that_are_none(tmp_path):
    with pytest.raises(ExperimentError, match="not a run folder"):
        RunFolder(tmp_path).jobs()
    (tmp_path / "file").touch()
    with pytest.raises(ExperimentError, match="is a file"):
        RunFolder(tmp_path / "file")
    (tmp_path / "declaration.json").write_text("{")
    with pytest.raises(ExperimentError, match="not valid JSON"):
        RunFolder(tmp_path).jobs()
    (tmp_path / "declaration.json").write_text('{"format": 0}')
    with pytest.raises(ExperimentError, match="another version"):
        RunFolder(tmp_path).jobs()


@pytest.mark.parametrize("text", ["{", "[]", '{"commit": 3}'])
def test_a_damaged_record_of_a_start_is_named(folder, text):
    (folder.path / "starts" / "one.json").write_text(text)
    with pytest.raises(ExperimentError, match=r"one\.json is .*remove it\.$"):
        folder.starts()
