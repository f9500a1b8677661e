import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from gmpll._atomic_io import atomic_write
from gmpll.datasets import dataset_info, get_data_home, is_available
from gmpll.datasets.storage import expected_path, find_file, has_checksum


def test_data_home_is_the_argument_else_the_variable_else_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("GMPLL_DATA", str(tmp_path / "variable"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert get_data_home(tmp_path / "argument") == tmp_path / "argument"
    assert get_data_home() == tmp_path / "variable"
    monkeypatch.setenv("GMPLL_DATA", "")
    assert get_data_home() == tmp_path / "cache" / "gmpll"
    monkeypatch.delenv("GMPLL_DATA")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert get_data_home() == Path.home() / ".cache" / "gmpll"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("lost", "realworld/lost.mat"),
        ("lost", "lost.mat"),
        ("soccer-player", "realworld/Soccer Player.mat"),
        ("soccer-player", "SoccerPlayer.mat"),
        ("yahoo-news", "realworld/Yahoo! News.mat"),
        ("yahoo-news", "yahoo-news.mat"),
        ("glass", "uci/glass.csv"),
        ("glass", "glass.csv"),
        ("glass", "openml/glass.csv"),
    ],
)
def test_files_are_found_in_the_usual_places_and_spellings(tmp_path, name, file):
    assert not is_available(name, tmp_path)
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.touch()
    assert find_file(dataset_info(name), tmp_path) == path
    assert is_available(name, tmp_path)


def test_other_files_are_not_taken_for_a_data_set(tmp_path):
    for file in ("lost2.mat", "lost.csv", "xlost.mat"):
        (tmp_path / file).touch()
    (tmp_path / "lost.mat").mkdir()
    assert find_file(dataset_info("lost"), tmp_path) is None


def test_the_users_file_goes_before_the_one_from_openml(tmp_path):
    for folder in ("openml", "uci"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "glass.csv").touch()
    assert find_file(dataset_info("glass"), tmp_path) == tmp_path / "uci" / "glass.csv"


def test_expected_path_is_where_a_file_is_found(tmp_path):
    path = expected_path(dataset_info("yahoo-news"), tmp_path)
    path.parent.mkdir()
    path.touch()
    assert find_file(dataset_info("yahoo-news"), tmp_path) == path


def test_checksums(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"hello\n")
    digest = hashlib.sha256(b"hello\n").hexdigest()
    assert has_checksum(path, f"sha256:{digest}")
    # What `git hash-object` prints for these bytes.
    assert has_checksum(path, "git-blob:ce013625030ba8dba906f756967f9e9ca394464a")
    path.write_bytes(b"hello!\n")
    assert not has_checksum(path, f"sha256:{digest}")
    assert not has_checksum(path, "git-blob:ce013625030ba8dba906f756967f9e9ca394464a")
    with pytest.raises(ValueError, match="begins with sha256: or git-blob:"):
        has_checksum(path, "md5:0")


def _write_half_and_stop(path):
    with atomic_write(path) as temporary:
        temporary.write_text("half of the sec")
        raise KeyboardInterrupt


def test_a_file_is_replaced_all_or_nothing(tmp_path):
    path = tmp_path / "folder" / "file.txt"
    with atomic_write(path) as temporary:
        temporary.write_text("first")
        assert not path.exists()
    assert path.read_text() == "first"
    with pytest.raises(KeyboardInterrupt):
        _write_half_and_stop(path)
    assert path.read_text() == "first"
    assert list(path.parent.iterdir()) == [path]


def test_import_adds_nothing_heavy_and_needs_no_pandas():
    code = """
import sys
sys.modules["pandas"] = None  # importing it fails
import gmpll; from gmpll import *
before = set(sys.modules)
import gmpll.datasets
added = {name for name in set(sys.modules) - before if not name.startswith("gmpll.")}
heavy = ("sklearn", "scipy", "matplotlib", "rich", "typer")
print(sorted(name for name in added if name.split(".")[0] in heavy))
print(gmpll.datasets.load_dataset("iris").data.shape)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == ["[]", "(150, 4)"]
