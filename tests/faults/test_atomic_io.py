"""What lies beside its target while it is written, and who removes it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gmpll import _atomic_io
from gmpll._atomic_io import abandoned, atomic_write, remove_abandoned, takes_files, unfinished_path
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.output import check_target, output_folder

OWN = ("matching.npz", "model.skops")


@pytest.fixture(scope="module")
def dead():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def _left_by(process, target):
    ours = unfinished_path(target)
    return ours.with_name(ours.name.replace(f"-{os.getpid()}-", f"-{process}-"))


def test_what_the_dead_left_is_removed_and_nothing_else(tmp_path, dead):
    target = tmp_path / "a.csv"
    left, folder = _left_by(dead, target), _left_by(dead, target)
    left.write_text("half")
    folder.mkdir()
    (folder / "part").write_text("half")
    others = [
        tmp_path / "a.csv",
        tmp_path / ".a.csv",
        tmp_path / ".a.csv-notes.tmp",
        tmp_path / f".a.csv-00000000-{dead}-0.tmp",  # of another machine
        _left_by(dead, tmp_path / "b.csv"),  # of another target
        _left_by(os.getppid(), target),  # of a process that lives
        unfinished_path(target),  # of this one
    ]
    for path in others:
        path.write_text("mine")
    assert sorted(abandoned(tmp_path, "a.csv")) == sorted([left, folder])
    with atomic_write(target) as beside:
        beside.write_text("new")
    assert sorted(tmp_path.iterdir()) == sorted(others)
    assert target.read_text() == "new"
    remove_abandoned(tmp_path)  # of all targets
    assert sorted(tmp_path.iterdir()) == sorted(set(others) - {others[4]})


def test_long_names_have_room(tmp_path):
    target = tmp_path / ("ä" * 120 + ".csv")
    with atomic_write(target) as beside:
        beside.write_text("content")
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@pytest.mark.skipif(os.name != "posix", reason="elsewhere it is not asked")
def test_the_probe_of_a_dead_process_is_removed(tmp_path, dead):
    ours = unfinished_path(tmp_path / "probe").name
    (tmp_path / ours.replace(f"-{os.getpid()}-", f"-{dead}-")).mkdir()
    assert takes_files(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_probe_does_not_stay_when_the_process_is_told_to_end(tmp_path, monkeypatch):
    remove = Path.rmdir

    def told_to_end(folder):
        monkeypatch.setattr(Path, "rmdir", remove)
        raise SystemExit

    monkeypatch.setattr(Path, "rmdir", told_to_end)
    with pytest.raises(SystemExit):
        takes_files(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="elsewhere it is not asked")
def test_who_lives(dead):
    assert _atomic_io._lives(os.getpid())
    assert _atomic_io._lives(1)
    assert not _atomic_io._lives(dead)
    assert _atomic_io._lives(10**30)  # no number of a process: leave it alone


@pytest.fixture
def results(tmp_path):
    """A folder with the results of an earlier run, and a file of the user's."""
    folder = tmp_path / "out"
    folder.mkdir()
    for name in ("matching.npz", "model.skops", "resolved.parquet", "mine.txt"):
        (folder / name).write_text(f"old {name}")
    return folder


def _content(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def _replace(folder):
    with output_folder(folder) as staging:
        for name in ("matching.npz", "model.skops", "resolved.csv"):
            (staging / name).write_text(f"new {name}")


def test_a_run_replaces_another(results):
    _replace(results)
    new = {name: f"new {name}" for name in ("matching.npz", "model.skops", "resolved.csv")}
    assert _content(results) == {**new, "mine.txt": "old mine.txt"}


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
@pytest.mark.parametrize("number", range(1, 7))  # three old files leave, three new ones come
def test_a_move_that_fails_is_taken_back(results, monkeypatch, number, failure):
    before, moves, replace = _content(results), [], os.replace

    def failing(source, target):
        moves.append(source)
        if len(moves) == number:
            raise failure
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(type(failure)):
        _replace(results)
    assert len(moves) >= number
    assert _content(results) == before
    assert list(results.parent.iterdir()) == [results]


def test_a_new_folder_appears_in_one_step(tmp_path, monkeypatch):
    seen = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (seen.append(b), replace(a, b)))
    _replace(tmp_path / "out")
    assert seen == [tmp_path / "out"]
    assert len(_content(tmp_path / "out")) == 3
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_only_what_a_killed_run_left_incomplete_is_replaced_without_being_told(results, dead):
    with pytest.raises(InputError, match="holds results already"):
        check_target(results, force=False, own_files=OWN)
    left = _left_by(dead, results)
    left.mkdir()
    with pytest.raises(InputError, match="holds results already"):
        check_target(results, force=False, own_files=OWN)  # it had not begun to move files
    (left / "replaced").mkdir()
    check_target(results, force=False, own_files=OWN)
    _replace(results)
    assert list(results.parent.iterdir()) == [results]
    with pytest.raises(InputError, match="holds results already"):
        check_target(results, force=False, own_files=OWN)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with atomic_write(pipe) as beside:
        beside.write_bytes(b"content")
    reader.join(timeout=30)
    assert got == [b"content"]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "file.csv", tmp_path / "link.csv"
    file.write_text("old")
    link.symlink_to(file)
    with atomic_write(link) as beside:
        beside.write_text("new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert list((tmp_path / "folder").iterdir()) == [file]


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="standard output has no name")
def test_standard_output_goes_on_where_it_was(tmp_path):
    code = (
        "from pathlib import Path\n"
        "from gmpll._atomic_io import atomic_write\n"
        "print('before')\n"
        "with atomic_write(Path('/dev/stdout')) as beside:\n"
        "    beside.write_text('content\\n')\n"
        "print('after')\n"
    )
    for out in (tmp_path / "file", subprocess.PIPE):
        if out is subprocess.PIPE:
            done = subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
            printed = done.stdout
        else:
            out.write_text("earlier\n")
            with out.open("ab") as file:
                subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
            printed = out.read_bytes().removeprefix(b"earlier\n")
        assert printed == b"before\ncontent\nafter\n"
